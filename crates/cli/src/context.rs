//! What a command may know of its surroundings. Nothing else reads the clock or the environment.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use wardkeep_evidence::time::Timestamp;
use wardkeep_monitor::anchor::Surroundings;
use wardkeep_monitor::anchor::git::VARIABLES;
use wardkeep_monitor::journal::Clock;
use wardkeep_monitor::monitor::{Monitor, MonitorConfig};
use wardkeep_monitor::store::{Store, StoreConfig, StoreReader};

use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Ui;

/// The name under which the state lies where LocalGPT has it.
pub(crate) const LOCALGPT: &str = "localgpt";

/// Says no to the append-only attribute.
const APPEND_ONLY: &str = "WARDKEEP_APPEND_ONLY";

/// Passed to every command.
pub(crate) struct Context {
    pub(crate) ui: Ui,
    /// The command as `wardkeep` spells it, for the JSON form.
    pub(crate) command: String,
    /// The name that the program was called by, for hints.
    pub(crate) tool: &'static str,
    state_dir: Option<PathBuf>,
    /// The exit code of a program that was run, which counts in place of ours.
    pub(crate) program_code: Option<u8>,
}

impl Context {
    pub(crate) fn new(
        ui: Ui,
        command: String,
        tool: &'static str,
        state_dir: Option<PathBuf>,
    ) -> Self {
        Self { ui, command, tool, state_dir, program_code: None }
    }

    /// Prints the JSON form of the result, if that was asked for, and ends the command. `ok` says
    /// whether everything that was looked at holds, which an exit code of 0 need not mean.
    pub(crate) fn finish(&mut self, exit: Exit, ok: bool, result: &impl Serialize) -> Exit {
        self.ui.object(Some(&self.command), exit, ok, result);
        exit
    }

    /// [`Self::finish`] for a command that did what was asked.
    pub(crate) fn done(&mut self, result: &impl Serialize) -> Exit {
        self.finish(Exit::Success, true, result)
    }

