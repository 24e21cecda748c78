//! Skills written for the verifier, each with the verdict that it must get.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wardkeep_skill::Verdict;
use wardkeep_skill::{Options, Tree, verify};

/// A skill of the corpus.
struct Written {
    id: String,
    verdict: Verdict,
    tree: Tree,
}

/// Replaces `⟦b64:…⟧` and its like by what they stand for.
fn encoded(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('⟦') {
        out.extend(before.as_bytes());
        let (mark, behind) = behind.split_once('⟧').unwrap();
        match mark.split_once(':') {
            Some(("b64", text)) => out.extend(STANDARD.encode(text).into_bytes()),
            Some(("hex", text)) => {
                text.bytes().for_each(|byte| out.extend(format!("{byte:02x}").bytes()))
            }
            Some(("bytes", digits)) => {
                let digits: Vec<char> = digits.chars().collect();
                out.extend(
                    digits.chunks(2).map(|pair| {
                        u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap()
                    }),
                );
            }
            Some(("tags", text)) => {
                let tags: String = text
                    .bytes()
                    .map(|byte| char::from_u32(0xe0000 + u32::from(byte)).unwrap())
                    .collect();
                out.extend(tags.bytes());
            }
            _ => {
                let code = u32::from_str_radix(mark.strip_prefix('u').unwrap(), 16).unwrap();
                out.extend(char::from_u32(code).unwrap().to_string().bytes());
            }
        }
        rest = behind;
    }
    out.extend(rest.as_bytes());
    out
}

fn corpus(kind: &str) -> Vec<Written> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/skills");
    let mut names: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let mut out = Vec::new();
    for path in
        names.iter().filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(kind))
    {
        let text = fs::read_to_string(path).unwrap();
        for one in text.split("#### ").skip(1) {
            let (head, body) = one.split_once('\n').unwrap();
            let [id, verdict, why] = head.split(" | ").collect::<Vec<_>>()[..] else {
                panic!("{head}")
            };
            assert!(why.len() > 15 && why.ends_with('.'), "{id} says why");
            let verdict = Verdict::ALL.into_iter().find(|known| known.as_str() == verdict).unwrap();
            let files = body.split("---- ").skip(1).map(|file| {
                let (path, text) = file.split_once('\n').unwrap();
                let text = if text.starts_with("⟦bytes:") { text.trim_end() } else { text };
                (path.to_owned(), encoded(text))
            });
            out.push(Written { id: id.to_owned(), verdict, tree: Tree::of(files) });
        }
    }
    out
}

fn check(kind: &str, least: usize, right: impl Fn(Verdict, Verdict) -> bool) {
    let corpus = corpus(kind);
    assert!(corpus.len() >= least, "{} {kind} skills", corpus.len());
    let mut wrong = Vec::new();
    for written in &corpus {
        let report = verify(&written.tree, &Options::default());
        if !right(report.verdict, written.verdict) {
            let found: Vec<String> = report
                .findings
                .iter()
                .map(|finding| {
                    format!(
                        "{} {} {}:{} {}",
                        finding.verdict, finding.rule, finding.path, finding.line, finding.reason
                    )
                })
                .collect();
            wrong.push(format!(
                "{}: {} and not {}\n    {}",
                written.id,
                report.verdict,
                written.verdict,
                found.join("\n    ")
            ));
        }
        for finding in &report.findings {
            assert!(wardkeep_skill::rule(finding.rule).is_some(), "{}", finding.rule);
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong\n{}", wrong.len(), corpus.len(), wrong.join("\n"));
}

#[test]
fn hostile_skills_are_denied_or_asked_about() {
    check("hostile", 60, |found, expected| found >= expected);
}

#[test]
fn benign_skills_that_look_alarming_are_let_through() {
    check("benign", 60, |found, expected| found == expected);
}
