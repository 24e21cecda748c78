//! From files to a report.

mod chains;
mod hidden;
mod place;
mod settings;
mod texts;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use super::facts::Seen;
use super::front;
use super::kind::{Kind, Language, extension, kind};
use super::names::Likeness;
use super::rules::rule;
use super::tree::{Content, Tree, leads_out};
use super::unpack::{Oddity, unpack};
use super::{Capabilities, Finding, Options, Report, code, suppress};
use crate::verdict::Verdict;
use place::{Place, Role, role};

/// Most findings that are kept.
const MOST: usize = 400;

/// A text file of the skill.
struct File<'t> {
    path: &'t str,
    text: Cow<'t, str>,
    language: Language,
    role: Role,
}

pub(super) struct Judge<'o> {
    options: &'o Options,
    findings: Vec<Finding>,
    known: HashSet<String>,
    complete: bool,
    name: Option<String>,
    description: String,
    /// All prose in lower case, to see what the skill says that it does.
    declared: String,
    names: BTreeSet<String>,
    hosts: BTreeSet<String>,
    runs: bool,
    variables: BTreeSet<String>,
    /// The tools that it says it needs.
    tools: Option<String>,
}

pub(super) fn verify(tree: &Tree, options: &Options) -> Report {
    let mut tree = Cow::Borrowed(tree);
    let packed = tree.entries.iter().any(|entry| matches!(&entry.content, Content::File(bytes) if matches!(kind(&entry.path, bytes), Kind::Archive(_))));
    let oddities = if packed { unpack(tree.to_mut(), &options.limits) } else { Vec::new() };
    let mut judge = Judge {
        options,
        findings: Vec::new(),
        known: HashSet::new(),
        complete: true,
        name: None,
        description: String::new(),
        declared: String::new(),
        names: BTreeSet::new(),
        hosts: BTreeSet::new(),
        runs: false,
        variables: BTreeSet::new(),
        tools: None,
    };
    judge.gaps(&tree, oddities);
    let files = judge.files(&tree);
    judge.about(&files);
    judge.texts(&files);
    judge.programs(&files);
    judge.naming(&files);
    judge.declared(&files);
    let mut report = judge.report();
    suppress::apply(&mut report, &tree, &options.suppressions);
    report
}

