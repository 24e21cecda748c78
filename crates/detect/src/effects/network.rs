//! Programs that reach the network.

use super::args::{Args, after, host_of, shown, split};
use super::walk::Doing;
use super::{Access, Endpoint, NetworkUse, Target};
use crate::shell::Word;

const CURL_SHORT: &str = "oTdFKDcbxXHAeuUmwCrEPQtyYzhB";
const CURL_LONG: &[&str] = &[
    "--output",
    "--upload-file",
    "--data",
    "--data-binary",
    "--data-raw",
    "--data-urlencode",
    "--form",
    "--form-string",
    "--config",
    "--dump-header",
    "--cookie-jar",
    "--cookie",
    "--proxy",
    "--request",
    "--header",
    "--user-agent",
    "--referer",
    "--user",
    "--max-time",
    "--connect-timeout",
    "--write-out",
    "--url",
    "--output-dir",
    "--cacert",
    "--cert",
    "--key",
    "--resolve",
    "--json",
    "--connect-to",
    "--trace",
    "--trace-ascii",
    "--stderr",
    "--netrc-file",
    "--interface",
    "--limit-rate",
    "--retry",
    "--range",
    "--socks5",
    "--socks5-hostname",
    "--preproxy",
    "--dns-servers",
    "--doh-url",
    "--unix-socket",
    "--libcurl",
    "--etag-save",
    "--hsts",
    "--alt-svc",
];
const WGET_LONG: &[&str] = &[
    "--output-document",
    "--directory-prefix",
    "--input-file",
    "--output-file",
    "--append-output",
    "--post-file",
    "--post-data",
    "--body-file",
    "--body-data",
    "--method",
    "--header",
    "--user",
    "--password",
    "--user-agent",
    "--referer",
    "--load-cookies",
    "--save-cookies",
    "--tries",
    "--timeout",
    "--wait",
    "--execute",
    "--base",
    "--level",
    "--accept",
    "--reject",
    "--limit-rate",
    "--ca-certificate",
    "--certificate",
    "--private-key",
    "--use-askpass",
];

pub(super) fn read(doing: &mut Doing<'_>, program: &str, words: &[Word]) -> bool {
    match program {
        "curl" => curl(doing, &split(words, CURL_SHORT, CURL_LONG)),
        "wget" | "wget2" => wget(doing, &split(words, "OPioaUtTwQeBlARD", WGET_LONG)),
        "http" | "https" | "xh" | "xhs" | "httpie" => httpie(doing, words),
        "aria2c" | "axel" | "lftp" | "ftp" | "tftp" | "sftp" | "telnet" | "whois" | "ping"
        | "ping6" | "traceroute" | "nmap" | "dig" | "nslookup" | "host" | "finger" | "rlogin"
        | "rsh" | "mosh" | "w3m" | "lynx" | "links" | "elinks" | "websocat" | "grpcurl"
        | "mosquitto_pub" => {
            let args = split(words, "doPpicWIsmbBFtu", &[]);
            let sends = matches!(program, "ftp" | "lftp" | "sftp" | "tftp" | "mosquitto_pub");
            let usage = if sends { NetworkUse::Send } else { NetworkUse::Connect };
            let word = args.operands.iter().find(|word| !shown(word).starts_with(['+', '@']));
            if let Some(word) = word {
                place(doing, word, usage);
            }
            args.values(&["-o", "-d"]).for_each(|f| doing.file_if(Access::Write, f.clone(), false));
        }
        "nc" | "ncat" | "netcat" | "nc.openbsd" | "nc.traditional" => netcat(doing, words),
        "socat" => socat(doing, words),
        "ssh" | "autossh" | "slogin" | "ssh-copy-id" => {
            let args = split(words, "bcDEeFIiJLlmOopQRSWwB", &[]);
            if let Some(word) = args.operands.first() {
                let host = Some(host_of(shown(word).trim_start_matches("ssh://")));
                doing.network(Endpoint { word: word.clone(), host, usage: NetworkUse::Connect });
            }
            for key in args.values(&["-i", "-F"]) {
                doing.file(Access::Read, key.clone());
            }
            args.values(&["-E"]).for_each(|file| doing.file(Access::Append, file.clone()));
            for option in args.values(&["-o"]) {
                let text = shown(option).to_owned();
                let (name, command) = text.split_once(['=', ' ']).unwrap_or((&text, ""));
                let runs = ["proxycommand", "localcommand", "knownhostscommand", "proxyuseFdpass"];
                if runs.contains(&name.to_ascii_lowercase().as_str()) {
                    doing.script(command);
                }
            }
        }
        "openssl" => openssl(doing, words),
        "npm" | "pnpm" | "yarn" | "bun" | "pip" | "pipx" | "uv" | "cargo" | "gem" | "go"
        | "brew" | "apt" | "apt-get" | "dnf" | "yum" | "apk" | "pacman" | "conda" | "composer"
        | "docker" | "podman" | "gh" | "glab" | "aws" | "gcloud" | "gsutil" | "az" | "rclone"
        | "kubectl" | "helm" | "terraform" | "vercel" | "netlify" | "wrangler" | "flyctl"
        | "heroku" | "ngrok" | "cloudflared" | "s3cmd" | "mc" | "twine" | "huggingface-cli"
        | "ollama" => {
            service(doing, program, words);
        }
        _ => return false,
    }
    true
}