    /// The time.
    pub(crate) fn now(&self) -> Result<Timestamp, CliError> {
        let seconds = match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_secs()).ok(),
            Err(before) => i64::try_from(before.duration().as_secs()).ok().map(|seconds| -seconds),
        };
        seconds.and_then(Timestamp::from_unix).ok_or_else(|| {
            let message = "the clock of this machine shows a year beyond 9999";
            CliError::new(Exit::Unreadable, message, "set the clock and run it again")
        })
    }

    /// By what this start of the machine is told from others, and the time.
    pub(crate) fn boot(&self) -> Option<([u8; 16], SystemTime)> {
        let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let number = u128::from_str_radix(&text.trim_end().replace('-', ""), 16).ok()?;
        Some((number.to_be_bytes(), SystemTime::now()))
    }

    /// The same as a clock, for work that goes on; one that is past all years stands still.
    pub(crate) fn clock(&self) -> Clock {
        Clock::new(system_time)
    }

    /// What anchors may use: where programs are, and the variables that git may see.
    pub(crate) fn surroundings(&self) -> Surroundings {
        let mut surroundings = Surroundings::new(std::env::var_os("PATH").unwrap_or_default());
        let given = |name: &str| std::env::var_os(name).map(|value| (OsString::from(name), value));
        surroundings.variables = VARIABLES.iter().filter_map(|name| given(name)).collect();
        surroundings
    }

    /// The user's home.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute())
    }

    /// The user's home by the system's own list of users: an agent may set any variable for its
    /// hooks. Where the list does not tell, the variable has to do.
    pub(crate) fn home_by_user(&self) -> Option<PathBuf> {
        let listed = listed_user(rustix::process::getuid().as_raw(), 5).map(PathBuf::from);
        listed.filter(|home| home.is_absolute()).or_else(|| self.home())
    }

    /// What the system's own list of users calls one.
    pub(crate) fn user_name(&self, user: u32) -> Option<String> {
        listed_user(user, 0)
    }

    /// Where the state lies for a hook: no variable says that.
    pub(crate) fn state_dir_of_hooks(&self) -> Result<PathBuf, CliError> {
        let variable = |name: &str| match name {
            "HOME" => self.home_by_user().map(PathBuf::into_os_string),
            _ => None,
        };
        find_state_dir(self.state_dir.as_deref(), &variable, false)
    }

    /// The workspace where none was named: the current folder, or LocalGPT's own under its name.
    pub(crate) fn workspace(&self) -> PathBuf {
        match (self.tool, self.home()) {
            (LOCALGPT, Some(home)) => home.join(".localgpt/workspace"),
            _ => self.here(),
        }
    }

    /// The current folder by the name that the shell came by: a link in the place of a workspace
    /// shows only there.
    fn here(&self) -> PathBuf {
        use std::os::unix::fs::MetadataExt as _;
        let here = PathBuf::from(".");
        let identity = |path: &Path| path.metadata().ok().map(|data| (data.dev(), data.ino()));
        std::env::var_os("PWD")
            .map(PathBuf::from)
            .filter(|named| named.is_absolute() && identity(named) == identity(&here))
            .unwrap_or(here)
    }

    /// Whether someone can be asked.
    pub(crate) fn has_terminal(&self) -> bool {
        use std::io::IsTerminal as _;
        std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
    }

    /// Whether the process runs inside `wardkeep run`. There the key is out of reach in any case.
    pub(crate) fn is_confined(&self) -> bool {
        // The variable can be taken away inside, the file cannot.
        std::env::var_os("WARDKEEP_CONFINED").is_some() || wardkeep_sandbox::is_confined()
    }

    /// The whole environment, for what passes a part of it on.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        std::env::vars_os()
    }

    /// Asks a question on the terminal; only `y` and `yes` are a yes.
    pub(crate) fn confirm(&mut self, question: &str) -> Result<bool, CliError> {
        let answer = self.ask_line(&format!("{question} [y/N]"))?.unwrap_or_default();
        Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }

    /// Asks on the terminal for a line; nothing, where there is none any more.
    pub(crate) fn ask_line(&mut self, question: &str) -> Result<Option<String>, CliError> {
        use std::io::Write as _;
        let failed =
            |error: &std::io::Error| CliError::io("read", Path::new("the terminal"), error);
        let mut stderr = std::io::stderr();
        write!(stderr, "{question} ").and_then(|()| stderr.flush()).map_err(|e| failed(&e))?;
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer).map_err(|error| failed(&error))?;
        Ok((read > 0).then_some(answer))
    }

    /// Where programs are looked for.
    pub(crate) fn program_folders(&self) -> Vec<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).collect()
    }

    /// This program, to start it again.
    pub(crate) fn program(&self) -> Result<PathBuf, CliError> {
        std::env::current_exe()
            .map_err(|error| CliError::io("find", Path::new("this program"), &error))
    }

    /// What of the environment a daemon gets that the user starts.
    pub(crate) fn daemon_variables(&self) -> Vec<(OsString, OsString)> {
        let name = OsString::from(APPEND_ONLY);
        std::env::var_os(&name).map(|value| (name, value)).into_iter().collect()
    }

    /// Where the user's own units for systemd are.
    pub(crate) fn unit_folder(&self) -> Option<PathBuf> {
        let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let config = config.filter(|path| path.is_absolute());
        let config = config.or_else(|| self.home().map(|home| home.join(".config")));
        config.map(|config| config.join("systemd/user"))
    }

    /// Random bytes of the system.
    pub(crate) fn random<const N: usize>(&self) -> Result<[u8; N], CliError> {
        let mut bytes = [0; N];
        getrandom::fill(&mut bytes).map_err(|error| {
            let message = format!("the system gives no random bytes: {error}");
            CliError::new(Exit::Unreadable, message, "run it again")
        })?;
        Ok(bytes)
    }

    /// The user's editor, options and all.
    pub(crate) fn editor(&self) -> String {
        ["VISUAL", "EDITOR"]
            .iter()
            .find_map(|name| std::env::var(name).ok().filter(|value| !value.trim().is_empty()))
            .unwrap_or_else(|| "vi".to_owned())
    }

    /// How many threads to use for work that can be split.
    pub(crate) fn threads(&self) -> usize {
        std::thread::available_parallelism().map_or(1, NonZero::get)
    }

    /// Opens the store to append to it, making it if it is not there. As root its files get the
    /// append-only attribute, unless the environment says no.
    pub(crate) fn open_store(&self) -> Result<Store, CliError> {
        Ok(Store::open(&self.state_dir()?, self.store_config()?)?)
    }

    /// As [`Self::open_store`], at another place.
    pub(crate) fn open_store_at(&self, state: &Path) -> Result<Store, CliError> {
        Ok(Store::open(state, self.store_config()?)?)
    }

    /// Whether the command line says which state directory is meant.
    pub(crate) fn names_state_dir(&self) -> bool {
        self.state_dir.is_some()
    }

    /// The user and group that ran sudo, where this is root by way of it.
    pub(crate) fn sudo(&self) -> Option<(u32, u32)> {
        let number = |name| std::env::var(name).ok()?.parse().ok();
        let root = rustix::process::getuid().is_root();
        root.then(|| Some((number("SUDO_UID")?, number("SUDO_GID")?))).flatten()
    }

    /// Opens the reference monitor, making its store if it is not there.
    pub(crate) fn open_monitor(&self) -> Result<Monitor, CliError> {
        let mut config = self.monitor_config()?;
        config.home = self.home().or(config.home);
        Ok(Monitor::open(&self.state_dir()?, config)?)
    }

    /// How a monitor of this user works.
    pub(crate) fn monitor_config(&self) -> Result<MonitorConfig, CliError> {
        let owner = rustix::process::geteuid().as_raw();
        let mut config = MonitorConfig::new(self.store_config()?, owner);
        config.home = self.home_by_user();
        Ok(config)
    }

    fn store_config(&self) -> Result<StoreConfig, CliError> {
        // Checked here once, so that the clock below cannot fail.
        self.now()?;
        let mut config = StoreConfig::new(self.clock());
        let wanted = std::env::var_os(APPEND_ONLY).is_none_or(|value| value != "0");
        config.append_only = wanted && rustix::process::geteuid().is_root();
        Ok(config)
    }

    /// Opens the store to read it; changes nothing.
    pub(crate) fn open_reader(&self) -> Result<StoreReader, CliError> {
        Ok(StoreReader::open(&self.state_dir()?)?)
    }

    /// Where the state of the invoking user lies.
    pub(crate) fn state_dir(&self) -> Result<PathBuf, CliError> {
        let root = rustix::process::getuid().is_root();
        if let (None, LOCALGPT, Some(home)) = (&self.state_dir, self.tool, self.home()) {
            return Ok(home.join(".localgpt"));
        }
        find_state_dir(self.state_dir.as_deref(), &|name| std::env::var_os(name), root)
    }
}

