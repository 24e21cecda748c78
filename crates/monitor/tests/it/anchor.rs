//! Anchors and the witness, over real files, processes and loopback sockets.

mod file;
mod git;
mod outbox;
mod requests;
mod witness;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use wardkeep_evidence::checkpoint::Checkpoint;
use wardkeep_evidence::merkle::{Tree, leaf_hash};
use wardkeep_evidence::note::{Algorithm, Note, SigningKey};
use wardkeep_evidence::seal::{EpochKey, LogPublic, sign_seal};
use wardkeep_monitor::anchor::server::{KnownLog, ServerOptions, WitnessServer};
use wardkeep_monitor::anchor::witness::WitnessAnchor;
use wardkeep_monitor::anchor::{Anchor, AnchorError, Receipt, Submission};

const NOW: u64 = 1_800_000_000;
const DEADLINE: Duration = Duration::from_secs(60);

/// A log in memory; cloned and grown in two ways it is a forked one.
#[derive(Clone)]
struct TestLog {
    seed: u8,
    tree: Tree,
    epoch: u64,
}

impl TestLog {
    fn new(seed: u8) -> Self {
        Self { seed, tree: Tree::new(), epoch: 0 }
    }

    fn of_size(seed: u8, size: u64) -> Self {
        let mut log = Self::new(seed);
        log.grow(size, "");
        log
    }

    fn public(&self) -> LogPublic {
        let key = |seed: [u8; 32]| {
            let key = SigningKey::from_seed("any", Algorithm::Ed25519, &seed).unwrap();
            key.verifier().public_key()
        };
        LogPublic { log: key([self.seed; 32]), epoch0: key([self.seed + 100; 32]) }
    }

    fn origin(&self) -> String {
        self.public().origin()
    }

    fn grow(&mut self, count: u64, content: &str) {
        for _ in 0..count {
            let leaf = format!("{content}{}", self.tree.size());
            self.tree.push(leaf_hash(leaf.as_bytes()));
        }
    }

    /// The seal of the next epoch over all there is.
    fn seal(&mut self) -> Note {
        let public = self.public();
        let log_key = public.signing_key(&[self.seed; 32]).unwrap();
        let first = EpochKey::first(&[self.seed + 100; 32]);
        let epoch_key = (0..self.epoch).fold(first, |key, _| key.next());
        let slots = (self.epoch, self.epoch);
        self.epoch += 1;
        let size = self.tree.size();
        let root = self.tree.root_at(size).unwrap();
        sign_seal(&public, &log_key, &epoch_key, slots, size, root).unwrap()
    }

    /// Gives the seal to whatever takes submissions.
    fn submit<T>(&self, note: &Note, give: impl FnOnce(&Submission<'_>) -> T) -> T {
        let checkpoint = Checkpoint::parse(&note.text).unwrap();
        let consistency = |old| self.tree.consistency(old, checkpoint.size);
        let log = self.public();
        let consistency = &consistency;
        give(&Submission { log: &log, note, checkpoint: &checkpoint, consistency })
    }

    /// Seals the log as it is and leaves the seal with an anchor.
    fn put(&mut self, anchor: &mut dyn Anchor) -> Result<Receipt, AnchorError> {
        let note = self.seal();
        self.submit(&note, |submission| anchor.put(submission, NOW))
    }

    fn request(&self, old: u64, note: &Note) -> String {
        let size = Checkpoint::parse(&note.text).unwrap().size;
        let proof = self.tree.consistency(old, size).unwrap_or_default();
        let lines: String = proof.iter().map(|hash| format!("{hash}\n")).collect();
        format!("old {old}\n{lines}\n{note}")
    }
}

fn rollback(anchor: &str, theirs: u64, ours: u64) -> AnchorError {
    AnchorError::Rollback { anchor: anchor.to_owned(), theirs, ours }
}

fn fork(anchor: &str, size: u64) -> AnchorError {
    AnchorError::Fork { anchor: anchor.to_owned(), size }
}

fn witness_key(name: &str) -> SigningKey {
    let seed: [u8; 32] = std::array::from_fn(|index| name.as_bytes()[index % name.len()]);
    SigningKey::from_seed(name, Algorithm::CosignatureV1, &seed).unwrap()
}

fn open_witness(directory: &Path, logs: &[&TestLog], accept_new: bool) -> WitnessServer {
    let logs = logs.iter().map(|log| KnownLog::from(log.public())).collect();
    WitnessServer::open(directory, witness_key("w.example/1"), logs, accept_new, || NOW).unwrap()
}

/// A witness that serves on a loopback port until it is dropped.
struct Served {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn new(server: WitnessServer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let seen_by_thread = Arc::clone(&stop);
        let thread = std::thread::spawn(move || server.run(listener, &seen_by_thread).unwrap());
        Self { address, stop, thread: Some(thread) }
    }

    fn open(directory: &Path, logs: &[&TestLog]) -> Self {
        Self::new(open_witness(directory, logs, false))
    }

    fn with_deadline(directory: &Path, logs: &[&TestLog], deadline: Duration) -> Self {
        let options = ServerOptions { deadline, threads: 2, ..ServerOptions::default() };
        Self::new(open_witness(directory, logs, false).with_options(options))
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn client(&self, last_known: u64) -> WitnessAnchor {
        let key = witness_key("w.example/1").verifier().to_string();
        WitnessAnchor::new("w", &self.url(), &key, last_known, DEADLINE).unwrap()
    }

    /// Sends bytes as they are and gives the status of the answer; 0 when there is none.
    fn raw(&self, request: &[u8]) -> u16 {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        answer.strip_prefix("HTTP/1.1 ").map_or(0, |rest| rest[..3].parse().unwrap())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}
