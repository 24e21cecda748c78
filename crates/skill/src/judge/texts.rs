//! Texts read as what they are: documents, scripts, settings.

use std::borrow::Cow;
use std::ops::Range;

use super::super::kind::{Language, extension};
use super::super::lexicon::{Says, says};
use super::super::markdown::{self, Block, BlockKind, Document};
use super::super::places::{is_drop, secret_name};
use super::super::{code, front, other, prose, shell};
use super::{File, Judge, Place, Role};
use crate::verdict::Verdict;

impl Judge<'_> {
    pub(super) fn texts(&mut self, files: &[File<'_>]) {
        for file in files {
            let place = self.place(file);
            self.characters(&place);
            self.windows(&place);
            self.blobs(&place, file.language);
            match file.language {
                Language::Markdown => self.document(&place),
                Language::Shell => self.script(&place, &recipes(file.path, &file.text), 0),
                Language::Python | Language::JavaScript | Language::TypeScript => {
                    self.written_code(&place);
                }
                Language::Json => self.json(&place),
                Language::Settings => self.settings(&place),
                Language::Markup => {
                    self.page(&place);
                    self.plain(&place);
                }
                Language::Plain if other::reads(&extension(file.path)) => {
                    let place = Place { role: script_role(place.role), ..place };
                    self.chain(&place, other::read(&file.text), file.language, 0);
                    self.lines(&place);
                }
                Language::Plain => self.plain(&place),
                _ => {}
            }
            self.variables_of(&file.text);
        }
    }

    fn document(&mut self, place: &Place<'_>) {
        let document = markdown::read(place.source);
        let names = self.names.clone();
        let declared = self.declared.clone();
        let has = |name: &str| names.contains(name) || declared.matches(name).count() > 2;
        for told in prose::read(place.source, &document, &has) {
            let verdict = match (place.role, told.verdict) {
                (Role::Example, Verdict::Deny) => Verdict::Ask,
                (Role::Example, _) => Verdict::Allow,
                (_, verdict) => verdict,
            };
            self.add(place.path, place.source, told.rule, verdict, told.at, told.reason);
        }
        if let Some(range) = document.front.clone() {
            self.front(place, range);
        }
        for (index, block) in document.blocks.iter().enumerate() {
            self.block(place, &document, index, block);
        }
        self.drops(place, &document);
    }

    fn front(&mut self, place: &Place<'_>, range: Range<usize>) {
        let text = &place.source[range.clone()];
        for (command, near) in front::read(text).commands {
            let at = text
                .find(near.get(..near.floor_char_boundary(24.min(near.len()))).unwrap_or_default())
                .unwrap_or(0)
                + range.start;
            let inner = Place { role: Role::Hook, base: at, exact: false, ..place.clone() };
            self.script(&inner, &command, 0);
        }
        let described = says(&text.to_lowercase());
        if described.any(Says::OVERRIDE) && !described.any(Says::WARNS) {
            self.add(
                place.path,
                place.source,
                "prompt.override",
                Verdict::Ask,
                range,
                "its settings tell the agent to drop its rules".to_owned(),
            );
        }
    }

    fn block(&mut self, place: &Place<'_>, document: &Document, index: usize, block: &Block) {
        match &block.kind {
            BlockKind::Code(language) => {
                let shown = &place.source[block.at.clone()];
                let offset = shown.find(block.text.as_str());
                let inner = Place {
                    base: block.at.start + offset.unwrap_or(0),
                    exact: offset.is_some(),
                    warned: acts(&block.text) && warned(document, index, block),
                    ..place.clone()
                };
                self.fence(&inner, language, &block.text);
            }
            BlockKind::Heading => {}
            _ => {
                let warned = || {
                    says(&block.text.to_lowercase()).any(Says::WARNS)
                        || says(&block.under).any(Says::WARNS)
                        || block.kind == BlockKind::Row
                };
                for (code, at) in &block.codes {
                    if code.len() > 12
                        && (code.contains('|')
                            || code.contains("://")
                            || code.contains("$(")
                            || code.contains("<(")
                            || code.contains("/dev/tcp"))
                    {
                        let inner = Place {
                            base: at.start,
                            exact: false,
                            inline: true,
                            warned: warned(),
                            ..place.clone()
                        };
                        self.script(&inner, code, 0);
                    }
                }
                if block.kind == BlockKind::Prose
                    && block.codes.is_empty()
                    && block.text.contains('|')
                    && block.text.contains("curl ")
                {
                    let inner = Place {
                        base: block.at.start,
                        exact: false,
                        inline: true,
                        warned: warned(),
                        ..place.clone()
                    };
                    self.script(&inner, &block.text, 0);
                }
            }
        }
    }

    fn fence(&mut self, place: &Place<'_>, language: &str, text: &str) {
        match language {
            "bash" | "sh" | "shell" | "zsh" | "console" | "terminal" | "shell-session" | "fish" => {
                self.script(place, &prompted(text), 0)
            }
            "python" | "py" | "python3" => self.snippet(place, Language::Python, text),
            "js" | "javascript" | "mjs" | "node" | "jsx" => {
                self.snippet(place, Language::JavaScript, text)
            }
            "ts" | "typescript" | "tsx" => self.snippet(place, Language::TypeScript, text),
            "json" | "jsonc" | "json5" => {
                for (command, _) in front::json(text).1 {
                    self.script(place, &command, 0);
                }
                self.smuggled(place, text);
            }
            "powershell" | "ps1" | "bat" | "cmd" => {}
            "ruby" | "rb" | "perl" | "pl" | "php" | "lua" => {
                self.chain(place, other::read(text), Language::Plain, 0);
            }
            _ => {
                if ["curl", "wget", "bash", "base64", "nc ", "python", "eval", "| sh"]
                    .iter()
                    .any(|word| text.contains(word))
                {
                    self.script(place, &prompted(text), 0);
                }
            }
        }
    }

    pub(super) fn script(&mut self, place: &Place<'_>, text: &str, depth: usize) {
        let (seen, complete) = shell::read(text);
        if !complete && matches!(place.role, Role::Script | Role::Hook) {
            self.complete = false;
            let path = place.path.to_owned();
            self.whole(
                &path,
                "read.incomplete",
                Verdict::Ask,
                "it is too large or too deep to be read to its end".to_owned(),
            );
        }
        self.chain(place, seen, Language::Shell, depth);
    }

    pub(super) fn snippet(&mut self, place: &Place<'_>, language: Language, text: &str) {
        // Only code that runs or sends something is worth a parser.
        let worth = [
            "exec",
            "eval",
            "system",
            "subprocess",
            "popen",
            "spawn",
            "socket",
            "environ",
            "process.env",
            ".ssh",
            ".aws",
            "credentials",
            "b64decode",
            "atob",
            "Function",
        ];
        if worth.iter().any(|word| text.contains(word)) {
            let seen = code::read(&[(language, text)]).seen.into_iter().flatten().collect();
            self.chain(place, seen, language, 0);
        }
    }

    /// Code in a text, to be written somewhere, that would decode and run something.
    fn written_code(&mut self, place: &Place<'_>) {
        let marks = [
            "exec(base64.b64decode(",
            "exec(b64decode(",
            "exec(zlib.decompress(",
            "eval(atob(",
            "exec(__import__(",
        ];
        let mut start = 0;
        for line in place.source.split_inclusive('\n') {
            let found = marks.iter().find_map(|mark| line.find(mark));
            if let Some(at) = found
                && line[..at].contains(['"', '\''])
                && !["pattern", "regex", "re.", "r'", "r\"", "assert", "#"]
                    .iter()
                    .any(|word| line.contains(word))
            {
                let range = start + at..start + line.trim_end().len().max(at);
                let reason = "a text holds code that decodes something and runs it".to_owned();
                self.find(place, "run.decoded", Verdict::Ask, range, reason);
            }
            start += line.len();
        }
    }

    /// Scripts inside a page.
    fn page(&mut self, place: &Place<'_>) {
        let lower = place.source.to_ascii_lowercase();
        let mut at = 0;
        while let Some(found) = lower[at..].find("<script") {
            let Some(open) = lower[at + found..].find('>') else { break };
            let start = at + found + open + 1;
            let end = lower[start..].find("</script").map_or(lower.len(), |length| start + length);
            let inner = Place { base: start, ..place.clone() };
            let script = &place.source[start..end];
            self.snippet(&inner, Language::JavaScript, script);
            if saves_program(script) {
                self.find(
                    &inner,
                    "lure.program",
                    Verdict::Ask,
                    0..script.len().min(80),
                    "the page makes a program and has it saved".to_owned(),
                );
            }
            at = end;
        }
    }

    fn plain(&mut self, place: &Place<'_>) {
        let document = markdown::read(place.source);
        let names = self.names.clone();
        for told in prose::read(place.source, &document, &|name| names.contains(name)) {
            let verdict = if place.role == Role::Example { Verdict::Allow } else { told.verdict };
            self.add(place.path, place.source, told.rule, verdict, told.at, told.reason);
        }
        self.lines(place);
    }

    /// Addresses in documents: one that only takes data, in code that sends.
    fn drops(&mut self, place: &Place<'_>, document: &Document) {
        for block in &document.blocks {
            let code = matches!(block.kind, BlockKind::Code(_));
            let prose = block.kind == BlockKind::Prose;
            let sends = || says(&block.text.to_lowercase()).any(Says::SEND);
            if !(code || prose && sends()) {
                continue;
            }
            for found in wardkeep_detect::urls::find_urls(&block.text)
                .into_iter()
                .filter(|found| is_drop(&found.url.raw))
            {
                let low = block.text.to_lowercase();
                let sends = says(&low).any(Says::SEND)
                    && ["post", "-d ", "--data", "upload", "send", "body"]
                        .iter()
                        .any(|word| low.contains(word));
                let own = found.url.raw.contains("your")
                    || found.url.raw.contains("xxx")
                    || found.url.raw.contains('<')
                    || found.url.raw.contains("abc");
                let fixed = sends && !own;
                let inner = Place {
                    base: block.at.start,
                    exact: false,
                    warned: says(&low).any(Says::WARNS),
                    ..place.clone()
                };
                self.find(
                    &inner,
                    "send.drop",
                    if fixed { Verdict::Ask } else { Verdict::Allow },
                    0..0,
                    format!("data goes to {}", found.url.raw.chars().take(120).collect::<String>()),
                );
            }
        }
    }

    fn variables_of(&mut self, text: &str) {
        if self.variables.len() > 200 {
            return;
        }
        for marker in ["os.environ", "os.getenv(", "process.env."] {
            for (at, _) in text.match_indices(marker).take(50) {
                let rest = text[at + marker.len()..]
                    .trim_start_matches([':', '[', '(', '"', '\'', '.'])
                    .trim_start_matches("get(")
                    .trim_start_matches(['"', '\'']);
                let name: String = rest
                    .chars()
                    .take_while(|sign| {
                        sign.is_ascii_uppercase() || sign.is_ascii_digit() || *sign == '_'
                    })
                    .collect();
                if name.len() > 2 && secret_name(&name) {
                    self.variables.insert(name);
                }
            }
        }
    }
}

