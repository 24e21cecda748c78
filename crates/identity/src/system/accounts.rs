//! Users and groups: found in the files of accounts, made and removed by the system's own programs.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::PathBuf;

use rustix::fs::{Gid, Uid};
use serde::Serialize;

use super::{GROUP, GUARDIAN, System, SystemError, run};
use crate::lock::Agent;

/// Largest file of accounts that is read.
const MAX_ACCOUNTS: u64 = 16 << 20;
const GROUPADD: &str = "/usr/sbin/groupadd";
const GROUPDEL: &str = "/usr/sbin/groupdel";
const USERADD: &str = "/usr/sbin/useradd";
const USERDEL: &str = "/usr/sbin/userdel";
/// Shells with which nobody logs in.
const NO_SHELLS: [&str; 4] = ["/usr/sbin/nologin", "/sbin/nologin", "/usr/bin/false", "/bin/false"];

/// A user as the system's file has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// Its number.
    pub uid: Uid,
    /// The number of its own group.
    pub gid: Gid,
    /// Its home directory.
    pub home: PathBuf,
    /// What it logs in to.
    pub shell: String,
}

/// The guardian, found or made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guardian {
    /// The user that owns what is protected.
    pub uid: Uid,
    /// The group of what is protected or watched.
    pub gid: Gid,
    /// Whether the group was made now.
    pub made_group: bool,
    /// Whether the user was made now.
    pub made_user: bool,
}

/// What was there and was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// The user.
    pub user: bool,
    /// The group.
    pub group: bool,
}

