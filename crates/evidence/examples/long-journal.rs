//! Writes a long journal at once, for figures: what an agent does, over and over, in a few sessions.
//!
//! `cargo run --release -p wardkeep-evidence --example long-journal -- FOLDER [RECORDS]`
//!
//! FOLDER becomes a state directory. Nothing is flushed line by line, and nothing is sealed.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a program for figures, not for users"
)]

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use wardkeep_evidence::entry::Entry;
use wardkeep_evidence::hash::{EntryHash, RecordId};
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{NewRecord, Payload, Principal, Record, RecordType};
use wardkeep_evidence::time::Timestamp;

/// Bytes of a segment, as the journal itself has them.
const SEGMENT: usize = 64 << 20;
const SESSIONS: u64 = 64;
const AGENTS: [&str; 3] = ["claude-code", "codex", "openclaw"];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("give a folder to write to"));
    let records: u64 = arguments.next().map_or(1_000_000, |text| text.parse().expect("a number"));
    let journal = folder.join("journal");
    for path in [&folder, &journal] {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.expect("a folder");
    }
    let start = Instant::now();
    let mut newest = [None; 64];
    let (mut segment, mut previous) = (Vec::with_capacity(SEGMENT), EntryHash::ZERO);
    let mut number = 1;
    let first = 1_790_000_000;
    for at in 0..records {
        let seconds = first + i64::try_from(at / 4).expect("not so many");
        let time = Timestamp::from_unix(seconds).expect("this century").to_string();
        let session = at % SESSIONS;
        let parent = &mut newest[usize::try_from(session).expect("few")];
        let record = record(at, session, &time, *parent);
        *parent = Some(record.id);
        let entry = Entry::chained(at, time, record.id, previous);
        previous = entry.hash;
        segment.extend_from_slice(b"{\"entry\":");
        entry.write_line(&mut segment);
        segment.extend_from_slice(b",\"record\":");
        record.write_line(&mut segment);
        segment.extend_from_slice(b"}\n");
        if segment.len() >= SEGMENT {
            write(&journal, number, &segment);
            segment.clear();
            number += 1;
        }
    }
    write(&journal, number, &segment);
    println!("{records} records in {number} segments, {:.1?}", start.elapsed());
}

fn write(journal: &Path, number: u32, bytes: &[u8]) {
    let path = journal.join(format!("{number:08}.jsonl"));
    let _ = fs::remove_file(&path);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = BufWriter::new(file.expect("a new file"));
    file.write_all(bytes).and_then(|()| file.flush()).expect("written");
}

/// Mostly tools are called; one action in fifty is denied, one in a thousand is asked about.
fn record(at: u64, session: u64, time: &str, parent: Option<RecordId>) -> Record<'static> {
    let verdict = match at {
        at if at % 1000 == 999 => "ask",
        at if at % 50 == 49 => "deny",
        _ => "allow",
    };
    let (kind, act, surface, subject) = match at / SESSIONS % 8 {
        _ if verdict == "deny" => {
            (RecordType::GuardDecision, "write", "DurableMemory", "/home/me/MEMORY.md".to_owned())
        }
        0 | 1 => (RecordType::ToolCall, "call", "ConversationIO", "Bash".to_owned()),
        2 | 3 => (RecordType::ToolResult, "return", "ConversationIO", "Bash".to_owned()),
        4 | 5 => (
            RecordType::FileRead,
            "read",
            "FileSystem",
            format!("/home/me/src/file{}.rs", at % 997),
        ),
        6 => (RecordType::FileWrite, "write", "FileSystem", format!("/home/me/{}.rs", at % 499)),
        _ => (
            RecordType::NetworkRequest,
            "send",
            "NetworkIO",
            format!("https://example.org/{}", at % 97),
        ),
    };
    let mut content = Object::from([
        ("act", Value::from(act)),
        ("action", Value::from(format!("{at:064x}"))),
        ("kind", Value::from("decision")),
        ("reason", Value::from("a sentence that says why this was decided as it was")),
        (
            "rule",
            Value::from(if verdict == "deny" { "mi-deny-tainted" } else { "fs-allow-default" }),
        ),
        ("subject", Value::from(subject)),
        ("surface", Value::from(surface)),
        ("v", Value::from(1u64)),
        ("verdict", Value::from(verdict)),
    ]);
    if verdict == "deny" {
        content.push("category", Value::from("MI"));
        content.push("severity", Value::from("HIGH"));
    }
    let agent = AGENTS[usize::try_from(session).unwrap_or(0) % AGENTS.len()];
    let new = NewRecord {
        kind,
        principal: Principal::Tool,
        taint: vec!["TOOL_OUTPUT".into()],
        parents: parent.into_iter().collect(),
        meta: Object::from([
            ("agent", Value::from(agent)),
            ("nonce", Value::from(format!("{at:032x}"))),
            ("session", Value::from(format!("{agent}:{session}"))),
            ("ts", Value::from(time.to_owned())),
            ("workspace", Value::from("/work")),
        ]),
        payload: Payload::Inline(Value::Object(content)),
    };
    new.seal().expect("a record").into_owned()
}