/// Whether code may do something that is looked for.
fn acts(text: &str) -> bool {
    ["curl", "wget", "sh", "eval", "exec", "nc ", "socket", "rm ", "base64", "ssh", "env", "http"]
        .iter()
        .any(|word| text.contains(word))
}

/// Whether the words before code, or the headings above it, warn of it.
fn warned(document: &Document, index: usize, block: &Block) -> bool {
    let before = index.checked_sub(1).and_then(|index| document.blocks.get(index));
    let before = before.filter(|before| {
        before.section == block.section && !matches!(before.kind, BlockKind::Code(_))
    });
    says(&block.under).any(Says::WARNS)
        || before.is_some_and(|before| says(&before.text.to_lowercase()).any(Says::WARNS))
}

/// Code of other languages lies among what is only read, by its name.
fn script_role(role: Role) -> Role {
    if role == Role::Reference { Role::Script } else { role }
}

/// Whether a page makes a file out of its own text and has it saved under the name of a program.
fn saves_program(script: &str) -> bool {
    let makes = script.contains("new Blob(") || script.contains("createObjectURL");
    let saves = script.contains(".download") || script.contains("msSaveBlob");
    let ends = [
        ".exe",
        ".msi",
        ".scr",
        ".bat",
        ".cmd",
        ".ps1",
        ".dmg",
        ".pkg",
        ".iso",
        ".hta",
        ".vbs",
        ".lnk",
        ".jar",
        ".apk",
        ".appimage",
    ];
    makes && saves && {
        let lower = script.to_ascii_lowercase();
        ends.iter()
            .any(|end| lower.contains(&format!("{end}\"")) || lower.contains(&format!("{end}'")))
    }
}

