//! Archives: what is packed is read, what is unpacked is written under names that are not known.

use super::args::{Args, below, shown, split};
use super::walk::Doing;
use super::{Access, Target};
use crate::shell::Word;

pub(super) fn read(doing: &mut Doing<'_>, program: &str, words: &[Word]) -> bool {
    match program {
        "tar" | "gtar" | "bsdtar" => tar(doing, words),
        "unzip" => {
            let args = split(words, "dxPO", &[]);
            let folder = args.value(&["-d"]);
            let listing = args.has(&["-l", "-t", "-v", "-p", "-z", "-Z"]);
            let (archive, members) = args.operands.split_at(args.operands.len().min(1));
            archive.iter().for_each(|file| doing.file(Access::Read, file.clone()));
            if !listing {
                unpack(doing, folder, members);
            }
        }
        "zip" => {
            let args = split(words, "tnxibPO", &["--out"]);
            if let Some((archive, files)) = args.operands.split_first() {
                doing.file(Access::Write, archive.clone());
                let reading = if args.has(&["-r", "-R"]) { Access::ReadTree } else { Access::Read };
                files.iter().for_each(|file| doing.file(reading, file.clone()));
                if args.has(&["-m"]) {
                    files.iter().for_each(|file| doing.file(Access::Delete, file.clone()));
                }
            }
        }
        "7z" | "7za" | "7zz" | "unrar" | "rar" => seven_zip(doing, words),
        "cpio" | "pax" => {
            let args = split(words, "DFIOEH", &["--directory", "--file"]);
            if args.has(&["-i", "--extract", "-p", "--pass-through", "-r"]) {
                unpack(doing, args.value(&["-D", "--directory"]), &[]);
            }
            args.values(&["-F", "--file", "-I"]).for_each(|f| doing.file(Access::Read, f.clone()));
            args.values(&["-O"]).for_each(|file| doing.file(Access::Write, file.clone()));
        }
        "ar" | "jar" => {
            let letters = words.first().map(|word| shown(word).to_owned()).unwrap_or_default();
            if letters.contains('x') {
                unpack(doing, None, &[]);
            } else if let Some(archive) = words.get(1).filter(|_| !letters.contains('t')) {
                doing.file(Access::Write, archive.clone());
            }
        }
        "gzip" | "gunzip" | "bzip2" | "bunzip2" | "xz" | "unxz" | "zstd" | "unzstd" | "lz4"
        | "compress" | "uncompress" | "brotli" => compress(doing, program, words),
        _ => return false,
    }
    true
}

fn unpack(doing: &mut Doing<'_>, folder: Option<Word>, members: &[Word]) {
    let folder = folder.unwrap_or_else(|| Word::literal("."));
    if members.is_empty() {
        doing.file(Access::WriteTree, Target { tree: true, ..folder.into() });
        return;
    }
    for member in members {
        doing.file(Access::Write, below(&folder, member));
    }
}

fn tar(doing: &mut Doing<'_>, words: &[Word]) {
    // The first word may be letters without a sign, `xzf`; its values follow in order.
    let mut words = words.to_vec();
    let old = words.first().and_then(|word| word.text.clone()).filter(|text| !text.is_empty());
    if let Some(letters) = old.filter(|text| text.bytes().all(|byte| byte.is_ascii_alphabetic())) {
        let mut rest = words.split_off(1).into_iter();
        words.clear();
        for letter in letters.chars() {
            words.push(Word::literal(format!("-{letter}")));
            if "fCbTXgFIKLNHV".contains(letter) {
                words.extend(rest.next());
            }
        }
        words.extend(rest);
    }
    let long = [
        "--file",
        "--directory",
        "--files-from",
        "--exclude",
        "--exclude-from",
        "--to-command",
        "--checkpoint-action",
        "--use-compress-program",
        "--transform",
        "--owner",
        "--group",
        "--mode",
        "--rsh-command",
        "--info-script",
        "--newer",
        "--strip-components",
    ];
    let args = split(&words, "fCbTXgFIKLNHV", &long);
    for command in args.values(&["--to-command", "--use-compress-program", "-I", "--rsh-command"]) {
        doing.script(shown(command));
    }
    for action in args.values(&["--checkpoint-action"]) {
        if let Some(command) = shown(action).strip_prefix("exec=") {
            doing.script(command);
        }
    }
    for script in args.values(&["--info-script", "-F"]) {
        doing.script(shown(script));
    }
    args.values(&["-T", "--files-from", "-X"])
        .for_each(|file| doing.file(Access::Read, file.clone()));
    let archive = args.value(&["-f", "--file"]);
    let folder = args.value(&["-C", "--directory"]);
    if args.has(&["-x", "--extract", "--get"]) {
        archive.into_iter().for_each(|file| doing.file(Access::Read, file));
        unpack(doing, folder, &args.operands);
    } else if args.has(&["-c", "--create", "-r", "--append", "-u", "--update", "-A"]) {
        archive.into_iter().for_each(|file| doing.file(Access::Write, file));
        let remove = args.has(&["--remove-files"]);
        doing.inside(folder, |doing| {
            for file in &args.operands {
                doing.file(Access::ReadTree, file.clone());
                if remove {
                    doing.file(Access::Delete, file.clone());
                }
            }
        });
    } else {
        archive.into_iter().for_each(|file| doing.file(Access::Read, file));
    }
}

fn seven_zip(doing: &mut Doing<'_>, words: &[Word]) {
    let args: Args = split(words, "o", &[]);
    let verb = args.operands.first().map(|word| shown(word).to_owned()).unwrap_or_default();
    let archive = args.operands.get(1).cloned();
    match verb.as_str() {
        "x" | "e" => {
            archive.into_iter().for_each(|file| doing.file(Access::Read, file));
            let last = args.operands.get(2..).and_then(<[Word]>::last);
            let folder = args
                .value(&["-o"])
                .or_else(|| last.filter(|word| shown(word).ends_with('/')).cloned());
            unpack(doing, folder, &[]);
        }
        "a" | "u" => {
            archive.into_iter().for_each(|file| doing.file(Access::Write, file));
            let files = args.operands.get(2..).unwrap_or_default();
            files.iter().for_each(|file| doing.file(Access::ReadTree, file.clone()));
        }
        _ => archive.into_iter().for_each(|file| doing.file(Access::Read, file)),
    }
}

/// The file is read, removed, and another one appears beside it.
fn compress(doing: &mut Doing<'_>, program: &str, words: &[Word]) {
    let args = split(words, "SoT", &["--suffix", "--output"]);
    args.values(&["-o", "--output"]).for_each(|file| doing.file(Access::Write, file.clone()));
    let kept = args.has(&["-c", "--stdout", "--to-stdout", "-k", "--keep", "-t", "-l"])
        || matches!(program, "zstd" | "unzstd" | "lz4" | "brotli");
    for file in &args.operands {
        doing.file(Access::Read, file.clone());
        if args.has(&["-c", "--stdout", "--to-stdout", "-t", "-l"]) {
            continue;
        }
        if !kept {
            doing.file(Access::Delete, file.clone());
        }
        if let Some((stem, _)) = file.text.as_deref().and_then(|text| text.rsplit_once('.')) {
            doing.file_if(Access::Write, Word::literal(stem), false);
        }
    }
}
