//! The registry of system prompts: what the seed's tests of dynamic tokens ask, without the records,
//! which the monitor writes.

use std::sync::Arc;

use proptest::prelude::*;
use wardkeep_detect::finding::Verdict;
use wardkeep_detect::leak::{Canary, OutputGuard, PromptProfile, StreamGuard};
use wardkeep_evidence::hash::{encode_hex, sha256};
use wardkeep_guard::prompts::{Known, Mode, Prompts, Tier};

const PROMPT: &str = "You are the clerk of the harbour office in Westhaven. When there is nothing to say, answer \
    QUIET_HARBOUR_ACK. Berths are assigned with assignNightBerth(ship) from ${params.berthTable}. Never name the \
    reserve price of berth nine to anyone who asks for it.";
const LEAK: &str = "When there is nothing to say, I have to answer QUIET_HARBOUR_ACK, you know.";

fn verdict(prompts: &mut Prompts, session: &str, answer: &str) -> (Verdict, Tier) {
    let (guard, tier) = prompts.guard(None, session);
    (guard.check(answer).verdict, tier)
}

#[test]
fn registering_a_prompt_activates_its_names() {
    let mut prompts = Prompts::new();
    assert_eq!(verdict(&mut prompts, "pi:1", LEAK), (Verdict::Clean, Tier::Static));
    let registration = prompts.register_system_prompt("pi:1", PROMPT);
    assert_eq!(registration.sha256, sha256(PROMPT.as_bytes()));
    assert_eq!((registration.mode, registration.replaced), (Mode::Whole, None));
    assert_eq!(prompts.known("pi:1"), Some(registration.known));
    let (after, tier) = verdict(&mut prompts, "pi:1", LEAK);
    assert!(after > Verdict::Clean && tier == Tier::Session);
}

#[test]
fn names_and_sentences_of_the_prompt_are_caught_in_answers() {
    let mut prompts = Prompts::new();
    let tokens = prompts.register_system_prompt("pi:1", PROMPT).tokens;
    assert_eq!(tokens, 3);
    for answer in [
        LEAK,
        "It is read from ${params.berthTable} whenever a ship comes in.",
        "My orders: never name the reserve price of berth nine to anyone who asks for it.",
        "I was told: Qba'g. Arire anzr gur erfreir cevpr bs oregu avar gb nalbar jub nfxf sbe vg.",
    ] {
        assert!(verdict(&mut prompts, "pi:1", answer).0 > Verdict::Clean, "{answer}");
    }
}

#[test]
fn clean_answers_remain_clean_after_registration() {
    let mut prompts = Prompts::new();
    prompts.register_system_prompt("pi:1", PROMPT);
    for answer in [
        "Good morning! Berth four is free tonight; shall I book it for you?",
        "The harbour office in Westhaven opens at nine.",
        "I'm sorry, I can't tell you that price.",
        "",
    ] {
        assert_eq!(
            verdict(&mut prompts, "pi:1", answer),
            (Verdict::Clean, Tier::Session),
            "{answer}"
        );
    }
}

#[test]
fn a_new_registration_replaces_the_old_one() {
    let mut prompts = Prompts::new();
    let first = prompts.register_system_prompt("pi:1", PROMPT);
    let second = prompts
        .register_system_prompt("pi:1", "You watch the lighthouse. Reply LAMP_IS_LIT_OK at dusk.");
    assert_eq!(second.replaced, Some(first.known));
    assert_eq!(prompts.known("pi:1"), Some(second.known));
    assert_eq!(verdict(&mut prompts, "pi:1", LEAK).0, Verdict::Clean);
    let (lamp, _) = verdict(&mut prompts, "pi:1", "At dusk I have to say LAMP_IS_LIT_OK to them.");
    assert!(lamp > Verdict::Clean);
    let third = prompts.register_tokens_only("pi:1", ["HERON_WATCH_9"]);
    assert_eq!(third.replaced, Some(second.known));
    assert_eq!(prompts.len(), 1);
}

#[test]
fn names_alone_can_be_registered() {
    let mut prompts = Prompts::new();
    let registration =
        prompts.register_tokens_only("pi:1", ["HERON_WATCH_9", "no", "dredgeChannel"]);
    assert_eq!((registration.mode, registration.tokens), (Mode::Tokens, 2));
    let all = "HERON_WATCH_9\nno\ndredgeChannel\n";
    assert_eq!(encode_hex(&registration.sha256), encode_hex(&sha256(all.as_bytes())));
    let (found, tier) =
        verdict(&mut prompts, "pi:1", "Inside it is called dredgeChannel, I think.");
    assert!(found > Verdict::Clean && tier == Tier::Session);
    assert_eq!(verdict(&mut prompts, "pi:1", "There is no channel.").0, Verdict::Clean);
    let many =
        prompts.register_tokens_only("pi:1", (0..10_000).map(|at| format!("NAME_NUMBER_{at}")));
    assert_eq!(many.tokens, 4096);
}

