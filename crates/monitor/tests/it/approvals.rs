//! Requests, approvals and refusals, and those who would like to approve for themselves.

use std::fs;
use std::path::Path;
use std::sync::Barrier;

use wardkeep_evidence::hash::{RecordId, encode_hex, sha256};
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{NewRecord, Payload, Principal, RecordType};
use wardkeep_evidence::time::Timestamp;
use wardkeep_guard::surface::{Act, Surface};
use wardkeep_guard::taint::Taint;
use wardkeep_monitor::approvals::{
    ActionHash, ActionKey, Approvals, ApprovalsError, Scope, Status, Wish,
};
use wardkeep_monitor::journal::{Position, parse_line, scan};
use wardkeep_monitor::policy::Desk;
use wardkeep_monitor::store::{Event, Store};
use wardkeep_policy::manifest::Signer;
use wardkeep_policy::sign::{Presence, Request as Who};
use wardkeep_policy::signed_set::SetDraft;

use crate::shared::{SetClock, fill, open};

const SESSION: &str = "claude:1";

pub(crate) struct Lab {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) clock: SetClock,
    pub(crate) store: Store,
    pub(crate) approvals: Approvals,
}

fn owner() -> u32 {
    rustix::process::getuid().as_raw()
}

fn key(subject: &str) -> ActionKey<'_> {
    ActionKey {
        principal: Principal::Tool,
        surface: Surface::ControlPlane,
        act: Act::Change,
        subject,
        how: "",
        content: Some(sha256(b"new")),
        workspace: "/w",
    }
}

/// The record of a decision about an action, as the monitor writes it.
pub(crate) fn decision(
    store: &Store,
    action: &ActionKey<'_>,
    session: &str,
    verdict: &'static str,
    approval: Option<RecordId>,
) -> RecordId {
    let hash = action.hash().to_string();
    append_decision(store, action, session, verdict, approval, &hash, Vec::new())
}

fn append_decision(
    store: &Store,
    action: &ActionKey<'_>,
    session: &str,
    verdict: &'static str,
    approval: Option<RecordId>,
    hash: &str,
    parents: Vec<RecordId>,
) -> RecordId {
    let content = Value::from([
        ("sha256", Value::from(action.content.map(|hash| encode_hex(&hash)).unwrap_or_default())),
        ("bytes", Value::from(3u64)),
        ("kept", Value::from(true)),
    ]);
    let mut told = Object::from([
        ("kind", Value::from("decision")),
        ("v", Value::from(1u64)),
        ("act", Value::from(action.act.as_str())),
        ("surface", Value::from(action.surface.as_str())),
        ("subject", Value::from(action.subject)),
        ("verdict", Value::from(verdict)),
        ("rule", Value::from("cpi-ask-ambient")),
        ("reason", Value::from("the session has read a web page")),
        ("direct", Value::Array(Vec::new())),
        ("ambient", Value::Array(vec![Value::from("WEB_DERIVED")])),
        ("action", Value::from(hash)),
        ("content", content),
    ]);
    if let Some(approval) = approval {
        told.push("approval", Value::from(approval.to_string()));
    }
    let kind = match verdict {
        "allow" => RecordType::ControlPlaneChangeRequest,
        _ => RecordType::GuardDecision,
    };
    let mut event = Event::new(kind, action.principal, Value::Object(told));
    event.session = session;
    event.agent = "claude";
    event.workspace = action.workspace;
    event.taint = vec!["WEB_DERIVED".into()];
    event.parents = parents;
    store.append(event).unwrap().id
}

