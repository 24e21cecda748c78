//! Markdown taken apart: prose, code and links, each with its place.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// A document in its parts.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) blocks: Vec<Block>,
    /// The settings at its beginning, without the dashes.
    pub(super) front: Option<Range<usize>>,
}

/// A part of a document.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) kind: BlockKind,
    /// What it says; code as it is, prose without marks.
    pub(super) text: String,
    /// Where it stands in the source.
    pub(super) at: Range<usize>,
    pub(super) links: Vec<Link>,
    /// Code inside prose.
    pub(super) codes: Vec<(String, Range<usize>)>,
    /// The headings above it, in lower case, the nearest last.
    pub(super) under: String,
    /// Which part of the document it belongs to: counts headings.
    pub(super) section: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BlockKind {
    Heading,
    Prose,
    Row,
    Code(String),
    /// HTML and comments, which a reader may not see.
    Hidden,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) url: String,
    pub(super) text: String,
    pub(super) at: Range<usize>,
}

/// Reads a document.
pub(super) fn read(source: &str) -> Document {
    let front = front(source);
    let start = front.as_ref().map_or(0, |front| {
        source[front.end..].find('\n').map_or(source.len(), |at| front.end + at)
    });
    let body = &source[start..];
    let mut reader = Reader {
        start,
        out: Vec::new(),
        current: None,
        headings: Vec::new(),
        section: 0,
        link: None,
        veiled: None,
    };
    for (event, at) in Parser::new_ext(body, Options::ENABLE_TABLES).into_offset_iter() {
        reader.event(event, at);
    }
    reader.finish();
    Document { blocks: reader.out, front }
}

/// Settings between lines of dashes at the beginning.
fn front(source: &str) -> Option<Range<usize>> {
    let lead = source.len() - source.trim_start_matches(['\u{feff}', '\n', '\r', ' ']).len();
    let rest = &source[lead..];
    let first = rest.split('\n').next()?;
    if first.trim_end() != "---" {
        return None;
    }
    let body = lead + first.len() + 1;
    let mut at = body;
    for line in source.get(body..)?.split_inclusive('\n') {
        if matches!(line.trim_end(), "---" | "...") {
            return Some(body..at);
        }
        at += line.len();
    }
    None
}

struct Reader {
    start: usize,
    out: Vec<Block>,
    current: Option<Block>,
    headings: Vec<(usize, String)>,
    section: usize,
    link: Option<Link>,
    /// Text that a style keeps from showing.
    veiled: Option<Block>,
}

/// Whether a tag keeps what is in it from showing.
fn veils(tag: &str) -> bool {
    let plain: String =
        tag.to_ascii_lowercase().chars().filter(|sign| !sign.is_whitespace()).collect();
    [
        "font-size:0",
        "font-size:1px",
        "display:none",
        "visibility:hidden",
        "opacity:0",
        "color:#fff",
        "color:white",
        "color:transparent",
    ]
    .iter()
    .any(|style| plain.contains(style))
        || tag.to_ascii_lowercase().contains(" hidden")
}

impl Reader {
    fn event(&mut self, event: Event<'_>, at: Range<usize>) {
        let at = at.start + self.start..at.end + self.start;
        match event {
            Event::Start(tag) => self.open(tag, at),
            Event::End(tag) => self.close(tag),
            Event::Text(text) if self.veiled.is_some() => {
                if let Some(block) = &mut self.veiled {
                    block.text.push_str(&text);
                }
            }
            Event::Text(text) => self.add(&text, at),
            Event::Code(text) => {
                let code = text.to_string();
                self.add(&text, at.clone());
                if let Some(block) = &mut self.current {
                    block.codes.push((code, at));
                }
            }
            Event::SoftBreak => self.add(" ", at),
            Event::HardBreak => self.add("\n", at),
            Event::Html(text) => {
                if let Some(block) = &mut self.current {
                    block.text.push_str(&text);
                } else {
                    self.begin(BlockKind::Hidden, at.clone());
                    self.add(&text, at);
                    self.finish();
                }
            }
            Event::InlineHtml(text) if self.veiled.is_some() && text.starts_with("</") => {
                self.out.extend(self.veiled.take());
            }
            Event::InlineHtml(text) if veils(&text) => {
                self.out.extend(self.veiled.take());
                self.veiled = Some(self.block(BlockKind::Hidden, at));
            }
            // A comment inside a line is as hidden as one outside.
            Event::InlineHtml(text) if text.starts_with("<!--") => {
                let mut block = self.block(BlockKind::Hidden, at);
                block.text = text.to_string();
                self.out.push(block);
            }
            _ => {}
        }
    }