/// A URL or a host.
fn place(doing: &mut Doing<'_>, word: &Word, usage: NetworkUse) {
    let text = shown(word);
    let rest = match text.split_once("://") {
        Some(("file", path)) => {
            doing.file(Access::Read, Word::literal(path));
            return;
        }
        Some((_, rest)) => rest,
        None => text,
    };
    let host = if word.text.is_some() || text.contains("://") { known_host(rest) } else { None };
    doing.network(Endpoint { word: word.clone(), host, usage });
}

/// The host, if none of it is open.
fn known_host(text: &str) -> Option<String> {
    let host = host_of(text);
    (!host.is_empty() && !host.contains(['*', '?', '\\'])).then_some(host)
}

fn curl(doing: &mut Doing<'_>, args: &Args) {
    let data = ["-d", "--data", "--data-binary", "--data-urlencode", "--json", "--data-raw"];
    let form = ["-F", "--form"];
    let mut sends = args.has(&data) || args.has(&form) || args.has(&["--form-string"]);
    for value in args.values(&data).chain(args.values(&form)) {
        let text = shown(value);
        let file = match text.split_once(['@', '<']) {
            Some((before, _))
                if before.is_empty() || before.ends_with('=') || !text.contains('=') =>
            {
                after(value, &text[..before.len() + 1])
            }
            _ => None,
        };
        if let Some(file) = file {
            let path = shown(&file).split(';').next().unwrap_or_default().to_owned();
            let known = file.text.is_some() && !file.glob;
            doing.file(Access::Read, if known { Word::literal(path) } else { file });
        }
    }
    for file in args.values(&["-T", "--upload-file"]) {
        sends = true;
        doing.file(Access::Read, file.clone());
    }
    let sending = |verb: &Word| matches!(shown(verb), "POST" | "PUT" | "PATCH" | "DELETE");
    sends |= args.values(&["-X", "--request"]).any(sending);
    let usage = if sends { NetworkUse::Send } else { NetworkUse::Fetch };
    let urls: Vec<Word> = args.operands.iter().chain(args.values(&["--url"])).cloned().collect();
    for url in &urls {
        place(doing, url, usage);
    }
    for proxy in
        args.values(&["-x", "--proxy", "--socks5", "--socks5-hostname", "--preproxy", "--doh-url"])
    {
        place(doing, proxy, NetworkUse::Connect);
    }
    let read = ["-K", "--config", "-b", "--cookie", "--cert", "--key", "--cacert", "--netrc-file"];
    for file in args.values(&read) {
        doing.file_if(Access::Read, file.clone(), false);
    }
    let folder = args.value(&["--output-dir"]);
    doing.inside(folder, |doing| {
        for file in args.values(&["-o", "--output"]) {
            doing.file(Access::Write, file.clone());
        }
        if args.has(&["-O", "--remote-name", "--remote-name-all"]) {
            urls.iter().for_each(|url| doing.file(Access::Write, last_name(url)));
        }
        if args.has(&["-J", "--remote-header-name"]) {
            // The server chooses the name.
            doing.file_if(
                Access::WriteTree,
                Target { tree: true, ..Word::literal(".").into() },
                false,
            );
        }
    });
    let written = [
        "-D",
        "--dump-header",
        "-c",
        "--cookie-jar",
        "--trace",
        "--trace-ascii",
        "--stderr",
        "--libcurl",
        "--etag-save",
        "--hsts",
        "--alt-svc",
    ];
    for file in args.values(&written) {
        doing.file(Access::Write, file.clone());
    }
}

/// The last part of a URL's path.
fn last_name(url: &Word) -> Word {
    let Some(text) = url.text.as_deref() else { return Word::unknown(url.raw.as_str()) };
    let path = text.split(['?', '#']).next().unwrap_or_default();
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    Word::literal(if name.contains(':') || name.is_empty() { "index.html" } else { name })
}

