//! Programs that run other programs: what they run is a command of its own.

use super::declare::{assignments, base_name, forget_arguments, forget_word, read};
use super::grammar::{Origin, Parser};
use super::state::State;
use super::{Command, Context, Opaque, RedirectionKind, Via, Word, emulate};

/// A program that runs its arguments.
struct Wrapper {
    name: &'static str,
    /// Options that take a value in the next word.
    valued: &'static [&'static str],
    /// Words between the options and the command.
    leading: usize,
    via: Via,
}

const fn wrapper(name: &'static str, valued: &'static [&'static str], leading: usize) -> Wrapper {
    Wrapper { name, valued, leading, via: Via::Wrapper }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper(
        "sudo",
        &["-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "-R", "--user", "--group"],
        0,
    ),
    wrapper("doas", &["-u", "-C"], 0),
    wrapper("env", &["-u", "--unset", "-C", "--chdir"], 0),
    wrapper("nohup", &[], 0),
    wrapper("setsid", &[], 0),
    wrapper("timeout", &["-s", "-k", "--signal", "--kill-after"], 1),
    wrapper("gtimeout", &["-s", "-k", "--signal", "--kill-after"], 1),
    wrapper("nice", &["-n", "--adjustment"], 0),
    wrapper("ionice", &["-c", "-n", "-p", "--class", "--classdata"], 0),
    wrapper("chrt", &["-T", "-P", "-D"], 1),
    wrapper("taskset", &[], 1),
    wrapper("time", &["-f", "-o", "--format", "--output"], 0),
    wrapper("command", &[], 0),
    wrapper("builtin", &[], 0),
    wrapper("exec", &["-a"], 0),
    wrapper("noglob", &[], 0),
    wrapper("nocorrect", &[], 0),
    wrapper("stdbuf", &["-i", "-o", "-e", "--input", "--output", "--error"], 0),
    wrapper("unbuffer", &[], 0),
    wrapper("strace", &["-o", "-e", "-p", "-s", "-E", "-u"], 0),
    wrapper("ltrace", &["-o", "-e", "-p", "-s", "-u"], 0),
    wrapper("chroot", &["--userspec", "--groups"], 1),
    wrapper("unshare", &["-S", "-G", "-R", "-w"], 0),
    wrapper("nsenter", &["-t", "-S", "-G"], 0),
    wrapper("systemd-run", &["-p", "-u", "--unit", "-E", "-M", "--uid", "--gid"], 0),
    wrapper("prlimit", &[], 0),
    wrapper("fakeroot", &[], 0),
    wrapper("firejail", &[], 0),
    wrapper("proxychains", &["-f"], 0),
    wrapper("proxychains4", &["-f"], 0),
    wrapper("torsocks", &[], 0),
    wrapper("caffeinate", &["-t", "-w"], 0),
    wrapper("dbus-run-session", &[], 0),
    wrapper("xvfb-run", &["-n", "-s", "-e", "-f"], 0),
    wrapper("catchsegv", &[], 0),
    wrapper("flock", &["-w", "-E", "--timeout"], 1),
    wrapper("busybox", &[], 0),
    wrapper("npx", &["-p", "--package", "-w", "--workspace"], 0),
    wrapper("bunx", &["-p", "--package"], 0),
    wrapper("uvx", &["-p", "--python", "--from", "--with"], 0),
    wrapper("gosu", &[], 1),
    wrapper("su-exec", &[], 1),
    wrapper("setpriv", &[], 0),
    wrapper("eatmydata", &[], 0),
    wrapper("toybox", &[], 0),
    wrapper("watch", &["-n", "--interval"], 0),
    Wrapper {
        name: "xargs",
        valued: &[
            "-I",
            "-n",
            "-P",
            "-L",
            "-s",
            "-d",
            "-E",
            "-a",
            "--max-args",
            "--max-procs",
            "--delimiter",
            "--arg-file",
        ],
        leading: 0,
        via: Via::Each,
    },
    Wrapper {
        name: "parallel",
        valued: &["-j", "-a", "-I", "-n", "--jobs"],
        leading: 0,
        via: Via::Each,
    },
    Wrapper {
        name: "ssh",
        valued: &[
            "-p", "-i", "-l", "-o", "-F", "-J", "-L", "-R", "-D", "-W", "-b", "-c", "-e", "-m",
            "-E", "-S", "-w",
        ],
        leading: 1,
        via: Via::Remote,
    },
];

const SHELLS: [&str; 12] =
    ["sh", "bash", "zsh", "dash", "ksh", "ash", "mksh", "fish", "rbash", "yash", "csh", "tcsh"];

/// Programs with a reading of their own, below.
const RUNNERS: [&str; 29] = [
    "cd",
    "chdir",
    "pushd",
    "popd",
    "eval",
    "trap",
    "alias",
    "export",
    "declare",
    "local",
    "readonly",
    "typeset",
    "read",
    "unset",
    "mapfile",
    "readarray",
    "getopts",
    "printf",
    "let",
    "set",
    "shopt",
    "shift",
    "find",
    "fd",
    "fdfind",
    "git",
    "su",
    "runuser",
    "script",
];

/// Settings of git whose value is run.
const GIT_RUNS: [&str; 12] = [
    "core.pager",
    "core.editor",
    "core.sshcommand",
    "core.fsmonitor",
    "core.askpass",
    "sequence.editor",
    "credential.helper",
    "diff.external",
    "gpg.program",
    "uploadpack.packobjectshook",
    "core.gitproxy",
    "core.hookspath",
];

/// Appends the commands that this one runs.
pub(super) fn unwrap(state: &mut State, index: usize) {
    let Some(command) = state.commands.get(index) else { return };
    let Some(name) = &command.name else { return };
    let Some(program) = command.program().map(str::to_owned) else {
        let unknown = if name.text.is_none() { Some(Opaque::Name) } else { None };
        state.commands[index].opaque = unknown;
        return;
    };
    if name.glob {
        state.commands[index].opaque = Some(Opaque::Name);
    }
    let runs = RUNNERS.contains(&program.as_str())
        || SHELLS.contains(&program.as_str())
        || WRAPPERS.iter().any(|wrapper| wrapper.name == program);
    if runs && state.enter() {
        dispatch(state, index, &program);
        state.leave();
    }
}

fn dispatch(state: &mut State, index: usize, program: &str) {
    let args = state.commands[index].args.clone();
    let inside = state.commands[index].context.inside.clone();
    // Every level of wrappers copies the words: a long line of them is paid for each time.
    if !state.spend(args.len() * 64) {
        return;
    }
    match program {
        "cd" | "chdir" | "pushd" | "popd" => state.forget_places(),
        "eval" => script(state, index, &join(&args), Via::Script),
        "trap" | "alias" => {
            let mark = state.mark();
            for arg in &args {
                let text = arg.text.as_deref().map(|text| match program {
                    "alias" => text.split_once('=').map_or("", |(_, value)| value),
                    _ if text.contains([' ', '/', ';', '=']) => text,
                    _ => "",
                });
                let first = state.commands.len();
                let text = text.map_or_else(|| Word::unknown(""), Word::literal);
                script(state, index, &text, Via::Script);
                // What follows the alias where it is used becomes arguments of its last command.
                if program == "alias" && state.aliases && state.commands.len() > first {
                    let last = state.commands.len() - 1;
                    state.commands[last].args.push(Word::unknown("<arguments>"));
                }
            }
            state.make_volatile_since(mark);
        }
        "export" | "declare" | "local" | "readonly" | "typeset" => {
            assignments(state, program, &args, &inside);
        }
        "read" | "unset" | "mapfile" | "readarray" | "getopts" => read(state, program, &args),
        "printf" => {
            let first = args.first().map(|arg| arg.text.as_deref().unwrap_or("-v"));
            match first.and_then(|first| first.strip_prefix("-v")) {
                Some("") => forget_word(state, args.get(1)),
                Some(name) => state.forget(base_name(name)),
                None => {}
            }
        }
        "let" => {
            for arg in &args {
                state.forget_named_in(arg.text.as_deref().unwrap_or(&arg.raw));
            }
        }
        "shopt" => {
            let aliases = |arg: &Word| arg.could_be("expand_aliases");
            state.aliases |= args.iter().any(aliases);
        }
        // `set -k` takes assignments out of the arguments, `set +B` leaves braces alone.
        "set" => {
            let changes = |text: &str| {
                text.starts_with('-') && !text.starts_with("--") && text.contains('k')
                    || text.starts_with('+') && text.contains('B')
                    || matches!(text, "keyword" | "braceexpand")
            };
            let mut options = args.iter().map_while(|arg| arg.text.as_deref());
            state.complete &= !options.any(changes);
            forget_arguments(state);
        }
        "shift" => forget_arguments(state),
        "find" | "fd" | "fdfind" => find(state, index, &args),
        "git" => git(state, index, &args),
        "su" | "runuser" | "script" => {
            // Also behind others: `script -qc`.
            let joined = || {
                let at = args.iter().position(|arg| {
                    let text = arg.text.as_deref().unwrap_or_default();
                    text.len() > 2
                        && text.starts_with('-')
                        && !text.starts_with("--")
                        && text.ends_with('c')
                })?;
                args.get(at + 1).cloned()
            };
            if let Some(text) = value_of(&args, &["-c", "--command"]).or_else(joined) {
                script(state, index, &text, Via::Script);
            }
        }
        _ if SHELLS.contains(&program) => shell(state, index, &args),
        _ => {
            if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == program) {
                wrapped(state, index, wrapper, &args);
            }
        }
    }
}

fn wrapped(state: &mut State, index: usize, wrapper: &Wrapper, args: &[Word]) {
    let mut at = 0;
    let mut leading = wrapper.leading;
    let assigns = matches!(wrapper.name, "env" | "sudo" | "doas");
    let mut mark = None;
    while let Some(word) = args.get(at) {
        let text = word.text.as_deref().unwrap_or("");
        if text == "--" {
            at += 1 + leading;
            break;
        }
        if text.starts_with('-') && text.len() > 1 {
            // `command -v x` only looks; `env -S` and `flock -c` take a script.
            if wrapper.name == "command" && matches!(text, "-v" | "-V") {
                return;
            }
            if wrapper.name == "env"
                && (text.starts_with("-S") || text.starts_with("--split-string"))
            {
                let inline =
                    text.strip_prefix("-S").or_else(|| text.strip_prefix("--split-string="));
                let given = inline.filter(|inline| !inline.is_empty());
                let rest =
                    given.map(Word::literal).into_iter().chain(args[at + 1..].iter().cloned());
                script(state, index, &join(&rest.collect::<Vec<_>>()), Via::Wrapper);
                return;
            }
            if wrapper.name == "flock" && text == "-c" {
                break;
            }
            if wrapper.name == "xargs"
                && let Some(takes) = xargs_option(text, args.get(at + 1), &mut mark)
            {
                at += takes;
                continue;
            }
            at += if wrapper.valued.contains(&text) { 2 } else { 1 };
            continue;
        }
        if assigns && text.split_once('=').is_some_and(|(name, _)| !name.is_empty()) {
            at += 1;
            continue;
        }
        if leading > 0 {
            leading -= 1;
            at += 1;
            continue;
        }
        break;
    }
    let Some(rest) = args.get(at..).filter(|rest| !rest.is_empty()) else { return };
    match wrapper.name {
        // These hand their words to a shell in one string.
        "ssh" | "watch" => script(state, index, &join(rest), wrapper.via),
        "flock" if rest[0].text.as_deref() == Some("-c") => {
            script(state, index, &join(&rest[1..]), Via::Script);
        }
        "parallel" if rest.len() == 1 => script(state, index, &rest[0], Via::Each),
        "xargs" => {
            let words = match mark {
                // What is read comes in the place of the mark, and nowhere else.
                Some(Some(mark)) => marked(rest, &mark),
                Some(None) => rest.iter().map(|_| Word::unknown("{}")).collect(),
                None => with_input(rest),
            };
            run(state, index, &words, Via::Each);
        }
        "parallel" => {
            let words = marked(rest, "{}");
            run(state, index, &with_input(&words), Via::Each);
            // What follows `:::` comes in the place of the marks.
            let end = words.iter().position(|word| word.raw.starts_with(":::"));
            let command = &words[..end.unwrap_or(words.len())];
            if command.iter().any(|word| word.text.is_none() && word.raw.contains("{}")) {
                run(state, index, command, Via::Each);
            }
        }
        _ => run(state, index, rest, wrapper.via),
    }
}

/// How many words an option of `xargs` takes, if it is one of a letter or says what is replaced; `mark` becomes
/// what is, `None` in it where that cannot be told.
fn xargs_option(
    text: &str,
    next: Option<&Word>,
    mark: &mut Option<Option<String>>,
) -> Option<usize> {
    let default = || Some("{}".to_owned());
    if let Some(long) = text.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(n, v)| (n, Some(v)));
        // Others of its options begin with `r`, none with `rep`.
        if name.len() >= 3 && "replace".starts_with(name) {
            *mark = Some(value.map(str::to_owned).or_else(default));
            return Some(1);
        }
        return None;
    }
    let letters = text.strip_prefix('-')?;
    let at = letters.find(['a', 'd', 'E', 'I', 'L', 'n', 'P', 's', 'i', 'l', 'e'])?;
    let (letter, attached) = (letters.as_bytes()[at], &letters[at + 1..]);
    match (letter, attached) {
        (b'i', "") => *mark = Some(default()),
        (b'I', "") => *mark = Some(next.and_then(|next| next.text.clone())),
        (b'i' | b'I', attached) => *mark = Some(Some(attached.to_owned())),
        _ => {}
    }
    let takes_next = attached.is_empty() && !matches!(letter, b'i' | b'l' | b'e');
    Some(1 + usize::from(takes_next))
}