    fn block(&self, kind: BlockKind, at: Range<usize>) -> Block {
        let under =
            self.headings.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" / ");
        Block {
            kind,
            text: String::new(),
            at,
            links: Vec::new(),
            codes: Vec::new(),
            under,
            section: self.section,
        }
    }

    fn begin(&mut self, kind: BlockKind, at: Range<usize>) {
        self.finish();
        self.current = Some(self.block(kind, at));
    }

    fn finish(&mut self) {
        self.out.extend(self.veiled.take());
        if let Some(block) = self.current.take()
            && !block.text.trim().is_empty()
        {
            self.out.push(block);
        }
    }

    fn open(&mut self, tag: Tag<'_>, at: Range<usize>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.section += 1;
                let level = level as usize;
                self.headings.retain(|(above, _)| *above < level);
                self.headings.push((level, String::new()));
                self.begin(BlockKind::Heading, at);
            }
            Tag::Paragraph | Tag::Item => self.begin(BlockKind::Prose, at),
            Tag::TableRow | Tag::TableHead => self.begin(BlockKind::Row, at),
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(info) => {
                        info.split([' ', ',', '{']).next().unwrap_or_default().to_ascii_lowercase()
                    }
                    CodeBlockKind::Indented => String::new(),
                };
                self.begin(BlockKind::Code(language), at);
            }
            Tag::HtmlBlock => self.begin(BlockKind::Hidden, at),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some(Link { url: dest_url.to_string(), text: String::new(), at });
            }
            _ => {}
        }
    }

    fn close(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                if let (Some(block), Some(last)) = (&self.current, self.headings.last_mut()) {
                    last.1 = block.text.to_lowercase();
                }
                self.finish();
            }
            TagEnd::Paragraph
            | TagEnd::Item
            | TagEnd::TableRow
            | TagEnd::TableHead
            | TagEnd::CodeBlock
            | TagEnd::HtmlBlock => self.finish(),
            TagEnd::TableCell => self.add(" | ", 0..0),
            TagEnd::Link | TagEnd::Image => {
                if let (Some(link), Some(block)) = (self.link.take(), &mut self.current) {
                    block.links.push(link);
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, text: &str, at: Range<usize>) {
        if self.current.is_none() {
            self.current = Some(self.block(BlockKind::Prose, at));
        }
        if let Some(link) = &mut self.link {
            link.text.push_str(text);
        }
        if let Some(block) = &mut self.current {
            block.text.push_str(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_places() {
        let source = "---\nname: x\n---\n# One\n\nSee [here](https://a.example/b) and `ls -l`.\n\n## Two\n\n> quoted\n\n```bash\necho hi\n```\n\n<!-- secret -->\n\n| a | b |\n|---|---|\n| c | d |\n";
        let document = read(source);
        assert_eq!(&source[document.front.clone().unwrap()], "name: x\n");
        let kinds: Vec<&BlockKind> = document.blocks.iter().map(|block| &block.kind).collect();
        assert_eq!(kinds.len(), 8, "{:?}", document.blocks);
        let prose = &document.blocks[1];
        assert_eq!(
            (prose.links[0].url.as_str(), prose.links[0].text.as_str()),
            ("https://a.example/b", "here")
        );
        assert_eq!(prose.codes[0].0, "ls -l");
        let code = &document.blocks[4];
        assert_eq!(
            (&code.kind, code.text.as_str(), code.under.as_str()),
            (&BlockKind::Code("bash".into()), "echo hi\n", "one / two")
        );
        assert_eq!(document.blocks[5].kind, BlockKind::Hidden);
        assert_eq!(document.blocks[7].kind, BlockKind::Row);
        for block in &document.blocks {
            assert!(source.get(block.at.clone()).is_some());
        }
        read("---\nno end");
    }
}
