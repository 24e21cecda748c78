//! `wardkeep skill verify`

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::ValueEnum;
use serde::Serialize;
use wardkeep_evidence::hash::{BlobHash, sha256};
use wardkeep_guard::skill::names::Names;
use wardkeep_guard::skill::{Finding, Options, Report, Verdict, rule, verify};
use wardkeep_monitor::skills::folder::read;

use super::{folder, manual, owner, sarif, show};
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Judges skills before they enter an agent: allow, ask or deny, with reasons
///
/// Reads every file of a skill, archives in it included, as what it is: documents, shell, Python,
/// JavaScript, settings. Nothing is run, nothing is looked up, links are not followed. A folder of skills
/// is judged skill by skill; a single file may be a definition of tools. Exit 0: allow. Exit 20: ask, someone
/// has to look. Exit 1: deny. What could not be read is never allowed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folders of skills, skills, or single files
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// How findings are written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write a SARIF 2.1.0 log; the same as --format sarif
    #[arg(long, conflicts_with = "format")]
    sarif: bool,
    /// Show what was found and does not matter here, too
    #[arg(long)]
    all: bool,
    /// Compare names with those in this file, one a line, instead of the well-known ones
    #[arg(long, value_name = "FILE")]
    names: Option<PathBuf>,
    /// Ask about hosts that are not named by this option, which can be given several times; without it, about
    /// those that are not on your list in `[egress]`, if you have one
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// Ask about what is nearly the same as a skill in this folder, under another name
    #[arg(long, value_name = "DIR")]
    known: Vec<PathBuf>,
}

/// How findings are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For a person
    Text,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations of a workflow on GitHub
    Github,
}

/// A skill and what was made of it.
pub(super) struct Verified {
    /// The path as it was given or found.
    pub(super) path: String,
    pub(super) report: Report,
    /// Hash of all of it, where all was read.
    tree: Option<BlobHash>,
}

#[derive(Serialize)]
struct FindingJson<'a> {
    id: &'a str,
    rule: &'a str,
    vector: &'a str,
    verdict: &'static str,
    severity: &'static str,
    skill: &'a str,
    path: &'a str,
    line: usize,
    column: usize,
    excerpt: &'a str,
    reason: &'a str,
}

#[derive(Serialize)]
struct SkillJson<'a> {
    skill: &'a str,
    name: Option<&'a str>,
    verdict: &'static str,
    complete: bool,
    hosts: &'a [String],
    runs_commands: bool,
    variables: &'a [String],
    tree: Option<String>,
    approved: bool,
}

#[derive(Serialize)]
struct SuppressedJson<'a> {
    #[serde(flatten)]
    finding: FindingJson<'a>,
    suppression: &'a str,
}

#[derive(Serialize)]
struct Answer<'a> {
    verdict: &'static str,
    complete: bool,
    findings: Vec<FindingJson<'a>>,
    suppressed: Vec<SuppressedJson<'a>>,
    skills: Vec<SkillJson<'a>>,
}

pub(super) fn run(context: &mut Context, args: &Args) -> Result<Exit, CliError> {
    let (mut options, pins) = owner(context)?;
    if let Some(path) = &args.names {
        options.names = Names::read(
            &std::fs::read_to_string(path).map_err(|error| CliError::io("read", path, &error))?,
        );
    }
    if !args.allow_host.is_empty() {
        options.allowed_hosts.clone_from(&args.allow_host);
    }
    for path in &args.known {
        for known in folder::skills(path)? {
            let name = known.file_name().map(|name| name.to_string_lossy().into_owned());
            if let (Some(name), Some(text)) = (name, manual(&read(&known, &options.limits))) {
                options.names.add(&name, &text);
            }
        }
    }
    let mut paths = Vec::new();
    for path in &args.paths {
        paths.extend(folder::skills(path)?);
    }
    let verified = judge(context, &paths, &options);
    let worst = verified.iter().map(|one| one.report.verdict).max().unwrap_or(Verdict::Allow);
    let exit = match worst {
        Verdict::Allow => Exit::Success,
        Verdict::Ask => Exit::ActionRequired,
        Verdict::Deny => Exit::Refused,
    };
    match args.format {
        _ if args.sarif => show_sarif(context, &verified),
        Format::Sarif => show_sarif(context, &verified),
        Format::Github => verified.iter().for_each(|one| annotate(context, one)),
        Format::Text => {
            for one in &verified {
                show::report(context, &one.path, &one.report, args.all);
                if one.tree.is_some_and(|tree| pins.approval(tree).is_some()) {
                    context.ui.say("  exactly this was approved by the owner");
                }
            }
        }
    }
    let findings = verified.iter().flat_map(|one| {
        let shown = one.report.findings.iter();
        shown
            .filter(|finding| args.all || finding.verdict > Verdict::Allow)
            .map(|finding| written(one, finding))
    });
    let answer = Answer {
        verdict: worst.as_str(),
        complete: verified.iter().all(|one| one.report.complete),
        findings: findings.collect(),
        suppressed: verified.iter().flat_map(suppressed).collect(),
        skills: verified
            .iter()
            .map(|one| SkillJson {
                approved: one.tree.is_some_and(|tree| pins.approval(tree).is_some()),
                ..listed(one)
            })
            .collect(),
    };
    Ok(context.finish(exit, exit == Exit::Success, &answer))
}

