//! The tests that seed 002 lists under 1f, 2g and 3i, by their descriptions, through the hooks.

use std::os::unix::fs::symlink;
use std::path::Path;

use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_guard::facts::SkillFacts;
use wardkeep_guard::taint::Taint;
use wardkeep_guard::verdict::Verdict;
use wardkeep_monitor::monitor::Sent;

use super::{Stage, text, user};

const PROMPT: &str = "You are Ferry, the assistant of the harbour office. When nothing is to be done, reply \
    with HARBOUR_IDLE_ACK. Call buildDockSection before each plan, and read ${params.dockName} first. \
    Never tell a caller which captain owes fees to the office.";

// 1f

#[test]
fn registering_a_system_prompt_activates_dynamic_tokens() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let who = user(&work);
    let leak = "Well: I call buildDockSection, and I say HARBOUR_IDLE_ACK when I wait.";
    assert!(monitor.on_message_output(&who, leak, None).unwrap().is_allowed());
    let (_, tokens) = monitor.on_system_prompt_available(&who, PROMPT, None).unwrap();
    assert!(tokens >= 3, "{tokens}");
    assert!(!monitor.on_message_output(&who, leak, None).unwrap().is_allowed());
}

#[test]
fn tokens_discovered_from_the_prompt_are_caught_in_output() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let who = user(&work);
    monitor.on_system_prompt_available(&who, PROMPT, None).unwrap();
    let whole = monitor.on_message_output(&who, PROMPT, None).unwrap();
    assert_eq!((whole.verdict, whole.rule.as_str()), (Verdict::Deny, "output-leak-detected"));
    assert!(whole.taint.contains(Taint::SECRET_RISK));
    let names = whole.alerts.iter().map(|alert| alert.name).collect::<Vec<_>>();
    assert!(names.contains(&"ContaminationDetected"), "{names:?}");
}

#[test]
fn clean_output_remains_clean_after_registration() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let who = user(&work);
    monitor.on_system_prompt_available(&who, PROMPT, None).unwrap();
    let reply = "The ferry leaves at ten, and the ticket costs four euros.";
    assert!(monitor.on_message_output(&who, reply, None).unwrap().is_allowed());
}

#[test]
fn registering_again_replaces_the_cached_config() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let who = user(&work);
    monitor.on_system_prompt_available(&who, PROMPT, None).unwrap();
    let other = "You tend the garden of the museum. Reply GARDEN_ROSE_ACK after each bed was watered, \
                 and begin each morning with the roses along the southern wall.";
    monitor.on_system_prompt_available(&who, other, None).unwrap();
    assert!(!monitor.on_message_output(&who, other, None).unwrap().is_allowed());
    let old = "The log says HARBOUR_IDLE_ACK at nine and again at ten.";
    assert!(monitor.on_message_output(&who, old, None).unwrap().is_allowed());
}

#[test]
fn tokens_only_are_caught_as_well() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let who = user(&work);
    let (_, tokens) = monitor.register_tokens_only(&who, &["HARBOUR_IDLE_ACK"]).unwrap();
    assert_eq!(tokens, 1);
    let reply = "I say HARBOUR_IDLE_ACK when I wait.";
    assert!(!monitor.on_message_output(&who, reply, None).unwrap().is_allowed());
}

#[test]
fn an_audit_record_is_emitted_on_registration() {
    let stage = Stage::new();
    let work = stage.work();
    let who = user(&work);
    let (record, tokens) = stage.open().on_system_prompt_available(&who, PROMPT, None).unwrap();
    let record = stage.record(record);
    assert_eq!(record.kind, RecordType::GuardDecision);
    assert_eq!(text(&record, "rule"), Some("system-prompt-registered"));
    let hash = wardkeep_evidence::hash::sha256(PROMPT.as_bytes());
    let hash = wardkeep_evidence::hash::encode_hex(&hash);
    assert_eq!(text(&record, "sha256"), Some(hash.as_str()));
    assert!(tokens > 0);
    // It is still in force after a restart.
    assert!(!stage.open().on_message_output(&who, PROMPT, None).unwrap().is_allowed());
}

#[test]
fn a_prompt_of_one_session_is_not_that_of_another() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    monitor.on_system_prompt_available(&user(&work), PROMPT, None).unwrap();
    let other = super::Who::new("codex", "codex:1", &work, Principal::User);
    let reply = "The log says HARBOUR_IDLE_ACK at nine and again at ten.";
    assert!(monitor.on_message_output(&other, reply, None).unwrap().is_allowed());
    assert!(!monitor.on_message_output(&user(&work), reply, None).unwrap().is_allowed());
}

// 2g

#[test]
fn denied_patterns_block_untrusted_reads() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    for name in [".env", ".env.production", "prod.pem", "tls.key", "id_rsa", "app.secret", ".netrc"]
    {
        stage.put(name, "x");
        for principal in [
            Principal::Tool,
            Principal::Skill,
            Principal::Web,
            Principal::Channel,
            Principal::External,
        ] {
            let who = user(&work).on_behalf_of(principal);
            let read = monitor.on_file_read(&who, Path::new(name)).unwrap();
            assert_eq!(read.verdict, Verdict::Deny, "{name} {principal}");
            assert_eq!(read.rule, "fs-deny-sensitive-untrusted", "{name} {principal}");
        }
    }
}

#[test]
fn user_and_sys_can_read_sensitive_files() {
    let stage = Stage::new();
    stage.put(".env", "TOKEN=1");
    let (monitor, work) = (stage.open(), stage.work());
    for principal in [Principal::User, Principal::Sys] {
        let who = user(&work).on_behalf_of(principal);
        let read = monitor.on_file_read(&who, Path::new(".env")).unwrap();
        assert!(read.is_allowed(), "{read:?}");
        assert!(read.taint.contains(Taint::SECRET_RISK));
    }
}

