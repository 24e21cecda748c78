//! What a run that learns proposes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use wardkeep_sandbox::{Denial, DenialKind, holds_secrets, sounds_secret};

use crate::context::Context;
use crate::ui::{Line, harmless, quoted};

/// Proposals that are shown.
const SHOWN: usize = 40;

/// Says which options, and which lines of a profile, would have shown what was looked for.
pub(super) fn propose(
    context: &mut Context,
    profile: &str,
    home: Option<&Path>,
    denials: &[Denial],
    hosts: &[String],
) {
    let unseen = denials.iter().filter(|one| one.kind == DenialKind::Unseen);
    let paths = smallest(unseen.map(|one| PathBuf::from(&one.path)).collect());
    let (secret, paths): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.into_iter().partition(|path| holds_secrets(home, path) || sounds_secret(path));
    let hosts: BTreeSet<String> = hosts.iter().filter_map(|line| host_of(line)).collect();
    for path in &secret {
        let path = harmless(&path.display().to_string());
        context
            .ui
            .note(&format!("looked for, and not proposed because it may hold secrets: {path}"));
    }
    if paths.is_empty() && hosts.is_empty() {
        context.ui.note("nothing to propose: it looked for nothing that is there and not shown");
        return;
    }
    let shown = |path: &PathBuf| harmless(&path.display().to_string());
    let options: Vec<String> = paths
        .iter()
        .map(|path| format!("--read {}", quoted(&shown(path))))
        .chain(hosts.iter().map(|host| format!("--allow {host}")))
        .take(SHOWN)
        .collect();
    context.ui.note(&format!("to show what it looked for: wardkeep run {} …", options.join(" ")));
    let list = |items: Vec<String>| {
        let items: Vec<String> =
            items.into_iter().take(SHOWN).map(|one| format!("{one:?}")).collect();
        items.join(", ")
    };
    context.ui.note("or for every run, in config.toml (`wardkeep config edit`):");
    let lines = [
        format!("[sandbox.profiles.my-{profile}]"),
        format!("inherits = {profile:?}"),
        format!("read = [{}]", list(paths.iter().map(shown).collect())),
        format!("hosts = [{}]", list(hosts.into_iter().collect())),
    ];
    for line in lines.iter().filter(|line| !line.ends_with("[]")) {
        context.ui.say(Line::from(format!("  {line}")));
    }
    context.ui.hint("read each line before you take it over: the program chose what to look for");
}

/// Paths that cover all of them, none below another.
fn smallest(paths: BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let mut least: Vec<PathBuf> = Vec::new();
    // Sorted, so that what lies below comes right after.
    for path in paths {
        if !least.last().is_some_and(|above| path.starts_with(above)) {
            least.push(path);
        }
    }
    least
}

/// The host in a line on a refused request.
fn host_of(line: &str) -> Option<String> {
    // `refused METHOD URL: why`
    let url = line.strip_prefix("refused ")?.split(' ').nth(1)?.strip_suffix(':')?;
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = host.split(['/', '?', '#']).next()?;
    let host = host.strip_suffix(":443").or_else(|| host.strip_suffix(":80")).unwrap_or(host);
    host.parse::<wardkeep_gateway::egress::Rule>().ok().map(|rule| rule.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_below_another_is_proposed() {
        let paths = ["/a", "/a/b", "/a.b", "/c/d", "/c/d/e/f"].map(PathBuf::from);
        let least = smallest(paths.into_iter().collect());
        assert_eq!(least, ["/a", "/a.b", "/c/d"].map(PathBuf::from));
    }

    #[test]
    fn a_refused_request_tells_its_host() {
        for (line, host) in [
            ("refused CONNECT https://pypi.org:443: not-listed: no rule", Some("pypi.org")),
            ("refused GET http://a.example/x?y=z: not-listed: no rule", Some("a.example")),
            ("refused CONNECT https://a.example:8443: not-listed: no", Some("a.example:8443")),
            ("refused GET : bad: no host", None),
            ("something else", None),
        ] {
            assert_eq!(host_of(line).as_deref(), host, "{line}");
        }
    }
}
