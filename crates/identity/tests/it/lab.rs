//! What several tests use.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::TempDir;
use wardkeep_identity::apply::Applied;
use wardkeep_identity::changes::{ApprovalHash, Changes};
use wardkeep_identity::config::Config;
use wardkeep_identity::error::IdentityError;
use wardkeep_identity::level::Level;
use wardkeep_identity::name::Name;
use wardkeep_identity::state::{FileState, State, Status};
use wardkeep_identity::sync::Synced;
use wardkeep_identity::workspace::Workspace;

pub(crate) const CONFIG: &str = r#"{
  "version": 1,
  "protect": ["soulguard.json", "SOUL.md", "AGENTS.md", "skills/", "bin/*"],
  "watch": ["MEMORY.md", "memory/*.md"]
}
"#;

/// A workspace that was set up, its state, and a folder outside.
pub(crate) struct Scene {
    pub(crate) folder: TempDir,
    pub(crate) level: Level,
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).unwrap()
}

impl Scene {
    pub(crate) fn new() -> Self {
        let scene = Self::bare(tempfile::tempdir().unwrap(), Level::User);
        scene.set_up();
        scene
    }

    /// In memory, where flushing costs nothing.
    pub(crate) fn in_memory(level: Level) -> Self {
        let shm = Path::new("/dev/shm");
        let folder = if shm.is_dir() { TempDir::new_in(shm) } else { TempDir::new() };
        Self::bare(folder.unwrap(), level)
    }

    /// With files, and nothing approved.
    pub(crate) fn bare(folder: TempDir, level: Level) -> Self {
        let scene = Self { folder, level };
        fs::create_dir(scene.work()).unwrap();
        fs::create_dir(scene.outside()).unwrap();
        fs::write(scene.outside().join("secret"), "secret of the owner").unwrap();
        scene.write("soulguard.json", CONFIG);
        scene.write("SOUL.md", "# My Soul\n");
        scene.write("AGENTS.md", "Be kind.\n");
        scene.write("skills/a.md", "skill a\n");
        scene.write("skills/deep/b.md", "skill b\n");
        scene.write("bin/run", "#!/bin/sh\n");
        fs::set_permissions(scene.work().join("bin/run"), fs::Permissions::from_mode(0o755))
            .unwrap();
        scene.write("memory/one.md", "one\n");
        scene.write("other.txt", "not tracked\n");
        scene
    }

    pub(crate) fn set_up(&self) {
        self.open().set_up(&Config::new([]), &|_| {}).unwrap();
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.folder.path().join("outside")
    }

    pub(crate) fn state_folder(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn staging(&self) -> PathBuf {
        self.work().join(".soulguard/staging")
    }

    pub(crate) fn open(&self) -> Workspace<'static> {
        Workspace::open(&self.work(), &self.state_folder(), self.level, SystemTime::now()).unwrap()
    }

    /// As somebody who is not stopped by modes: another file in its place.
    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        put(&self.work().join(path), text);
    }

    pub(crate) fn propose(&self, path: &str, text: impl AsRef<[u8]>) {
        put(&self.staging().join(path), text);
    }

    pub(crate) fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.work().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) fn text(&self, path: &str) -> String {
        String::from_utf8(self.read(path)).unwrap()
    }

    pub(crate) fn mode(&self, path: &str) -> u32 {
        fs::symlink_metadata(self.work().join(path)).unwrap().mode() & 0o7777
    }

    pub(crate) fn changes(&self) -> Changes {
        self.open().changes(&|_| {}).unwrap()
    }

    pub(crate) fn apply(&self) -> Result<Applied, IdentityError> {
        let workspace = self.open();
        let changes = workspace.changes(&|_| {})?;
        workspace.apply(&changes, &changes.hash())
    }

    pub(crate) fn sync(&self) -> Synced {
        self.open().sync(&|_| {}).unwrap()
    }

    pub(crate) fn look(&self) -> State {
        self.open().look(&|_| {}).unwrap()
    }

    pub(crate) fn state_of(&self, path: &str) -> FileState {
        let state = self.look();
        let found = state.files.iter().find(|file| file.name.to_string() == path);
        found.unwrap_or_else(|| panic!("{path} in {state:?}")).clone()
    }

    pub(crate) fn status(&self, path: &str) -> Status {
        self.state_of(path).status
    }

    pub(crate) fn assert_clean(&self) {
        let state = self.look();
        let wrong: Vec<_> = state.files.iter().filter(|file| file.status != Status::Ok).collect();
        assert!(state.is_clean() && wrong.is_empty(), "{wrong:#?} {:?}", state.closed);
    }

    /// The names and words of the changes.
    pub(crate) fn words(&self) -> Vec<String> {
        let changes = self.changes();
        changes.changes.iter().map(|one| format!("{} {}", one.status(), one.name)).collect()
    }

    /// Nothing outside was touched.
    pub(crate) fn assert_outside(&self) {
        let secret = self.outside().join("secret");
        assert_eq!(fs::read(&secret).unwrap(), b"secret of the owner");
        assert_eq!(fs::read_dir(self.outside()).unwrap().count(), 1);
        assert_eq!(fs::metadata(&secret).unwrap().mode() & 0o777, 0o644);
    }

    /// Nothing is left on the bench.
    pub(crate) fn assert_bench_is_empty(&self) {
        let left: Vec<_> = fs::read_dir(self.work().join(".soulguard/work")).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
    }

    /// Every kept file: where it stood, and its bytes.
    pub(crate) fn quarantined(&self) -> Vec<(String, Vec<u8>)> {
        let mut all = Vec::new();
        for folder in fs::read_dir(self.state_folder().join("quarantine")).unwrap() {
            let list = fs::read_to_string(folder.unwrap().path().join("list.jsonl")).unwrap();
            for line in list.lines() {
                let kept: serde_json::Value = serde_json::from_str(line).unwrap();
                let at = self.state_folder().join(kept["at"].as_str().unwrap());
                let bytes = if at.is_file() { fs::read(at).unwrap() } else { Vec::new() };
                all.push((kept["name"].as_str().unwrap().to_owned(), bytes));
            }
        }
        all
    }
}

pub(crate) fn put(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    if fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_dir()) {
        fs::remove_file(path).unwrap();
    }
    fs::write(path, text).unwrap();
}

/// Every file below, with its bytes; links with where they lead.
pub(crate) fn tree(at: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut folders = vec![at.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let key = path.strip_prefix(at).unwrap().to_owned();
            if meta.is_dir() {
                folders.push(path);
            } else if meta.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                all.insert(key, target.into_os_string().into_encoded_bytes());
            } else if meta.is_file() && meta.len() < 1 << 20 {
                all.insert(key, fs::read(&path).unwrap());
            }
        }
    }
    all
}

/// This program where another user can start it. Copied by a process of its own: a copy that any
/// thread holds open to write cannot be started, and threads inherit such handles to children.
pub(crate) fn copy_of_this_program(scene: &Scene) -> PathBuf {
    let program = scene.folder.path().join("program");
    let status = std::process::Command::new("/bin/cp")
        .arg(std::env::current_exe().unwrap())
        .arg(&program)
        .status()
        .unwrap();
    assert!(status.success());
    program
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

/// CPU time of this thread, in seconds.
pub(crate) fn cpu() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

pub(crate) fn other_hash() -> ApprovalHash {
    "de".repeat(32).parse().unwrap()
}
