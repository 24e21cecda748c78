//! What judging costs: `cargo bench -p wardkeep-guard --bench rules`.

#![expect(clippy::expect_used, reason = "a figure of rules that were not read would be wrong")]

use std::hint::black_box;

use divan::Bencher;
use wardkeep_evidence::record::Principal;
use wardkeep_guard::facts::{Facts, FileFacts, NetworkFacts, Protection, Sensitivity};
use wardkeep_guard::rules::{OwnRules, RuleFile, Rules, built_in, built_in_as_cedar};
use wardkeep_guard::surface::{Act, Surface};
use wardkeep_guard::taint::Taint;

fn main() {
    divan::main();
}

/// A rule that matches nothing here, in the ways that owners' rules look.
const SHAPES: [&str; 4] = [
    "forbid (principal, action in [Action::\"read\", Action::\"alter\"], resource) \
     when { context has file && context.file.path like \"*/secret-#/*\" };",
    "forbid (principal, action == Action::\"send\", resource == Surface::\"NetworkIO\") \
     when { context has network && context.network.host == \"host-#.example\" };",
    "@verdict(\"ask\") forbid (principal in Trust::\"untrusted\", action, resource) \
     when { context.direct.containsAny([\"WEB_DERIVED\", \"UNTRUSTED\"]) && context.subject like \"#*\" };",
    "forbid (principal, action == Action::\"call\", resource == Surface::\"ConversationIO\") \
     when { context.subject == \"tool-#\" };",
];

fn own(count: usize) -> String {
    (0..count)
        .map(|at| {
            let rule = SHAPES[at % SHAPES.len()].replace('#', &at.to_string());
            format!("@id(\"rule-{at}\") {rule}\n")
        })
        .collect()
}

fn write() -> Facts {
    let mut facts =
        Facts::new(Principal::User, Surface::FileSystem, Act::Write, "/home/ann/w/src/main.rs");
    facts.ambient = Taint::WEB_DERIVED | Taint::UNTRUSTED;
    facts.file = Some(FileFacts {
        path: "/home/ann/w/src/main.rs".to_owned(),
        memory: false,
        protection: Protection::None,
        sensitivity: Sensitivity::None,
        resolved: true,
    });
    facts
}

fn send() -> Facts {
    let url = "https://api.example.org/v1/things";
    let mut facts = Facts::new(Principal::User, Surface::NetworkIO, Act::Send, url);
    facts.network = Some(NetworkFacts {
        scheme: "https".to_owned(),
        host: "api.example.org".to_owned(),
        port: None,
        method: "POST".to_owned(),
        payload: 512,
        allowed: false,
        listed: false,
        blocked: false,
        internal: false,
        metadata: false,
        oversized: false,
        exfiltration: false,
        resolved: true,
    });
    facts
}

fn denied() -> Facts {
    let mut facts =
        Facts::new(Principal::Web, Surface::DurableMemory, Act::Write, "/home/ann/w/MEMORY.md");
    facts.direct = Taint::WEB_DERIVED;
    facts.file = write().file;
    facts
}

const KINDS: [&str; 3] = ["write", "send", "denied"];

fn facts(kind: &str) -> Facts {
    match kind {
        "write" => write(),
        "send" => send(),
        _ => denied(),
    }
}

/// The built-in rules, as they are always asked.
#[divan::bench(args = KINDS)]
fn built_in_native(bencher: Bencher<'_, '_>, kind: &str) {
    let facts = facts(kind);
    bencher.bench(|| built_in::judge(black_box(&facts)));
}

/// The same rules, asked by Cedar: what is not done.
#[divan::bench(args = KINDS)]
fn built_in_cedar(bencher: Bencher<'_, '_>, kind: &str) {
    let facts = facts(kind);
    let rules = built_in_as_cedar().expect("sound rules");
    bencher.bench(|| rules.judge(black_box(&facts)));
}

/// Reading and checking an owner's rules, the schema included.
#[divan::bench(args = [0, 1, 31, 500])]
fn own_parse(bencher: Bencher<'_, '_>, count: usize) {
    let text = own(count);
    bencher.bench(|| OwnRules::parse(black_box(&text)).expect("sound rules"));
}

/// Context, request and decision for an owner's rules, the built-ins apart.
#[divan::bench(args = [1, 31, 500])]
fn own_judge_write(bencher: Bencher<'_, '_>, count: usize) {
    own_judge(bencher, count, &write());
}

#[divan::bench(args = [1, 31, 500])]
fn own_judge_send(bencher: Bencher<'_, '_>, count: usize) {
    own_judge(bencher, count, &send());
}

fn own_judge(bencher: Bencher<'_, '_>, count: usize, facts: &Facts) {
    let rules = OwnRules::parse(&own(count)).expect("sound rules");
    assert_eq!(rules.rules().len(), count);
    bencher.bench(|| rules.judge(black_box(facts)));
}

/// Everything: built-ins and 31 of the owner's.
#[divan::bench(args = KINDS)]
fn all(bencher: Bencher<'_, '_>, kind: &str) {
    let (facts, text) = (facts(kind), own(31));
    let rules = Rules::new(&[RuleFile { name: "rules.cedar", text: text.as_bytes() }]);
    assert_eq!((rules.problems().len(), rules.own().rules().len()), (0, 31));
    bencher.bench(|| rules.judge(black_box(&facts)));
}
