//! Names that matter: files of credentials, files that say what an agent does, hosts.

use wardkeep_detect::urls::{AddressClass, Host, Service, classify_address, parse_url, service_of};

/// Parts of paths of files that hold credentials, and what they are of.
const CREDENTIALS: &[(&str, &str)] = &[
    (".ssh/id_", "ssh"),
    (".ssh/*", "ssh"),
    (".aws/credentials", "aws"),
    (".aws/config", "aws"),
    ("application_default_credentials", "gcloud"),
    (".config/gcloud", "gcloud"),
    (".azure/", "azure"),
    (".kube/config", "kube"),
    (".docker/config.json", "docker"),
    (".netrc", "netrc"),
    (".npmrc", "npm"),
    (".pypirc", "pypi"),
    (".git-credentials", "git"),
    (".config/gh/hosts", "gh"),
    (".gnupg", "gpg"),
    (".vault-token", "vault"),
    ("login data", "browser"),
    ("cookies.sqlite", "browser"),
    ("default/cookies", "browser"),
    ("network/cookies", "browser"),
    ("key4.db", "browser"),
    ("logins.json", "browser"),
    ("local extension settings", "browser"),
    ("user data/default", "browser"),
    ("keychain", "keychain"),
    ("wallet.dat", "wallet"),
    (".electrum", "wallet"),
    ("exodus/exodus.wallet", "wallet"),
    ("ethereum/keystore", "wallet"),
    ("solana/id.json", "solana"),
    ("nkbihfbeogaeaoehlefnkodbefgpgknn", "wallet"),
    ("/etc/shadow", "system"),
    (".bash_history", "history"),
    (".zsh_history", "history"),
    ("claude_desktop_config", "agent"),
    (".claude/.credentials", "agent"),
    (".claude.json", "agent"),
    (".cursor/mcp.json", "agent"),
    (".clawdbot/.env", "agent"),
    (".openclaw/.env", "agent"),
    (".moltbot/.env", "agent"),
    (".codex/auth.json", "agent"),
    ("auth-profiles.json", "agent"),
];

/// What a path holds credentials of, if it does.
pub(super) fn credential(path: &str) -> Option<&'static str> {
    let path = path.trim().trim_matches(['"', '\'', '`']).to_ascii_lowercase().replace('\\', "/");
    if path.len() > 400 || path.ends_with(".pub") || path.contains("example") {
        return None;
    }
    let whole = ["~/.ssh", "~/.ssh/", "$home/.ssh", "~/.aws", "~/.gnupg", "~/.env", "/root/.ssh"];
    if whole.contains(&path.as_str()) {
        return Some("home");
    }
    CREDENTIALS.iter().find(|(part, _)| path.contains(part)).map(|(_, class)| *class)
}

/// Files that an agent takes its instructions from.
const MEMORY: &[&str] = &[
    "soul.md",
    "agents.md",
    "identity.md",
    "memory.md",
    "heartbeat.md",
    "tools.md",
    "user.md",
    "claude.md",
    "gemini.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    "copilot-instructions.md",
    "bootstrap.md",
];

/// Files that run by themselves.
const STARTED: &[(&str, &str)] = &[
    (".bashrc", "a shell's start file"),
    (".zshrc", "a shell's start file"),
    (".bash_profile", "a shell's start file"),
    (".zprofile", "a shell's start file"),
    ("/.profile", "a shell's start file"),
    ("launchagents/", "a macOS agent"),
    ("launchdaemons/", "a macOS daemon"),
    ("/etc/cron", "the schedule"),
    ("/var/spool/cron", "the schedule"),
    ("systemd/user", "a service"),
    ("/etc/systemd", "a service"),
    (".config/autostart", "a desktop's start folder"),
    ("start menu/programs/startup", "a start folder"),
    ("authorized_keys", "who may log in"),
    (".git/hooks/", "a hook of git"),
    ("/etc/ld.so.preload", "what every program loads"),
    ("sitecustomize.py", "what every Python loads"),
    (".claude/settings", "an agent's settings"),
    (".openclaw/openclaw.json", "an agent's settings"),
    (".clawdbot/clawdbot.json", "an agent's settings"),
    ("/etc/sudoers", "who may become root"),
];

/// What writing a file changes for good, if it does.
pub(super) fn lasting(path: &str) -> Option<&'static str> {
    let path = path.trim().trim_matches(['"', '\'']).to_ascii_lowercase().replace('\\', "/");
    if let Some((_, what)) = STARTED.iter().find(|(part, _)| path.contains(part)) {
        return Some(what);
    }
    let name = path.rsplit('/').next().unwrap_or(&path);
    MEMORY.contains(&name).then_some("the agent's memory")
}

