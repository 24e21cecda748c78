//! What `wardkeep run --dry-run` tells a person.

use wardkeep_sandbox::Applied;

use crate::ui::{Member, members, quoted};

/// What would be in force, a label and what it says: first what is asked for most.
pub(super) fn members_of(profile: &str, applied: &Applied) -> Vec<Member> {
    let row = |label: &str, text: String| (label.to_owned(), text);
    let rows = |label: &'static str, lines: &[String]| -> Vec<Member> {
        let none = lines.is_empty().then(|| row(label, "nothing".to_owned()));
        lines.iter().map(|line| row(label, line.clone())).chain(none).collect()
    };
    let words: Vec<String> = applied.command.iter().map(|word| typed(word)).collect();
    let layers: Vec<String> = applied.layers.iter().map(ToString::to_string).collect();
    let mut all = vec![
        row("command", words.join(" ")),
        row("profile", profile.to_owned()),
        row("workspace", applied.workspace.clone()),
        row("layers", format!("{} (Landlock {})", layers.join(", "), applied.landlock_abi)),
    ];
    all.extend(
        applied.missing.iter().map(|one| row("missing", format!("{}: {}", one.layer, one.why))),
    );
    all.push(row(
        "network",
        match applied.network {
            "proxy" => "only by a proxy that decides and records each request".to_owned(),
            other => other.to_owned(),
        },
    ));
    all.extend(rows("can write", &applied.write));
    all.extend(rows("not written", &applied.read_only));
    all.extend(rows("shown empty", &applied.masked));
    all.extend(rows("can read", &applied.read));
    all.extend(rows("sockets", &applied.sockets));
    all.push(row("variables", applied.environment.join(", ")));
    all.extend(applied.timeout_ms.map(|most| row("ends after", format!("{} s", most / 1000))));
    let limits = serde_json::to_value(applied.limits).unwrap_or_default();
    let limits = members(&limits).into_iter().map(|(label, text)| format!("{label} {text}"));
    all.push(row("limits", limits.collect::<Vec<_>>().join(", ")));
    let group = match applied.control_group {
        true => applied.control_group_limits.join(", "),
        false => "no: each process by itself".to_owned(),
    };
    all.push(row("control group", group));
    all.extend(
        applied.seccomp_profile.iter().map(|profile| {
            row("seccomp", format!("{} (SHA-256 {})", profile.path, profile.sha256))
        }),
    );
    all
}

/// A word as it is typed in a shell. Options are words of a command, though no names of files.
fn typed(word: &str) -> String {
    let option = word.strip_prefix("--").or_else(|| word.strip_prefix('-'));
    match option.filter(|name| quoted(name) == **name) {
        Some(_) => word.to_owned(),
        None => quoted(word),
    }
}