/// Words in which a mark becomes anything.
fn marked(words: &[Word], mark: &str) -> Vec<Word> {
    let mark = if mark.is_empty() { "{}" } else { mark };
    let one = |word: &Word| match &word.text {
        Some(text) if text.contains(mark) => {
            placeholder(&Word { raw: text.replace(mark, "{}"), ..word.clone() }, mark)
        }
        _ => word.clone(),
    };
    words.iter().map(one).collect()
}

/// A word in which the mark becomes anything.
fn placeholder(word: &Word, mark: &str) -> Word {
    Word { text: None, pattern: word.pattern.replace(mark, "*"), ..word.clone() }
}

/// Words behind which comes what is read.
fn with_input(words: &[Word]) -> Vec<Word> {
    words.iter().cloned().chain([Word::unknown("<input>")]).collect()
}

/// Appends a command made of words.
fn run(state: &mut State, index: usize, words: &[Word], via: Via) {
    let Some((name, args)) = words.split_first() else { return };
    // `command cd x` and the like are the shell's own; all else has its own directory.
    let outer = &state.commands[index];
    let same = matches!(outer.program(), Some("command" | "builtin" | "noglob" | "nocorrect"));
    let (mut shell, joint) = (outer.context.shell, outer.context.joint);
    if !same {
        state.shells.push(Some(shell));
        shell = state.shells.len() - 1;
    }
    let outer = &state.commands[index];
    let mut inside = outer.context.inside.clone();
    inside.push(via);
    let inner = Command {
        name: Some(name.clone()),
        args: args.to_vec(),
        assignments: Vec::new(),
        redirections: Vec::new(),
        span: outer.span,
        piped_from: outer.piped_from,
        opaque: None,
        context: Context { inside, parent: Some(index), shell, joint },
    };
    let size = inner.args.iter().map(|word| word.pattern.len() + word.raw.len()).sum();
    if state.spend(size)
        && let Some(inner) = state.push(inner)
    {
        // A here-document of the wrapper is the input of what it runs.
        let redirections: Vec<_> = state.commands[index]
            .redirections
            .iter()
            .filter(|redirection| {
                matches!(
                    redirection.kind,
                    RedirectionKind::HereDocument | RedirectionKind::HereString
                )
            })
            .cloned()
            .collect();
        state.commands[inner].redirections = redirections;
        unwrap(state, inner);
    }
}

