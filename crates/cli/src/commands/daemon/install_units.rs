//! `wardkeep daemon install-units`

use std::path::{Path, PathBuf};

use serde::Serialize;
use wardkeep_evidence::bundle::StagedFile;

use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Writes units for systemd, so that it listens and starts the daemon when someone asks
///
/// They go to the user's own units. The daemon needs none of this: without it whoever asks first
/// starts it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only print them
    #[arg(long)]
    print: bool,
}

#[derive(Serialize)]
struct Answer {
    units: Vec<Unit>,
    written: bool,
}

#[derive(Serialize)]
struct Unit {
    path: String,
    text: String,
}

/// The units as they are for the usual places.
const UNITS: [(&str, &str); 2] = [
    ("wardkeep.socket", include_str!("../../../../../reference/systemd/wardkeep.socket")),
    ("wardkeep.service", include_str!("../../../../../reference/systemd/wardkeep.service")),
];
const PROGRAM: &str = "/usr/bin/wardkeep";
const STATE: &str = "%h/.local/state/wardkeep";

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let (program, state) = (context.program()?, context.state_dir()?);
    let folder = context.unit_folder().ok_or_else(|| {
        CliError::refused(
            "neither HOME nor XDG_CONFIG_HOME says where units belong",
            "give --print, and put them where systemd looks",
        )
    })?;
    let units = UNITS
        .iter()
        .map(|(name, text)| Ok((folder.join(name), fill(text, &program, &state)?)))
        .collect::<Result<Vec<(PathBuf, String)>, CliError>>()?;
    for (path, text) in &units {
        if args.print {
            context.ui.answer(format!("# {}", path.display()));
            text.lines().for_each(|line| context.ui.answer(line));
        } else {
            write(path, text)?;
            context.ui.answer(format!("Wrote {}", path.display()));
        }
    }
    if !args.print {
        context.ui.say("To use them: systemctl --user daemon-reload");
        context.ui.say("             systemctl --user enable --now wardkeep.socket");
    }
    let units = units
        .into_iter()
        .map(|(path, text)| Unit { path: path.display().to_string(), text })
        .collect();
    Ok(context.done(&Answer { units, written: !args.print }))
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| CliError::io("make", folder, &error))?;
    Ok(StagedFile::replace(path, 0o644, text.as_bytes())?)
}

/// A unit with the paths of this machine.
fn fill(text: &str, program: &Path, state: &Path) -> Result<String, CliError> {
    let plain = |path: &Path| {
        let text = path.to_str().filter(|text| !text.chars().any(char::is_control));
        text.map(|text| text.replace('%', "%%")).ok_or_else(|| {
            CliError::refused(
                format!("`{}` cannot stand in a unit", path.display()),
                "choose a place whose name is plain text",
            )
        })
    };
    let quoted = |text: &str| {
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "$$");
        format!("\"{escaped}\"")
    };
    let (program, state) = (plain(program)?, plain(state)?);
    let lines = text.lines().map(|line| match line.split_once('=') {
        Some(("ExecStart", command)) => {
            // Both stand there as words of their own.
            let words = command.split(' ').map(|word| match word {
                PROGRAM => quoted(&program),
                STATE => quoted(&state),
                other => other.to_owned(),
            });
            format!("ExecStart={}\n", words.collect::<Vec<_>>().join(" "))
        }
        Some(("ListenStream", path)) => format!("ListenStream={}\n", path.replace(STATE, &state)),
        _ => format!("{line}\n"),
    });
    Ok(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_so_that_systemd_reads_them() {
        let filled = |text: &str| {
            fill(text, Path::new("/opt/a b/war\"d$x"), Path::new("/s/50% \\")).unwrap()
        };
        assert_eq!(
            filled(UNITS[0].1).lines().find(|line| line.starts_with("ListenStream")).unwrap(),
            "ListenStream=/s/50%% \\/run/monitor.sock"
        );
        assert_eq!(
            filled(UNITS[1].1).lines().find(|line| line.starts_with("ExecStart")).unwrap(),
            "ExecStart=\"/opt/a b/war\\\"d$$x\" --state-dir \"/s/50%% \\\\\" daemon --foreground \
             --inherit --idle-exit 1h"
        );
        for (_, text) in UNITS {
            let usual = fill(text, Path::new(PROGRAM), Path::new("/x")).unwrap();
            assert!(!usual.contains("%h"), "{usual}");
        }
        assert!(fill("", Path::new("/a\nb"), Path::new("/")).is_err());
    }
}