impl Judge<'_> {
    fn gaps(&mut self, tree: &Tree, oddities: Vec<Oddity>) {
        if tree.entries.is_empty() && tree.gaps.is_empty() {
            self.complete = false;
            self.whole(
                "",
                "read.incomplete",
                Verdict::Ask,
                "there is nothing to judge here".to_owned(),
            );
        }
        for gap in &tree.gaps {
            self.complete = false;
            self.whole(
                &gap.path,
                "read.incomplete",
                Verdict::Ask,
                format!("not read: {}", gap.why),
            );
        }
        for oddity in oddities {
            match oddity {
                Oddity::Locked(path) => self.whole(
                    &path,
                    "file.locked",
                    Verdict::Ask,
                    "a password keeps it from being read".to_owned(),
                ),
                Oddity::LeadsOut(path, name) => self.whole(
                    &path,
                    "file.leads-out",
                    Verdict::Deny,
                    format!("it would write to {name}"),
                ),
            }
        }
        let mut folded: HashSet<String> = HashSet::new();
        for entry in &tree.entries {
            if !folded.insert(wardkeep_detect::names::fold_name(&entry.path)) {
                self.whole(
                    &entry.path,
                    "hidden.letters",
                    Verdict::Ask,
                    "another file has the same name but for its letters' case or look".to_owned(),
                );
            }
        }
    }

    /// The text files; what is no text is judged here.
    fn files<'t>(&mut self, tree: &'t Tree) -> Vec<File<'t>> {
        let mut out = Vec::new();
        for entry in &tree.entries {
            let path = entry.path.as_str();
            let bytes = match &entry.content {
                Content::File(bytes) => bytes,
                Content::Link(target) if leads_out(path, target) => {
                    self.whole(
                        path,
                        "file.leads-out",
                        Verdict::Deny,
                        format!("it leads to {target}"),
                    );
                    continue;
                }
                Content::Link(target) => {
                    self.whole(path, "file.link", Verdict::Allow, format!("it leads to {target}"));
                    continue;
                }
                Content::Special => {
                    self.whole(path, "file.unknown", Verdict::Ask, "it is no file".to_owned());
                    continue;
                }
            };
            let ending = extension(path);
            let shown = matches!(
                ending.as_str(),
                "png"
                    | "jpg"
                    | "jpeg"
                    | "gif"
                    | "webp"
                    | "svg"
                    | "ico"
                    | "pdf"
                    | "txt"
                    | "md"
                    | "json"
                    | "csv"
                    | "yaml"
                    | "yml"
                    | "mp3"
                    | "mp4"
                    | "ttf"
                    | "woff"
            );
            match kind(path, bytes) {
                Kind::Text(language) => {
                    if bytes.starts_with(b"#!") && shown && ending != "md" && ending != "txt" {
                        self.whole(
                            path,
                            "file.disguised",
                            Verdict::Ask,
                            "it is a script under the name of something else".to_owned(),
                        );
                    }
                    out.push(File {
                        path,
                        text: String::from_utf8_lossy(bytes),
                        language,
                        role: role(path, language),
                    });
                }
                Kind::Program(what) if shown => {
                    self.whole(path, "file.disguised", Verdict::Deny, format!("it is {what}"))
                }
                Kind::Program(what) => {
                    self.whole(path, "file.program", Verdict::Ask, format!("it is {what}"))
                }
                Kind::Archive(_) if shown && !path.contains("!/") => self.whole(
                    path,
                    "file.disguised",
                    Verdict::Ask,
                    "it is an archive under the name of something else".to_owned(),
                ),
                Kind::Unknown if !bytes.is_empty() => self.whole(
                    path,
                    "file.unknown",
                    Verdict::Ask,
                    "what it holds could not be read".to_owned(),
                ),
                _ => {}
            }
        }
        out
    }

    /// What the skill says about itself.
    fn about(&mut self, files: &[File<'_>]) {
        for file in files {
            let name = file.path.rsplit('/').next().unwrap_or(file.path).to_ascii_lowercase();
            self.names.insert(name.clone());
            if file.language == Language::Markdown && self.declared.len() < 1 << 20 {
                self.declared.push_str(&file.text.to_lowercase());
                self.declared.push('\n');
            }
            if name == "skill.md" && self.name.is_none() {
                let front = file
                    .text
                    .strip_prefix("---")
                    .and_then(|rest| rest.split_once("\n---"))
                    .map(|(front, _)| front::read(front));
                if let Some(front) = front {
                    self.name = front.name;
                    self.tools = front.tools;
                    self.description = front.description.to_lowercase();
                }
                if self.description.is_empty() {
                    self.description = file.text.to_lowercase().chars().take(400).collect();
                }
            }
        }
    }

    /// Python, JavaScript and TypeScript, each kind together.
    fn programs(&mut self, files: &[File<'_>]) {
        for python in [true, false] {
            let fits = |language: Language| match language {
                Language::Python => python,
                Language::JavaScript | Language::TypeScript => !python,
                _ => false,
            };
            let chosen: Vec<&File<'_>> = files.iter().filter(|file| fits(file.language)).collect();
            if chosen.is_empty() {
                continue;
            }
            let texts: Vec<(Language, &str)> =
                chosen.iter().map(|file| (file.language, &*file.text)).collect();
            let read = code::read(&texts);
            for (place, file) in chosen.iter().enumerate() {
                if !read.complete.get(place).copied().unwrap_or(false) {
                    self.complete = false;
                    self.whole(
                        file.path,
                        "read.incomplete",
                        Verdict::Ask,
                        "it is too large or too deep to be read to its end".to_owned(),
                    );
                }
                let at = self.place(file);
                let seen: Vec<Seen> = read.seen.get(place).cloned().unwrap_or_default();
                self.chain(&at, seen, file.language, 0);
            }
        }
    }

    fn place<'f>(&self, file: &'f File<'_>) -> Place<'f> {
        Place {
            path: file.path,
            source: &file.text,
            role: file.role,
            inline: false,
            warned: false,
            layers: 0,
            base: 0,
            exact: true,
        }
    }

    /// Names: of the skill, and of the folder that it comes in.
    fn naming(&mut self, files: &[File<'_>]) {
        let manual = files.iter().find(|file| file.path.eq_ignore_ascii_case("skill.md"));
        let folder = self.options.folder.clone();
        let own = self.name.clone();
        for name in [own.clone(), folder].into_iter().flatten() {
            let (rule, why) = match self.options.names.likeness(&name) {
                Likeness::None => continue,
                Likeness::Similar(known) => {
                    ("name.similar", format!("`{name}` is nearly `{known}`"))
                }
                Likeness::Confusable(known) => {
                    ("name.similar", format!("`{name}` looks like `{known}` and is not"))
                }
                Likeness::Suffixed(known) => (
                    "name.collision",
                    format!("`{name}` is `{known}` with letters at its end that mean nothing"),
                ),
            };
            let path = manual.map_or("SKILL.md", |file| file.path).to_owned();
            self.whole(&path, rule, Verdict::Ask, why);
            break;
        }
        if let Some(file) = manual
            && let Some(known) = self
                .options
                .names
                .copied(own.as_deref().unwrap_or_default(), &file.text)
                .map(str::to_owned)
        {
            self.whole(
                file.path,
                "name.copy",
                Verdict::Ask,
                format!("its text is nearly that of `{known}`"),
            );
        }
    }

    /// What the skill says that it needs, against what it was seen to do.
    fn declared(&mut self, files: &[File<'_>]) {
        let Some(tools) = &self.tools else { return };
        let runs = [
            "bash", "shell", "exec", "run", "terminal", "command", "python", "node", "*", "bins",
            "process",
        ];
        let reaches = ["fetch", "http", "web", "net", "browser", "url", "host", "curl", "*"];
        let says = |words: &[&str]| words.iter().any(|word| tools.contains(word));
        let path = files.iter().find(|file| file.path.eq_ignore_ascii_case("skill.md"));
        let path = path.map_or("SKILL.md", |file| file.path).to_owned();
        let mut less = Vec::new();
        if self.runs && !says(&runs) {
            less.push("it runs commands".to_owned());
        }
        if let Some(host) = self.hosts.first().filter(|_| !says(&reaches) && !says(&runs)) {
            less.push(format!("it talks to {host}"));
        }
        for what in less {
            let reason = format!("{what}, which the tools that it asks for do not say");
            self.whole(&path, "declared.less", Verdict::Allow, reason);
        }
    }

    /// A finding about a file as a whole.
    fn whole(&mut self, path: &str, rule: &'static str, verdict: Verdict, reason: String) {
        self.add(path, "", rule, verdict, 0..0, reason);
    }

    fn add(
        &mut self,
        path: &str,
        source: &str,
        id: &'static str,
        verdict: Verdict,
        at: Range<usize>,
        reason: String,
    ) {
        let start = source.floor_char_boundary(at.start.min(source.len()));
        let end = source.floor_char_boundary(at.end.clamp(start, source.len()));
        let (line, column) = if source.is_empty() {
            (0, 0)
        } else {
            let before = &source[..start];
            let last = before.rsplit('\n').next().unwrap_or_default();
            (before.bytes().filter(|byte| *byte == b'\n').count() + 1, last.chars().count() + 1)
        };
        let found = &source[start..end];
        let found = if found.trim().is_empty() {
            source[start..].lines().next().unwrap_or_default()
        } else {
            found
        };
        let excerpt: String = found.trim().chars().take(200).collect();
        let id_text = format!("{:016x}", stable(&[id, path, &excerpt, &reason]));
        let finding = Finding {
            rule: id,
            verdict,
            path: path.to_owned(),
            line,
            column,
            start,
            end,
            excerpt,
            reason,
            id: id_text,
        };
        // The same thing seen in two ways counts once, as the stricter.
        if let Some(known) = self.findings.iter_mut().find(|known| {
            known.rule == id
                && known.path == path
                && (known.id == finding.id || (line > 0 && known.line == line))
        }) {
            if verdict > known.verdict {
                *known = finding;
            }
            return;
        }
        if self.findings.len() >= MOST
            && verdict <= Verdict::Ask
            && self.findings.iter().any(|known| known.verdict >= Verdict::Ask)
        {
            return;
        }
        debug_assert!(rule(id).is_some(), "{id}");
        self.known.insert(finding.id.clone());
        self.findings.push(finding);
    }

    fn report(mut self) -> Report {
        self.combine();
        self.findings.sort_by(|one, two| {
            two.verdict
                .cmp(&one.verdict)
                .then_with(|| one.path.cmp(&two.path))
                .then_with(|| one.start.cmp(&two.start))
        });
        self.findings.truncate(MOST);
        let worst =
            self.findings.iter().map(|finding| finding.verdict).max().unwrap_or(Verdict::Allow);
        let verdict = if self.complete { worst } else { worst.max(Verdict::Ask) };
        let mut hosts: Vec<String> = self.hosts.into_iter().collect();
        hosts.truncate(200);
        let capabilities = Capabilities {
            hosts,
            runs_commands: self.runs,
            variables: self.variables.into_iter().take(200).collect(),
        };
        Report {
            verdict,
            findings: self.findings,
            suppressed: Vec::new(),
            complete: self.complete,
            name: self.name,
            capabilities,
        }
    }

    /// What several findings together mean.
    fn combine(&mut self) {
        let has = |findings: &[Finding], rules: &[&str]| {
            findings
                .iter()
                .any(|finding| rules.contains(&finding.rule) && finding.verdict >= Verdict::Ask)
        };
        let fetches =
            has(&self.findings, &["run.fetched", "lure.program", "lure.paste", "run.decoded"]);
        let named = has(&self.findings, &["name.similar", "name.collision"]);
        for finding in &mut self.findings {
            let stricter = match finding.rule {
                // A protection turned off for something that was fetched.
                "guard.off" => fetches,
                // Fetched and run, under a name that is nearly another's.
                "run.fetched" | "lure.program" | "lure.paste" => named,
                _ => false,
            };
            if stricter && finding.verdict == Verdict::Ask {
                finding.verdict = Verdict::Deny;
            }
        }
    }
}

/// A number that is the same in every run and on every machine.
fn stable(parts: &[&str]) -> u64 {
    use std::hash::Hasher as _;
    let mut hasher = siphasher::sip::SipHasher13::new();
    for part in parts {
        hasher.write_usize(part.len());
        hasher.write(part.as_bytes());
    }
    hasher.finish()
}
