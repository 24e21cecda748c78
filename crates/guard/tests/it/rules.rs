//! The built-in rules, in code and in Cedar.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use wardkeep_evidence::record::Principal;
use wardkeep_guard::facts::{Facts, FileFacts, NetworkFacts, Protection, Sensitivity, SkillFacts};
use wardkeep_guard::rules::built_in::{Effect, judge, rules};
use wardkeep_guard::rules::form::{FactsForm, Gaps};
use wardkeep_guard::rules::{OwnRules, Rules, built_in_as_cedar};
use wardkeep_guard::surface::{Act, Surface};
use wardkeep_guard::taint::Taint;
use wardkeep_guard::verdict::{Hit, Verdict};

use crate::arbitrary::arbitrary_facts;

fn names(hits: &[Hit]) -> BTreeSet<(String, Verdict)> {
    hits.iter().map(|hit| (hit.rule.to_string(), hit.verdict)).collect()
}

fn cedar() -> OwnRules {
    built_in_as_cedar().unwrap_or_else(|problems| {
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        panic!("{}", told.join("\n"))
    })
}

#[test]
fn the_cedar_text_has_every_rule_that_demands_something() {
    let cedar = cedar();
    let written: BTreeSet<(String, Verdict)> = cedar
        .rules()
        .iter()
        .filter(|rule| rule.verdict != Verdict::Allow)
        .map(|rule| (rule.id.clone(), rule.verdict))
        .collect();
    let coded = rules().filter_map(|rule| match rule.effect {
        Effect::Demands(verdict) => Some((rule.id.to_owned(), verdict)),
        _ => None,
    });
    assert_eq!(written, coded.collect());
    assert_eq!(cedar.warnings(), []);
}