fn wget(doing: &mut Doing<'_>, args: &Args) {
    let sends = args.has(&["--post-file", "--post-data", "--body-file", "--body-data"]);
    let usage = if sends { NetworkUse::Send } else { NetworkUse::Fetch };
    for url in &args.operands {
        place(doing, url, usage);
    }
    let read = ["-i", "--input-file", "--post-file", "--body-file", "--load-cookies"];
    args.values(&read).for_each(|file| doing.file(Access::Read, file.clone()));
    let written = ["-O", "--output-document", "-o", "--output-file", "--save-cookies"];
    args.values(&written).for_each(|file| doing.file(Access::Write, file.clone()));
    args.values(&["-a", "--append-output"])
        .for_each(|file| doing.file(Access::Append, file.clone()));
    args.values(&["--use-askpass"]).for_each(|program| doing.script(shown(program)));
    if args.has(&["-O", "--output-document", "--spider"]) {
        return;
    }
    doing.inside(args.value(&["-P", "--directory-prefix"]), |doing| {
        if args.has(&["-r", "--recursive", "-m", "--mirror", "--content-disposition"]) {
            doing.file(Access::WriteTree, Target { tree: true, ..Word::literal(".").into() });
        }
        args.operands.iter().for_each(|url| doing.file(Access::Write, last_name(url)));
    });
}

fn httpie(doing: &mut Doing<'_>, words: &[Word]) {
    let args = split(words, "oaps", &["--output", "--auth", "--session", "--body", "--raw"]);
    args.values(&["-o", "--output"]).for_each(|file| doing.file(Access::Write, file.clone()));
    let verbs = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
    let mut operands = args.operands.iter().filter(|word| !verbs.contains(&shown(word)));
    let Some(url) = operands.next() else { return };
    let items: Vec<&Word> = operands.collect();
    for item in &items {
        if let Some((before, _)) = shown(item).split_once('@')
            && let Some(file) = after(item, &format!("{before}@"))
        {
            doing.file(Access::Read, file);
        }
    }
    place(doing, url, if items.is_empty() { NetworkUse::Fetch } else { NetworkUse::Send });
}

fn netcat(doing: &mut Doing<'_>, words: &[Word]) {
    let args =
        split(words, "pswqiIOTXxecogGMmPV", &["--exec", "--sh-exec", "--lua-exec", "--output"]);
    for program in args.values(&["-e", "-c", "--exec", "--sh-exec", "--lua-exec"]) {
        doing.script(shown(program));
    }
    args.values(&["-o", "--output"]).for_each(|file| doing.file(Access::Write, file.clone()));
    let listens = args.has(&["-l", "--listen"]);
    let word = args.operands.first().cloned().unwrap_or_else(|| Word::literal("0.0.0.0"));
    let host = known_host(shown(&word)).filter(|_| !listens);
    let usage = if listens { NetworkUse::Listen } else { NetworkUse::Send };
    doing.network(Endpoint { word, host, usage });
}

fn socat(doing: &mut Doing<'_>, words: &[Word]) {
    for word in &split(words, "", &[]).operands {
        let text = shown(word).to_owned();
        let (kind, rest) = text.split_once(':').unwrap_or((&text, ""));
        let first = rest.split(',').next().unwrap_or_default();
        match kind.to_ascii_lowercase().as_str() {
            "exec" | "system" | "shell" => doing.script(first),
            "open" | "file" | "create" | "gopen" | "pipe" => {
                doing.file_if(Access::Write, Word::literal(first), false);
            }
            kind if kind.contains("listen") => {
                let usage = NetworkUse::Listen;
                doing.network(Endpoint { word: word.clone(), host: None, usage });
            }
            "stdio" | "-" | "pty" | "stdin" | "stdout" | "readline" => {}
            _ => {
                let (word, host) = (word.clone(), known_host(first));
                doing.network(Endpoint { word, host, usage: NetworkUse::Connect });
            }
        }
    }
}

fn openssl(doing: &mut Doing<'_>, words: &[Word]) {
    let mut pairs = words.iter().zip(words.iter().skip(1));
    for (option, value) in pairs.by_ref() {
        match shown(option) {
            "-out" | "-keyout" | "-writerand" => doing.file(Access::Write, value.clone()),
            "-in" | "-inkey" | "-key" | "-config" | "-CAfile" => {
                doing.file(Access::Read, value.clone())
            }
            "-connect" | "-proxy" => place(doing, value, NetworkUse::Connect),
            _ => {}
        }
    }
}

/// Tools that talk to a service of their own.
fn service(doing: &mut Doing<'_>, program: &str, words: &[Word]) {
    let is = |texts: &[&str]| words.iter().any(|word| texts.contains(&shown(word)));
    let sends = is(&[
        "publish", "push", "upload", "deploy", "cp", "sync", "copy", "create", "put", "mv",
        "release",
    ]);
    let fetches = is(&[
        "install", "add", "i", "ci", "update", "upgrade", "fetch", "pull", "get", "download",
        "run", "exec", "clone", "search", "build", "x", "dlx", "api", "view",
    ]);
    let listens = matches!(program, "ngrok" | "cloudflared");
    if !(sends || fetches || listens) {
        return;
    }
    let usage = match (listens, sends) {
        (true, _) => NetworkUse::Listen,
        (_, true) => NetworkUse::Send,
        _ => NetworkUse::Fetch,
    };
    for word in words {
        if shown(word).contains("://") {
            place(doing, word, usage);
        }
    }
    doing.network(Endpoint { word: Word::literal(program), host: None, usage });
}
