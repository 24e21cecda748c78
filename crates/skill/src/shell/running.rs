//! What commands fetch, decode and run.

use wardkeep_detect::shell::{Command, Opaque, RedirectionKind, Word};

use super::super::facts::{Act, Holds};
use super::super::places::{Trust, trust};
use super::{Reader, bare, is_fetcher, is_interpreter, is_shell, last_part};

impl Reader<'_> {
    /// What a command runs that comes from elsewhere.
    pub(super) fn running(&mut self, index: usize, command: &Command, program: &str) {
        let upstream = self.upstream(index);
        let scripted = matches!(command.opaque, Some(Opaque::Script));
        let takes_input = is_interpreter(program)
            && (matches!(command.opaque, Some(Opaque::Input))
                || command
                    .args
                    .iter()
                    .all(|arg| arg.text.as_deref().is_some_and(|text| text.starts_with('-'))));
        let mut sources = Vec::new();
        if takes_input {
            sources.extend(upstream.iter().copied());
        }
        if scripted
            || is_interpreter(program)
            || matches!(program, "eval" | "source" | "." | "exec")
        {
            for arg in &command.args {
                // Code with a variable in it is not the variable's content.
                let all = is_shell(program)
                    || !is_interpreter(program)
                    || arg.raw.trim_matches('"').starts_with('$');
                if all {
                    sources.extend(self.sources(arg));
                }
            }
            for redirection in &command.redirections {
                if redirection.kind == RedirectionKind::HereString
                    || redirection.kind == RedirectionKind::Read
                {
                    sources.extend(self.sources(&redirection.target));
                }
            }
        }
        if let Some(name) = &command.name
            && name.text.is_none()
            && !name.sources.is_empty()
        {
            let plain =
                |at: &usize| matches!(self.parsed.commands[*at].program(), Some("tr" | "rev"));
            sources.extend(self.sources(name).into_iter().filter(|at| !plain(at)));
        }
        let commands = &self.parsed.commands;
        let fetched =
            sources.iter().find(|at| commands[**at].program().is_some_and(is_fetcher)).copied();
        let decoded = sources.iter().any(|at| decodes(&commands[*at]));
        if let Some(from) = fetched {
            let url = self.url(&self.parsed.commands[from]);
            self.see(Act::FetchAndRun { url }, command);
        } else if decoded {
            let text = self.parsed.input(index);
            self.see(Act::DecodeAndRun { text }, command);
        } else if matches!(program, "eval")
            && !command.args.is_empty()
            && command.args.iter().any(Word::is_opaque)
            && scripted
        {
            let built = command
                .args
                .iter()
                .any(|arg| arg.raw.contains("${") && arg.raw.matches('$').count() > 4);
            if built {
                self.see(Act::RunAssembled, command);
            }
        }
        if let Some(text) = other_inline(command, program) {
            let acts: Vec<Act> =
                super::super::other::read(&text).into_iter().map(|seen| seen.act).collect();
            acts.into_iter().for_each(|act| self.see(act, command));
        }
        if let Some(url) = registry(command, program) {
            self.see(Act::FetchAndRun { url: Some(url) }, command);
        }
        if program == "git" && steers_git(command) {
            let what = "a hook of git";
            self.see(
                Act::Persist { what, name: super::GIT_SETTING.to_owned(), holds: Holds::FETCHED },
                command,
            );
        }
        if let Some(text) = inline(command, program) {
            self.see(Act::Inline { python: program.starts_with("python"), text }, command);
        }
        // A file that was fetched before.
        let named = command.name.as_ref().and_then(|name| name.text.as_deref());
        let opens = is_interpreter(program)
            || matches!(
                program,
                "source"
                    | "."
                    | "open"
                    | "start"
                    | "installer"
                    | "msiexec"
                    | "chmod"
                    | "sudo"
                    | "unzip"
                    | "hdiutil"
            );
        let given = command.args.iter().filter_map(|arg| arg.text.as_deref()).filter(|_| opens);
        let files: Vec<String> = named.into_iter().chain(given).map(bare).collect();
        for file in files {
            if let Some(url) = self.loaded.get(&file).cloned()
                && program != "unzip"
            {
                self.see(Act::FetchAndRun { url }, command);
                return;
            }
        }
    }

    /// What is fetched into files.
    pub(super) fn loading(&mut self, command: &Command, program: &str) {
        if !is_fetcher(program) && program != "certutil" && program != "bitsadmin" {
            return;
        }
        let url = self.url(command);
        let texts: Vec<Option<&str>> = command.args.iter().map(|arg| arg.text.as_deref()).collect();
        let mut into = None;
        for (place, text) in texts.iter().enumerate() {
            let Some(text) = text else { continue };
            let next = || texts.get(place + 1).copied().flatten().map(bare);
            match *text {
                "-o" | "--output" | "-O" | "--output-document" | "-OutFile"
                    if !(*text == "-O" && program == "curl") =>
                {
                    into = next()
                }
                "-O" | "--remote-name" | "-LO" | "-OL" | "-fsSLO" | "-sLO" | "-fLO" => {
                    into = url.as_deref().map(last_part)
                }
                _ => {
                    if let Some(name) = text
                        .strip_prefix("--output=")
                        .or_else(|| text.strip_prefix("--output-document="))
                    {
                        into = Some(bare(name));
                    } else if text.starts_with('-')
                        && !text.starts_with("--")
                        && text.ends_with(if program == "curl" { 'o' } else { 'O' })
                    {
                        into = next();
                    }
                }
            }
        }
        let to = command
            .redirections
            .iter()
            .find(|redirection| redirection.kind == RedirectionKind::Write);
        let into = into
            .or_else(|| to.and_then(|to| to.target.text.as_deref().map(bare)))
            .or_else(|| (program == "wget").then(|| url.as_deref().map(last_part)).flatten());
        match into.filter(|into| into != "-" && into != "null" && !into.is_empty()) {
            Some(into) => drop(self.loaded.insert(into, url)),
            None => self.see(Act::Fetch { url }, command),
        }
    }
}

