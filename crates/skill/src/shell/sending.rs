//! What commands read, write and send.

use wardkeep_detect::shell::{Command, RedirectionKind};

use super::super::facts::{Act, Holds};
use super::super::places::{credential, lasting};
use super::{OTHERS_KEY, Reader, bare, is_fetcher};

/// Whether a name to be looked up begins with what a variable or a command holds.
fn carries(raw: &str) -> bool {
    let raw = raw.trim_matches('"');
    raw.contains('$')
        && raw.rsplit('.').take(2).all(|part| !part.contains(['$', ')', '}']) && !part.is_empty())
        && raw.contains('.')
}

/// The part of such a name that is written out.
fn domain(raw: &str) -> String {
    let raw = raw.trim_matches('"');
    let start = raw.rfind(['$', '}', ')']).unwrap_or(0);
    raw[start..].split_once('.').map_or_else(String::new, |(_, rest)| rest.to_owned())
}

impl Reader<'_> {
    /// What a command's output or a word holds.
    fn holds_of(&self, index: usize) -> (Holds, Vec<&'static str>) {
        let (mut holds, mut what) = (Holds::NOTHING, Vec::new());
        let Some(command) = self.parsed.commands.get(index) else { return (holds, what) };
        let program = command.program().unwrap_or_default();
        let plain = command
            .args
            .iter()
            .all(|arg| arg.text.as_deref().is_none_or(|text| text.starts_with('-')));
        match program {
            "env" | "printenv" | "set" | "export" if plain => {
                holds |= Holds::ENVIRONMENT;
                what.push("the environment");
            }
            "security" if command.line().contains("find-") || command.line().contains("dump-") => {
                holds |= Holds::CREDENTIAL;
                what.push("keychain");
            }
            "pbpaste" | "xclip" | "screencapture" => holds |= Holds::WATCHED,
            "hostname" | "whoami" | "uname" | "id" => holds |= Holds::MACHINE,
            _ if reads(program) => {
                let input = command
                    .redirections
                    .iter()
                    .filter(|redirection| redirection.kind == RedirectionKind::Read)
                    .map(|redirection| &redirection.target);
                for word in command.args.iter().chain(input) {
                    let text = word.text.as_deref().unwrap_or(&word.raw);
                    if let Some(class) = credential(text) {
                        holds |= Holds::CREDENTIAL;
                        what.push(class);
                    } else if let Some(known) = self.files.get(&bare(text)) {
                        holds |= *known;
                    } else if !text.starts_with('-') && text.contains(['.', '/']) {
                        holds |= Holds::FILE;
                    }
                }
            }
            _ => {}
        }
        (holds, what)
    }

    pub(super) fn redirections(&mut self, index: usize, command: &Command) {
        let mut holds = self.holds_of(index).0;
        for from in self.upstream(index) {
            holds |= self.holds_of(from).0;
            if self.parsed.commands[from].program().is_some_and(is_fetcher) {
                holds |= Holds::FETCHED;
            }
        }
        if command.program().is_some_and(is_fetcher) {
            holds |= Holds::FETCHED;
        }
        for redirection in &command.redirections {
            if matches!(
                redirection.kind,
                RedirectionKind::Write | RedirectionKind::Append | RedirectionKind::ReadWrite
            ) {
                let path = redirection
                    .target
                    .text
                    .clone()
                    .unwrap_or_else(|| redirection.target.raw.clone());
                self.written(&path, holds, command);
            }
        }
        let program = command.program().unwrap_or_default();
        let outputs = match program {
            "tee" => command
                .args
                .iter()
                .filter_map(|arg| arg.text.as_deref())
                .filter(|text| !text.starts_with('-'))
                .map(str::to_owned)
                .collect(),
            "cp" | "mv" | "install" | "ln" => {
                command.args.last().and_then(|arg| arg.text.clone()).into_iter().collect()
            }
            "tar" | "zip" | "7z" | "gpg" | "openssl" => {
                let named = command.args.iter().filter_map(|arg| arg.text.clone());
                named
                    .filter(|text| {
                        !text.starts_with('-')
                            && [".tar", ".tgz", ".gz", ".zip", ".7z", ".enc", ".gpg"]
                                .iter()
                                .any(|end| text.ends_with(end))
                    })
                    .collect()
            }
            _ => Vec::new(),
        };
        let outputs: Vec<String> = outputs;
        for path in outputs {
            self.written(&path, holds, command);
        }
    }

    fn written(&mut self, path: &str, holds: Holds, command: &Command) {
        if self.files.len() < 512 {
            let known = self.files.entry(bare(path)).or_default();
            *known |= holds;
        }
        if let Some(what) = lasting(path) {
            let key = command.args.iter().any(|arg| {
                arg.raw.contains("ssh-rsa ")
                    || arg.raw.contains("ssh-ed25519 ")
                    || arg.raw.contains("ecdsa-sha2")
            });
            let what = if key && what == "who may log in" { OTHERS_KEY } else { what };
            self.see(Act::Persist { what, name: path.to_owned(), holds }, command);
        }
    }

    pub(super) fn sending(&mut self, index: usize, command: &Command, program: &str) {
        let (own, mut what) = self.holds_of(index);
        if own.any(Holds::CREDENTIAL)
            && let Some(class) = what.first()
        {
            self.see(Act::ReadCredential { class }, command);
        }
        if matches!(program, "nslookup" | "dig" | "host" | "ping" | "drill")
            && let Some(name) = command.args.iter().find(|arg| carries(&arg.raw))
        {
            // What is looked up reaches whoever answers for the name.
            let read = self.out.iter().any(|seen| matches!(seen.act, Act::ReadCredential { .. }));
            let url = format!("dns://{}", domain(&name.raw));
            if read {
                let what = vec!["a lookup of names"];
                self.see(Act::Send { url: Some(url), holds: Holds::CREDENTIAL, what }, command);
            }
        }
        let mut holds = Holds::NOTHING;
        let mut data = false;
        match program {
            "curl" | "wget" | "http" | "xh" | "https" => {
                let mut header = false;
                for arg in &command.args {
                    let text = arg.text.as_deref().unwrap_or(&arg.raw);
                    if header {
                        header = false;
                        continue;
                    }
                    header =
                        matches!(text, "-H" | "--header" | "-u" | "--user" | "-b" | "--cookie");
                    data |= ["-d", "-F", "-T", "-X"]
                        .iter()
                        .any(|flag| text.starts_with(flag) && !text.starts_with("--"))
                        || ["--data", "--form", "--upload", "--post", "--body"]
                            .iter()
                            .any(|flag| text.starts_with(flag));
                    for from in self.sources(arg) {
                        let (one, mut class) = self.holds_of(from);
                        holds |= one;
                        what.append(&mut class);
                    }
                    if let Some((_, path)) =
                        text.split_once('@').filter(|(before, _)| !before.contains("://"))
                    {
                        holds |= self.file(path, &mut what);
                    }
                    if let Some(path) = text
                        .strip_prefix("--post-file=")
                        .or_else(|| text.strip_prefix("--body-file="))
                        .or_else(|| text.strip_prefix("--upload-file="))
                    {
                        holds |= self.file(path, &mut what);
                    }
                }
                if let Some(place) = command
                    .args
                    .iter()
                    .position(|arg| matches!(arg.text.as_deref(), Some("-T" | "--upload-file")))
                    && let Some(path) =
                        command.args.get(place + 1).and_then(|arg| arg.text.as_deref())
                {
                    holds |= self.file(path, &mut what);
                }
            }
            "scp" | "rsync" | "rclone" | "sftp" | "ftp" | "aws" | "gsutil" => {
                data = command.args.last().is_some_and(|arg| arg.raw.contains(':'));
                for arg in &command.args {
                    holds |= self.file(arg.text.as_deref().unwrap_or(&arg.raw), &mut what);
                }
                // `ssh -i key` and `scp -i key` use a key and do not send it.
                if command.args.iter().any(|arg| arg.text.as_deref() == Some("-i")) {
                    holds = Holds::NOTHING;
                }
            }
            "nc" | "ncat" | "netcat" | "mail" | "mailx" | "sendmail" | "telnet" | "dig"
            | "nslookup" | "host" => {
                data = true;
                for arg in &command.args {
                    for from in self.sources(arg) {
                        holds |= self.holds_of(from).0;
                    }
                }
                for redirection in command
                    .redirections
                    .iter()
                    .filter(|redirection| redirection.kind == RedirectionKind::Read)
                {
                    holds |= self
                        .file(redirection.target.text.as_deref().unwrap_or_default(), &mut what);
                }
            }
            _ => return,
        }
        for from in self.upstream(index) {
            let (one, mut class) = self.holds_of(from);
            holds |= one;
            what.append(&mut class);
        }
        if data || holds.any(Holds::CREDENTIAL | Holds::ENVIRONMENT) {
            let url = self.url(command);
            what.dedup();
            self.see(Act::Send { url, holds, what }, command);
        }
    }

    fn file(&self, path: &str, what: &mut Vec<&'static str>) -> Holds {
        if let Some(class) = credential(path) {
            what.push(class);
            return Holds::CREDENTIAL;
        }
        match self.files.get(&bare(path)) {
            Some(known) => *known | Holds::FILE,
            None if path.contains(['.', '/']) && !path.contains("://") => Holds::FILE,
            None => Holds::NOTHING,
        }
    }
}

fn reads(program: &str) -> bool {
    matches!(
        program,
        "cat"
            | "head"
            | "tail"
            | "less"
            | "more"
            | "base64"
            | "gzip"
            | "tar"
            | "zip"
            | "cp"
            | "xxd"
            | "od"
            | "strings"
            | "grep"
            | "awk"
            | "sed"
            | "openssl"
            | "gpg"
            | "jq"
            | "find"
            | "7z"
            | "sqlite3"
            | "rsync"
            | "dd"
    )
}