impl System {
    /// A user by name, if the file of users has it.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn user(&self, name: &str) -> Result<Option<Account>, SystemError> {
        Ok(self.users()?.into_iter().find(|account| account.name == name))
    }

    /// A user by number, if the file of users has it.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn user_of(&self, uid: Uid) -> Result<Option<Account>, SystemError> {
        Ok(self.users()?.into_iter().find(|account| account.uid == uid))
    }

    /// A group by name, if the file of groups has it.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn group(&self, name: &str) -> Result<Option<Gid>, SystemError> {
        Ok(self.groups()?.into_iter().find(|group| group.name == name).map(|group| group.gid))
    }

    /// Who a user is to the kernel: its number and all groups that the files give it.
    ///
    /// # Errors
    ///
    /// The files cannot be read.
    pub fn agent(&self, uid: Uid, gid: Gid) -> Result<Agent, SystemError> {
        let mut groups = vec![gid];
        let names: Vec<String> = self
            .users()?
            .into_iter()
            .filter(|account| account.uid == uid)
            .map(|account| {
                groups.push(account.gid);
                account.name
            })
            .collect();
        for group in self.groups()? {
            if group.members.iter().any(|member| names.contains(member)) {
                groups.push(group.gid);
            }
        }
        groups.sort_unstable_by_key(|gid| gid.as_raw());
        groups.dedup();
        Ok(Agent { uid, groups })
    }

    /// Finds the group and the guardian, or makes what is missing of them.
    ///
    /// # Errors
    ///
    /// An account of that name is unfit, a program is missing or fails, or a file cannot be read.
    pub fn ensure_guardian(&self, agent: Uid) -> Result<Guardian, SystemError> {
        // What exists is judged before anything is made.
        if let Some(account) = self.user(GUARDIAN)? {
            self.check_guardian(&account, agent)?;
        }
        let made_group = self.group(GROUP)?.is_none();
        if made_group {
            self.run_for_accounts(GROUPADD, &["--system", GROUP])?;
        }
        let made_user = self.user(GUARDIAN)?.is_none();
        if made_user {
            let shell = NO_SHELLS.into_iter().find(|shell| self.at(&shell[1..]).exists());
            let shell = shell.unwrap_or("/bin/false");
            let home = "/nonexistent";
            let arguments = [
                "--system",
                "--gid",
                GROUP,
                "--no-create-home",
                "--home-dir",
                home,
                "--shell",
                shell,
                GUARDIAN,
            ];
            self.run_for_accounts(USERADD, &arguments)?;
        }
        let unfit = |name: &str| SystemError::Unfit {
            name: name.to_owned(),
            why: "it was made and cannot be found",
        };
        let gid = self.group(GROUP)?.ok_or_else(|| unfit(GROUP))?;
        let account = self.user(GUARDIAN)?.ok_or_else(|| unfit(GUARDIAN))?;
        self.check_guardian(&account, agent)?;
        Ok(Guardian { uid: account.uid, gid, made_group, made_user })
    }

    /// Removes the guardian and its group.
    ///
    /// # Errors
    ///
    /// A program is missing or fails, or a file cannot be read.
    pub fn remove_guardian(&self) -> Result<Removed, SystemError> {
        let user = self.user(GUARDIAN)?.is_some();
        if user {
            self.run_for_accounts(USERDEL, &[GUARDIAN])?;
        }
        // Some systems remove a group with its last user.
        let group = self.group(GROUP)?.is_some();
        if group {
            self.run_for_accounts(GROUPDEL, &[GROUP])?;
        }
        Ok(Removed { user, group })
    }

    /// An account that somebody can log in to, or that is somebody else as well, guards nothing.
    fn check_guardian(&self, account: &Account, agent: Uid) -> Result<(), SystemError> {
        let unfit = |why| Err(SystemError::Unfit { name: account.name.clone(), why });
        if account.uid.is_root() {
            return unfit("it is root");
        }
        if account.uid == agent {
            return unfit("it is the agent's own user");
        }
        if !NO_SHELLS.contains(&account.shell.as_str()) {
            return unfit("it can log in");
        }
        if Some(account.gid) != self.group(GROUP)? {
            return unfit("its group is another than `soulguard`");
        }
        if account.gid.as_raw() == 0 {
            return unfit("its group is root's");
        }
        let users = self.users()?;
        if users.iter().filter(|other| other.uid == account.uid).count() != 1
            || users.iter().filter(|other| other.name == account.name).count() != 1
        {
            return unfit("another account has the same number or name");
        }
        Ok(())
    }

    fn run_for_accounts(
        &self,
        program: &'static str,
        arguments: &[&str],
    ) -> Result<(), SystemError> {
        let mut all: Vec<&OsStr> = Vec::new();
        if !self.is_real() {
            all.extend([OsStr::new("--prefix"), self.root.as_os_str()]);
        }
        all.extend(arguments.iter().map(OsStr::new));
        run(program, &all)
    }

    fn users(&self) -> Result<Vec<Account>, SystemError> {
        let account = |line: &str| {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, uid, gid, _, home, shell] = fields[..] else { return None };
            Some(Account {
                name: name.to_owned(),
                uid: Uid::from_raw(number(uid)?),
                gid: Gid::from_raw(number(gid)?),
                home: home.into(),
                shell: shell.to_owned(),
            })
        };
        Ok(self.accounts("etc/passwd")?.lines().filter_map(account).collect())
    }

    fn groups(&self) -> Result<Vec<Group>, SystemError> {
        let group = |line: &str| {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, gid, members] = fields[..] else { return None };
            Some(Group {
                name: name.to_owned(),
                gid: Gid::from_raw(number(gid)?),
                members: members.split(',').map(str::to_owned).collect(),
            })
        };
        Ok(self.accounts("etc/group")?.lines().filter_map(group).collect())
    }

    fn accounts(&self, name: &str) -> Result<String, SystemError> {
        let path = self.at(name);
        let failed = |source| SystemError::Io { action: "read", path: path.clone(), source };
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(String::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut bytes = Vec::new();
        file.take(MAX_ACCOUNTS + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > MAX_ACCOUNTS {
            return Err(SystemError::Accounts { path });
        }
        // A comment of somebody's real name may be in any encoding.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[derive(Debug)]
struct Group {
    name: String,
    gid: Gid,
    members: Vec<String>,
}

/// A number as the files write them; the largest one means "nobody" to the kernel.
fn number(text: &str) -> Option<u32> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_plain { text.parse().ok() } else { None };
    number.filter(|&number| number != u32::MAX)
}
