//! Shell: what is fetched and run, decoded and run, read and sent.

use std::collections::HashMap;
use std::ops::Range;

use wardkeep_detect::shell::{self, Command, Parsed, Word};

mod running;
mod sending;

use super::facts::{Act, Holds, Seen};

/// Longest script that is parsed, in bytes; one that is longer is read in parts.
const PART: usize = 128 << 10;

/// What is changed by a key that is written out in a script.
pub(super) const OTHERS_KEY: &str = "who may log in, by somebody's own key,";

/// The name of a lasting change that settings of git make.
pub(super) const GIT_SETTING: &str = "git config";

/// What a script does, and whether all of it was read.
pub(super) fn read(text: &str) -> (Vec<Seen>, bool) {
    let mut out = Vec::new();
    let mut complete = true;
    let mut start = 0;
    while start < text.len() {
        let end = cut(text, start);
        let part = &text[start..end];
        let parsed = shell::parse(part);
        complete &= !parsed.truncated;
        let mut reader = Reader {
            parsed: &parsed,
            text: part,
            base: start,
            files: HashMap::new(),
            loaded: HashMap::new(),
            assigned: HashMap::new(),
            out: &mut out,
        };
        for index in 0..parsed.commands.len() {
            reader.command(index);
        }
        if !parsed.complete {
            reader.torn();
        }
        start = end;
    }
    (out, complete)
}

/// Where a part ends: at a line's end.
fn cut(text: &str, start: usize) -> usize {
    if text.len() - start <= PART {
        return text.len();
    }
    let most = text.floor_char_boundary(start + PART);
    text[start..most].rfind('\n').map_or(most, |at| start + at + 1)
}

pub(super) fn is_shell(program: &str) -> bool {
    matches!(program, "sh" | "bash" | "zsh" | "dash" | "ksh" | "fish" | "ash" | "rbash")
}

fn is_interpreter(program: &str) -> bool {
    is_shell(program)
        || matches!(
            program,
            "python"
                | "python2"
                | "python3"
                | "node"
                | "perl"
                | "ruby"
                | "php"
                | "osascript"
                | "pwsh"
                | "powershell"
                | "deno"
                | "bun"
                | "tclsh"
                | "lua"
        )
}

fn is_fetcher(program: &str) -> bool {
    matches!(
        program,
        "curl"
            | "wget"
            | "wget2"
            | "aria2c"
            | "axel"
            | "lynx"
            | "http"
            | "https"
            | "xh"
            | "iwr"
            | "irm"
            | "fetch"
    )
}

struct Reader<'a> {
    parsed: &'a Parsed,
    text: &'a str,
    base: usize,
    /// What files that were written here hold.
    files: HashMap<String, Holds>,
    /// Where files that were fetched come from.
    loaded: HashMap<String, Option<String>>,
    /// Commands whose output a variable holds.
    assigned: HashMap<String, Vec<usize>>,
    out: &'a mut Vec<Seen>,
}