impl Lab {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let clock = SetClock::new();
        let state = folder.path().join("state");
        let store = open(&state, &clock);
        let random = std::array::from_fn(|at| u8::try_from(at).unwrap() * 7 + 1);
        Desk::new(&store, owner()).policy().create_key(random).unwrap();
        let approvals = Approvals::open(&state, owner()).unwrap();
        Self { folder, clock, store, approvals }
    }

    pub(crate) fn state(&self) -> std::path::PathBuf {
        self.folder.path().join("state")
    }

    fn now(&self) -> Timestamp {
        self.store.now()
    }

    fn who(&self) -> Who {
        Who { presence: Presence::Terminal, confined: false, signer: Signer::Cli, now: self.now() }
    }

    /// As another process sees it, without what was written down in between.
    fn another(&self) -> Approvals {
        Approvals::open(&self.state(), owner()).unwrap()
    }

    pub(crate) fn ask(&self, subject: &str) -> String {
        decision(&self.store, &key(subject), SESSION, "ask", None).to_string()
    }

    fn approve(&self, request: &str, scope: Scope) -> RecordId {
        let wish = Wish { scope, ..Wish::ONCE };
        self.approvals.approve(&self.store, request, wish, &self.who()).unwrap().grant.record
    }

    fn refused(&self, request: &str, wish: Wish, who: &Who) -> ApprovalsError {
        self.approvals.approve(&self.store, request, wish, who).unwrap_err()
    }

    /// Whether a process that starts now may do it; uses up what is for one time.
    fn may(&self, subject: &str, session: &str) -> bool {
        let taken = self.another().take(key(subject).hash(), session, self.now()).unwrap();
        let Some(grant) = taken else { return false };
        decision(&self.store, &key(subject), session, "allow", Some(grant.record));
        true
    }

    fn found(&self, subject: &str) -> Option<Scope> {
        let action = key(subject).hash();
        self.approvals.lookup(action, SESSION, self.now()).unwrap().map(|grant| grant.scope)
    }
}

