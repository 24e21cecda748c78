//! What several tests use: a state directory and a workspace that exist for one test.

use std::fs;
use std::path::{Path, PathBuf};

use wardkeep_evidence::time::Timestamp;
use wardkeep_policy::audit::{self, Appended, Event, Report, Source};
use wardkeep_policy::manifest::Signer;
use wardkeep_policy::sign::{Draft, Presence, Request};
use wardkeep_policy::store::{Checked, PolicyStore, StampError, Stamped};
use wardkeep_policy::verify::State;
use wardkeep_policy::workspace::Workspace;

pub(crate) const POLICY: &str = "# Rules\n\n- Never push to main without a review.\n";

pub(crate) struct Lab {
    folder: tempfile::TempDir,
    pub(crate) store: PolicyStore,
    seed: std::cell::Cell<u8>,
}

impl Lab {
    /// With a key, and an empty workspace.
    pub(crate) fn new() -> Self {
        let lab = Self::without_key();
        lab.store.create_key(random32(1)).unwrap();
        lab
    }

    pub(crate) fn without_key() -> Self {
        let folder = folder();
        fs::create_dir(folder.path().join("state")).unwrap();
        fs::create_dir(folder.path().join("workspace")).unwrap();
        let store = PolicyStore::new(&folder.path().join("state"), uid());
        Self { folder, store, seed: std::cell::Cell::new(10) }
    }

    /// With a signed policy.
    pub(crate) fn signed(policy: &str) -> Self {
        let lab = Self::new();
        lab.write(policy);
        lab.sign().unwrap();
        lab
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn state(&self, name: &str) -> PathBuf {
        self.folder.path().join("state").join(name)
    }

    pub(crate) fn workspace_path(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    pub(crate) fn policy_path(&self) -> PathBuf {
        self.workspace_path().join("LocalGPT.md")
    }

    pub(crate) fn manifest_path(&self) -> PathBuf {
        self.workspace_path().join(".localgpt_manifest.json")
    }

    pub(crate) fn manifest(&self) -> String {
        fs::read_to_string(self.manifest_path()).unwrap()
    }

    pub(crate) fn write(&self, policy: impl AsRef<[u8]>) {
        fs::write(self.policy_path(), policy).unwrap();
    }

    pub(crate) fn workspace(&self) -> Workspace {
        Workspace::open(&self.workspace_path()).unwrap()
    }

    pub(crate) fn sign(&self) -> Result<Stamped, StampError> {
        self.sign_with(&request())
    }

    pub(crate) fn sign_with(&self, request: &Request) -> Result<Stamped, StampError> {
        let workspace = self.workspace();
        let draft = Draft::read(&workspace)?;
        self.store.sign(&workspace, &draft, request, self.random())
    }

    pub(crate) fn verify(&self) -> Checked {
        self.store.verify(&self.workspace(), self.random())
    }

    /// State and the reason's word.
    pub(crate) fn verdict(&self) -> (State, Option<&'static str>) {
        let verification = self.verify().verification;
        (verification.state, verification.reason.map(|reason| reason.word()))
    }

    /// Other bytes each time.
    fn random(&self) -> [u8; 16] {
        self.seed.set(self.seed.get().wrapping_add(1));
        random16(self.seed.get())
    }

    pub(crate) fn append(&self, event: &Event) -> Appended {
        audit::append(&self.store.audit_path(), event, now()).unwrap()
    }

    /// Verifies and writes the audit entry, as a session does.
    pub(crate) fn start_session(&self, source: Source) -> Checked {
        let checked = self.verify();
        self.append(&checked.verification.event(source));
        checked
    }

    pub(crate) fn audit(&self) -> Report {
        audit::read(&self.store.audit_path(), None).unwrap()
    }
}

/// A folder in memory where there is one: every write is flushed, and disks take their time.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub(crate) fn request() -> Request {
    Request { presence: Presence::Terminal, confined: false, signer: Signer::Cli, now: now() }
}

pub(crate) fn now() -> Timestamp {
    "2026-02-09T14:30:00Z".parse().unwrap()
}

pub(crate) fn uid() -> u32 {
    rustix::process::getuid().as_raw()
}

pub(crate) fn random32(seed: u8) -> [u8; 32] {
    std::array::from_fn(|at| seed.wrapping_mul(37) ^ u8::try_from(at).unwrap().wrapping_mul(73))
}

pub(crate) fn random16(seed: u8) -> [u8; 16] {
    std::array::from_fn(|at| random32(seed)[at])
}

/// The shared vectors, if they are beside the checkout or named by `WARDKEEP_SHARED`.
pub(crate) fn vectors(test: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let shared = std::env::var_os("WARDKEEP_SHARED").map_or(beside, PathBuf::from);
    let vectors = shared.join("vectors/localgpt");
    if vectors.is_dir() {
        return Some(vectors);
    }
    skip("the vectors in ../shared", test);
    None
}

/// Says that a test did not run, in the place where `scripts/test` collects such lines.
pub(crate) fn skip(what: &str, test: &str) {
    use std::io::Write as _;
    let line = format!("skipped: needs {what} ({test})\n");
    eprint!("{line}");
    if let Some(path) = std::env::var_os("WARDKEEP_SKIP_LOG") {
        let file = fs::OpenOptions::new().append(true).create(true).open(path);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
}