/// Whether a word names a file that an agent takes its instructions from.
pub(super) fn is_memory(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word).to_ascii_lowercase();
    MEMORY.contains(&name.as_str())
}

/// How far a host can be trusted with something that is run, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Trust {
    /// This machine or a private network.
    Local,
    /// A well-known place to install from.
    Known,
    /// Any other.
    Unknown,
    /// Anybody can put something there, or nobody knows who did.
    Anonymous,
}

/// Places that well-known software is installed from.
const INSTALLERS: &[&str] = &[
    "sh.rustup.rs",
    "rustup.rs",
    "astral.sh",
    "brew.sh",
    "get.docker.com",
    "deb.nodesource.com",
    "nodejs.org",
    "python.org",
    "foundry.paradigm.xyz",
    "release.solana.com",
    "release.anza.xyz",
    "bun.sh",
    "deno.land",
    "deno.com",
    "get.pnpm.io",
    "install.python-poetry.org",
    "fly.io",
    "tailscale.com",
    "ollama.com",
    "ollama.ai",
    "claude.ai",
    "opencode.ai",
    "nixos.org",
    "starship.rs",
    "volta.sh",
    "cli.github.com",
    "sdk.cloud.google.com",
    "awscli.amazonaws.com",
    "aka.ms",
    "get.helm.sh",
    "get.k3s.io",
    "bootstrap.pypa.io",
    "pyenv.run",
    "get.sdkman.io",
    "mise.run",
    "mise.jdx.dev",
    "vite.plus",
    "docs.anthropic.com",
    "microsoft.com",
    "apple.com",
    "google.com",
    "googleapis.com",
    "huggingface.co",
    "groq.com",
    "mistral.ai",
    "deepseek.com",
    "openrouter.ai",
    "openai.com",
    "anthropic.com",
    "docker.com",
    "debian.org",
    "ubuntu.com",
    "pypi.org",
    "npmjs.com",
    "npmjs.org",
    "crates.io",
    "golang.org",
    "go.dev",
    "rubygems.org",
    "jetbrains.com",
    "cloudflare.com",
    "vercel.com",
    "supabase.com",
    "stripe.com",
    "hashicorp.com",
    "cursor.com",
    "raw.githubusercontent.com/homebrew",
    "raw.githubusercontent.com/nvm-sh",
    "raw.githubusercontent.com/foundry-rs",
    "raw.githubusercontent.com/astral-sh",
    "raw.githubusercontent.com/helm",
    "raw.githubusercontent.com/ohmyzsh",
];

/// Where anybody can publish a text or a file under no name.
const ANONYMOUS: &[&str] = &[
    "glot.io",
    "codepad.org",
    "ideone.com",
    "pastecode.io",
    "paste.c-net.org",
    "codeshare.io",
    "0bin.net",
    "zerobin.net",
    "hastebin.skyra.pw",
    "mega.nz",
    "mediafire.com",
    "anonfile.com",
    "sendspace.com",
    "zippyshare.com",
    "workupload.com",
    "4shared.com",
    "uploadhaven.com",
    "cdn.discordapp.com",
    "files.catbox.moe",
    "litterbox.catbox.moe",
    "send.cm",
    "krakenfiles.com",
    "limewire.com",
    "dropmefiles.com",
    "rentry.la",
    "paste.gg",
    "pastelink.net",
    "jsonbin.io",
    "hackmd.io",
    "notes.io",
    "write.as",
    "txt.fyi",
    "snippet.host",
];

