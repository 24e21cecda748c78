//! The owner's rules: they tighten, and whatever is wrong with them, nothing is loosened.

use proptest::prelude::*;
use proptest::sample::select;
use wardkeep_evidence::record::Principal;
use wardkeep_guard::facts::Facts;
use wardkeep_guard::rules::built_in::judge;
use wardkeep_guard::rules::explain::explain;
use wardkeep_guard::rules::form::{FactsForm, Gaps};
use wardkeep_guard::rules::{MAX_BYTES, MAX_RULES, OwnRules, RuleFile, RuleProblem, Rules};
use wardkeep_guard::surface::{Act, Surface};
use wardkeep_guard::verdict::Verdict;

use crate::arbitrary::arbitrary_facts;

fn rules(text: &str) -> OwnRules {
    OwnRules::parse(text).unwrap_or_else(|problems| {
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        panic!("{}", told.join("\n"))
    })
}

fn problems(text: &str) -> Vec<RuleProblem> {
    OwnRules::parse(text).err().unwrap_or_default()
}

fn message() -> Facts {
    Facts::new(Principal::User, Surface::ConversationIO, Act::Receive, "hello")
}

fn facts(json: &str) -> Facts {
    let form: FactsForm = serde_json::from_str(json).unwrap();
    form.facts(Gaps::Filled).unwrap()
}

#[test]
fn a_rule_of_the_owner_s_adds_to_the_built_ins() {
    let text = r#"
        @id("no-shell") @verdict("deny") @reason("no shell on Fridays")
        forbid (principal, action == Action::"call", resource) when { context.subject like "*sh" };
        @id("look") @verdict("ask")
        forbid (principal, action, resource == Surface::"FileSystem");
    "#;
    let rules = Rules::new(&[RuleFile { name: "rules.cedar", text: text.as_bytes() }]);
    assert_eq!(rules.problems(), []);
    let call = Facts::new(Principal::User, Surface::ConversationIO, Act::Call, "bash");
    let judged = rules.judge(&call);
    assert_eq!((judged.verdict(), &*judged.rule()), (Verdict::Deny, "own:no-shell"));
    assert_eq!(judged.reason(&call), "no shell on Fridays");
    assert_eq!(rules.judge(&message()).verdict(), Verdict::Allow);
    let told = explain(&rules, &call);
    assert_eq!(told.matched[0].condition, "as rules.cedar says in line 2");
}

#[test]
fn an_approval_answers_the_owner_s_questions_alone() {
    let text = r#"
        @id("a") @verdict("ask") forbid (principal, action, resource);
        @id("s") @verdict("stage") forbid (principal, action, resource);
    "#;
    let rules = rules(text);
    let verdicts = |facts: &Facts| -> Vec<Verdict> {
        rules.judge(facts).iter().map(|hit| hit.verdict).collect()
    };
    let asked = message();
    assert_eq!(verdicts(&asked), [Verdict::Ask, Verdict::Stage]);
    assert_eq!(verdicts(&Facts { approved: true, ..asked }), [Verdict::Stage]);
    // No rule can read it: a rule that denies is not to be switched off by an approval.
    let found =
        problems(r#"@id("a") forbid (principal, action, resource) unless { context.approved };"#);
    assert!(found[0].message.contains("approved"), "{found:?}");
}

#[test]
fn a_rule_that_cannot_be_evaluated_denies() {
    let text = r#"
        @id("overflow") @verdict("redact")
        forbid (principal, action == Action::"send", resource)
        when { context has network && context.network.payload * 4 > 100 };
    "#;
    let rules = rules(text);
    let send = |payload: u64| {
        facts(&format!(
            r#"{{"principal":"USER","surface":"NetworkIO","act":"send","subject":"https://a.example/",
                "network":{{"payload":{payload}}},"approved":true}}"#
        ))
    };
    assert_eq!(rules.judge(&send(1)), []);
    assert_eq!(rules.judge(&send(26))[0].verdict, Verdict::Redact);
    let hit = &rules.judge(&send(u64::MAX))[0];
    assert_eq!((hit.verdict, &*hit.rule), (Verdict::Deny, "own:overflow"));
    assert!(hit.reason.contains("overflow"), "{hit:?}");
    // A name too long to be matched in a bounded time.
    let mut long = send(1);
    long.subject = "x".repeat(100_000);
    assert_eq!(rules.judge(&long)[0].verdict, Verdict::Deny);
}