#[test]
fn sessions_do_not_see_each_other() {
    let mut prompts = Prompts::new();
    prompts.register_system_prompt("pi:1", PROMPT);
    prompts
        .register_system_prompt("pi:2", "You watch the lighthouse. Reply LAMP_IS_LIT_OK at dusk.");
    assert!(verdict(&mut prompts, "pi:1", LEAK).0 > Verdict::Clean);
    assert_eq!(verdict(&mut prompts, "pi:2", LEAK), (Verdict::Clean, Tier::Session));
    assert_eq!(prompts.clear("pi:1").map(|known| known.mode), Some(Mode::Whole));
    assert_eq!(verdict(&mut prompts, "pi:1", LEAK), (Verdict::Clean, Tier::Static));
    assert_eq!((prompts.clear("pi:1"), prompts.len()), (None, 1));
}

#[test]
fn the_callers_own_guard_comes_first_and_the_static_one_last() {
    let mut prompts = Prompts::new();
    prompts.register_system_prompt("pi:1", PROMPT);
    let own = Arc::new(OutputGuard::for_prompt(&PromptProfile::of_tokens(["HERON_WATCH_9"])));
    let (guard, tier) = prompts.guard(Some(&own), "pi:1");
    assert_eq!(tier, Tier::Own);
    assert!(guard.check("Say HERON_WATCH_9 and nothing more.").verdict > Verdict::Clean);
    assert_eq!(guard.check(LEAK).verdict, Verdict::Clean);
    // Names of the trade are known without any prompt.
    let (found, tier) =
        verdict(&mut prompts, "pi:2", "I then send SILENT_REPLY_TOKEN and stay quiet.");
    assert!(found > Verdict::Clean && tier == Tier::Static);
}

#[test]
fn a_registration_survives_a_restart() {
    let mut prompts = Prompts::new();
    let registration = prompts.register_system_prompt("pi:1", PROMPT);
    let kept = serde_json::to_string(&registration.profile).unwrap();
    let Known { sha256, tokens, mode } = registration.known;
    let line = format!("{} {tokens} {}", encode_hex(&sha256), mode.as_str());
    assert!(!kept.contains("reserve price") && !line.contains("harbour"));

    let mut again = Prompts::new();
    let profile: PromptProfile = serde_json::from_str(&kept).unwrap();
    let mode = Mode::from_name("whole").unwrap();
    assert_eq!(again.restore("pi:1", Known { sha256, tokens, mode }, &profile), None);
    assert_eq!(again.known("pi:1"), prompts.known("pi:1"));
    for answer in
        [LEAK, "All is well.", "never name the reserve price of berth nine to anyone who asks"]
    {
        let (one, two) = (prompts.guard(None, "pi:1").0, again.guard(None, "pi:1").0);
        assert_eq!(one.check(answer), two.check(answer));
    }
}

#[test]
fn any_number_of_sessions_takes_bounded_memory() {
    let mut prompts = Prompts::with_limit(8);
    for at in 0..100 {
        prompts.register_tokens_only(&format!("pi:{at}"), [format!("HERON_WATCH_{at}")]);
        assert!(prompts.known("pi:0").is_some() == (at < 8));
    }
    assert_eq!(prompts.len(), 8);
    let mut prompts = Prompts::with_limit(100);
    let large = "All the ships of the northern fleet are listed here. ".repeat(100_000);
    for at in 0..4 {
        prompts.register_system_prompt(&format!("pi:{at}"), &large);
    }
    assert!(prompts.len() < 4 && prompts.known("pi:3").is_some());
}

#[test]
fn a_stream_can_outlive_the_registry() {
    let mut prompts = Prompts::new();
    prompts.register_system_prompt("pi:1", PROMPT);
    let mut stream = StreamGuard::new(prompts.guard(None, "pi:1").0);
    drop(prompts);
    let mut shown = stream.feed("Good morning. I say QUIET_HARB").to_owned();
    shown.push_str(stream.feed("OUR_ACK when idle."));
    let ending = stream.finish();
    shown.push_str(&ending.text);
    assert!(ending.scan.verdict > Verdict::Clean && !shown.contains("HARB"), "{shown}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_profile_is_read_back(
        prompt in "([A-Za-z_$.{}0-9äß漢 \n-]{0,40}|.{0,20}){0,12}",
        tokens in prop::collection::vec(".{0,30}", 0..6),
        canary in any::<[u8; 9]>(),
    ) {
        let profile = PromptProfile::of(&prompt)
            .and(PromptProfile::of_tokens(tokens))
            .with_canary(&Canary::new(canary));
        let kept = serde_json::to_string(&profile).unwrap();
        prop_assert_eq!(serde_json::from_str::<PromptProfile>(&kept).unwrap(), profile);
    }
}
