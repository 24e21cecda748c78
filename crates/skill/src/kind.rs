//! What a file is: by its first bytes, and by its name.

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text in some language.
    Text(Language),
    /// A program for a processor or a virtual machine, which is not read.
    Program(&'static str),
    /// An archive.
    Archive(Format),
    /// Pictures, sound, fonts, documents: nothing that runs.
    Media,
    /// Bytes of which nothing is known.
    Unknown,
}

/// A language of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Markdown,
    Shell,
    Python,
    JavaScript,
    TypeScript,
    PowerShell,
    Json,
    Settings,
    Markup,
    Plain,
}

/// An archive's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Zip,
    Gzip,
    Tar,
    /// One that is not unpacked.
    Other(&'static str),
}

const MAGIC: &[(&[u8], Kind)] = &[
    (b"\x7fELF", Kind::Program("a Linux program")),
    (b"MZ", Kind::Program("a Windows program")),
    (b"\xcf\xfa\xed\xfe", Kind::Program("a macOS program")),
    (b"\xce\xfa\xed\xfe", Kind::Program("a macOS program")),
    (b"\xfe\xed\xfa\xcf", Kind::Program("a macOS program")),
    (b"\xfe\xed\xfa\xce", Kind::Program("a macOS program")),
    (b"\xca\xfe\xba\xbe", Kind::Program("a macOS program or Java class")),
    (b"\0asm", Kind::Program("a WebAssembly program")),
    (b"dex\n", Kind::Program("an Android program")),
    (b"PK\x03\x04", Kind::Archive(Format::Zip)),
    (b"PK\x05\x06", Kind::Archive(Format::Zip)),
    (b"\x1f\x8b", Kind::Archive(Format::Gzip)),
    (b"7z\xbc\xaf\x27\x1c", Kind::Archive(Format::Other("7z"))),
    (b"Rar!\x1a\x07", Kind::Archive(Format::Other("RAR"))),
    (b"\xfd7zXZ\0", Kind::Archive(Format::Other("xz"))),
    (b"BZh", Kind::Archive(Format::Other("bzip2"))),
    (b"\x28\xb5\x2f\xfd", Kind::Archive(Format::Other("zstd"))),
    (b"xar!", Kind::Archive(Format::Other("macOS package"))),
    (b"MSCF", Kind::Archive(Format::Other("cabinet"))),
    (b"!<arch>\n", Kind::Archive(Format::Other("ar"))),
    (b"\x89PNG\r\n", Kind::Media),
    (b"\xff\xd8\xff", Kind::Media),
    (b"GIF8", Kind::Media),
    (b"RIFF", Kind::Media),
    (b"OggS", Kind::Media),
    (b"fLaC", Kind::Media),
    (b"ID3", Kind::Media),
    (b"\0\0\x01\0", Kind::Media),
    (b"wOFF", Kind::Media),
    (b"wOF2", Kind::Media),
    (b"OTTO", Kind::Media),
    (b"\0\x01\0\0", Kind::Media),
    (b"%PDF-", Kind::Media),
    (b"SQLite format 3\0", Kind::Media),
    (b"II*\0", Kind::Media),
    (b"MM\0*", Kind::Media),
    (b"\x1aE\xdf\xa3", Kind::Media),
];

/// What a file is.
pub(super) fn kind(path: &str, bytes: &[u8]) -> Kind {
    let by_magic = MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, kind)| *kind);
    // `MZ` and `BZh` also begin words.
    if let Some(kind) = by_magic
        && !(is_text(bytes) && matches!(kind, Kind::Program(_) | Kind::Archive(_) | Kind::Media))
    {
        return kind;
    }
    if bytes.get(257..262) == Some(b"ustar") {
        return Kind::Archive(Format::Tar);
    }
    if bytes.get(4..8) == Some(b"ftyp") {
        return Kind::Media;
    }
    let extension = extension(path);
    if extension == "pyc" || extension == "pyo" {
        return Kind::Program("compiled Python");
    }
    if !is_text(bytes) {
        return Kind::Unknown;
    }
    Kind::Text(language(path, bytes))
}

