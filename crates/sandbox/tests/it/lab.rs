//! A fake home, a workspace, a folder outside of both; and a process of its own, perhaps of another user,
//! in which the confinement is started.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use wardkeep_sandbox::{
    Answer, Ended, Layer, NewSettings, Prepared, Question, Running, SandboxError, SeccompProfile,
    SettingsFolder, Spec,
};

/// Somebody without any rights.
pub(crate) const NOBODY: u32 = 65_534;

/// Whether this runs as root, which tests of other users need.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Says that a test could not look at something.
pub(crate) fn skipped(what: &str) {
    let line = format!("skipped: {what}");
    println!("{line}");
    if let Some(path) = std::env::var_os("WARDKEEP_SKIP_LOG") {
        use std::io::Write as _;
        let file = fs::OpenOptions::new().create(true).append(true).open(path);
        let _ = file.and_then(|mut file| writeln!(file, "{line}"));
    }
}

/// The users that a test is run as.
pub(crate) fn users() -> Vec<u32> {
    if is_root() {
        vec![NOBODY, 0]
    } else {
        skipped("needs root to be another user");
        vec![rustix::process::geteuid().as_raw()]
    }
}

pub(crate) struct Lab {
    folder: tempfile::TempDir,
    uid: u32,
}

impl Lab {
    pub(crate) fn new(uid: u32) -> Self {
        // Not in /tmp, which is another one inside.
        let folder = tempfile::Builder::new().prefix("wk-sandbox-").tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let lab = Self { folder, uid };
        for name in ["ws/.git/hooks", "ws/sub", "home/.ssh", "home/.aws", "home/.claude", "outside"]
        {
            fs::create_dir_all(lab.at(name)).unwrap();
        }
        for name in [
            "ws/.env",
            "home/.ssh/id_rsa",
            "home/.aws/credentials",
            "home/.claude/.credentials.json",
            "home/notes.txt",
            "outside/victim.txt",
        ] {
            fs::write(lab.at(name), "CANARY\n").unwrap();
        }
        fs::write(lab.at("ws/.git/config"), "[core]\n").unwrap();
        fs::write(lab.at("ws/AGENTS.md"), "be good\n").unwrap();
        lab.give();
        lab
    }

    /// Makes everything the user's.
    pub(crate) fn give(&self) {
        if is_root() {
            let owner = format!("{}:{}", self.uid, self.uid);
            let done = Command::new("chown").arg("-R").arg(owner).arg(self.folder.path()).status();
            assert!(done.unwrap().success());
        }
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Whose it is.
    pub(crate) fn uid(&self) -> u32 {
        self.uid
    }

    /// A command that runs `script` confined; see [`stage`].
    pub(crate) fn command(&self, script: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "lab::stage", "--nocapture", "--test-threads", "1"])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("WARDKEEP_TEST_SCRIPT", script)
            .env("WARDKEEP_TEST_LAB", self.folder.path())
            .current_dir(self.at("ws"))
            .stdin(Stdio::null());
        if is_root() {
            command.uid(self.uid).gid(self.uid);
        }
        command
    }

    /// Runs `script` confined and gives its exit code and what it wrote to the file `out`.
    pub(crate) fn run(&self, script: &str) -> (i32, String) {
        self.run_with(script, &[])
    }

    pub(crate) fn run_with(&self, script: &str, variables: &[(&str, &str)]) -> (i32, String) {
        let out = self.at("ws/out");
        let _ = fs::remove_file(&out);
        let mut command = self.command(&format!("exec > {}\n{script}", out.display()));
        command.envs(variables.iter().copied());
        let done = command.output().unwrap();
        let text = fs::read_to_string(&out).unwrap_or_default();
        let told = String::from_utf8_lossy(&done.stdout);
        let code = done.status.code().unwrap_or(-1);
        assert_ne!(code, 101, "{told}{}", String::from_utf8_lossy(&done.stderr));
        let told_of = |line: &&str| line.starts_with("confine:") || line.starts_with("denied:");
        let reason = told.lines().filter(told_of);
        (code, text + &reason.collect::<Vec<_>>().join("\n"))
    }

    pub(crate) fn spawn(&self, script: &str) -> Child {
        self.command(script).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }
}