/// Code that an interpreter is given among its words.
fn inline(command: &Command, program: &str) -> Option<String> {
    let flags: &[&str] = match program {
        "python" | "python3" | "python2" => &["-c"],
        "node" | "bun" | "deno" => &["-e", "--eval", "-p", "eval"],
        _ => return None,
    };
    let place = command
        .args
        .iter()
        .position(|arg| arg.text.as_deref().is_some_and(|text| flags.contains(&text)))?;
    command.args.get(place + 1)?.text.clone()
}

/// Code of a language that is not parsed, among the words of its interpreter.
fn other_inline(command: &Command, program: &str) -> Option<String> {
    let flags: &[&str] = match program {
        "perl" => &["-e", "-E", "-ne", "-pe", "-Me"],
        "ruby" | "lua" => &["-e"],
        "php" => &["-r"],
        _ => return None,
    };
    let given = |arg: &Word| arg.text.as_deref().is_some_and(|text| flags.contains(&text));
    let place = command.args.iter().position(given)?;
    command.args.get(place + 1)?.text.clone()
}

/// Packages from a place that nobody answers for: an address, a paste, or without encryption.
fn registry(command: &Command, program: &str) -> Option<String> {
    let installs = matches!(
        program,
        "pip"
            | "pip3"
            | "uv"
            | "pipx"
            | "npm"
            | "pnpm"
            | "yarn"
            | "bun"
            | "gem"
            | "cargo"
            | "poetry"
    );
    let texts = command.args.iter().filter_map(|arg| arg.text.as_deref()).filter(|_| installs);
    texts
        .flat_map(|text| text.split('='))
        .find(|text| {
            text.contains("://")
                && (trust(text) == Trust::Anonymous
                    || text.starts_with("http://") && trust(text) == Trust::Unknown)
        })
        .map(str::to_owned)
}

/// Settings of git that run something at each use.
fn steers_git(command: &Command) -> bool {
    let texts: Vec<&str> = command.args.iter().filter_map(|arg| arg.text.as_deref()).collect();
    texts.contains(&"config")
        && texts.contains(&"--global")
        && texts.iter().any(|text| {
            let key = text.to_ascii_lowercase();
            [
                "core.hookspath",
                "core.sshcommand",
                "core.fsmonitor",
                "core.gitproxy",
                "init.templatedir",
            ]
            .contains(&key.as_str())
        })
}

fn decodes(command: &Command) -> bool {
    let has = |flags: &[&str]| {
        command.args.iter().any(|arg| arg.text.as_deref().is_some_and(|text| flags.contains(&text)))
    };
    match command.program() {
        Some("base64" | "gbase64" | "base32") => {
            has(&["-d", "-D", "--decode", "-di", "-id", "-Dd"])
        }
        Some("xxd") => command.args.iter().any(|arg| {
            arg.text
                .as_deref()
                .is_some_and(|text| text.starts_with("-r") || text == "-p" || text == "-ps")
        }),
        Some("openssl") => has(&["-d"]),
        Some("gunzip" | "zcat" | "rev" | "uudecode") => true,
        Some("tr") => command.args.len() >= 2 && !has(&["-d"]),
        Some("gzip" | "xz" | "bzip2") => has(&["-d", "-dc", "-cd", "-c"]),
        _ => false,
    }
}
