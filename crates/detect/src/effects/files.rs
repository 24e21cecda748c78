//! Programs that read, write, remove or change files that are named on their line.

use super::args::{Args, after, shown, split};
use super::walk::Doing;
use super::{Access, Language, MentionPlace, Target};
use crate::shell::Word;

/// What a program does with its operands.
#[derive(Debug, Clone, Copy)]
enum Operands {
    All(Access),
    /// The first is no file.
    ButFirst(Access),
    /// A pattern first, unless an option gives it; then files.
    Pattern,
    /// Read, then written: `uniq in out`.
    InOut,
    None,
}

struct Program {
    names: &'static [&'static str],
    /// Options that take a value.
    short: &'static str,
    long: &'static [&'static str],
    operands: Operands,
    /// Options whose value is a file that is written.
    written: &'static [&'static str],
    /// Options whose value is a file that is read.
    read: &'static [&'static str],
    /// Options with which a directory is meant with all below it.
    tree: &'static [&'static str],
}

const PLAIN: Program = Program {
    names: &[],
    short: "",
    long: &[],
    operands: Operands::All(Access::Read),
    written: &[],
    read: &[],
    tree: &[],
};

const PROGRAMS: &[Program] = &[
    Program {
        names: &[
            "cat",
            "tac",
            "nl",
            "less",
            "more",
            "most",
            "bat",
            "batcat",
            "wc",
            "od",
            "strings",
            "md5sum",
            "sha1sum",
            "sha224sum",
            "sha256sum",
            "sha384sum",
            "sha512sum",
            "shasum",
            "md5",
            "cksum",
            "b2sum",
            "b3sum",
            "sum",
            "base64",
            "base32",
            "rev",
            "zcat",
            "bzcat",
            "xzcat",
            "zless",
            "pr",
            "expand",
            "unexpand",
            "look",
            "tsort",
            "source",
            ".",
            "readlink",
            "realpath",
            "glow",
            "mdcat",
            "open",
            "xdg-open",
            "cmp",
            "comm",
            "diff3",
            "vimdiff",
        ],
        ..PLAIN
    },
    Program { names: &["head", "tail"], short: "ncs", long: &["--lines", "--bytes"], ..PLAIN },
    Program { names: &["cut"], short: "bcdf", long: &["--delimiter", "--fields"], ..PLAIN },
    Program { names: &["paste", "column", "fold", "fmt"], short: "dwscot", ..PLAIN },
    Program { names: &["join"], short: "12tejo", ..PLAIN },
    Program { names: &["hexdump", "hd"], short: "enfs", ..PLAIN },
    Program { names: &["file"], short: "fmP", read: &["-f", "--files-from"], ..PLAIN },
    Program {
        names: &["diff", "colordiff"],
        short: "UCIWx",
        long: &["--label", "--exclude"],
        tree: &["-r", "--recursive"],
        ..PLAIN
    },
    Program {
        names: &["sort"],
        short: "okStT",
        long: &["--output", "--key", "--buffer-size", "--field-separator", "--temporary-directory"],
        written: &["-o", "--output"],
        ..PLAIN
    },
    Program { names: &["uniq"], short: "fsw", operands: Operands::InOut, ..PLAIN },
    Program { names: &["xxd"], short: "cglos", operands: Operands::InOut, ..PLAIN },
    Program {
        names: &["iconv"],
        short: "ftoc",
        long: &["--output"],
        written: &["-o", "--output"],
        ..PLAIN
    },
    Program {
        names: &[
            "pandoc", "gcc", "cc", "clang", "g++", "c++", "clang++", "ld", "rustc", "tsc",
            "esbuild", "dot",
        ],
        short: "oIDLlxTtfU",
        long: &["--output", "--out-dir", "--outfile", "--outFile", "--outdir"],
        written: &["-o", "--output", "--outfile", "--outFile", "--out-dir", "--outdir"],
        ..PLAIN
    },
    Program {
        names: &["gpg", "gpg2"],
        short: "oru",
        long: &["--output", "--recipient"],
        written: &["-o", "--output"],
        ..PLAIN
    },
    Program {
        names: &["age", "minisign", "signify"],
        short: "oirRpsmx",
        long: &["--output", "--identity"],
        written: &["-o", "--output", "-x"],
        read: &["-i", "--identity", "-s", "-m"],
        ..PLAIN
    },
    Program {
        names: &[
            "ls", "dir", "vdir", "tree", "du", "stat", "eza", "exa", "lsattr", "getfacl", "lsof",
        ],
        short: "ILPw",
        operands: Operands::All(Access::List),
        ..PLAIN
    },
    Program {
        names: &["grep", "egrep", "fgrep", "zgrep", "pcregrep"],
        short: "efmABCdD",
        long: &[
            "--regexp",
            "--file",
            "--max-count",
            "--include",
            "--exclude",
            "--exclude-dir",
            "--context",
        ],
        operands: Operands::Pattern,
        read: &["-f", "--file"],
        tree: &["-r", "-R", "--recursive", "--dereference-recursive"],
        ..PLAIN
    },
    Program {
        names: &["jq", "yq", "gojq", "xmllint", "xq", "tomlq"],
        short: "",
        long: &["--arg", "--argjson", "--slurpfile", "--rawfile", "--indent", "--xpath"],
        operands: Operands::Pattern,
        read: &["-f", "--from-file"],
        ..PLAIN
    },
    Program { names: &["test", "["], operands: Operands::All(Access::List), ..PLAIN },
    Program { names: &["tee"], operands: Operands::All(Access::Write), ..PLAIN },
    Program { names: &["sponge"], operands: Operands::All(Access::Write), ..PLAIN },
    Program {
        names: &["truncate", "fallocate"],
        short: "srol",
        long: &["--size", "--reference", "--length", "--offset"],
        operands: Operands::All(Access::Write),
        ..PLAIN
    },
    Program {
        names: &["touch"],
        short: "drt",
        long: &["--date", "--reference", "--time"],
        operands: Operands::All(Access::Write),
        ..PLAIN
    },
    Program {
        names: &["shred"],
        short: "ns",
        long: &["--iterations", "--size"],
        operands: Operands::All(Access::Write),
        ..PLAIN
    },
    Program {
        names: &["rm", "unlink", "rmdir", "trash", "trash-put", "srm", "gio", "del", "rimraf"],
        operands: Operands::All(Access::Delete),
        ..PLAIN
    },
    Program {
        names: &["mkdir", "mkfifo", "mknod"],
        short: "mZ",
        long: &["--mode"],
        operands: Operands::All(Access::Write),
        ..PLAIN
    },
    Program {
        names: &["chmod", "chattr", "setfacl", "xattr", "setfattr", "chcon", "chflags", "setcap"],
        long: &["--reference"],
        operands: Operands::All(Access::ChangeMode),
        tree: &["-R", "-r", "--recursive"],
        ..PLAIN
    },
    Program {
        names: &["chown", "chgrp"],
        long: &["--reference", "--from"],
        operands: Operands::All(Access::ChangeOwner),
        tree: &["-R", "--recursive"],
        ..PLAIN
    },
    Program {
        names: &["split", "csplit"],
        short: "abClnftk",
        long: &["--bytes", "--lines", "--number", "--prefix"],
        operands: Operands::All(Access::Read),
        ..PLAIN
    },
    Program {
        // What an editor does is in its keys; it is there to write.
        names: &[
            "vi",
            "vim",
            "nvim",
            "nano",
            "pico",
            "emacs",
            "ed",
            "ex",
            "view",
            "micro",
            "helix",
            "hx",
            "code",
            "subl",
            "gedit",
            "kate",
            "sensible-editor",
        ],
        short: "cSuUTos",
        operands: Operands::All(Access::Write),
        ..PLAIN
    },
    Program {
        names: &[
            "prettier", "eslint", "black", "rustfmt", "gofmt", "dos2unix", "unix2dos", "sd", "ruff",
        ],
        operands: Operands::All(Access::Write),
        ..PLAIN
    },
    Program {
        names: &["sqlite3"],
        short: "",
        long: &["-cmd", "-init"],
        operands: Operands::All(Access::Write),
        ..PLAIN
    },
    Program {
        // What they run is told as a command of its own.
        names: &["strace", "ltrace", "time"],
        short: "oepsuEf",
        long: &["--output", "--format"],
        operands: Operands::None,
        written: &["-o", "--output"],
        ..PLAIN
    },
    Program {
        names: &["script"],
        short: "cEIOBTtom",
        long: &["--command", "--log-in", "--log-out", "--log-io", "--log-timing"],
        operands: Operands::All(Access::Write),
        written: &["-I", "-O", "-B", "-T", "--log-in", "--log-out", "--log-io", "--log-timing"],
        ..PLAIN
    },
    Program {
        names: &["rename", "prename", "file-rename", "mmv"],
        operands: Operands::ButFirst(Access::RenameAway),
        ..PLAIN
    },
    Program {
        names: &["mount", "umount", "losetup"],
        short: "toL",
        operands: Operands::All(Access::Replace),
        ..PLAIN
    },
    Program {
        names: &["pass", "echo", "printf", "true", "false", ":"],
        operands: Operands::None,
        ..PLAIN
    },
];