/// Text, what the message says, line, column, and what is marked.
const WRONG: &[(&str, &str, usize, usize, &str)] = &[
    ("\n  permit (principal, action, resource);", "cannot permit", 2, 3, "permit"),
    ("@id(\"a\")\npermit (principal, action, resource);", "cannot permit", 2, 1, "permit"),
    ("forbid (principal, action, resource);", "needs an id", 1, 1, "forbid"),
    ("@id forbid (principal, action, resource);", "needs an id", 1, 1, "@id"),
    ("@id(\"A b\") forbid (principal, action, resource);", "a-z", 1, 1, "@id(\"A b\")"),
    (
        "@id(\"default-deny\") forbid (principal, action, resource);",
        "built-in",
        1,
        1,
        "@id(\"default-deny\")",
    ),
    (
        "@id(\"rules-x\") forbid (principal, action, resource);",
        "built-in",
        1,
        1,
        "@id(\"rules-x\")",
    ),
    (
        "@id(\"a\") forbid (principal, action, resource);\n@id(\"a\") forbid (principal, action, resource);",
        "another rule",
        2,
        1,
        "@id(\"a\")",
    ),
    (
        "@id(\"a\") @verdict(\"allow\") forbid (principal, action, resource);",
        "no verdict",
        1,
        10,
        "@verdict(\"allow\")",
    ),
    (
        "@id(\"a\") @verdict(\"Deny\") forbid (principal, action, resource);",
        "no verdict",
        1,
        10,
        "@verdict(\"Deny\")",
    ),
    (
        "@id(\"a\") @verdit(\"ask\") forbid (principal, action, resource);",
        "no annotation",
        1,
        10,
        "@verdit(\"ask\")",
    ),
    (
        "@id(\"a\") @reason(\"\") forbid (principal, action, resource);",
        "a reason",
        1,
        10,
        "@reason(\"\")",
    ),
    ("@id(\"a\") forbid (principal == ?principal, action, resource);", "template", 1, 10, "forbid"),
    ("@id(\"a\") forbid (principal, action, resource)", "unexpected end of input", 1, 46, "^"),
    (
        "@id(\"a\") forbid (principal, action, resource) when { context.nothing };",
        "nothing",
        1,
        54,
        "context.nothing",
    ),
    (
        "@id(\"a\") forbid (principal, action, resource) when { context.file.memory };",
        "file",
        1,
        54,
        "context.file.memory",
    ),
    (
        "@id(\"a\") forbid (principal, action == Action::\"wirte\", resource);",
        "wirte",
        1,
        39,
        "Action::\"wirte\"",
    ),
    (
        "@id(\"a\") forbid (principal == Principal::\"Web\", action, resource);",
        "no such entity",
        1,
        42,
        "\"Web\"",
    ),
    (
        "@id(\"a\") forbid (principal, action, resource == Surface::\"Memory\");",
        "no such entity",
        1,
        58,
        "\"Memory\"",
    ),
    (
        "@id(\"a\") forbid (principal, action, resource)\nwhen { context.direct.contains(\"WEB\") };",
        "no taint \"WEB\"",
        2,
        32,
        "\"WEB\"",
    ),
    (
        "@id(\"a\") forbid (principal, action, resource) when { context.scan == 3 };",
        "type",
        1,
        54,
        "context.scan == 3",
    ),
    ("@id(\"a\") forbid (principal, action, resource) when { false };", "impossible", 1, 1, ""),
    ("@id(\"a\") forbid (principal, action, resource) when { \"", "does not end", 1, 54, "\""),
    (
        "@id(\"a\") forbid (principal, action, resource) when { ip(context.subject).isIpv4() };",
        "non-literal",
        1,
        54,
        "",
    ),
];

#[test]
fn every_problem_has_its_place_and_a_caret_below_it() {
    for (text, message, line, column, marked) in WRONG {
        let found = problems(text);
        let Some(first) = found.first() else { panic!("accepted: {text}") };
        assert!(first.message.contains(message), "{text}\n{first}");
        assert_eq!((first.line, first.column), (*line, *column), "{text}\n{first}");
        assert!(first.excerpt.chars().count() <= 150 && first.marks.contains('^'));
        let from = first.marks.find('^').unwrap_or(0);
        let below: String =
            first.excerpt.chars().skip(from).take(first.marks.chars().count() - from).collect();
        if *marked != "^" && !marked.is_empty() {
            assert_eq!(below, *marked, "{first}");
        }
    }
}

