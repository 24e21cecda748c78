//! `docs/rules.md`: its table is that of the code, and its examples run.

use std::fmt::Write as _;
use std::path::PathBuf;

use wardkeep_guard::rules::built_in::{self, Effect, Rule};
use wardkeep_guard::rules::case::Case;
use wardkeep_guard::rules::{RuleFile, Rules};

const BEGIN: &str =
    "<!-- made from the code: WARDKEEP_BLESS=1 cargo test -p wardkeep-guard docs -->\n";
const END: &str = "<!-- end -->\n";

fn path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rules.md"))
}

fn read() -> String {
    std::fs::read_to_string(path()).unwrap()
}

fn list<T: std::fmt::Display>(all: &[T]) -> String {
    if all.is_empty() {
        return "any".to_owned();
    }
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn row(rule: &Rule) -> String {
    let verdict = match rule.effect {
        Effect::Demands(verdict) => format!("**{verdict}**"),
        Effect::Adds(taint) => format!("adds `{}`", taint.to_string().replace('|', "`, `")),
        Effect::Passes => "passes".to_owned(),
    };
    let (surfaces, acts) = (list(rule.surfaces), list(rule.acts));
    format!("| `{}` | {surfaces} | {acts} | {} | {verdict} |\n", rule.id, rule.condition)
}

#[test]
fn the_table_is_that_of_the_code() {
    let text = read();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let mut made = format!(
        "{before}{BEGIN}\n| id | surface | act | when | verdict |\n| --- | --- | --- | --- | --- |\n"
    );
    built_in::rules().for_each(|rule| made.push_str(&row(rule)));
    write!(made, "\n{END}{after}").unwrap();
    if std::env::var_os("WARDKEEP_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(path(), &made).unwrap();
    } else {
        assert_eq!(text, made, "run it with WARDKEEP_BLESS=1 and read what changed");
    }
}

/// What stands between two fences, in order.
fn blocks<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).filter_map(|rest| Some(rest.split_once("```")?.0)).collect()
}

#[test]
fn the_examples_hold() {
    let text = read();
    let (rules, cases) = (blocks(&text, "cedar"), blocks(&text, "toml"));
    assert!(rules.len() >= 8 && rules.len() == cases.len(), "{} {}", rules.len(), cases.len());
    for (rule, cases) in rules.iter().zip(&cases) {
        // As the owner has them: with the built-ins, and without a doubt.
        let rules = Rules::new(&[RuleFile { name: "rules.cedar", text: rule.as_bytes() }]);
        assert_eq!(rules.problems(), [], "{rule}");
        assert_eq!(rules.own().rules().len(), 1);
        let cases = Case::read_all(toml::from_str(cases).unwrap()).unwrap();
        let mut verdicts = std::collections::BTreeSet::new();
        for case in cases {
            let outcome = case.run(&rules);
            assert!(outcome.passed, "{}: {outcome:?}", case.name);
            verdicts.insert(outcome.verdict);
        }
        assert!(verdicts.len() > 1, "an example shows what matches and what does not: {rule}");
    }
    // All of them together are a set of rules as well.
    let all = rules.join("\n");
    assert_eq!(
        Rules::new(&[RuleFile { name: "rules.cedar", text: all.as_bytes() }]).problems(),
        []
    );
}

#[test]
fn every_id_that_is_no_row_is_told_too() {
    let text = read();
    for id in ["rules-ask-broken", "rules-ask-changed", "rules-deny-error"] {
        assert!(text.contains(&format!("`{id}`")), "{id}");
    }
}