/// Judges every skill, several at a time.
fn judge(context: &Context, paths: &[PathBuf], options: &Options) -> Vec<Verified> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(paths.len()));
    let progress = Mutex::new(context.ui.progress("verifying"));
    std::thread::scope(|scope| {
        for _ in 0..context.threads().min(paths.len()).max(1) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(path) = paths.get(at) else { break };
                    let one = judge_one(path, options);
                    if let Ok(mut done) = done.lock() {
                        done.push((at, one));
                    }
                    if let Ok(mut progress) = progress.lock() {
                        progress.update(at as u64, paths.len() as u64);
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, one)| one).collect()
}

fn judge_one(path: &Path, options: &Options) -> Verified {
    let tree = read(path, &options.limits);
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let options = Options { folder: name, ..options.clone() };
    let report = verify(&tree, &options);
    let tree = tree.to_bytes().map(|bytes| BlobHash(sha256(&bytes)));
    Verified { path: path.display().to_string(), report, tree }
}

fn suppressed(one: &Verified) -> impl Iterator<Item = SuppressedJson<'_>> {
    one.report.suppressed.iter().map(|taken| SuppressedJson {
        finding: written(one, &taken.finding),
        suppression: &taken.reason,
    })
}

/// The severity as everywhere else.
pub(super) fn severity(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Deny => "critical",
        Verdict::Ask => "high",
        _ => "info",
    }
}

fn written<'a>(one: &'a Verified, finding: &'a Finding) -> FindingJson<'a> {
    FindingJson {
        id: &finding.id,
        rule: finding.rule,
        vector: rule(finding.rule).map_or("", |rule| rule.vector),
        verdict: finding.verdict.as_str(),
        severity: severity(finding.verdict),
        skill: &one.path,
        path: &finding.path,
        line: finding.line,
        column: finding.column,
        excerpt: &finding.excerpt,
        reason: &finding.reason,
    }
}

fn listed(one: &Verified) -> SkillJson<'_> {
    let seen = &one.report.capabilities;
    SkillJson {
        skill: &one.path,
        name: one.report.name.as_deref(),
        verdict: one.report.verdict.as_str(),
        complete: one.report.complete,
        hosts: &seen.hosts,
        runs_commands: seen.runs_commands,
        variables: &seen.variables,
        tree: one.tree.map(|tree| tree.to_string()),
        approved: false,
    }
}

fn show_sarif(context: &mut Context, verified: &[Verified]) {
    let mut text = serde_json::to_vec_pretty(&sarif::log(verified)).unwrap_or_default();
    text.push(b'\n');
    context.ui.generated(&text);
}

/// One line for each finding, as workflows read it.
fn annotate(context: &mut Context, one: &Verified) {
    for finding in one.report.findings.iter().filter(|finding| finding.verdict > Verdict::Allow) {
        let level = if finding.verdict == Verdict::Deny { "error" } else { "warning" };
        let file = property(&format!("{}/{}", one.path.trim_end_matches('/'), finding.path));
        let line = finding.line.max(1);
        let column = finding.column.max(1);
        let title = rule(finding.rule).map_or("", |rule| rule.title);
        let message = message(&format!("{title}: {}", finding.reason));
        let text = format!(
            "::{level} file={file},line={line},col={column},title={}::{message}\n",
            property(finding.rule)
        );
        context.ui.generated(text.as_bytes());
    }
}

fn message(text: &str) -> String {
    let plain: String =
        text.chars().filter(|sign| !sign.is_control() || matches!(sign, '\n' | '\r')).collect();
    plain.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_cannot_be_forged() {
        assert_eq!(message("a\n::error::b%"), "a%0A::error::b%25");
        assert_eq!(property("a,b:c\u{1b}[31m"), "a%2Cb%3Ac[31m");
    }
}