/// Appends the commands of a text that this command runs.
fn script(state: &mut State, index: usize, text: &Word, via: Via) {
    let Some(source) = text.text.as_deref() else {
        state.commands[index].opaque = Some(Opaque::Script);
        return;
    };
    if source.trim().is_empty() || !state.spend(source.len()) {
        return;
    }
    let origin = Origin::Within(state.commands[index].span);
    let (parent, stdin) = (state.parent.replace(index), state.stdin);
    state.stdin = state.commands[index].piped_from;
    let inside = std::mem::replace(&mut state.inside, state.commands[index].context.inside.clone());
    state.inside.push(via);
    let mark = state.mark();
    let (shell, joint) = (state.shell, state.joint);
    state.shell = state.commands[index].context.shell;
    let own = !matches!(state.commands[index].program(), Some("eval" | "trap" | "alias"));
    if own {
        state.start_shell();
    }
    if state.enter() {
        Parser::with_origin(source, origin, state).program();
        state.leave();
    }
    (state.shell, state.joint) = (shell, joint);
    // `eval` assigns in the shell itself: what it assigned holds.
    if state.commands[index].program() != Some("eval") {
        state.forget_since(mark);
    }
    state.inside = inside;
    state.parent = parent;
    state.stdin = stdin;
}

fn shell(state: &mut State, index: usize, args: &[Word]) {
    let mut at = 0;
    let mut stdin = true;
    while let Some(word) = args.get(at) {
        let Some(text) = word.text.as_deref() else {
            // It may be an option as well as a file: both are unknown.
            let substituted = !word.sources.is_empty() && word.raw.starts_with("<(");
            state.commands[index].opaque =
                Some(if substituted { Opaque::Input } else { Opaque::Script });
            return;
        };
        let short = text.strip_prefix(['-', '+']).filter(|rest| !rest.starts_with('-'));
        match short {
            Some(flags) if flags.contains('c') && text.starts_with('-') => {
                let mut rest = args[at + 1..].iter();
                let script_word = rest.find(|word| {
                    !word
                        .text
                        .as_deref()
                        .is_some_and(|text| text.starts_with('-') && text.len() > 1)
                });
                let Some(script_word) = script_word.cloned() else { return };
                let mark = state.mark();
                for (number, value) in rest.enumerate() {
                    state.assign(&number.to_string(), value);
                }
                script(state, index, &script_word, Via::Script);
                state.forget_since(mark);
                return;
            }
            Some(flags) if flags.ends_with(['o', 'O']) => at += 2,
            Some(flags) if flags.contains('s') || flags.is_empty() => {
                stdin = true;
                break;
            }
            _ if text == "--rcfile" || text == "--init-file" => at += 2,
            _ if text.starts_with('-') => at += 1,
            _ => {
                stdin = matches!(text, "/dev/stdin" | "/proc/self/fd/0" | "/dev/fd/0");
                break;
            }
        }
    }
    let command = &state.commands[index];
    let fed = command.piped_from.is_some()
        || command.redirections.iter().any(|redirection| {
            !matches!(
                redirection.kind,
                RedirectionKind::Write | RedirectionKind::Append | RedirectionKind::Duplicate
            )
        });
    if !stdin || !fed {
        return;
    }
    match emulate::input(&state.commands, index, 12) {
        Some(text) => {
            let outer = state.commands[index].piped_from.take();
            script(state, index, &Word::literal(text), Via::Input);
            state.commands[index].piped_from = outer;
        }
        None => state.commands[index].opaque = Some(Opaque::Input),
    }
}