#[test]
fn several_problems_are_told_at_once_and_two_files_are_one_set() {
    let text = "permit (principal, action, resource);\nforbid (principal, action, resource);";
    assert_eq!(problems(text).len(), 2);
    // Cedar says it once for each act.
    let text = "@id(\"a\") forbid (principal, action, resource) when { context.file.memory };";
    assert_eq!(problems(text).len(), 1);
    assert!(!problems(text)[0].message.contains("Action"), "{:?}", problems(text));
    let rule = b"@id(\"a\") forbid (principal, action, resource);";
    let files = [
        RuleFile { name: "rules.cedar", text: rule },
        RuleFile { name: "rules/b.cedar", text: rule },
    ];
    let found = OwnRules::parse_files(&files).unwrap_err();
    assert_eq!(found[0].summary(), "rules/b.cedar:1:1: another rule in rules.cedar has the id `a`");
    let files = [RuleFile { name: "rules.cedar", text: b"\xff" }];
    assert!(OwnRules::parse_files(&files).unwrap_err()[0].message.contains("UTF-8"));
}

#[test]
fn nothing_but_comments_is_no_rule() {
    for text in ["", " \n", "// only a comment", "// a\r\n// b\n"] {
        assert_eq!(rules(text).rules(), []);
    }
}

#[test]
fn size_and_number_are_bounded() {
    let many: String = (0..=MAX_RULES)
        .map(|number| format!("@id(\"r{number}\") forbid (principal, action, resource);\n"))
        .collect();
    assert!(problems(&many)[0].message.contains("over the limit"), "{:?}", problems(&many));
    let long = format!("// {}", "x".repeat(MAX_BYTES));
    assert!(problems(&long)[0].message.contains("over the limit"));
}

/// Texts that go as deep as they can, in every way that Cedar's grammar has.
fn deep() -> Vec<String> {
    let head = "@id(\"a\") forbid (principal, action, resource) when { ";
    let mut texts = Vec::new();
    for count in [10, 20, 24, 100, 300, 600, 900, 1900, 5000, 50_000] {
        let shapes = [
            format!("{}true{}", "(".repeat(count), ")".repeat(count)),
            format!("{}true", "!".repeat(count)),
            format!("{}1 == 1", "-".repeat(count)),
            format!("context{}", ".file".repeat(count)),
            format!("context{}", "[\"file\"]".repeat(count)),
            format!("true{}", " && true".repeat(count)),
            format!("false{}", " || context.open_proxy".repeat(count)),
            format!("1{} == 1", " + 1".repeat(count)),
            format!("1{} == 1", " * 1".repeat(count)),
            format!("{}true{}", "if true then ".repeat(count), " else true".repeat(count)),
            format!("{}true", "if context.open_proxy then true else ".repeat(count)),
            format!("{}1{} == 1", "[".repeat(count), "]".repeat(count)),
            format!("{}1{} == 1", "{a: ".repeat(count), "}".repeat(count)),
            format!("context.direct{}", ".contains(\"UNTRUSTED\")".repeat(count)),
            format!("context has a{}", ".a".repeat(count)),
            format!("true }}{}", " when { true }".repeat(count)),
            "(".repeat(count),
            "[{(".repeat(count),
        ];
        texts.extend(shapes.iter().map(|shape| format!("{head}{shape} }};")));
        texts.push("@a(\"b\")".repeat(count));
        texts.push(format!("forbid ({}", "principal, ".repeat(count)));
        texts.push(format!(
            "@id(\"a\") forbid (principal, action in [{}], resource);",
            "Action::\"read\",".repeat(count)
        ));
        texts.push(";".repeat(count));
    }
    texts
}

#[test]
fn no_text_exhausts_the_stack() {
    // Less than any thread of ours has.
    let run = || {
        let facts = message();
        for text in deep() {
            match OwnRules::parse(&text) {
                Ok(rules) => drop(rules.judge(&facts)),
                Err(problems) => assert!(!problems.is_empty()),
            }
        }
    };
    std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
}

