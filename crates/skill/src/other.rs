//! Scripts in languages that are not parsed: Ruby, Perl, PHP, Lua and their like. What one statement does with
//! what it fetched, decoded or was given is seen by the names of the functions in it.

use super::facts::{Act, Seen};

/// Endings of such scripts.
const ENDINGS: &[&str] =
    &["rb", "pl", "pm", "php", "phtml", "lua", "tcl", "groovy", "r", "jl", "ex", "exs", "awk"];

/// Whether a script of this ending is read here.
pub(super) fn reads(ending: &str) -> bool {
    ENDINGS.contains(&ending)
}

/// Runs a text as code.
const EVALUATES: &[&str] = &[
    "eval(",
    "eval ",
    "eval{",
    "instance_eval",
    "class_eval",
    "module_eval",
    "loadstring(",
    "load(",
    "dostring",
    "create_function(",
    "assert($",
    "preg_replace('/.*/e",
    "code.eval_string",
    "interp eval",
];
/// Runs a command.
const RUNS: &[&str] = &[
    "system(",
    "system ",
    "exec(",
    "exec ",
    "shell_exec(",
    "passthru(",
    "popen(",
    "proc_open(",
    "os.execute(",
    "io.popen(",
    "qx",
    "`",
    "%x",
    "open3",
    "kernel.spawn",
];
const FETCHES: &[&str] = &[
    "uri.open",
    "open-uri",
    "open(\"http",
    "open('http",
    "net::http",
    "httparty",
    "faraday",
    "lwp::",
    "http::tiny",
    "file_get_contents(\"http",
    "file_get_contents('http",
    "file_get_contents($",
    "curl_exec",
    "socket.http",
    "http.request",
    "get('http",
    "get(\"http",
    "download.file(",
    "source(\"http",
];
const DECODES: &[&str] = &[
    "base64_decode",
    "decode64",
    "decode_base64",
    "gzinflate",
    "gzuncompress",
    "str_rot13",
    "zlib::inflate",
    "hex2bin",
    "unpack(",
    "pack(",
    "mime.unb64",
    "unhex",
    ".tr('a-za-z",
    "base64.decode",
];
const GIVEN: &[&str] =
    &["$_get", "$_post", "$_request", "$_cookie", "$_server['http", "php://input", "params["];
const SOCKETS: &[&str] =
    &["socket(", "tcpsocket", "fsockopen", "io::socket", "socket.tcp", "pfsockopen"];
const SHELLS: &[&str] = &["/bin/sh", "/bin/bash", "cmd.exe", "\"sh\"", "'sh'", "powershell"];

/// What a script does.
pub(super) fn read(text: &str) -> Vec<Seen> {
    let lower = text.to_ascii_lowercase();
    let mut out = Vec::new();
    let has = |part: &str, names: &[&str]| names.iter().any(|name| part.contains(name));
    // What was put into a variable counts where the variable is used.
    let mut tainted: Vec<(String, bool)> = Vec::new();
    let mut start = 0;
    for line in lower.split_inclusive(['\n', ';']) {
        let at = start..start + line.trim_end().len();
        start += line.len();
        let comment = line.trim_start();
        if comment.starts_with('#') || comment.starts_with("//") || comment.starts_with("--") {
            continue;
        }
        let fetched =
            has(line, FETCHES) || tainted.iter().any(|(name, web)| *web && line.contains(name));
        let decoded =
            has(line, DECODES) || tainted.iter().any(|(name, web)| !*web && line.contains(name));
        let (code, command) = (has(line, EVALUATES), has(line, RUNS));
        if (code || command) && fetched {
            out.push(Seen::new(Act::FetchAndRun { url: None }, at.clone()));
        } else if (code || command) && has(line, GIVEN) {
            out.push(Seen::new(Act::RunInput, at.clone()));
        } else if code && decoded {
            out.push(Seen::new(Act::DecodeAndRun { text: None }, at.clone()));
        }
        if let Some((name, _)) = line.split_once('=')
            && (fetched || decoded)
            && tainted.len() < 200
        {
            let name = name.trim().trim_start_matches("local ").trim_start_matches("my ");
            let plain = name.len() >= 2 || name.starts_with('$');
            let word = |sign: char| sign.is_ascii_alphanumeric() || "_$@.".contains(sign);
            if plain && name.chars().all(word) {
                tainted.push((name.to_owned(), fetched));
            }
        }
    }
    if has(&lower, SOCKETS)
        && has(&lower, SHELLS)
        && (lower.contains("exec") || lower.contains("popen") || lower.contains("system"))
    {
        out.push(Seen::new(Act::ReverseShell, 0..0));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements() {
        let acts = |text: &str| read(text).into_iter().map(|seen| seen.act).collect::<Vec<_>>();
        let fetched = [Act::FetchAndRun { url: None }];
        assert_eq!(acts("eval(URI.open(u).read)"), fetched);
        assert_eq!(acts("code = Net::HTTP.get(u)\ninstance_eval(code)\n"), fetched);
        assert_eq!(acts("<?php eval(base64_decode($x)); ?>"), [Act::DecodeAndRun { text: None }]);
        assert_eq!(acts("system($_GET['c']);"), [Act::RunInput]);
        assert_eq!(acts("s = TCPSocket.new('a', 1)\nexec '/bin/sh -i'\n"), [Act::ReverseShell]);
        assert!(acts("puts Net::HTTP.get(u)\nsystem('ls')\n# eval(URI.open(u))\n").is_empty());
        assert!(acts("data = Base64.decode64(x)\nputs data\n").is_empty());
    }
}