fn find(state: &mut State, index: usize, args: &[Word]) {
    let runs = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];
    let mut at = 0;
    while at < args.len() {
        if args[at].text.as_deref().is_some_and(|text| runs.contains(&text)) {
            let words: Vec<Word> = args[at + 1..]
                .iter()
                .take_while(|word| !matches!(word.text.as_deref(), Some(";" | "+")))
                .map(|word| match word.text.as_deref() {
                    Some(text) if text.contains("{}") => placeholder(word, "{}"),
                    _ => word.clone(),
                })
                .collect();
            at += words.len();
            run(state, index, &words, Via::Each);
        }
        at += 1;
    }
}

fn git(state: &mut State, index: usize, args: &[Word]) {
    let mut at = 0;
    while at < args.len() {
        let text = args[at].text.as_deref().unwrap_or("");
        let setting = match text {
            "-c" | "config" | "--global" | "--local" | "--config-env" => args.get(at + 1),
            _ => None,
        };
        if let Some(setting) = setting
            && text != "--config-env"
        {
            let Some(setting) = setting.text.as_deref() else {
                state.commands[index].opaque = Some(Opaque::Script);
                at += 2;
                continue;
            };
            let (key, value) = match setting.split_once('=') {
                Some((key, value)) => (key, value.to_owned()),
                None => {
                    let next = args.get(at + 2).and_then(|word| word.text.clone());
                    (setting, next.unwrap_or_default())
                }
            };
            let key = key.to_ascii_lowercase();
            let runs = GIT_RUNS.contains(&key.as_str())
                || [
                    ".textconv",
                    ".command",
                    ".cmd",
                    ".helper",
                    ".clean",
                    ".smudge",
                    ".driver",
                    ".process",
                ]
                .iter()
                .any(|end| key.ends_with(end));
            let shell = value.strip_prefix('!');
            if runs || (key.starts_with("alias.") && shell.is_some()) {
                script(state, index, &Word::literal(shell.unwrap_or(&value)), Via::Script);
            }
        }
        at += 1;
    }
}

fn value_of(args: &[Word], options: &[&str]) -> Option<Word> {
    let place = args
        .iter()
        .position(|word| word.text.as_deref().is_some_and(|text| options.contains(&text)))?;
    args.get(place + 1).cloned()
}

/// The words with blanks between them, as `eval` reads them.
fn join(words: &[Word]) -> Word {
    let texts: Option<Vec<&str>> = words.iter().map(|word| word.text.as_deref()).collect();
    texts.map_or_else(|| Word::unknown(""), |texts| Word::literal(texts.join(" ")))
}
