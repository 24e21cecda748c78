//! The witness: what it cosigns, what it refuses, and what it never forgets.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use wardkeep_evidence::checkpoint::Checkpoint;
use wardkeep_evidence::note::Note;
use wardkeep_monitor::anchor::heads::{ForkProof, HeadComparison, HeadKeys, compare_heads};
use wardkeep_monitor::anchor::server::{LedgerError, ServerError, WitnessServer};
use wardkeep_monitor::anchor::witness::WitnessAnchor;
use wardkeep_monitor::anchor::{Anchor as _, AnchorError};

use super::{DEADLINE, NOW, Served, TestLog, fork, open_witness, rollback, witness_key};

#[test]
fn a_growing_log_is_cosigned() {
    let state = tempfile::tempdir().unwrap();
    let mut log = TestLog::new(1);
    let served = Served::open(state.path(), &[&log]);
    let mut client = served.client(0);
    assert_eq!(client.latest(&log.public()), Ok(None));
    for growth in [0, 1, 1, 5, 0, 64, 1000] {
        log.grow(growth, "");
        let receipt = log.put(&mut client).unwrap();
        assert_eq!((receipt.size, receipt.at), (log.tree.size(), NOW));
        let cosigned = receipt.cosigned.unwrap();
        let verified = witness_key("w.example/1").verifier().verify(&cosigned).unwrap();
        assert_eq!(verified.timestamp, Some(NOW));
        assert!(log.public().log_key().verify(&cosigned).is_ok());
        assert_eq!(client.latest(&log.public()), Ok(Some(log.tree.size())));
        assert_eq!(client.latest_note(&log.public()).unwrap().unwrap(), cosigned);
    }
    // A client that forgot everything finds its way back.
    assert!(log.put(&mut served.client(0)).is_ok());
    log.grow(3, "");
    assert!(log.put(&mut served.client(7)).is_ok());
}

#[test]
fn two_machines_witness_each_other() {
    let states: Vec<_> = (0..2).map(|_| tempfile::tempdir().unwrap()).collect();
    let mut logs = [TestLog::new(1), TestLog::new(2)];
    let served: Vec<_> = (0..2)
        .map(|machine| {
            let other = 1 - machine;
            Served::open(states[machine].path(), &[&logs[other]])
        })
        .collect();
    for _ in 0..3 {
        for machine in 0..2 {
            logs[machine].grow(4, "");
            let receipt = logs[machine].put(&mut served[1 - machine].client(0)).unwrap();
            assert_eq!(receipt.size, logs[machine].tree.size());
            let own_witness = logs[machine].put(&mut served[machine].client(0));
            assert_eq!(own_witness.unwrap_err().kind(), "refused");
        }
    }
}

#[test]
fn a_rollback_of_the_client_is_seen() {
    let state = tempfile::tempdir().unwrap();
    let mut log = TestLog::of_size(1, 10);
    let served = Served::open(state.path(), &[&log]);
    log.put(&mut served.client(0)).unwrap();
    let mut backup = log.clone();
    log.grow(10, "");
    log.put(&mut served.client(10)).unwrap();
    for last_known in [0, 10, 20] {
        assert_eq!(backup.put(&mut served.client(last_known)), Err(rollback("w", 20, 10)));
    }
    // Grown past what the witness saw, the restored log is another history.
    backup.grow(30, "other");
    for last_known in [0, 10, 20] {
        assert_eq!(backup.put(&mut served.client(last_known)), Err(fork("w", 20)));
    }
    assert!(log.put(&mut served.client(0)).is_ok());
}

