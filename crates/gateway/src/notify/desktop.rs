//! Notices on the desktop, by `notify-send`.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Failed, Kind, Notice, Retry, Way, text};

const PROGRAM: &str = "notify-send";
/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(20);
/// The variables by which it finds the desktop.
const VARIABLES: [&str; 6] = [
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "HOME",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
];

/// The desktop of the user.
#[derive(Debug)]
pub struct Desktop {
    program: PathBuf,
    variables: Vec<(OsString, OsString)>,
    patience: Duration,
}

impl Desktop {
    /// By the first `notify-send` of a search path, told of the variables that lead to the desktop; `None`
    /// if there is none.
    #[must_use]
    pub fn find(
        path: &OsStr,
        variables: impl Iterator<Item = (OsString, OsString)>,
    ) -> Option<Self> {
        let program = std::env::split_paths(path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(PROGRAM))
            .find(|file| is_program(file))?;
        let variables =
            variables.filter(|(name, _)| VARIABLES.iter().any(|known| name == known)).collect();
        Some(Self { program, variables, patience: PATIENCE })
    }

    /// With another limit of time.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    fn command(&self, notice: &Notice) -> Command {
        let urgency = match notice.kind {
            Kind::Alert => "critical",
            Kind::Approval => "normal",
        };
        let mut body = text::body(notice);
        if !notice.next.is_empty() {
            body = format!("{body}\n{}", text::line(&notice.next, text::MAX_FACT));
        }
        let mut command = Command::new(&self.program);
        command.args(["--app-name=Wardkeep", &format!("--urgency={urgency}"), "--"]);
        // The title is plain by the specification, the body has markup.
        command.arg(text::title(notice)).arg(escaped(&body));
        command.env_clear().envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.current_dir("/").process_group(0);
        command
    }
}

impl Way for Desktop {
    fn name(&self) -> &'static str {
        "desktop"
    }

    fn send(&mut self, notice: &Notice) -> Result<(), Failed> {
        let failed = |why: &str| Failed::new(why, Retry::Never);
        let mut child = self
            .command(notice)
            .spawn()
            .map_err(|error| failed(&format!("notify-send does not start ({})", error.kind())))?;
        let until = Instant::now() + self.patience;
        loop {
            match child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(Some(_)) => return Err(failed("notify-send says that it did not work")),
                Ok(None) if Instant::now() < until => std::thread::sleep(LOOK),
                Ok(None) => {
                    end(&mut child);
                    return Err(failed("notify-send took too long and was stopped"));
                }
                Err(error) => {
                    end(&mut child);
                    return Err(failed(&format!("notify-send is lost ({})", error.kind())));
                }
            }
        }
    }
}

/// Ends a program and what it started.
fn end(child: &mut Child) {
    // It is not reaped yet, so the number still names its group.
    let _ = rustix::process::kill_process_group(
        rustix::process::Pid::from_child(child),
        rustix::process::Signal::KILL,
    );
    let _ = child.kill();
    let _ = child.wait();
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