/// A field of a user's line in the system's own list.
fn listed_user(user: u32, field: usize) -> Option<String> {
    let user = user.to_string();
    let list = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    list.lines().find_map(|line| {
        let found = line.split(':').nth(2) == Some(user.as_str());
        line.split(':').nth(field).filter(|_| found).map(str::to_owned)
    })
}

/// The time as a clock; beyond the years that can be written, the last or first of them.
fn system_time() -> Timestamp {
    let seconds = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
        Err(_) => 0,
    };
    Timestamp::from_unix(seconds).unwrap_or(Timestamp::MAX)
}

/// `--state-dir`, else the environment; under `sudo` only the former, because neither root's home
/// nor a variable that survived says whose state is meant.
fn find_state_dir(
    given: Option<&Path>,
    variable: &dyn Fn(&str) -> Option<OsString>,
    root: bool,
) -> Result<PathBuf, CliError> {
    if let Some(given) = given {
        return std::path::absolute(given).map_err(|error| CliError::io("find", given, &error));
    }
    if root && variable("SUDO_UID").is_some() {
        return Err(CliError::refused(
            "under sudo it is not clear whose state is meant",
            "run it without sudo, or name the directory with --state-dir",
        ));
    }
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(path) = set("WARDKEEP_STATE_DIR") {
        if path.is_absolute() {
            return Ok(path);
        }
        return Err(CliError::refused(
            format!("WARDKEEP_STATE_DIR is `{}`, which is not an absolute path", path.display()),
            "set it to a path that begins with `/`, or unset it",
        ));
    }
    // A relative path in either is invalid by their own rules and counts as unset.
    let absolute = |name| set(name).filter(|path| path.is_absolute());
    let base = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")))
        .ok_or_else(|| {
            CliError::refused(
                "neither HOME nor XDG_STATE_HOME says where the state lies",
                "name the directory with --state-dir or WARDKEEP_STATE_DIR",
            )
        })?;
    Ok(base.join("wardkeep"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(given: Option<&str>, variables: &[(&str, &str)], root: bool) -> Result<String, Exit> {
        let variable = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value))
        };
        find_state_dir(given.map(Path::new), &variable, root)
            .map(|path| path.display().to_string())
            .map_err(|error| error.exit)
    }

    #[test]
    fn the_nearest_word_on_the_state_directory_counts() {
        let home = ("HOME", "/home/a");
        let state_home = ("XDG_STATE_HOME", "/x");
        let own = ("WARDKEEP_STATE_DIR", "/w");
        let sudo = ("SUDO_UID", "1000");
        let ok = |path: &str| Ok(path.to_owned());
        for (given, variables, root, expected) in [
            (Some("/g"), &[home, state_home, own][..], false, ok("/g")),
            (None, &[home, state_home, own], false, ok("/w")),
            (None, &[home, state_home], false, ok("/x/wardkeep")),
            (None, &[home], false, ok("/home/a/.local/state/wardkeep")),
            (None, &[home, ("XDG_STATE_HOME", "x")], false, ok("/home/a/.local/state/wardkeep")),
            (None, &[home, ("WARDKEEP_STATE_DIR", "")], false, ok("/home/a/.local/state/wardkeep")),
            (None, &[home, ("WARDKEEP_STATE_DIR", "w")], false, Err(Exit::Refused)),
            (None, &[("HOME", "relative")], false, Err(Exit::Refused)),
            (None, &[], false, Err(Exit::Refused)),
            (None, &[home, own, sudo], true, Err(Exit::Refused)),
            (Some("/g"), &[home, own, sudo], true, ok("/g")),
            (None, &[home, sudo], false, ok("/home/a/.local/state/wardkeep")),
            (None, &[("HOME", "/home/r")], true, ok("/home/r/.local/state/wardkeep")),
        ] {
            assert_eq!(found(given, variables, root), expected, "{given:?} {variables:?} {root}");
        }
    }
}