/// Pieces of rules, in orders that make sense more often than not.
fn soup() -> impl Strategy<Value = String> {
    let head = select(vec![
        "@id(\"ID\") forbid (principal, action, resource)",
        "@id(\"ID\") @verdict(\"ask\") forbid (principal, action, resource)",
        "@id(\"ID\") @verdict(\"redact\") forbid (principal in Trust::\"untrusted\", action, resource)",
        "@id(\"ID\") @verdict(\"stage\") forbid (principal, action in Action::\"alter\", resource)",
        "@id(\"ID\") permit (principal, action, resource)",
        "@id(\"ID\") @verdict(\"allow\") forbid (principal, action, resource)",
        "permit (principal, action, resource)",
        "@id(\"default-deny\") permit (principal, action, resource)",
        "@id(\"cpi-deny-untrusted\") @verdict(\"redact\") forbid (principal, action, resource)",
    ]);
    let condition = select(vec![
        "",
        "when { true }",
        "unless { false }",
        "when { context.open_proxy }",
        "when { context has file && context.file.path like \"/a*\" }",
        "unless { context.direct.contains(\"WEB_DERIVED\") }",
        "when { context has network && context.network.payload * 9000000000000000000 > 1 }",
        "when { principal == Principal::\"USER\" }",
        "when { context.approved }",
        "when { ",
    ]);
    let rule = (head, condition, select(vec![";", ";", ";", ";", ""]));
    proptest::collection::vec(rule, 0..5).prop_map(|rules| {
        let text = |(at, (head, condition, end)): (usize, (&str, &str, &str))| {
            format!("{} {condition}{end}\n", head.replace("ID", &format!("r{at}")))
        };
        rules.into_iter().enumerate().map(text).collect()
    })
}

fn never_milder(text: &str, facts: &Facts) -> Result<(), TestCaseError> {
    let alone = judge(facts);
    let rules = Rules::new(&[RuleFile { name: "rules.cedar", text: text.as_bytes() }]);
    let judged = rules.judge(facts);
    prop_assert!(judged.verdict() >= alone.verdict(), "{}", text);
    for hit in &alone.hits {
        prop_assert!(judged.hits.contains(hit), "{} lost {:?}", text, hit);
    }
    if !rules.problems().is_empty() && !facts.approved {
        prop_assert!(judged.verdict() >= Verdict::Ask, "{}", text);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_rule_file_turns_a_denial_into_an_allow(text in soup(), facts in arbitrary_facts()) {
        never_milder(&text, &facts)?;
    }

    #[test]
    fn no_text_at_all_does(text in ".{0,200}", facts in arbitrary_facts()) {
        never_milder(&text, &facts)?;
    }

    #[test]
    fn tokens_in_any_order_neither(
        words in proptest::collection::vec(select(vec![
            "@id(\"a\")", "forbid", "permit", "(", ")", "principal", "action", "resource", ",", ";", "when",
            "unless", "{", "}", "true", "context", ".", "direct", "==", "\"x\"", "\"", "//", "\r", "::", "?principal",
            "in", "[", "]", "if", "then", "else", "has", "like", "is", "!", "-", "9223372036854775808", "é", "\u{0}",
        ]), 0..40),
        facts in arbitrary_facts(),
    ) {
        never_milder(&words.join(" "), &facts)?;
    }
}

#[test]
fn rules_that_cannot_be_used_ask_about_everything() {
    let broken = Rules::new(&[RuleFile {
        name: "rules.cedar",
        text: b"permit(principal,action,resource);",
    }]);
    let judged = broken.judge(&message());
    assert_eq!((judged.verdict(), &*judged.rule()), (Verdict::Ask, "rules-ask-broken"));
    assert!(judged.hits[0].reason.contains("rules.cedar:1:1"), "{judged:?}");
    let approved = Facts { approved: true, ..message() };
    assert_eq!(broken.judge(&approved).verdict(), Verdict::Allow);
    let changed = Rules::default().changed("rules.cedar was removed");
    assert_eq!(&*changed.judge(&message()).rule(), "rules-ask-changed");
    let denied = Facts::new(Principal::Web, Surface::ControlPlane, Act::Change, "x");
    assert_eq!(changed.judge(&denied).verdict(), Verdict::Deny);
}

#[test]
fn the_digest_tells_sets_of_rules_apart() {
    let of = |files: &[(&str, &str)]| {
        let files: Vec<RuleFile<'_>> =
            files.iter().map(|(name, text)| RuleFile { name, text: text.as_bytes() }).collect();
        Rules::new(&files).digest().to_owned()
    };
    let all = [
        of(&[]),
        of(&[("a", "")]),
        of(&[("a", "b")]),
        of(&[("ab", "")]),
        of(&[("a", ""), ("b", "")]),
    ];
    for (at, one) in all.iter().enumerate() {
        assert_eq!(one.len(), 64);
        assert!(all[..at].iter().all(|other| other != one));
    }
}