fn below(host: &str, name: &str) -> bool {
    host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// How far a URL can be trusted with something that is run.
pub(super) fn trust(url: &str) -> Trust {
    let Some(parsed) = parse_url(url.trim_matches(['"', '\'', '<', '>', '`'])) else {
        return Trust::Unknown;
    };
    let address = match &parsed.host {
        Host::Ipv4(address) => Some((*address).into()),
        Host::Ipv6(address) => Some((*address).into()),
        _ => None,
    };
    if let Some(address) = address {
        return match classify_address(address) {
            AddressClass::Loopback | AddressClass::Private | AddressClass::LinkLocal => {
                Trust::Local
            }
            _ => Trust::Anonymous,
        };
    }
    let Host::Domain { ascii, .. } = &parsed.host else { return Trust::Unknown };
    let host = ascii.as_str();
    if host == "localhost"
        || [".local", ".localhost", ".internal", ".lan"].iter().any(|end| host.ends_with(end))
    {
        return Trust::Local;
    }
    match service_of(host) {
        Some(
            Service::Callback
            | Service::Paste
            | Service::Upload
            | Service::Tunnel
            | Service::Shortener
            | Service::Rebinding,
        ) => {
            return Trust::Anonymous;
        }
        None => {}
    }
    if ANONYMOUS.iter().any(|name| below(host, name))
        || parsed.has_userinfo
        || host.contains("xn--")
    {
        return Trust::Anonymous;
    }
    let place = format!("{host}{}", parsed.path.to_ascii_lowercase());
    let known = INSTALLERS.iter().any(|name| match name.split_once('/') {
        Some(_) => place.starts_with(name),
        None => below(host, name),
    });
    if known { Trust::Known } else { Trust::Unknown }
}

/// Whether a host only shows its owner what it is sent, or leads to somebody's own machine.
pub(super) fn is_drop(url: &str) -> bool {
    let host = parse_url(url).and_then(|parsed| match parsed.host {
        Host::Domain { ascii, .. } => Some(ascii),
        _ => None,
    });
    host.is_some_and(|host| {
        matches!(service_of(&host), Some(Service::Callback | Service::Tunnel | Service::Upload))
    })
}

/// The host of a URL, if it has one.
pub(super) fn host(url: &str) -> Option<String> {
    match parse_url(url)?.host {
        Host::Domain { ascii, .. } => Some(ascii),
        Host::Ipv4(address) => Some(address.to_string()),
        Host::Ipv6(address) => Some(address.to_string()),
        Host::None => None,
    }
}

/// Endings of files that are run or unpacked by opening them.
const RUNNABLE: &[&str] = &[
    "zip", "rar", "7z", "exe", "msi", "dmg", "pkg", "iso", "scr", "bat", "cmd", "ps1", "vbs",
    "jar", "appimage", "deb", "rpm", "sh", "command", "tgz", "gz", "xz", "bz2", "tar", "img",
    "apk", "bin", "run", "hta", "lnk", "app",
];

/// Whether a URL leads to something that is run, unpacked or installed.
pub(super) fn runnable(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or(url).trim_end_matches(['/', ')', '.']);
    let last = path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let ending = last.rsplit_once('.').is_some_and(|(_, ending)| RUNNABLE.contains(&ending));
    (ending && path.matches('/').count() > 2)
        || path.contains("/releases/download/")
        || path.contains("/releases/latest/download")
}

/// Whether a name of a variable says that it holds a secret.
pub(super) fn secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    [
        "KEY",
        "SECRET",
        "TOKEN",
        "PASSWORD",
        "PASSWD",
        "CREDENTIAL",
        "AUTH",
        "PRIVATE",
        "MNEMONIC",
        "SEED_PHRASE",
    ]
    .iter()
    .any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_matter() {
        assert_eq!(credential("~/.ssh/id_ed25519"), Some("ssh"));
        assert_eq!(credential("~/.ssh/id_rsa.pub"), None);
        assert_eq!(
            credential(
                "C:\\Users\\x\\AppData\\Local\\Google\\Chrome\\User Data\\Default\\Login Data"
            ),
            Some("browser")
        );
        assert_eq!(credential("notes.md"), None);
        assert_eq!(lasting("~/.openclaw/workspace/SOUL.md"), Some("the agent's memory"));
        assert_eq!(lasting("~/.zshrc"), Some("a shell's start file"));
        assert_eq!(lasting("README.md"), None);
    }

    #[test]
    fn hosts() {
        assert_eq!(trust("https://sh.rustup.rs"), Trust::Known);
        assert_eq!(trust("http://93.184.216.34/x"), Trust::Anonymous);
        assert_eq!(trust("http://127.0.0.1:8080/"), Trust::Local);
        assert_eq!(trust("https://pastebin.com/raw/x"), Trust::Anonymous);
        assert_eq!(trust("https://tools.example/x.sh"), Trust::Unknown);
        assert_eq!(trust("https://evilrustup.rs"), Trust::Unknown);
        assert!(runnable("https://github.com/a/b/releases/download/v1/tool"));
        assert!(runnable("https://a.example/x/setup.exe?y=1") && !runnable("https://example.zip"));
        assert!(is_drop("https://abc.ngrok-free.app/x") && !is_drop("https://api.example.com"));
    }
}