/// The part of a name behind its last dot, in lower case.
pub(super) fn extension(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map(|(_, end)| end.to_ascii_lowercase()).unwrap_or_default()
}

fn language(path: &str, bytes: &[u8]) -> Language {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    match extension(path).as_str() {
        "md" | "markdown" | "mdx" | "mdc" | "rst" | "adoc" => return Language::Markdown,
        "sh" | "bash" | "zsh" | "ksh" | "command" | "fish" => return Language::Shell,
        "py" | "pyw" | "pyi" | "pth" => return Language::Python,
        "js" | "mjs" | "cjs" | "jsx" => return Language::JavaScript,
        "ts" | "mts" | "cts" | "tsx" => return Language::TypeScript,
        "ps1" | "psm1" | "bat" | "cmd" | "vbs" => return Language::PowerShell,
        "json" | "jsonc" | "json5" | "ipynb" => return Language::Json,
        "yaml" | "yml" | "toml" | "ini" | "cfg" | "conf" | "env" => return Language::Settings,
        "html" | "htm" | "svg" | "xml" | "plist" => return Language::Markup,
        _ => {}
    }
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first = String::from_utf8_lossy(&first[..first.len().min(200)]);
    if first.starts_with("#!") {
        let run = |names: &[&str]| names.iter().any(|name| first.contains(name));
        if run(&["python"]) {
            return Language::Python;
        }
        if run(&["node", "deno", "bun"]) {
            return Language::JavaScript;
        }
        return Language::Shell;
    }
    match name.as_str() {
        "makefile" | "dockerfile" | "justfile" | "procfile" | ".bashrc" | ".envrc" => {
            Language::Shell
        }
        "skill" | "readme" => Language::Markdown,
        _ if !name.contains('.') && is_run(path) => Language::Shell,
        _ => Language::Plain,
    }
}

/// Whether what lies in such a folder is run by its name; what says nothing of itself is then run by the shell.
fn is_run(path: &str) -> bool {
    let folders = path.split('/').rev().skip(1);
    let names = ["hooks", ".husky", ".githooks", "bin", "sbin", "libexec"];
    folders.into_iter().any(|folder| names.iter().any(|name| folder.eq_ignore_ascii_case(name)))
}

/// Whether bytes are text, in UTF-8 or nearly so.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(64 << 10)];
    let odd = head
        .iter()
        .filter(|byte| (**byte < 0x20 && !b"\t\n\r\x0c\x1b\x08".contains(byte)) || **byte == 0x7f)
        .count();
    let broken = head.utf8_chunks().map(|chunk| chunk.invalid().len()).sum::<usize>();
    // Other encodings of letters are text as well.
    odd * 200 <= head.len() && broken * 10 <= head.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bytes() {
        for (path, bytes, expected) in [
            ("a.md", &b"# x"[..], Kind::Text(Language::Markdown)),
            ("a", b"#!/usr/bin/env python3\n", Kind::Text(Language::Python)),
            ("logo.png", b"\x7fELF\x02\x01\x01\0\0\0\0\0\0", Kind::Program("a Linux program")),
            ("notes.txt", b"MZ is a word", Kind::Text(Language::Plain)),
            ("a/.git/hooks/pre-commit", b"echo x\n", Kind::Text(Language::Shell)),
            ("hooks", b"echo x\n", Kind::Text(Language::Plain)),
            ("bin/notes.txt", b"echo x\n", Kind::Text(Language::Plain)),
            ("x.zip", b"PK\x03\x04\x14\0\x01\0\x08\0", Kind::Archive(Format::Zip)),
            ("x.bin", b"\0\x01\x02\x03\x04\x05", Kind::Unknown),
            ("latin.txt", b"caf\xe9 au lait, s'il vous pla\xeet", Kind::Text(Language::Plain)),
        ] {
            assert_eq!(kind(path, bytes), expected, "{path}");
        }
    }
}