#[test]
fn a_fork_is_seen_and_proven_by_two_cosigned_heads() {
    let states: Vec<_> = (0..2).map(|_| tempfile::tempdir().unwrap()).collect();
    let mut log = TestLog::of_size(1, 10);
    let served: Vec<_> = states.iter().map(|state| Served::open(state.path(), &[&log])).collect();
    let mut forked = log.clone();
    log.grow(5, "");
    forked.grow(5, "other");
    let one = log.put(&mut served[0].client(0)).unwrap().cosigned.unwrap();
    for last_known in [0, 15] {
        assert_eq!(forked.put(&mut served[0].client(last_known)), Err(fork("w", 15)));
    }
    // To a witness that saw neither, the fork looks sound; only together do the heads show it.
    let two = forked.put(&mut served[1].client(0)).unwrap().cosigned.unwrap();
    let (log_key, witness) =
        (log.public().log_key(), witness_key("w.example/1").verifier().clone());
    let keys = HeadKeys { log: &log_key, witnesses: std::slice::from_ref(&witness) };
    let signers = vec![log.origin(), "w.example/1".to_owned()];
    let proof = ForkProof::Root { size: 15 };
    assert_eq!(compare_heads(&one, &two, keys), HeadComparison::ForkProven { proof, signers });
    assert_eq!(compare_heads(&one, &one, keys), HeadComparison::Equal { size: 15 });
    log.grow(1, "");
    let later = log.seal();
    let undecided = HeadComparison::Undecided { smaller: 15, larger: 16 };
    assert_eq!(compare_heads(&one, &later, keys), undecided);
    assert_eq!(compare_heads(&later, &one, keys), undecided);
}

#[test]
fn heads_contradict_each_other_only_when_one_key_signed_both() {
    let mut log = TestLog::of_size(1, 5);
    let (log_key, witness) = (log.public().log_key(), witness_key("w.example/1"));
    let witnesses = [witness.verifier().clone()];
    let keys = HeadKeys { log: &log_key, witnesses: &witnesses };
    let mut forked = log.clone();
    let first = log.seal();
    forked.grow(2, "other");
    let same_epoch = forked.seal();
    let fork_of =
        |proof| HeadComparison::ForkProven { proof, signers: vec![log_key.name().to_owned()] };
    assert_eq!(compare_heads(&first, &same_epoch, keys), fork_of(ForkProof::Epoch { epoch: 0 }));
    log.grow(1, "");
    let smaller_later = log.seal();
    let shrunk = ForkProof::Shrunk { before: 7, after: 6 };
    assert_eq!(compare_heads(&smaller_later, &same_epoch, keys), fork_of(shrunk));
    let only_witnessed = |note: &Note| {
        let signatures = vec![witness.cosign(&note.text, NOW).unwrap()];
        Note { text: note.text.clone(), signatures }
    };
    let unverified =
        |a: &Note, b: &Note| matches!(compare_heads(a, b, keys), HeadComparison::Unverified { .. });
    assert!(unverified(&first, &only_witnessed(&same_epoch)));
    assert!(!unverified(&only_witnessed(&first), &only_witnessed(&same_epoch)));
    let mut tampered = same_epoch.clone();
    tampered.text = tampered.text.replace("\n7\n", "\n8\n");
    assert!(unverified(&first, &tampered));
    assert!(unverified(&first, &Note { text: "x\n".to_owned(), signatures: Vec::new() }));
    let other = TestLog::of_size(2, 5).seal();
    assert!(matches!(compare_heads(&first, &other, keys), HeadComparison::OtherLog { .. }));
    assert!(matches!(compare_heads(&other, &other, keys), HeadComparison::OtherLog { .. }));
}