#[test]
fn code_and_cedar_decide_alike() {
    let cedar = cedar();
    let mut seen = BTreeSet::new();
    let config = ProptestConfig { cases: 4000, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(
        config.clone(),
        proptest::test_runner::TestRng::deterministic_rng(config.rng_algorithm),
    );
    let strategy = arbitrary_facts();
    for _ in 0..config.cases {
        let facts = strategy.new_tree(&mut runner).unwrap().current();
        let coded = judge(&facts);
        let written = cedar.judge(&facts);
        assert_eq!(names(&coded.hits), names(&written), "{facts:?}");
        let strictest = written.first().map_or(Verdict::Allow, |hit| hit.verdict);
        assert_eq!(coded.verdict(), strictest, "{facts:?}");
        seen.extend(coded.hits.iter().map(|hit| hit.rule.to_string()));
        seen.extend(coded.annotated.iter().map(|id| (*id).to_owned()));
        seen.insert(coded.passed_by.to_owned());
    }
    // A rule that was never met was never compared.
    let all: BTreeSet<String> = rules().map(|rule| rule.id.to_owned()).collect();
    assert_eq!(seen, all);
}

proptest! {
    #[test]
    fn judging_is_ordered_and_told_in_sentences(facts in arbitrary_facts()) {
        let judged = Rules::default().judge(&facts);
        prop_assert!(judged.hits.is_sorted_by(|one, other| one.verdict >= other.verdict));
        prop_assert_eq!(judged.hits.is_empty(), judged.verdict() == Verdict::Allow);
        prop_assert!(judged.passed_by != "default-deny" || judged.verdict() == Verdict::Deny);
        let reason = judged.reason(&facts);
        for reason in judged.hits.iter().map(|hit| &*hit.reason).chain([&*reason]) {
            prop_assert!(reason.len() > 10 && reason.chars().count() < 400, "{}", reason);
            prop_assert!(!reason.contains(char::is_control), "{}", reason);
        }
    }

    #[test]
    fn an_approval_removes_questions_and_nothing_else(facts in arbitrary_facts()) {
        let approved = judge(&Facts { approved: true, ..facts.clone() });
        let mut asked = judge(&Facts { approved: false, ..facts });
        asked.hits.retain(|hit| hit.verdict != Verdict::Ask);
        prop_assert_eq!(approved, asked);
    }

    #[test]
    fn more_taint_is_never_milder(facts in arbitrary_facts(), more in 0usize..8) {
        let flag = Taint::ALL.names().nth(more).map_or(Taint::NONE, |name| Taint::from_names([name]));
        let before = judge(&facts);
        let direct = judge(&Facts { direct: facts.direct | flag, ..facts.clone() });
        let ambient = judge(&Facts { ambient: facts.ambient | flag, ..facts.clone() });
        prop_assert!(direct.verdict() >= before.verdict());
        prop_assert!(ambient.verdict() >= before.verdict());
    }

    #[test]
    fn facts_survive_being_written_down(facts in arbitrary_facts()) {
        let form = FactsForm::from(&facts);
        let text = serde_json::to_string(&form).unwrap();
        let read: FactsForm = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(read.facts(Gaps::Left).unwrap(), facts);
    }
}

fn facts(principal: Principal, surface: Surface, act: Act) -> Facts {
    let mut facts = Facts::new(principal, surface, act, "/w/x");
    if act == Act::Read || act.changes_file() {
        facts.file = Some(FileFacts {
            path: "/w/x".to_owned(),
            memory: false,
            protection: Protection::None,
            sensitivity: Sensitivity::None,
            resolved: true,
        });
    }
    if act == Act::Send {
        facts.network = Some(NetworkFacts {
            scheme: "https".to_owned(),
            host: "example.org".to_owned(),
            port: None,
            method: "POST".to_owned(),
            payload: 10,
            allowed: false,
            listed: false,
            blocked: false,
            internal: false,
            metadata: false,
            oversized: false,
            exfiltration: false,
            resolved: true,
        });
    }
    facts
}

fn decided(facts: &Facts) -> (Verdict, String) {
    let judged = judge(facts);
    (judged.verdict(), judged.rule().into_owned())
}

#[test]
fn the_reference_s_default_policy_holds_and_its_holes_do_not() {
    use Principal::{Channel, External, Skill, Sys, Tool, User, Web};
    // aegx.md 4.4, rows 1 to 8.
    for principal in [Web, Skill, Channel, External, Tool] {
        let change = facts(principal, Surface::ControlPlane, Act::Change);
        assert_eq!(decided(&change).1, "cpi-deny-untrusted");
        let write = facts(principal, Surface::DurableMemory, Act::Write);
        assert_eq!(decided(&write).0, Verdict::Deny);
    }
    for principal in [User, Sys] {
        let change = facts(principal, Surface::ControlPlane, Act::Change);
        assert_eq!(decided(&change), (Verdict::Allow, "cpi-allow-authorized".to_owned()));
        let mut write = facts(principal, Surface::DurableMemory, Act::Write);
        assert_eq!(decided(&write), (Verdict::Allow, "mi-allow-authorized".to_owned()));
        for flag in ["UNTRUSTED", "INJECTION_SUSPECT", "WEB_DERIVED", "SKILL_OUTPUT"] {
            write.direct = Taint::from_names([flag]);
            assert_eq!(decided(&write), (Verdict::Deny, "mi-deny-tainted".to_owned()));
        }
    }
    let mut message = facts(User, Surface::ConversationIO, Act::Receive);
    assert_eq!(decided(&message).1, "cio-allow-clean");
    message.direct = Taint::INJECTION_SUSPECT;
    assert_eq!(decided(&message).1, "cio-deny-injection");
    // 6.3 row 21: a tainted owner may not change the control plane.
    let mut change = facts(User, Surface::ControlPlane, Act::Change);
    change.direct = Taint::INJECTION_SUSPECT;
    assert_eq!(decided(&change).1, "cpi-deny-tainted");
}

#[test]
fn a_file_act_without_a_file_is_denied() {
    let mut write = facts(Principal::Sys, Surface::FileSystem, Act::Write);
    assert_eq!(decided(&write), (Verdict::Allow, "fs-allow-default".to_owned()));
    write.file = None;
    assert_eq!(decided(&write), (Verdict::Deny, "fs-deny-unresolved".to_owned()));
    let mut send = facts(Principal::Sys, Surface::NetworkIO, Act::Send);
    assert_eq!(decided(&send), (Verdict::Allow, "net-allow-default".to_owned()));
    send.network = None;
    assert_eq!(decided(&send), (Verdict::Deny, "net-deny-unparsed".to_owned()));
    let mut install = facts(Principal::User, Surface::SkillInstall, Act::Install);
    assert_eq!(decided(&install), (Verdict::Ask, "skill-ask-unverified".to_owned()));
    install.skill = Some(SkillFacts::Clean);
    assert_eq!(decided(&install), (Verdict::Allow, "skill-allow-clean".to_owned()));
}

#[test]
fn taint_is_added_where_the_table_says() {
    let mut read = facts(Principal::Skill, Surface::DurableMemory, Act::Read);
    assert_eq!(judge(&read).taint, Taint::UNTRUSTED);
    read = facts(Principal::User, Surface::FileSystem, Act::Read);
    assert_eq!(judge(&read).taint, Taint::NONE);
    read.file.as_mut().unwrap().sensitivity = Sensitivity::Denied;
    let judged = judge(&read);
    assert_eq!((judged.verdict(), judged.taint), (Verdict::Allow, Taint::SECRET_RISK));
    let send = facts(Principal::User, Surface::NetworkIO, Act::Send);
    assert_eq!(judge(&send).taint, Taint::WEB_DERIVED | Taint::UNTRUSTED);
}