/// Programs that only sometimes do what their row says.
const DOUBTFUL: &[&str] = &[
    "vi",
    "vim",
    "nvim",
    "nano",
    "pico",
    "emacs",
    "view",
    "micro",
    "helix",
    "hx",
    "code",
    "subl",
    "gedit",
    "kate",
    "prettier",
    "eslint",
    "black",
    "rustfmt",
    "gofmt",
    "sd",
    "ruff",
    "sqlite3",
    "gio",
    "mount",
    "sensible-editor",
];

pub(super) fn read(doing: &mut Doing<'_>, program: &str, words: &[Word]) -> bool {
    match program {
        "sed" | "gsed" => {
            sed(doing, words);
            return true;
        }
        "dd" => {
            for word in words {
                if let Some(file) = after(word, "of=") {
                    doing.file(Access::Write, file);
                } else if let Some(file) = after(word, "if=") {
                    doing.file(Access::Read, file);
                }
            }
            return true;
        }
        "awk" | "gawk" | "mawk" | "nawk" => {
            awk(doing, words);
            return true;
        }
        _ => {}
    }
    let Some(row) = PROGRAMS.iter().find(|row| row.names.contains(&program)) else { return false };
    let args = split(words, row.short, row.long);
    let certain = !DOUBTFUL.contains(&program);
    for file in args.values(row.written) {
        doing.file(Access::Write, file.clone());
    }
    for file in args.values(row.read) {
        doing.file(Access::Read, file.clone());
    }
    let tree = args.has(row.tree);
    let reading = if tree { Access::ReadTree } else { Access::Read };
    match row.operands {
        Operands::All(access) => {
            let access = match access {
                Access::Read => reading,
                // `yq -i`, `tee -a`.
                Access::Write if args.has(&["-a", "--append"]) && program == "tee" => {
                    Access::Append
                }
                other => other,
            };
            // Without a name it is the directory itself.
            let here = [Word::literal(".")];
            let bare = matches!(program, "ls" | "dir" | "vdir" | "tree" | "du" | "eza" | "exa");
            let operands =
                if bare && args.operands.is_empty() { &here[..] } else { &args.operands };
            for operand in operands {
                let target = Target { tree, ..operand.clone().into() };
                doing.file_if(access, target, certain);
            }
            if program == "shred" && args.has(&["-u", "--remove"]) {
                args.operands.iter().for_each(|file| doing.file(Access::Delete, file.clone()));
            }
        }
        Operands::ButFirst(access) => {
            for operand in args.operands.iter().skip(1) {
                doing.file_if(access, operand.clone(), certain);
            }
        }
        Operands::Pattern => pattern(doing, program, &args, reading),
        Operands::InOut => {
            let accesses = [Access::Read, Access::Write];
            for (operand, access) in args.operands.iter().zip(accesses) {
                doing.file(access, operand.clone());
            }
        }
        Operands::None => {}
    }
    true
}