#[test]
fn every_status_of_the_protocol() {
    let state = tempfile::tempdir().unwrap();
    let mut log = TestLog::of_size(1, 4);
    let server = open_witness(state.path(), &[&log], false);
    let first = log.seal();
    log.grow(4, "");
    let second = log.seal();
    let add = |body: &str| {
        let answer = server.add_checkpoint(body.as_bytes(), None);
        (answer.status, answer.content_type, answer.body)
    };
    let conflict = |held: u64| (409, "text/x.tlog.size", format!("{held}\n"));
    let status = |body: &str| server.add_checkpoint(body.as_bytes(), None).status;
    let mut stranger = TestLog::of_size(2, 4);
    let unknown = stranger.seal();
    assert_eq!(status(&stranger.request(0, &unknown)), 404);
    let mut unsigned = first.clone();
    unsigned.signatures.remove(0);
    assert_eq!(status(&log.request(0, &unsigned)), 403);
    let mut changed = first.clone();
    changed.text = changed.text.replace("\n4\n", "\n5\n");
    assert_eq!(status(&log.request(0, &changed)), 403);
    assert_eq!(add(&log.request(3, &first)), conflict(0));
    assert_eq!(status(&log.request(9, &first)), 400);
    let with_proof = log.request(4, &second).replace("old 4", "old 0");
    assert_eq!(status(&with_proof), 422);
    assert_eq!(status(&log.request(0, &first)), 200);
    // The same request again is answered with what is held now: nothing goes back.
    assert_eq!(add(&log.request(0, &first)), conflict(4));
    assert_eq!(status(&log.request(4, &first)), 200);
    assert_eq!(status(&format!("old 4\n\n{second}")), 422);
    assert_eq!(status(&log.request(4, &second)), 200);
    assert_eq!(add(&log.request(4, &second)), conflict(8));
    assert_eq!(add(&log.request(4, &first)), conflict(8));
    let mut forked = TestLog::of_size(1, 4);
    forked.grow(4, "other");
    let other_root = forked.seal();
    assert_eq!(add(&forked.request(8, &other_root)), conflict(8));
    forked.grow(1, "");
    let continued = forked.seal();
    assert_eq!(status(&forked.request(8, &continued)), 422);
}

#[test]
fn an_empty_log_has_only_one_root() {
    let state = tempfile::tempdir().unwrap();
    let mut empty = TestLog::new(1);
    let server = open_witness(state.path(), &[&empty], false);
    let seal = empty.seal();
    assert_eq!(server.add_checkpoint(empty.request(0, &seal).as_bytes(), None).status, 200);
    let mut lying = Checkpoint::parse(&seal.text).unwrap();
    lying.root = wardkeep_evidence::merkle::leaf_hash(b"");
    let mut note = Note::new(lying.to_text()).unwrap();
    let key = empty.public().signing_key(&[1; 32]).unwrap();
    note.push(key.sign(&note.text).unwrap()).unwrap();
    assert_eq!(server.add_checkpoint(empty.request(0, &note).as_bytes(), None).status, 409);
}