impl Reader<'_> {
    fn see(&mut self, act: Act, command: &Command) {
        let at: Range<usize> = self.base + command.span.start..self.base + command.span.end;
        let one = Seen::new(act, at);
        if self.out.len() < 2000 && !self.out.contains(&one) {
            self.out.push(one);
        }
    }

    /// The commands whose output a command reads, the nearest first.
    fn upstream(&self, index: usize) -> Vec<usize> {
        let mut out = Vec::new();
        let mut at = self.parsed.commands[index].piped_from;
        while let Some(from) = at.filter(|_| out.len() < 24) {
            out.push(from);
            at = self.parsed.commands.get(from).and_then(|command| command.piped_from);
        }
        out
    }

    /// Commands whose output is part of a word, and what those read.
    fn sources(&self, word: &Word) -> Vec<usize> {
        let mut out: Vec<usize> = word
            .sources
            .iter()
            .copied()
            .filter(|index| *index < self.parsed.commands.len())
            .collect();
        for name in word.raw.split('$').skip(1).take(8) {
            let name = name.trim_start_matches('{');
            let end = name
                .find(|sign: char| !(sign.is_ascii_alphanumeric() || sign == '_'))
                .unwrap_or(name.len());
            out.extend(self.assigned.get(&name[..end]).into_iter().flatten().copied());
        }
        let direct = out.clone();
        for index in direct.into_iter().take(16) {
            out.extend(self.upstream(index));
        }
        out
    }

    fn url(&self, command: &Command) -> Option<String> {
        let words = command.args.iter().filter_map(|arg| arg.text.as_deref().or(Some(&arg.raw)));
        let mut named = words.filter(|text| !text.starts_with('-'));
        let trim = |text: &str| text.trim_matches(['"', '\'', '(', ')', '`', '<', '>']).to_owned();
        let all: Vec<&str> = named.by_ref().collect();
        all.iter()
            .find(|text| text.contains("://"))
            .or_else(|| {
                all.iter().find(|text| {
                    text.contains('.') && !text.starts_with(['.', '/', '$', '@', '~', '{'])
                })
            })
            .map(|text| trim(text))
    }

    fn command(&mut self, index: usize) {
        let parsed = self.parsed;
        let command = &parsed.commands[index];
        for assignment in &command.assignments {
            let sources = self.sources(&assignment.value);
            if !sources.is_empty() && self.assigned.len() < 512 {
                self.assigned.insert(assignment.name.clone(), sources);
            }
        }
        self.redirections(index, command);
        let Some(program) = command.program() else { return };
        let program = program.to_ascii_lowercase();
        let program = program.strip_suffix(".exe").unwrap_or(&program);
        self.running(index, command, program);
        self.loading(command, program);
        self.handing_over(index, command, program);
        self.sending(index, command, program);
        self.breaking(command, program);
        if matches!(program, "crontab" | "launchctl" | "systemctl" | "schtasks") {
            self.scheduling(command, program);
        }
    }

    /// A shell given to another machine.
    fn handing_over(&mut self, index: usize, command: &Command, program: &str) {
        let net = |text: &str| text.contains("/dev/tcp/") || text.contains("/dev/udp/");
        let redirected = command.redirections.iter().any(|redirection| {
            redirection.target.text.as_deref().is_some_and(net) || net(&redirection.target.raw)
        });
        let has = |flags: &[&str]| {
            command
                .args
                .iter()
                .any(|arg| arg.text.as_deref().is_some_and(|text| flags.contains(&text)))
        };
        let shell_near = || {
            let around = self.upstream(index);
            let reads = self.parsed.commands.iter().any(|other| {
                other.piped_from == Some(index) && other.program().is_some_and(is_shell)
            });
            reads
                || around.iter().any(|at| self.parsed.commands[*at].program().is_some_and(is_shell))
        };
        let given_shell = command.args.iter().any(|arg| {
            arg.text.as_deref().is_some_and(|text| {
                text.ends_with("/sh")
                    || text.ends_with("/bash")
                    || text == "cmd.exe"
                    || text == "sh"
                    || text == "bash"
            })
        });
        let line = || command.line().to_ascii_lowercase();
        let reverse = match program {
            _ if redirected => {
                is_shell(program) || program == "exec" || matches!(program, "script")
            }
            "nc" | "ncat" | "netcat" | "nc.traditional" => {
                (has(&["-e", "-c", "--exec", "--sh-exec", "-lvpe", "-nve"]) && given_shell)
                    || (command.args.len() >= 2 && shell_near() && !has(&["-z", "-zv", "-vz"]))
            }
            "socat" => {
                let line = line();
                (line.contains("exec:") || line.contains("system:"))
                    && (line.contains("tcp") || line.contains("openssl"))
            }
            "perl" | "ruby" | "python" | "python3" | "php" | "node" => {
                let line = line();
                line.contains("socket")
                    && (line.contains("/bin/sh")
                        || line.contains("/bin/bash")
                        || line.contains("dup2")
                        || line.contains("exec"))
            }
            _ => false,
        };
        if reverse {
            self.see(Act::ReverseShell, command);
        }
    }

    /// What turns protections off or destroys.
    fn breaking(&mut self, command: &Command, program: &str) {
        let line = command.line().to_ascii_lowercase();
        let unguard = match program {
            "xattr"
                if line.contains("quarantine") || line.contains(" -c") || line.contains(" -rc") =>
            {
                Some("the quarantine of downloads")
            }
            "spctl" if line.contains("disable") => Some("the check of downloaded programs"),
            "csrutil" if line.contains("disable") => Some("the system's integrity protection"),
            "setenforce" if line.ends_with(" 0") => Some("the system's access control"),
            "set-mppreference" if line.contains("disable") || line.contains("exclusion") => {
                Some("the virus scanner")
            }
            "ufw" | "iptables" if line.contains("disable") || line.ends_with(" -f") => {
                Some("the firewall")
            }
            _ => None,
        };
        if let Some(what) = unguard {
            self.see(Act::Unguard { what }, command);
        }
        let everything = |word: &Word| {
            matches!(
                word.text.as_deref().unwrap_or(&word.raw),
                "/" | "/*"
                    | "~"
                    | "~/"
                    | "~/*"
                    | "$HOME"
                    | "$HOME/"
                    | "${HOME}"
                    | "/home"
                    | "/Users"
                    | "--no-preserve-root"
            )
        };
        let destroys = match program {
            "rm" => {
                line.contains(" -") && line.contains('r') && command.args.iter().any(everything)
            }
            "mkfs" | "mkfs.ext4" => true,
            "dd" => {
                line.contains("of=/dev/sd")
                    || line.contains("of=/dev/nvme")
                    || line.contains("of=/dev/disk")
            }
            "shred" => command.args.iter().any(everything),
            _ => false,
        };
        if destroys {
            self.see(Act::Destroy, command);
        }
        if program == "osascript"
            && line.contains("display dialog")
            && line.contains("hidden answer")
        {
            self.see(Act::Phish, command);
        }
        if matches!(program, "xmrig" | "minerd" | "cpuminer" | "ethminer")
            || line.contains("stratum+tcp://")
            || line.contains("stratum+ssl://")
        {
            self.see(Act::Mine, command);
        }
    }

    fn scheduling(&mut self, command: &Command, program: &str) {
        let line = command.line();
        let lists = line.contains(" -l")
            || line.contains("list")
            || line.contains("status")
            || line.contains("restart")
            || line.contains(" stop")
            || line.contains(" start");
        let sets = match program {
            "crontab" => !lists && !line.contains(" -e") && !line.contains(" -r"),
            "launchctl" => line.contains("load") || line.contains("bootstrap"),
            "systemctl" => line.contains("enable"),
            _ => line.to_ascii_lowercase().contains("/create"),
        };
        if sets {
            self.see(
                Act::Persist {
                    what: "the schedule",
                    name: program.to_owned(),
                    holds: Holds::NOTHING,
                },
                command,
            );
        }
    }

    /// Text that does not parse: only the plainest is looked for.
    fn torn(&mut self) {
        for line in self.text.lines() {
            let piped = line.split('|').skip(1).any(|part| {
                let part = part
                    .trim()
                    .trim_start_matches("sudo ")
                    .split_whitespace()
                    .next()
                    .unwrap_or_default();
                is_shell(part.trim_matches(['`', '"', '\'', ')']))
            });
            let fetch = line
                .split(|sign: char| !sign.is_ascii_alphanumeric())
                .any(|word| matches!(word, "curl" | "wget"));
            if piped && fetch {
                let url = line
                    .split_whitespace()
                    .find(|word| word.contains("://"))
                    .map(|word| word.trim_matches(['"', '\'', '`']).to_owned());
                let at = self.base + (line.as_ptr() as usize - self.text.as_ptr() as usize);
                let one = Seen::new(Act::FetchAndRun { url }, at..at + line.len());
                let known = self.out.iter().any(|seen| {
                    matches!(seen.act, Act::FetchAndRun { .. })
                        && seen.at.start < at + line.len()
                        && at < seen.at.end
                });
                if !known {
                    self.out.push(one);
                }
            }
        }
    }
}

fn bare(path: &str) -> String {
    let path = path.trim_matches(['"', '\'']);
    last_part(path.strip_prefix("./").unwrap_or(path))
}

fn last_part(path: &str) -> String {
    path.split(['?', '#'])
        .next()
        .unwrap_or(path)
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests;