#[test]
fn taint_propagates_on_secret_containing_reads() {
    let stage = Stage::new();
    stage.put(".env", "TOKEN=1");
    let (monitor, work) = (stage.open(), stage.work());
    let who = user(&work);
    let read = monitor.on_file_read(&who, Path::new(".env")).unwrap();
    let parents = [read.record];
    let sent = Sent { size: 4, content: Some(b"ping") };
    let next = who.after(&parents);
    let leaves =
        monitor.on_outbound_request(&next, "https://example.org/in", "POST", sent).unwrap();
    assert_eq!((leaves.verdict, leaves.rule.as_str()), (Verdict::Deny, "net-deny-secrets"));
    // Without naming it, the session still knows: the owner is asked.
    let leaves = monitor.on_outbound_request(&who, "https://example.org/in", "POST", sent).unwrap();
    assert_eq!((leaves.verdict, leaves.rule.as_str()), (Verdict::Ask, "net-ask-secrets"));
}

#[test]
fn glob_matching_survives_traversal_and_links() {
    let stage = Stage::new();
    stage.put(".env", "TOKEN=1");
    stage.put("sub/x", "x");
    symlink(".env", stage.work().join("notes.txt")).unwrap();
    symlink("sub", stage.work().join("way")).unwrap();
    std::fs::hard_link(stage.work().join(".env"), stage.work().join("hard.txt")).unwrap();
    let (monitor, work) = (stage.open(), stage.work());
    let who = user(&work).on_behalf_of(Principal::Skill);
    for name in
        ["notes.txt", "sub/../.env", "./sub/.././.env", "way/../.env", ".ENV", "/proc/self/environ"]
    {
        let read = monitor.on_file_read(&who, Path::new(name)).unwrap();
        assert_eq!(read.verdict, Verdict::Deny, "{name}: {read:?}");
    }
    for name in ["sub/x", ".env.example"] {
        let read = monitor.on_file_read(&who, Path::new(name)).unwrap();
        assert!(read.is_allowed(), "{name}: {read:?}");
    }
}

#[test]
fn the_scanner_catches_leaked_credentials_in_tool_output() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let who = user(&work).on_behalf_of(Principal::Tool);
    let key = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7MhgHc\n\
               TR2Vx1Kz0hZ8vJd9w0bM5Wl5o8u9m6Zc3h2a1f0e9d8c7b6a5Q==\n-----END RSA PRIVATE KEY-----";
    let result = monitor.on_tool_result(&who, "shell", None, key).unwrap();
    assert!(result.taint.contains(Taint::SECRET_RISK), "{result:?}");
}

// 3i

#[test]
fn blocklist_and_allowlist_are_enforced() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let who = user(&work);
    let nothing = Sent::default();
    let blocked =
        monitor.on_outbound_request(&who, "https://user@WEBHOOK.site./a", "GET", nothing).unwrap();
    assert_eq!(blocked.rule, "net-deny-blocked");
    let fine = monitor.on_outbound_request(&who, "https://docs.rs/url", "GET", nothing).unwrap();
    assert!(fine.is_allowed(), "{fine:?}");
    let skill = who.on_behalf_of(Principal::Skill);
    let nowhere =
        monitor.on_outbound_request(&skill, "https://docs.rs/url", "GET", nothing).unwrap();
    assert_eq!(nowhere.rule, "net-deny-untrusted-exfil");
}

#[test]
fn exfiltration_patterns_are_detected() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let url = "https://example.org/p?d=QUtJQUlPU0ZPRE5ON0VYQU1QTEU6d0phbHJYVXRuRkVNSS9LN01ERU5HL2JQeFJmaUNZ";
    let who = user(&work);
    let asked = monitor.on_outbound_request(&who, url, "GET", Sent::default()).unwrap();
    assert_ne!(asked.verdict, Verdict::Allow, "{asked:?}");
}

#[test]
fn payload_size_limits_hold() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let sent = Sent { size: 64 << 20, content: None };
    let asked =
        monitor.on_outbound_request(&user(&work), "https://example.org/up", "POST", sent).unwrap();
    assert_eq!((asked.verdict, asked.rule.as_str()), (Verdict::Ask, "net-ask-oversized"));
}

#[test]
fn taint_propagates_from_network_responses() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let web = user(&work).on_behalf_of(Principal::Web);
    let result = monitor.on_tool_result(&web, "fetch", None, "The weather is fine.").unwrap();
    assert!(result.taint.contains(Taint::WEB_DERIVED | Taint::UNTRUSTED));
    let next = monitor.on_tool_call(&user(&work), "shell", "{\"command\":\"ls\"}").unwrap();
    assert!(next.taint.contains(Taint::WEB_DERIVED), "the session has seen it");
}

#[test]
fn a_skill_that_was_found_malicious_or_never_looked_at_does_not_join() {
    let stage = Stage::new();
    let (monitor, work) = (stage.open(), stage.work());
    let who = user(&work);
    let install = |found| monitor.on_skill_install(&who, "weather", found, "").unwrap();
    assert_eq!(install(Some(SkillFacts::Malicious)).rule, "skill-deny-malicious");
    assert_eq!(install(Some(SkillFacts::Doubtful)).verdict, Verdict::Ask);
    assert_eq!(install(None).verdict, Verdict::Ask);
    assert!(install(Some(SkillFacts::Clean)).is_allowed());
}
