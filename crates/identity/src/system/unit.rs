//! The systemd unit of the daemon that acts for registered workspaces.

use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{System, SystemError, check_path};

/// The name of the unit that serves an agent, by the number of its user.
fn name(agent: u32) -> String {
    format!("wardkeep-identity-{agent}.service")
}

const FOLDER: &str = "etc/systemd/system";

/// The text of the unit: a program of root's with the arguments given, and no right beyond what
/// owners, modes and locks need.
///
/// # Errors
///
/// The program's path or an argument has characters that mean something there.
pub fn unit_text(program: &Path, arguments: &[&str]) -> Result<String, SystemError> {
    const PLACE: &str = "a unit of systemd";
    let mut command = check_path(program, PLACE)?;
    for argument in arguments {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:@,".contains(&byte);
        if argument.is_empty() || !argument.bytes().all(is_plain) {
            let why = "it has characters that mean something there";
            return Err(SystemError::Path { path: PathBuf::from(argument), place: PLACE, why });
        }
        command.push(' ');
        command.push_str(argument);
    }
    // Files of any user are read, replaced and locked: root without the rest of root's rights.
    // `RestrictSUIDSGID` is left out on purpose: it takes openat2 away, on which every look rests.
    Ok(format!(
        "[Unit]
Description=Wardkeep, guardian of registered workspaces

[Service]
Type=exec
ExecStart={command}
Restart=on-failure
RestartSec=2
UMask=0077
WorkingDirectory=/
CapabilityBoundingSet=CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_FSETID CAP_LINUX_IMMUTABLE
NoNewPrivileges=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
PrivateDevices=yes
PrivateTmp=no
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
SystemCallArchitectures=native

[Install]
WantedBy=multi-user.target
"
    ))
}

impl System {
    /// Writes the unit that serves an agent; where it is. It runs after `systemctl enable --now`.
    ///
    /// # Errors
    ///
    /// There is no systemd, the text cannot be made, or the file cannot be written.
    pub fn install_unit(
        &self,
        agent: u32,
        program: &Path,
        arguments: &[&str],
    ) -> Result<PathBuf, SystemError> {
        let name = name(agent);
        let text = unit_text(program, arguments)?;
        let folder = self.at(FOLDER);
        let (path, temporary) = (folder.join(&name), folder.join(format!(".{name}.new")));
        let write = || {
            let mut file = File::create(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.set_permissions(fs::Permissions::from_mode(0o644))?;
            file.sync_all()?;
            fs::rename(&temporary, &path)?;
            File::open(&folder)?.sync_all()
        };
        match write() {
            Ok(()) => Ok(path),
            Err(source) => {
                // Nothing was installed; the reason is the one given.
                let _ = fs::remove_file(&temporary);
                Err(SystemError::Io { action: "write", path, source })
            }
        }
    }

    /// Removes the unit; whether there was one.
    ///
    /// # Errors
    ///
    /// It cannot be removed.
    pub fn remove_unit(&self, agent: u32) -> Result<bool, SystemError> {
        let path = self.at(FOLDER).join(name(agent));
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(source) => Err(SystemError::Io { action: "remove", path, source }),
        }
    }
}