/// Copies the payload of a record into a new record, as someone would who can write the journal
/// but has no key.
fn copy(lab: &Lab, id: RecordId, change: impl Fn(&mut Object<'static>)) -> RecordId {
    let mut found = None;
    scan(lab.store.journal().folder(), Position::START, |_, text| {
        if let Some(line) = parse_line(text).filter(|line| line.record.id == id) {
            found = Some(line.record.into_owned());
        }
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    let record = found.unwrap();
    let Payload::Inline(Value::Object(mut told)) = record.payload else { panic!("inline") };
    change(&mut told);
    let mut meta = record.meta;
    meta.set("nonce", Value::from("0123456789abcdef0123456789abcdef"));
    lab.store
        .journal()
        .append(NewRecord {
            kind: record.kind,
            principal: record.principal,
            taint: record.taint,
            parents: record.parents,
            meta,
            payload: Payload::Inline(Value::Object(told)),
        })
        .unwrap()
        .id
}

#[test]
fn a_request_is_denied_until_it_is_approved_and_then_passes_once() {
    let lab = Lab::new();
    let request = lab.ask("/w/a");
    assert!(!lab.may("/w/a", SESSION), "asking allows nothing");
    let pending = lab.approvals.pending(lab.now()).unwrap();
    assert_eq!(pending.len(), 1);
    assert_eq!((pending[0].id.to_string(), &*pending[0].subject), (request.clone(), "/w/a"));
    lab.approve(&request[..8], Scope::Once);
    assert!(lab.approvals.pending(lab.now()).unwrap().is_empty());
    assert!(lab.may("/w/a", SESSION));
    assert!(!lab.may("/w/a", SESSION), "a second time");
    assert_eq!(lab.found("/w/a"), None);
    let kept = lab.state().join("claims");
    fs::remove_dir_all(kept).unwrap();
    assert!(!lab.may("/w/a", SESSION), "the record of its use spends it as well");
}

#[test]
fn a_grant_is_for_one_action_one_session_and_a_time() {
    let lab = Lab::new();
    lab.approve(&lab.ask("/w/a"), Scope::Session);
    assert!(lab.may("/w/a", SESSION) && lab.may("/w/a", SESSION));
    for other in ["/w/b", "/w/a ", "/w/", "/w/A"] {
        assert!(!lab.may(other, SESSION), "{other}");
    }
    assert!(!lab.may("/w/a", "claude:2"));
    let other = ActionKey { content: Some(sha256(b"neu")), ..key("/w/a") };
    assert_eq!(lab.approvals.lookup(other.hash(), SESSION, lab.now()).unwrap(), None);
    lab.clock.advance(12 * 3600 - 1);
    assert!(lab.may("/w/a", SESSION));
    lab.clock.advance(1);
    assert!(!lab.may("/w/a", SESSION), "its time is over");
}

#[test]
fn what_is_not_answered_in_time_is_denied() {
    let lab = Lab::new();
    let request = lab.ask("/w/a");
    lab.clock.advance(599);
    assert_eq!(lab.approvals.pending(lab.now()).unwrap().len(), 1);
    lab.clock.advance(1);
    assert!(lab.approvals.pending(lab.now()).unwrap().is_empty());
    let error = lab.refused(&request, Wish::ONCE, &lab.who());
    assert!(matches!(error, ApprovalsError::Expired { .. }), "{error}");
    lab.approvals.tidy(lab.now()).unwrap();
    assert!(matches!(lab.refused(&request, Wish::ONCE, &lab.who()), ApprovalsError::Unknown(_)));
}

#[test]
fn an_answer_is_given_once() {
    let lab = Lab::new();
    let first = lab.ask("/w/a");
    let second = lab.ask("/w/a");
    assert_eq!(lab.approvals.pending(lab.now()).unwrap()[0].count, 2);
    lab.approve(&first, Scope::Once);
    // The same question asked twice has one answer.
    let error = lab.refused(&first, Wish::ONCE, &lab.who());
    assert!(matches!(error, ApprovalsError::Answered { approved: true, .. }), "{error}");
    assert!(matches!(lab.refused(&second, Wish::ONCE, &lab.who()), ApprovalsError::Unknown(_)));
    let third = lab.ask("/w/b");
    let denied = lab.approvals.deny(&lab.store, &third, &lab.who()).unwrap();
    assert!(!denied.withdrawn);
    let error = lab.refused(&third, Wish::ONCE, &lab.who());
    assert!(matches!(error, ApprovalsError::Answered { approved: false, .. }), "{error}");
    assert!(!lab.may("/w/b", SESSION));
}

#[test]
fn approving_needs_a_person_outside_of_confinement() {
    let lab = Lab::new();
    let request = lab.ask("/w/a");
    let nobody = Who { presence: Presence::None, ..lab.who() };
    assert!(matches!(lab.refused(&request, Wish::ONCE, &nobody), ApprovalsError::NoPerson));
    for presence in [Presence::Terminal, Presence::Yes] {
        let confined = Who { presence, confined: true, ..lab.who() };
        let error = lab.refused(&request, Wish::ONCE, &confined);
        assert!(matches!(error, ApprovalsError::Confined));
        let error = lab.approvals.deny(&lab.store, &request, &confined).unwrap_err();
        assert!(matches!(error, ApprovalsError::Confined));
    }
    assert_eq!(lab.approvals.pending(lab.now()).unwrap().len(), 1);
}

#[test]
fn an_approval_written_by_hand_counts_for_nothing() {
    let lab = Lab::new();
    let (asked, other) = (lab.ask("/w/a"), lab.ask("/w/b"));
    let genuine = lab.approve(&asked, Scope::Once);
    let wanted = key("/w/b").hash().to_string();
    let requested = other.clone();
    // The genuine signature under another action, request, scope, session or time; and one made up.
    type Change = Box<dyn Fn(&mut Object<'static>)>;
    let set = |key: &'static str, value: String| -> Change {
        Box::new(move |told| told.set(key, Value::from(value.clone())))
    };
    let within = |key: &'static str, value: &'static str| -> Change {
        Box::new(move |told| {
            let Some(Value::Object(grant)) = told.get("grant").cloned() else { panic!("a grant") };
            let mut grant = grant;
            grant.set(key, Value::from(value));
            told.set("grant", Value::Object(grant));
        })
    };
    let changes: Vec<Change> = vec![
        set("action", wanted.clone()),
        set("request", requested.clone()),
        set("scope", "session".to_owned()),
        set("scope", "always".to_owned()),
        set("expires", "2126-01-01T00:00:00Z".to_owned()),
        within("session", "claude:2"),
        within("nonce", "00000000000000000000000000000000"),
        within("hmac", "0000000000000000000000000000000000000000000000000000000000000000"),
        Box::new(|told| told.set("declassifies", Value::Array(vec![Value::from("SECRET_RISK")]))),
        Box::new(|told| told.set("grant", Value::Null)),
    ];
    assert!(lab.may("/w/a", SESSION), "the genuine one is used up");
    let count = changes.len();
    for change in changes {
        copy(&lab, genuine, change);
    }
    for (subject, session) in [("/w/a", SESSION), ("/w/a", "claude:2"), ("/w/b", SESSION)] {
        assert!(!lab.may(subject, session), "{subject} {session}");
    }
    assert_eq!(lab.approvals.forged().unwrap().len(), count);
    let still = lab.approvals.pending(lab.now()).unwrap();
    assert_eq!(still.len(), 1, "a forged answer answers nothing");
}

#[test]
fn a_copy_of_a_genuine_approval_is_not_another_one() {
    let lab = Lab::new();
    let genuine = lab.approve(&lab.ask("/w/a"), Scope::Once);
    copy(&lab, genuine, |_| {});
    assert!(lab.may("/w/a", SESSION));
    assert!(!lab.may("/w/a", SESSION));
    copy(&lab, genuine, |told| told.set("v", Value::from(1u64)));
    fs::remove_dir_all(lab.state().join("claims")).unwrap();
    assert_eq!(lab.another().lookup(key("/w/a").hash(), SESSION, lab.now()).unwrap(), None);
    assert!(!lab.may("/w/a", SESSION), "neither by record nor by claim");
    // Nor after the book on disk is gone and all is read again.
    let _ = fs::remove_file(lab.state().join("approvals-seen.json"));
    assert!(!lab.may("/w/a", SESSION));
}

#[test]
fn a_request_that_shows_something_else_than_it_asks_is_not_approved() {
    let lab = Lab::new();
    let harmless = key("/w/notes.txt");
    let harmful = key("/home/u/.ssh/authorized_keys").hash().to_string();
    let store = &lab.store;
    let id = append_decision(store, &harmless, SESSION, "ask", None, &harmful, Vec::new());
    let id = id.to_string();
    let error = lab.refused(&id, Wish::ONCE, &lab.who());
    assert!(matches!(error, ApprovalsError::Mismatch(_)), "{error}");
    let line = lab.approvals.line(&id, lab.now()).unwrap();
    assert!(!lab.approvals.show(&line, lab.now(), &|_| None).unwrap().consistent);
}

#[test]
fn of_many_who_race_for_one_grant_one_passes() {
    let lab = Lab::new();
    lab.approve(&lab.ask("/w/a"), Scope::Once);
    let racers = 8;
    let barrier = Barrier::new(racers);
    let passed: usize = std::thread::scope(|scope| {
        let race = || {
            let approvals = lab.another();
            let found = approvals.lookup(key("/w/a").hash(), SESSION, lab.now()).unwrap();
            // All of them have seen it.
            barrier.wait();
            usize::from(approvals.claim(&found.unwrap()).unwrap())
        };
        let threads: Vec<_> = (0..racers).map(|_| scope.spawn(race)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(passed, 1);
}

#[test]
fn another_process_sees_the_approval_without_opening_anew() {
    let lab = Lab::new();
    let other = lab.another();
    let request = lab.ask("/w/a");
    assert_eq!(other.pending(lab.now()).unwrap().len(), 1);
    lab.approve(&request, Scope::Session);
    assert!(other.lookup(key("/w/a").hash(), SESSION, lab.now()).unwrap().is_some());
    lab.approvals.deny(&lab.store, &request, &lab.who()).unwrap();
    assert_eq!(other.lookup(key("/w/a").hash(), SESSION, lab.now()).unwrap(), None, "taken back");
}

#[test]
fn the_book_on_disk_is_only_a_cache() {
    let lab = Lab::new();
    let request = lab.ask("/w/a");
    lab.approve(&lab.ask("/w/b"), Scope::Session);
    fill(&lab.store, 50);
    lab.approvals.tidy(lab.now()).unwrap();
    let path = lab.state().join("approvals-seen.json");
    let seen = |lab: &Lab| {
        let other = lab.another();
        let pending = other.pending(lab.now()).unwrap();
        let granted = other.lookup(key("/w/b").hash(), SESSION, lab.now()).unwrap().is_some();
        (pending.iter().map(|asked| asked.id.to_string()).collect::<Vec<_>>(), granted)
    };
    let expected = (vec![request], true);
    assert_eq!(seen(&lab), expected);
    let good = fs::read(&path).unwrap();
    // Someone grants themselves something in it, cuts it off, replaces it by a link or removes it.
    let text = String::from_utf8(good.clone()).unwrap();
    let forged = text.replace(&key("/w/b").hash().to_string(), &key("/w/c").hash().to_string());
    assert_ne!(forged, text);
    for bytes in [forged.as_bytes(), &good[..good.len() / 2], b"", &[0xff; 100]] {
        fs::write(&path, bytes).unwrap();
        assert_eq!(seen(&lab), expected);
        assert!(!lab.may("/w/c", SESSION));
    }
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    assert_eq!(seen(&lab), expected);
    fs::remove_file(&path).unwrap();
    assert_eq!(seen(&lab), expected);
}

#[test]
fn a_flood_of_requests_keeps_out_nobody_else() {
    let lab = Lab::new();
    let mine = lab.ask("/w/mine");
    for number in 0..300 {
        let subject = format!("/w/flood/{number}");
        decision(&lab.store, &key(&subject), "claude:flood", "ask", None);
    }
    let pending = lab.approvals.pending(lab.now()).unwrap();
    assert_eq!(pending.len(), 101);
    assert!(pending.iter().any(|asked| asked.id.to_string() == mine));
    lab.approve(&mine, Scope::Once);
    assert!(lab.may("/w/mine", SESSION));
}

#[test]
fn times_and_taints_are_held_within_bounds() {
    let lab = Lab::new();
    let request = lab.ask("/w/a");
    let at = |seconds: i64| Timestamp::from_unix(lab.now().unix() + seconds);
    for until in [at(-1), at(0), at(30 * 86_400 + 1)] {
        for scope in Scope::ALL {
            let error = lab.refused(&request, Wish { scope, until, ..Wish::ONCE }, &lab.who());
            assert!(matches!(error, ApprovalsError::Until(_)), "{error}");
        }
    }
    let wish = Wish { declassifies: Taint::SECRET_RISK, ..Wish::ONCE };
    let error = lab.refused(&request, wish, &lab.who());
    assert!(matches!(error, ApprovalsError::Taint(_)), "{error}");
    let wish = Wish { until: at(60), declassifies: Taint::WEB_DERIVED, ..Wish::ONCE };
    lab.approvals.approve(&lab.store, &request, wish, &lab.who()).unwrap();
    let grant = lab.another().lookup(key("/w/a").hash(), SESSION, lab.now()).unwrap().unwrap();
    assert_eq!(grant.declassifies, Taint::WEB_DERIVED);
    lab.clock.advance(60);
    assert_eq!(lab.found("/w/a"), None);
}

#[test]
fn without_the_device_key_nothing_is_approved_and_nothing_counts() {
    let lab = Lab::new();
    let request = lab.ask("/w/a");
    lab.approve(&lab.ask("/w/b"), Scope::Session);
    fs::remove_file(lab.state().join(".device_key")).unwrap();
    let other = lab.another();
    assert_eq!(other.lookup(key("/w/b").hash(), SESSION, lab.now()).unwrap(), None);
    let error = other.approve(&lab.store, &request, Wish::ONCE, &lab.who()).unwrap_err();
    assert!(matches!(error, ApprovalsError::Key(_)), "{error}");
    // Nor does another key stand for it.
    Desk::new(&lab.store, owner()).policy().create_key([9; 32].map(|_| 1)).unwrap_err();
    let random = std::array::from_fn(|at| u8::try_from(at).unwrap());
    Desk::new(&lab.store, owner()).policy().create_key(random).unwrap();
    assert!(!lab.may("/w/b", SESSION));
}

#[test]
fn a_key_that_is_made_later_counts_without_opening_anew() {
    let lab = Lab::new();
    let key_file = lab.state().join(".device_key");
    let away = lab.state().join("away");
    lab.approve(&lab.ask("/w/b"), Scope::Session);
    fs::rename(&key_file, &away).unwrap();
    let other = lab.another();
    let found = || other.lookup(key("/w/b").hash(), SESSION, lab.now()).unwrap();
    assert_eq!(found(), None);
    fs::rename(&away, &key_file).unwrap();
    assert!(found().is_some());
}

mod always {
    use super::*;

    fn pins(lab: &Lab) -> std::path::PathBuf {
        lab.state().join("pins/approvals.json")
    }

    fn configure(lab: &Lab, text: &str) {
        fs::write(lab.state().join("config.toml"), text).unwrap();
        let desk = Desk::new(&lab.store, owner());
        let draft = SetDraft::read(desk.policy().state()).unwrap();
        desk.sign_set(&draft, &lab.who()).unwrap();
    }

    #[test]
    fn it_stands_in_the_signed_set_until_it_is_taken_back() {
        let lab = Lab::new();
        let request = lab.ask("/w/a");
        let record = lab.approve(&request, Scope::Always);
        assert!(lab.may("/w/a", SESSION) && lab.may("/w/a", "codex:9"));
        assert!(!lab.may("/w/b", SESSION));
        lab.clock.advance(400 * 86_400);
        assert!(lab.may("/w/a", SESSION));
        let (_, standing) = lab.approvals.in_force(lab.now()).unwrap();
        assert_eq!(standing[0].about, "ControlPlane change /w/a");
        assert_eq!(standing[0].grant.record, record);
        // A second one does not end the first.
        lab.approve(&lab.ask("/w/b"), Scope::Always);
        assert!(lab.may("/w/a", SESSION) && lab.may("/w/b", SESSION));
        let denied = lab.approvals.deny(&lab.store, &request, &lab.who()).unwrap();
        assert!(denied.withdrawn);
        assert!(!lab.may("/w/a", SESSION) && lab.may("/w/b", SESSION));
    }

    #[test]
    fn tampering_with_it_or_with_the_set_ends_all_of_them() {
        let lab = Lab::new();
        lab.approve(&lab.ask("/w/a"), Scope::Always);
        let good = fs::read_to_string(pins(&lab)).unwrap();
        let (a, b) = (key("/w/a").hash().to_string(), key("/w/b").hash().to_string());
        for forged in [good.replace(&a, &b), good.replace("/w/a", "/w/x"), String::new()] {
            fs::write(pins(&lab), forged).unwrap();
            assert!(!lab.may("/w/b", SESSION) && !lab.may("/w/a", SESSION));
            assert_eq!(lab.found("/w/a"), None, "a process that runs on notices too");
        }
        fs::write(pins(&lab), &good).unwrap();
        assert!(lab.may("/w/a", SESSION));
        fs::write(lab.state().join("config.toml"), "[security]\ndisable_policy = true\n").unwrap();
        assert!(!lab.may("/w/a", SESSION), "another file of the set was changed");
    }

    #[test]
    fn an_older_one_does_not_come_back() {
        let lab = Lab::new();
        let request = lab.ask("/w/a");
        lab.approve(&request, Scope::Always);
        let old = ["pins/approvals.json", "signed.json"]
            .map(|name| (name, fs::read(lab.state().join(name)).unwrap()));
        lab.approvals.deny(&lab.store, &request, &lab.who()).unwrap();
        for (name, bytes) in old {
            fs::write(lab.state().join(name), bytes).unwrap();
        }
        assert!(!lab.may("/w/a", SESSION));
    }

    #[test]
    fn what_the_owner_has_not_signed_is_not_signed_along() {
        let lab = Lab::new();
        configure(&lab, "[security]\nstrict_policy = true\n");
        let request = lab.ask("/w/a");
        fs::write(lab.state().join("config.toml"), "[security]\ndisable_policy = true\n").unwrap();
        let wish = Wish { scope: Scope::Always, ..Wish::ONCE };
        let error = lab.refused(&request, wish, &lab.who());
        assert!(matches!(error, ApprovalsError::Set(_)), "{error}");
        let settings = Desk::new(&lab.store, owner()).policy().settings();
        assert!(!settings.switches.disable_policy && settings.switches.strict_policy);
        assert_eq!(lab.approvals.pending(lab.now()).unwrap().len(), 1, "it still waits");
        fs::write(lab.state().join("config.toml"), "[security]\nstrict_policy = true\n").unwrap();
        lab.approve(&request, Scope::Always);
        assert!(lab.may("/w/a", SESSION));
        let settings = Desk::new(&lab.store, owner()).policy().settings();
        assert_eq!(settings.set.state.name(), "valid");
        assert!(settings.switches.strict_policy);
    }

    #[test]
    fn a_config_that_was_never_signed_is_not_signed_either() {
        let lab = Lab::new();
        fs::write(lab.state().join("config.toml"), "[security]\ndisable_policy = true\n").unwrap();
        let request = lab.ask("/w/a");
        let wish = Wish { scope: Scope::Always, ..Wish::ONCE };
        assert!(matches!(lab.refused(&request, wish, &lab.who()), ApprovalsError::Set(_)));
    }

    #[test]
    fn a_line_that_the_owner_signed_by_mistake_has_no_signature_of_its_own() {
        let lab = Lab::new();
        lab.approve(&lab.ask("/w/a"), Scope::Always);
        let good = fs::read_to_string(pins(&lab)).unwrap();
        let (a, b) = (key("/w/a").hash().to_string(), key("/w/b").hash().to_string());
        fs::write(pins(&lab), good.replace(&a, &b)).unwrap();
        configure(&lab, "");
        assert!(!lab.may("/w/b", SESSION) && !lab.may("/w/a", SESSION));
    }

    #[test]
    fn a_link_in_the_place_of_the_folder_is_not_followed() {
        let lab = Lab::new();
        let elsewhere = lab.folder.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, lab.state().join("pins")).unwrap();
        let request = lab.ask("/w/a");
        let wish = Wish { scope: Scope::Always, ..Wish::ONCE };
        lab.refused(&request, wish, &lab.who());
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    }
}

#[test]
fn a_request_is_shown_whole_with_where_it_came_from() {
    let lab = Lab::new();
    lab.store.put_blob(b"new").unwrap();
    let long = format!("/w/{}\u{1b}[31m", "x".repeat(5000));
    let page = lab.ask("/w/page");
    let parents = vec![RecordId::from_hex(&page).unwrap(), RecordId([7; 32])];
    let hash = key(&long).hash().to_string();
    let asked = append_decision(&lab.store, &key(&long), SESSION, "ask", None, &hash, parents);
    let request = asked.to_string();
    let line = lab.approvals.line(&request[..10], lab.now()).unwrap();
    let find = |id: RecordId| lab.approvals.line(&id.to_string(), lab.now()).ok();
    let parents = lab.approvals.show(&line, lab.now(), &find).unwrap().parents;
    assert_eq!(parents[0].subject.as_deref(), Some("/w/page"));
    assert_eq!(
        (&*parents[0].record, &*parents[0].taint),
        (&*page, &["WEB_DERIVED".to_owned()][..])
    );
    assert_eq!(parents[1].kind, None, "a parent that is not there is named all the same");
    let shown = lab.approvals.show(&line, lab.now(), &|_| None).unwrap();
    assert_eq!(
        (shown.subject.as_str(), shown.status, shown.consistent),
        (&*long, Status::Pending, true)
    );
    assert_eq!(shown.content.unwrap().text.as_deref(), Some("new"));
    assert_eq!(shown.ambient, ["WEB_DERIVED"]);
    // What was kept under a hash that it no longer has is not shown for it.
    let blob = lab.state().join("blobs").join(encode_hex(&sha256(b"new")));
    fs::write(blob, "old").unwrap();
    assert_eq!(
        lab.approvals.show(&line, lab.now(), &|_| None).unwrap().content.unwrap().text,
        None
    );
    lab.approvals.deny(&lab.store, &request, &lab.who()).unwrap();
    assert_eq!(lab.approvals.show(&line, lab.now(), &|_| None).unwrap().status, Status::Denied);
}

#[test]
fn a_journal_that_was_replaced_by_a_shorter_one_is_read_anew() {
    let lab = Lab::new();
    fill(&lab.store, 20);
    lab.approve(&lab.ask("/w/a"), Scope::Session);
    assert!(lab.found("/w/a").is_some());
    let segment = crate::shared::newest_segment(&lab.state());
    let text = fs::read_to_string(&segment).unwrap();
    let first: String = text.lines().take(5).map(|line| format!("{line}\n")).collect();
    fs::write(&segment, first).unwrap();
    assert_eq!(lab.found("/w/a"), None);
}

#[test]
fn nothing_is_made_by_looking() {
    let folder = tempfile::tempdir().unwrap();
    let approvals = Approvals::open(folder.path(), owner()).unwrap();
    let now = Timestamp::from_unix(1_800_000_000).unwrap();
    assert!(approvals.pending(now).unwrap().is_empty());
    assert_eq!(approvals.lookup(ActionHash([0; 32]), "", now).unwrap(), None);
    assert_eq!(fs::read_dir(Path::new(folder.path())).unwrap().count(), 0);
}
