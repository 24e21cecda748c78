//! The sudoers file: what the agent may ask of root where no daemon runs, word for word.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{System, SystemError, check_path, check_program, run, shown};
use crate::lock::Agent;

/// What the agent may ask; everything that approves is the owner's.
const COMMANDS: [&str; 4] = ["status", "diff", "stage", "sync"];
const FOLDER: &str = "etc/sudoers.d";
const MAIN: &str = "etc/sudoers";
const VISUDO: &str = "/usr/sbin/visudo";
/// Largest main file that is read.
const MAX_MAIN: u64 = 1 << 20;

/// A sudoers file that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sudoers {
    /// Where.
    pub path: PathBuf,
    /// Whether `visudo` has read it and had no objection; it is checked wherever there is one.
    pub checked: bool,
    /// Whether the main sudoers file reads the folder.
    pub included: bool,
}

/// The text of a sudoers file: one user, by number; each command in full, with its one argument.
///
/// A path that would need escaping is refused: the arguments of a command are matched as one string
/// with wildcards, so a space, a star or a backslash would allow more than it says.
///
/// # Errors
///
/// A path cannot be written there.
pub fn sudoers_text(
    programs: &[PathBuf],
    workspace: &Path,
    agent: &Agent,
) -> Result<String, SystemError> {
    const PLACE: &str = "a sudoers file";
    let workspace = check_path(workspace, PLACE)?;
    let mut defaults = String::new();
    let mut commands = Vec::new();
    for program in programs {
        let program = check_path(program, PLACE)?;
        // Whatever the machine's own settings are, nothing of the agent's environment comes along.
        defaults.push_str(&format!("Defaults!{program} env_reset, !setenv\n"));
        commands.extend(COMMANDS.map(|command| format!("{program} {command} {workspace}")));
    }
    let uid = agent.uid.as_raw();
    let commands = commands.join(", \\\n    ");
    Ok(format!(
        "# Written by wardkeep. What the agent may ask about its workspace; nothing here approves.\n\
         {defaults}#{uid} ALL=(root) NOPASSWD:NOSETENV: {commands}\n"
    ))
}

impl System {
    /// Writes the sudoers file of a workspace. `programs` are the names under which the agent calls
    /// this program, each a file of root's that the agent cannot replace, or a link to one in a place
    /// that it cannot change.
    ///
    /// # Errors
    ///
    /// The agent is root, a path cannot be written there, a program could be replaced, there is no
    /// sudo, or its checker objects.
    pub fn install_sudoers(
        &self,
        identifier: &str,
        programs: &[PathBuf],
        workspace: &Path,
        agent: &Agent,
    ) -> Result<Sudoers, SystemError> {
        let name = file_name(identifier)?;
        if agent.uid.is_root() {
            let why = "it is root, which needs no sudo and cannot be guarded against";
            return Err(SystemError::Unfit { name: "root".to_owned(), why });
        }
        for program in programs {
            check_named_program(program, agent)?;
        }
        let text = sudoers_text(programs, workspace, agent)?;
        let folder = self.at(FOLDER);
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| SystemError::Io { action, path, source }
        };
        let metadata = folder.symlink_metadata().map_err(failed("look at", &folder))?;
        if !metadata.is_dir() || metadata.uid() != 0 || metadata.mode() & 0o022 != 0 {
            let why = "others than root can write it".to_owned();
            return Err(SystemError::Untrusted { path: folder, why });
        }
        let path = folder.join(&name);
        // sudo passes over names with a dot.
        let temporary = folder.join(format!(".{name}.new"));
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(failed("remove", &temporary)(error));
            }
            _ => {}
        }
        let installed = self.write_checked(&temporary, &text).and_then(|checked| {
            fs::rename(&temporary, &path).map_err(failed("rename", &temporary))?;
            Ok(checked)
        });
        let checked = match installed {
            Ok(checked) => checked,
            Err(error) => {
                // What was not accepted must not stay; the reason is the one above.
                let _ = fs::remove_file(&temporary);
                return Err(error);
            }
        };
        File::open(&folder)
            .and_then(|folder| folder.sync_all())
            .map_err(failed("flush", &folder))?;
        Ok(Sudoers { path, checked, included: self.is_included() })
    }

    /// Removes the sudoers file of a workspace; whether there was one.
    ///
    /// # Errors
    ///
    /// It cannot be removed.
    pub fn remove_sudoers(&self, identifier: &str) -> Result<bool, SystemError> {
        let path = self.at(FOLDER).join(file_name(identifier)?);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(source) => Err(SystemError::Io { action: "remove", path, source }),
        }
    }

    /// Writes a file that sudo passes over yet, and has it checked; whether there was a checker.
    fn write_checked(&self, path: &Path, text: &str) -> Result<bool, SystemError> {
        let failed = |source| SystemError::Io { action: "write", path: path.to_owned(), source };
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o400)
            .open(path)
            .map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        file.set_permissions(fs::Permissions::from_mode(0o440)).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        if !Path::new(VISUDO).exists() {
            return Ok(false);
        }
        let arguments = ["--check", "--quiet", "--file"].map(OsStr::new);
        run(VISUDO, &[&arguments[..], &[path.as_os_str()]].concat())?;
        Ok(true)
    }

    /// Whether the main file reads the folder. Where it cannot be read nothing is claimed.
    fn is_included(&self) -> bool {
        let mut text = String::new();
        let read = File::open(self.at(MAIN))
            .and_then(|file| file.take(MAX_MAIN).read_to_string(&mut text));
        read.is_ok()
            && text.lines().any(|line| {
                let line = line.trim();
                let rest = line.strip_prefix("@includedir").or(line.strip_prefix("#includedir"));
                rest.is_some_and(|rest| rest.trim().trim_end_matches('/') == "/etc/sudoers.d")
            })
    }
}

/// A program under the name that it is called by. A link is as good as the file if the agent can
/// change neither.
fn check_named_program(program: &Path, agent: &Agent) -> Result<(), SystemError> {
    let failed = |source| SystemError::Io { action: "look at", path: program.to_owned(), source };
    let untrusted = |why| SystemError::Untrusted { path: program.to_owned(), why };
    let metadata = program.symlink_metadata().map_err(failed)?;
    if !metadata.is_symlink() {
        return check_program(program, Some(agent));
    }
    let folder = program.parent().ok_or_else(|| untrusted("it has no folder".to_owned()))?;
    for anchor in crate::lock::anchors(folder, agent).map_err(failed)? {
        if !anchor.holds {
            let place = shown(&anchor.path);
            return Err(untrusted(format!("the agent can replace `{place}`: {}", anchor.why)));
        }
    }
    let folder = folder.symlink_metadata().map_err(failed)?;
    if metadata.uid() != 0 || folder.uid() != 0 || folder.mode() & 0o022 != 0 {
        return Err(untrusted("others than root can change where it leads".to_owned()));
    }
    check_program(&program.canonicalize().map_err(failed)?, Some(agent))
}

/// The name of a workspace's file: letters and digits, as sudo passes over names with a dot or a
/// tilde.
fn file_name(identifier: &str) -> Result<String, SystemError> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_good = (1..=64).contains(&identifier.len()) && identifier.bytes().all(is_plain);
    if is_good {
        Ok(format!("wardkeep-{identifier}"))
    } else {
        Err(SystemError::Identifier(identifier.to_owned()))
    }
}