fn pattern(doing: &mut Doing<'_>, program: &str, args: &Args, reading: Access) {
    let given = args.has(&["-e", "--regexp", "-f", "--file", "--from-file"]);
    let in_place = program.ends_with('q') && args.has(&["-i", "--in-place", "--inplace"]);
    let files = args.operands.iter().skip(usize::from(!given));
    if reading == Access::ReadTree && files.len() == 0 {
        doing.file(reading, Word::literal("."));
    }
    for file in files {
        let access = if in_place { Access::Write } else { reading };
        doing.file(access, file.clone());
    }
}

fn sed(doing: &mut Doing<'_>, words: &[Word]) {
    // `-i` takes a suffix that is attached to it, so that a cluster ends there.
    let in_place = words.iter().any(|word| {
        let shown = shown(word);
        let cluster = shown.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        cluster.is_some_and(|rest| {
            rest.chars().take_while(|letter| !matches!(letter, 'e' | 'f' | 'l')).any(|l| l == 'i')
        }) || shown.starts_with("--in-p")
            || shown.starts_with("--i")
    });
    let clean: Vec<Word> = words
        .iter()
        .map(|word| match word.text.as_deref() {
            Some(text) if text.starts_with("-i") => Word::literal("-i"),
            _ => word.clone(),
        })
        .collect();
    let args = split(&clean, "efl", &["--expression", "--file", "--line-length"]);
    args.values(&["-f", "--file"]).for_each(|file| doing.file(Access::Read, file.clone()));
    let mut scripts: Vec<Word> = args.values(&["-e", "--expression"]).cloned().collect();
    let given = args.has(&["-e", "--expression", "-f", "--file"]);
    let mut operands = args.operands.iter();
    if !given {
        scripts.extend(operands.next().cloned());
    }
    for script in &scripts {
        sed_script(doing, script);
    }
    for file in operands {
        doing.file(if in_place { Access::Write } else { Access::Read }, file.clone());
    }
}