/// Whether a file comes to be within some seconds.
pub(crate) fn appears(path: &Path) -> bool {
    within(|| path.exists())
}

/// Whether something comes true within some seconds.
pub(crate) fn within(mut fact: impl FnMut() -> bool) -> bool {
    for _ in 0..2000 {
        if fact() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    false
}

/// Answers by the end of the name, after a while, and tells of each question.
fn wait_answering(running: Running, answers: &str, lab: &Path) -> Result<Ended, SandboxError> {
    let given = Arc::new(running.answers().unwrap());
    let mut firsts = Vec::new();
    let ask = |question: Question| {
        println!("\ndenied: asked {}", question.denial);
        let fits = |one: &&str| question.denial.path.ends_with(one.split('=').next().unwrap());
        let found = answers.split(',').find(fits).and_then(|one| one.split_once('='));
        let word = found.map(|(_, answer)| answer);
        let mut patience = 200;
        let answer = match word {
            Some("once" | "changed") => Answer::Once,
            // Only the first time.
            Some("first") if !firsts.contains(&question.denial.path) => {
                firsts.push(question.denial.path.clone());
                Answer::Once
            }
            Some("quick") => {
                patience = 0;
                Answer::No
            }
            Some("session" | "changed session") => Answer::Session,
            Some("at once") => {
                patience = 0;
                Answer::Session
            }
            // Whoever asked waits for ever.
            Some("never") => return,
            _ => Answer::No,
        };
        let given = Arc::clone(&given);
        let changes = word.is_some_and(|word| word.starts_with("changed"));
        let [asked, changed] = ["ws/asked", "ws/changed"].map(|name| lab.join(name));
        std::thread::spawn(move || {
            if changes {
                fs::write(asked, "").unwrap();
                // An answer that is never given would hang the run.
                let _ = (0..3).any(|_| appears(&changed));
            } else {
                std::thread::sleep(Duration::from_millis(patience));
            }
            given.give(&question, answer);
        });
    };
    running.wait_asking(|_| {}, ask).map(|(ended, _)| ended)
}

/// Not a test of its own: the process that confines.
#[test]
#[expect(clippy::exit, reason = "its exit code is the answer")]
fn stage() {
    let Some(script) = std::env::var_os("WARDKEEP_TEST_SCRIPT") else { return };
    let lab = PathBuf::from(std::env::var_os("WARDKEEP_TEST_LAB").unwrap());
    let shell = vec!["/bin/bash".into(), "-c".into(), script];
    let mut spec = Spec::new(lab.join("ws"), shell);
    spec.home = Some(lab.join("home"));
    spec.hidden.push(lab.join("state"));
    spec.bared.push(lab.join("state/plugins"));
    let path = std::env::var_os("PATH").unwrap();
    spec.environment.push(("PATH".into(), path));
    for (name, folder) in [("HOME", "home"), ("H", "home"), ("WS", "ws"), ("OUT", "outside")] {
        spec.environment.push((name.into(), lab.join(folder).into()));
    }
    let variable = |name: &str| std::env::var(name).ok();
    if let Some(time) = variable("WARDKEEP_TEST_TIMEOUT") {
        spec.timeout = Some(Duration::from_millis(time.parse().unwrap()));
    }
    for layer in variable("WARDKEEP_TEST_DEGRADED").iter().flat_map(|all| all.split(',')) {
        spec.allow_degraded.insert(layer.parse::<Layer>().unwrap());
    }
    if let Some(time) = variable("WARDKEEP_TEST_PATIENCE") {
        spec.patience = Duration::from_millis(time.parse().unwrap());
    }
    let profile = variable("WARDKEEP_TEST_SECCOMP").map(PathBuf::from);
    let profile = profile.map(|path| SeccompProfile::load(&path)).transpose();
    let refused = match profile {
        Ok(profile) => {
            spec.seccomp = profile;
            None
        }
        Err(error) => Some(error),
    };
    spec.models = variable("WARDKEEP_TEST_MODELS").map(|port| port.parse().unwrap());
    spec.learn = variable("WARDKEEP_TEST_LEARN").is_some();
    spec.lock = variable("WARDKEEP_TEST_LOCK").map(|path| Arc::new(fs::File::open(path).unwrap()));
    let patterns = variable("WARDKEEP_TEST_PROTECT");
    spec.protect
        .extend(patterns.iter().flat_map(|all| all.split(',')).map(|one| one.parse().unwrap()));
    for name in variable("WARDKEEP_TEST_RELEASE").iter().flat_map(|all| all.split(',')) {
        assert!(spec.names.release(name), "{name}");
    }
    spec.write.extend(variable("WARDKEEP_TEST_WRITE").map(PathBuf::from));
    spec.snapshots.extend(variable("WARDKEEP_TEST_SNAPSHOTS").map(PathBuf::from));
    spec.hidden.extend(variable("WARDKEEP_TEST_HIDDEN").map(PathBuf::from));
    spec.masked.extend(variable("WARDKEEP_TEST_MASK").map(PathBuf::from));
    spec.read.extend(variable("WARDKEEP_TEST_READ").map(PathBuf::from));
    let private = variable("WARDKEEP_TEST_PRIVATE");
    let private = private.iter().filter_map(|both| both.split_once('='));
    spec.private.extend(private.map(|(seen, copy)| (seen.into(), copy.into())));
    spec.limits.cpus = variable("WARDKEEP_TEST_CPUS").map(|share| share.parse().unwrap());
    spec.limits.total_memory = variable("WARDKEEP_TEST_TOTAL").map(|most| most.parse().unwrap());
    if let Some(most) = variable("WARDKEEP_TEST_PROCESSES") {
        spec.limits.processes = most.parse().unwrap();
    }
    let tells_group = spec.limits.cpus.is_some() || variable("WARDKEEP_TEST_GROUP").is_some();
    spec.limits.scratch = variable("WARDKEEP_TEST_SCRATCH").map(|size| size.parse().unwrap());
    if let Some(victim) = variable("VICTIM") {
        spec.environment.push(("VICTIM".into(), victim.into()));
    }
    let answers = variable("WARDKEEP_TEST_ANSWERS");
    spec.ask = answers.is_some();
    let tells = variable("WARDKEEP_TEST_TELL").is_some();
    let tells_layers = variable("WARDKEEP_TEST_LAYERS").is_some();
    let boot = variable("WARDKEEP_TEST_BOOT").map_or(1, |boot| boot.parse().unwrap());
    let kept = lab.join("kept");
    spec.settings = Some(SettingsFolder::new(kept, [boot; 16], SystemTime::now()));
    let prepared = refused.map_or_else(|| Prepared::new(spec), Err);
    let ended = prepared.and_then(Prepared::spawn).and_then(|mut running| {
        if let Some(Err(error)) = running.take_settings().map(NewSettings::keep) {
            println!("\nconfine: not kept: {error}");
        }
        if tells_layers {
            let layers: Vec<_> = running.applied().layers.iter().map(Layer::to_string).collect();
            println!("\ndenied: layers {}", layers.join(","));
        }
        if tells_group {
            println!("\nconfine: group {}", running.applied().control_group_limits.join(","));
        }
        match answers {
            Some(answers) => wait_answering(running, &answers, &lab),
            None => running.wait(),
        }
    });
    match ended {
        Ok(ended) => {
            if ended.stuck {
                println!("\nconfine: stuck");
            }
            if tells {
                println!();
                for one in &ended.denials {
                    println!("denied: {:?} {one} by {} x{}", one.kind, one.program, one.times);
                }
                for one in &ended.repositories {
                    let instead = if one.replaces { " replaces" } else { "" };
                    println!(
                        "denied: made {} {} holds {}{instead}",
                        one.path, one.executes, one.holds
                    );
                }
            }
            std::process::exit(ended.code)
        }
        Err(error) => {
            println!("\nconfine: {error}");
            std::process::exit(125);
        }
    }
}