/// The commands of a recipe for containers or for make, where the file is one; places stay.
fn recipes<'t>(path: &str, text: &'t str) -> Cow<'t, str> {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    if matches!(name.as_str(), "makefile" | "gnumakefile") {
        let lines = text.split_inclusive('\n').map(|line| match line.strip_prefix('\t') {
            Some(recipe) => {
                let bare = recipe.trim_start_matches(['@', '-', '+']);
                let pad = " ".repeat(1 + recipe.len() - bare.len());
                format!("{pad}{}", bare.replace("$$", " $"))
            }
            // What is no recipe is no command.
            None => {
                format!("#{}", line.get(1..).filter(|_| line.is_char_boundary(1)).unwrap_or("\n"))
            }
        });
        return Cow::Owned(lines.collect());
    }
    if !path.rsplit('/').next().is_some_and(|name| name.to_ascii_lowercase().contains("dockerfile"))
    {
        return Cow::Borrowed(text);
    }
    let lines = text.split_inclusive('\n').map(|line| match line.get(..4) {
        Some(start) if start.eq_ignore_ascii_case("run ") => format!("    {}", &line[4..]),
        _ => line.to_owned(),
    });
    Cow::Owned(lines.collect())
}

/// Commands behind the signs of a prompt.
fn prompted(text: &str) -> String {
    if !text
        .lines()
        .any(|line| line.starts_with("$ ") || line.starts_with("% ") || line.starts_with("> "))
    {
        return text.to_owned();
    }
    // The length stays, so that places stay.
    text.split_inclusive('\n')
        .map(|line| {
            if line.starts_with("$ ") || line.starts_with("% ") || line.starts_with("> ") {
                format!("  {}", &line[2..])
            } else {
                line.to_owned()
            }
        })
        .collect()
}
