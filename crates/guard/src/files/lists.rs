//! Which files hold secrets unless the owner says more.

/// Memory, environment and passwords of the machine: no exception takes these away.
pub(super) const ALWAYS: &[&str] = &[
    "proc/*/environ",
    "proc/*/task/*/environ",
    "proc/*/mem",
    "proc/*/task/*/mem",
    "proc/kcore",
    "/dev/mem",
    "/dev/kmem",
    "/dev/port",
    "etc/shadow*",
    "etc/gshadow*",
    "etc/master.passwd",
    "etc/security/opasswd",
    "etc/ssh/ssh_host_*_key",
];

/// Only the owner reads these.
pub(super) const DENIED: &[&str] = &[
    ".env",
    ".env.*",
    ".envrc",
    "*.pem",
    "*.key",
    "*.ppk",
    "*.p8",
    "*.p12",
    "*.pfx",
    "*.jks",
    "*.keystore",
    "*.kdbx",
    "*.keychain-db",
    "*.keytab",
    "*.secret",
    "id_rsa*",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "*_rsa",
    "*_ecdsa",
    "*_ed25519",
    "credentials",
    "credentials.json",
    "credentials.db",
    "credentials.tfrc.json",
    ".credentials.json",
    "application_default_credentials.json",
    "access_tokens.db",
    "service-account*.json",
    "service_account*.json",
    "client_secret*.json",
    ".netrc",
    "_netrc",
    ".pgpass",
    ".my.cnf",
    ".htpasswd",
    ".git-credentials",
    ".vault-token",
    ".dockercfg",
    ".dockerconfigjson",
    ".kube/config",
    "kubeconfig",
    "*.kubeconfig",
    "etc/kubernetes/*.conf",
    ".cargo/credentials.toml",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".gnupg/private-keys-v1.d/**",
    ".gnupg/secring.gpg",
    ".local/share/keyrings/**",
    "Library/Keychains/**",
    "run/secrets/**",
    "wallet.dat",
    "Login Data",
    "logins.json",
    "key4.db",
];

/// What is read from these may hold secrets.
pub(super) const TAINTED: &[&str] = &[
    ".aws/**",
    ".ssh/**",
    ".gnupg/**",
    ".azure/**",
    ".kube/**",
    ".config/gcloud/**",
    ".config/gh/hosts.yml",
    ".config/rclone/**",
    ".docker/config.json",
    ".password-store/**",
    ".config/BraveSoftware/**",
    ".config/chromium/**",
    ".config/google-chrome/**",
    ".mozilla/firefox/**",
    "Library/Application Support/Firefox/**",
    "Library/Application Support/Google/Chrome/**",
    ".clawdbot/**",
    ".npmrc",
    ".pypirc",
    ".yarnrc.yml",
    ".s3cfg",
    ".boto",
    "*.env",
    "*.tfvars",
    "*.tfstate",
    ".*_history",
    "cookies.sqlite",
    "password.md",
    "passwords.md",
    "tokens.md",
    "secret.json",
    "secret.toml",
    "secret.y*ml",
    "secrets.json",
    "secrets.toml",
    "secrets.y*ml",
    "wp-config.php",
    "proc/*/cmdline",
];

/// Words that taint a file by its name, wherever they stand in it. Code and pictures are named after
/// what they deal with, so they are left out; see [`CODE`].
pub(super) const WORDS: &[&str] = &["token", "password", "passwd"];

/// Exceptions to all of the above but [`ALWAYS`].
pub(super) const EXCEPTIONS: &[&str] = &[
    ".env.example",
    ".env.*.example",
    ".env.sample",
    ".env.*.sample",
    ".env.template",
    ".env.*.template",
    ".env.dist",
    ".env.schema",
    "*.pub",
    "cacert.pem",
    "/etc/ssl/certs/**",
    "/etc/ca-certificates/**",
    "/etc/pki/ca-trust/**",
    "/usr/share/ca-certificates/**",
    "/usr/local/share/ca-certificates/**",
];

/// Endings of files that hold code, what is built from it, prose about it, or pictures, and none of which a [`WORDS`] taints.
pub(super) const CODE: &[&str] = &[
    "a", "adb", "adoc", "asm", "avif", "bash", "c", "cc", "cjs", "class", "clj", "cljs", "cmake",
    "coffee", "cpp", "cs", "csproj", "css", "cts", "cu", "cxx", "d", "dart", "diff", "dll",
    "dylib", "ejs", "el", "elm", "erb", "erl", "ex", "exe", "exs", "f90", "fish", "fs", "fsx",
    "gif", "go", "gradle", "graphql", "groovy", "h", "haml", "hbs", "hh", "hpp", "hrl", "hs",
    "htm", "html", "hxx", "ico", "inc", "ipynb", "jade", "jar", "java", "jl", "jpeg", "jpg", "js",
    "jsx", "kt", "kts", "less", "lisp", "lua", "m", "map", "md", "mdx", "mjs", "ml", "mli", "mm",
    "mts", "nim", "nix", "o", "pas", "patch", "php", "pl", "pm", "png", "proto", "ps1", "pug",
    "py", "pyc", "pyi", "pyx", "qml", "r", "rb", "rlib", "rmeta", "rs", "rst", "s", "sass",
    "scala", "scm", "scss", "sh", "snap", "so", "sol", "sql", "styl", "sv", "svelte", "svg",
    "swift", "tcl", "tex", "tf", "thrift", "ts", "tsx", "twig", "v", "vb", "vhd", "vim", "vue",
    "wasm", "webp", "xaml", "xib", "zig", "zsh",
];

/// Parts of names that hold a [`WORDS`] and mean something else: those of texts and of designs.
pub(super) const OTHER_TOKENS: &[&str] =
    &["tokeniz", "tokenis", "special_tokens", "added_tokens", "design-token", "design_token"];

/// Endings that a copy of a file gets.
pub(super) const COPIES: &[&str] =
    &["~", ".bak", ".backup", ".copy", ".old", ".orig", ".rej", ".save", ".swo", ".swp", ".tmp"];