/// What a script of sed writes (`w file`) and runs (`e command`).
fn sed_script(doing: &mut Doing<'_>, script: &Word) {
    let Some(text) = script.text.as_deref() else { return };
    for line in text.lines() {
        for (place, _) in line.match_indices(['w', 'W', 'r', 'e']) {
            let before = line[..place].chars().next_back();
            let rest = &line[place + 1..];
            // A command stands first, behind an address, or behind the last slash of `s///`.
            let command = before.is_none_or(|sign| "0123456789/;{}$! ,gpIim|#~@".contains(sign));
            let Some(name) = rest.strip_prefix(' ').map(str::trim).filter(|_| command) else {
                continue;
            };
            if name.is_empty() {
                continue;
            }
            match line.as_bytes()[place] {
                b'e' => doing.script(name),
                b'r' => doing.file_if(Access::Read, Word::literal(name), false),
                _ => doing.file_if(Access::Write, Word::literal(name), false),
            }
        }
    }
}

fn awk(doing: &mut Doing<'_>, words: &[Word]) {
    let args = split(
        words,
        "Fvfie",
        &["--field-separator", "--assign", "--file", "--include", "--source"],
    );
    let in_place = args.values(&["-i", "--include"]).any(|value| shown(value).contains("inplace"));
    args.values(&["-f", "--file"]).for_each(|file| doing.file(Access::Read, file.clone()));
    let mut operands = args.operands.iter();
    let mut programs: Vec<Word> = args.values(&["-e", "--source"]).cloned().collect();
    if !args.has(&["-f", "--file", "-e", "--source"]) {
        programs.extend(operands.next().cloned());
    }
    for program in programs {
        doing.code(Language::Awk, program.text);
    }
    for file in operands {
        if shown(file).contains('=') && !shown(file).contains('/') {
            doing.mention(file, MentionPlace::Word);
        } else {
            doing.file(if in_place { Access::Write } else { Access::Read }, file.clone());
        }
    }
}