#[test]
fn racing_requests_never_roll_the_witness_back() {
    const RACERS: usize = 8;
    let state = tempfile::tempdir().unwrap();
    let mut log = TestLog::of_size(1, 4);
    let server = open_witness(state.path(), &[&log], false);
    let first = log.seal();
    assert_eq!(server.add_checkpoint(log.request(0, &first).as_bytes(), None).status, 200);
    for _ in 0..10 {
        let base = log.tree.size();
        let seals: Vec<_> = (0..RACERS)
            .map(|_| {
                log.grow(3, "");
                log.seal()
            })
            .collect();
        let barrier = Barrier::new(RACERS);
        let statuses = std::thread::scope(|scope| {
            let racer = |note| {
                barrier.wait();
                server.add_checkpoint(log.request(base, note).as_bytes(), None).status
            };
            let threads: Vec<_> =
                seals.iter().map(|note| scope.spawn(move || racer(note))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        let winners: Vec<_> = (0..RACERS).filter(|racer| statuses[*racer] == 200).collect();
        assert_eq!(winners.len(), 1, "{statuses:?}");
        assert!(statuses.iter().all(|status| [200, 409].contains(status)));
        let held = format!("{}\n", base + 3 * (winners[0] as u64 + 1));
        let newest = &seals[RACERS - 1];
        let probe = server.add_checkpoint(log.request(base, newest).as_bytes(), None);
        assert_eq!((probe.status, probe.body), (409, held.clone()));
        let old = held.trim().parse().unwrap();
        assert_eq!(server.add_checkpoint(log.request(old, newest).as_bytes(), None).status, 200);
    }
}

#[test]
fn what_was_persisted_holds_even_when_the_answer_was_lost() {
    let state = tempfile::tempdir().unwrap();
    let mut log = TestLog::of_size(1, 4);
    let backup = log.clone();
    let note = log.seal();
    {
        let server = open_witness(state.path(), &[&log], false);
        // The process dies here: the answer exists, and nobody gets it.
        assert_eq!(server.add_checkpoint(log.request(0, &note).as_bytes(), None).status, 200);
    }
    // A crash before the rename leaves a temporary file, which counts for nothing.
    let file = fs::read_dir(state.path()).unwrap().map(|found| found.unwrap().path());
    let file = file.into_iter().find(|path| path.file_name().unwrap().len() == 64).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    let name = file.file_name().unwrap().to_str().unwrap();
    fs::write(state.path().join(format!(".{name}.new")), b"{\"version\":1,").unwrap();
    let served = Served::open(state.path(), &[&log]);
    let smaller = TestLog::of_size(1, 3);
    let mut smaller = TestLog { epoch: 1, ..smaller };
    assert_eq!(smaller.put(&mut served.client(0)), Err(rollback("w", 4, 3)));
    let retried = log.submit(&note, |submission| served.client(0).put(submission, NOW));
    assert_eq!(retried.unwrap().size, 4);
    drop(served);
    let served = Served::open(state.path(), &[&log]);
    assert_eq!(served.client(0).latest(&log.public()), Ok(Some(4)));
    let mut forked = backup;
    forked.tree = TestLog::new(1).tree;
    forked.grow(4, "other");
    assert_eq!(forked.put(&mut served.client(0)), Err(fork("w", 4)));
}

#[test]
fn a_request_that_hangs_up_before_the_answer_still_counts() {
    let state = tempfile::tempdir().unwrap();
    let mut log = TestLog::of_size(1, 4);
    let served = Served::open(state.path(), &[&log]);
    let body = log.seal();
    let body = log.request(0, &body);
    let head = format!("POST /add-checkpoint HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len());
    let mut stream = TcpStream::connect(served.address).unwrap();
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    drop(stream);
    let started = Instant::now();
    while served.client(0).latest(&log.public()) != Ok(Some(4)) {
        assert!(started.elapsed() < DEADLINE);
    }
}

#[test]
fn a_damaged_memory_stops_the_witness() {
    let state = tempfile::tempdir().unwrap();
    let mut log = TestLog::of_size(1, 4);
    let note = log.seal();
    {
        let server = open_witness(state.path(), &[&log], false);
        assert_eq!(server.add_checkpoint(log.request(0, &note).as_bytes(), None).status, 200);
        let reopened = reopen(state.path());
        assert!(matches!(reopened, Err(ServerError::Ledger(LedgerError::InUse { .. }))));
    }
    let files: Vec<_> =
        fs::read_dir(state.path()).unwrap().map(|found| found.unwrap().path()).collect();
    let file = files.iter().find(|path| path.file_name().unwrap().len() == 64).unwrap();
    let good = fs::read_to_string(file).unwrap();
    let damaged = [
        String::new(),
        good[..good.len() / 2].to_owned(),
        good.replace("\"version\":1", "\"version\":2"),
        good.replace("\"version\":1", "\"version\":1,\"more\":0"),
        good.replace(&log.origin(), &TestLog::new(2).origin()),
        good.replace("\\n4\\n", "\\nfour\\n"),
    ];
    for text in damaged {
        fs::write(file, &text).unwrap();
        let opened = reopen(state.path());
        let is_damaged = matches!(opened, Err(ServerError::Ledger(LedgerError::Damaged { .. })));
        assert!(is_damaged, "{text}");
    }
    fs::write(file, &good).unwrap();
    assert!(reopen(state.path()).is_ok());
}

fn reopen(state: &std::path::Path) -> Result<WitnessServer, ServerError> {
    WitnessServer::open(state, witness_key("w.example/1"), Vec::new(), false, || NOW)
}

#[test]
fn new_logs_introduce_themselves_only_where_allowed() {
    let state = tempfile::tempdir().unwrap();
    let mut log = TestLog::of_size(1, 4);
    let mut other = TestLog::of_size(2, 4);
    {
        let closed = Served::open(state.path(), &[]);
        let refused = log.put(&mut closed.client(0)).unwrap_err();
        assert!(refused.to_string().contains(&log.public().to_string()), "{refused}");
    }
    {
        let open = open_witness(state.path(), &[], true);
        let (note, introduction) = (log.seal(), log.public().to_string());
        let add = |log: &TestLog, note: &Note, introduction: Option<&str>| {
            open.add_checkpoint(log.request(0, note).as_bytes(), introduction).status
        };
        assert_eq!(add(&log, &note, None), 404);
        assert_eq!(add(&log, &note, Some("nonsense")), 400);
        let foreign = other.seal();
        assert_eq!(add(&other, &foreign, Some(&introduction)), 404);
        // A thief of the origin has not the key that the origin is made from.
        let mut forged = note.clone();
        forged.signatures = foreign.signatures.clone();
        assert_eq!(add(&log, &forged, Some(&introduction)), 403);
        assert_eq!(add(&log, &note, Some(&introduction)), 200);
    }
    // The introduction is kept, also by a witness that accepts no more of them.
    let served = Served::open(state.path(), &[]);
    log.grow(1, "");
    assert_eq!(log.put(&mut served.client(4)).unwrap().size, 5);
    assert_eq!(other.put(&mut served.client(0)).unwrap_err().kind(), "refused");
}

#[test]
fn signatures_of_strangers_are_not_kept() {
    let state = tempfile::tempdir().unwrap();
    let mut log = TestLog::of_size(1, 4);
    let server = open_witness(state.path(), &[&log], false);
    let mut note = log.seal();
    let sound = note.signatures.clone();
    let mut bad_epoch = sound[1].clone();
    bad_epoch.bytes[0] ^= 1;
    note.signatures.insert(0, bad_epoch);
    let mut other_id = sound[0].clone();
    other_id.key_id.0 ^= 1;
    (0..90).for_each(|_| note.signatures.insert(0, other_id.clone()));
    assert_eq!(server.add_checkpoint(log.request(0, &note).as_bytes(), None).status, 200);
    let served = Served::new(server);
    let kept = served.client(0).latest_note(&log.public()).unwrap().unwrap();
    assert_eq!(kept.signatures[..2], sound);
    assert_eq!(kept.signatures.len(), 3);
}

/// A witness that answers every request with the same bytes.
fn impostor(answer: String, requests: usize) -> (String, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        for _ in 0..requests {
            let (mut stream, _) = listener.accept().unwrap();
            // The requests of these tests fit into one segment of the loopback device.
            let _ = stream.read(&mut [0; 65536]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (url, thread)
}

#[test]
fn hostile_answers_become_errors_of_their_kind() {
    let mut log = TestLog::of_size(1, 4);
    let note = log.seal();
    let signature = witness_key("w.example/1").cosign(&note.text, NOW).unwrap();
    let other_key = witness_key("w.example/2").cosign(&note.text, NOW).unwrap();
    let other_text = witness_key("w.example/1").cosign("other\n", NOW).unwrap();
    let answer = |status: &str, kind: &str, body: &str| {
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
        )
    };
    let size = "text/x.tlog.size";
    let cases: BTreeMap<&str, (String, usize, &str)> = [
        ("sound", (answer("200 OK", "", &format!("{signature}\n")), 1, "")),
        ("among others", (answer("200 OK", "", &format!("x\n{other_key}\n{signature}\n")), 1, "")),
        ("another key", (answer("200 OK", "", &format!("{other_key}\n")), 1, "format")),
        ("another text", (answer("200 OK", "", &format!("{other_text}\n")), 1, "format")),
        ("nothing", (answer("200 OK", "", ""), 1, "format")),
        ("not text", ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\u{0}".to_owned(), 1, "format")),
        ("larger", (answer("409 C", size, "5\n"), 1, "rollback")),
        ("huge", (answer("409 C", size, "18446744073709551615\n"), 1, "rollback")),
        ("beyond", (answer("409 C", size, "18446744073709551616\n"), 1, "format")),
        ("zeros", (answer("409 C", size, "03\n"), 1, "format")),
        ("no newline", (answer("409 C", size, "3"), 1, "format")),
        ("wrong type", (answer("409 C", "text/plain", "3\n"), 1, "format")),
        ("same again", (answer("409 C", size, "3\n"), 2, "format")),
        ("equal", (answer("409 C", size, "4\n"), 2, "fork")),
        ("no proof asked", (answer("422 U", "", ""), 1, "format")),
        ("unknown", (answer("404 N", "", ""), 1, "refused")),
        ("forbidden", (answer("403 F", "", ""), 1, "refused")),
        ("elsewhere", (answer("301 M", "", ""), 1, "refused")),
        ("malformed", (answer("400 B", "", "\u{1b}[2J"), 1, "format")),
        ("busy", (answer("503 S", "", ""), 1, "unreachable")),
        ("odd", (answer("299 S", "", ""), 1, "unreachable")),
        ("closed", (String::new(), 1, "unreachable")),
        ("not http", ("SSH-2.0-x\r\n\r\n".to_owned(), 1, "format")),
    ]
    .into();
    let key = witness_key("w.example/1").verifier().to_string();
    for (name, (answer, requests, expected)) in cases {
        let (url, thread) = impostor(answer, requests);
        let mut client = WitnessAnchor::new("w", &url, &key, 0, DEADLINE).unwrap();
        let result = log.submit(&note, |submission| client.put(submission, NOW + 400));
        let kind = result.as_ref().map_or_else(AnchorError::kind, |_| "");
        assert_eq!(kind, expected, "{name}: {result:?}");
        if let Ok(receipt) = result {
            assert!(receipt.detail.contains("differ by 400 seconds"), "{}", receipt.detail);
            assert_eq!(receipt.at, NOW);
        }
        thread.join().unwrap();
    }
}

#[test]
fn a_silent_witness_is_given_up_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let key = witness_key("w.example/1").verifier().to_string();
    let mut log = TestLog::of_size(1, 4);
    let deadline = Duration::from_millis(200);
    let mut client = WitnessAnchor::new("w", &url, &key, 0, deadline).unwrap();
    let started = Instant::now();
    assert_eq!(log.put(&mut client).unwrap_err().kind(), "unreachable");
    let mut nobody = WitnessAnchor::new("w", "http://127.0.0.1:1", &key, 0, deadline).unwrap();
    assert_eq!(log.put(&mut nobody).unwrap_err().kind(), "unreachable");
    drop(listener);
    assert!(started.elapsed() < DEADLINE);
}

#[test]
fn what_cannot_be_a_witness_is_refused_at_once() {
    let key = witness_key("w.example/1").verifier().to_string();
    let log_key = TestLog::new(1).public().log_key().to_string();
    for (url, key) in
        [("https://w", &key), ("w", &key), ("http://w", &log_key), ("http://w", &"x".to_owned())]
    {
        let made = WitnessAnchor::new("w", url, key, 0, DEADLINE);
        assert_eq!(made.unwrap_err().kind(), "refused", "{url} {key}");
    }
    let mut log = TestLog::of_size(1, 4);
    let note = log.seal();
    let served = tempfile::tempdir().unwrap();
    let served = Served::open(served.path(), &[&log]);
    let mut client = served.client(0);
    let mut unsigned = note.clone();
    unsigned.signatures.remove(0);
    let refused = log.submit(&unsigned, |submission| client.put(submission, NOW));
    assert_eq!(refused.unwrap_err().kind(), "format");
    let mut huge = note;
    huge.text.push_str(&"x".repeat(40_000));
    let checkpoint = Checkpoint::parse(&log.seal().text).unwrap();
    let consistency = |_| None;
    let submission = wardkeep_monitor::anchor::Submission {
        log: &log.public(),
        note: &huge,
        checkpoint: &checkpoint,
        consistency: &consistency,
    };
    assert_eq!(client.put(&submission, NOW).unwrap_err().kind(), "format");
}
