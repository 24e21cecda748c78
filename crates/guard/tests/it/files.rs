//! Reading files: what seed 002 lists under 2g, and what the reference gets wrong.

use std::path::Path;

use proptest::prelude::*;
use wardkeep_detect::finding::{Category, Channel};
use wardkeep_detect::scan::Detector;
use wardkeep_guard::files::{FilesConfig, SensitiveFiles, Sensitivity, sensitivity};

use crate::processor;

fn of(path: &str) -> Sensitivity {
    sensitivity(Path::new(path), Some(Path::new("/home/u")), &SensitiveFiles::default())
}

/// 2g: denied patterns block untrusted reads. Here: they are hit; the rule is `fs-deny-sensitive-untrusted`.
#[test]
fn denied_patterns_are_hit() {
    for path in [
        "/w/.env",
        "/w/.env.local",
        "/w/.env.production",
        "/w/certs/prod.pem",
        "/w/tls.key",
        "/home/u/.ssh/id_rsa",
        "/home/u/.ssh/id_rsa_work",
        "/home/u/.ssh/id_ed25519",
        "/home/u/.ssh/id_ecdsa",
        "/home/u/.aws/credentials",
        "/w/app.secret",
        "/home/u/.netrc",
        "/home/u/.pgpass",
        "/home/u/.git-credentials",
        "/w/service-account.json",
        "/w/service-account-prod.json",
        "/home/u/.kube/config",
        "/root/.kube/config",
        "/etc/shadow",
        "/etc/shadow-",
        "/mnt/host/etc/shadow",
        "/proc/1/environ",
        "/proc/self/environ",
        "/proc/4242/task/4243/environ",
        "/proc/self/mem",
        "/run/secrets/db",
        "/var/run/secrets/kubernetes.io/serviceaccount/token",
    ] {
        assert_eq!(of(path), Sensitivity::Denied, "{path}");
    }
}

/// 2g: taint propagation on secret-containing reads. Here: these patterns are hit; the rule is `fs-taint-secrets`.
#[test]
fn tainted_patterns_are_hit() {
    for path in [
        "/home/u/.aws/config",
        "/home/u/.aws/sso/cache/abc.json",
        "/home/u/.ssh/config",
        "/home/u/.ssh/known_hosts",
        "/home/u/.gnupg/gpg.conf",
        "/home/u/.docker/config.json",
        "/w/my_token.txt",
        "/w/token",
        "/w/passwords.csv",
        "/w/passwords.md",
        "/w/db-password",
        "/home/u/.npmrc",
        "/home/u/.pypirc",
        "/home/u/.bash_history",
        "/w/prod.env",
        "/home/u/.config/google-chrome/Default/Cookies",
    ] {
        assert_eq!(of(path), Sensitivity::Tainted, "{path}");
    }
}

#[test]
fn daily_work_is_not_tainted() {
    for path in [
        "/w/.env.example",
        "/w/.env.sample",
        "/w/.env.template",
        "/w/.env.production.example",
        "/home/u/.ssh/id_rsa.pub",
        "/home/u/.ssh/id_ed25519.pub",
        "/w/src/tokenizer.rs",
        "/w/src/token.ts",
        "/w/src/token_stream.cpp",
        "/w/app/password_reset.py",
        "/w/app/PasswordField.tsx",
        "/w/model/tokenizer.json",
        "/w/model/tokenizer_config.json",
        "/w/model/special_tokens_map.json",
        "/w/design-tokens.json",
        "/w/docs/token-auth.md",
        "/w/tokenizer/vocab.txt",
        "/w/src/credentials/mod.rs",
        "/w/src/credentials.rs",
        "/w/src/environ.c",
        "/w/config.json",
        "/w/package.json",
        "/w/monkey.txt",
        "/w/keys.rs",
        "/w/README.md",
        "/w/.github/workflows/ci.yml",
        "/etc/ssl/certs/ISRG_Root_X1.pem",
        "/usr/lib/python3/site-packages/certifi/cacert.pem",
        "/home/u/.ssh",
        "/home/u",
        "/",
    ] {
        assert_eq!(of(path), Sensitivity::None, "{path}");
    }
}

/// 2g: glob matching edge cases (path traversal, symlinks). Links are resolved by whoever asks, so that a
/// link is asked about by what it leads to.
#[test]
fn glob_edge_cases() {
    for path in [
        "/w/docs/../.env",
        "/w/./.env",
        "/w//.env",
        "/w/.ENV",
        "/w/.Env.Local",
        "/w/ID_RSA",
        "/w/PROD.PEM",
        "/w/．ｅｎｖ",
        "/w/.env ",
        "/w/.env.",
        "/w/.e\u{200b}nv",
        "/w/.env::$DATA",
        "/w/.env~",
        "/w/.env.swp",
        "/w/prod.pem.bak",
        "relative/.env",
        ".env",
    ] {
        assert_eq!(of(path), Sensitivity::Denied, "{path:?}");
    }
    for path in
        ["/w/xenv", "/w/.environment.md", "/w/a.pemx", "/w/pem", "/w/.env/readme.md", "/w/key"]
    {
        assert_eq!(of(path), Sensitivity::None, "{path}");
    }
    #[cfg(unix)]
    {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt as _;
        let path = Path::new(OsStr::from_bytes(b"/w/\xff\xfe/.env"));
        assert_eq!(sensitivity(path, None, &SensitiveFiles::default()), Sensitivity::Denied);
    }
}

/// 2g: the scanner heuristic catches leaked credentials in tool output.
#[test]
fn leaked_credentials_in_tool_output_are_found() {
    let detector = Detector::new();
    for text in [
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA0Z3VS5JJcds3xfn/ygWyF8PbnGy0AHB7MhgHcTz6sE2I2yPB\n-----END RSA PRIVATE KEY-----",
        "aws_secret_access_key = wJalrXUtnFEMIK7MDENGbPxRfiCYzQ9vT4xLp2Hd",
        "$ cat /home/u/.env\nSTRIPE_API_KEY=sk_live_4eC39HqLyjWDarjtT1zdp7dcQ8vKxW",
    ] {
        let scan = detector.scan(text, Channel::ToolOutput);
        let found = scan.findings.iter().any(|one| one.category == Category::SensitiveFileContent);
        assert!(found, "{text} {:?}", scan.findings);
    }
}

/// Row 29: the reference lets a skill read all of these, and denies two that hold nothing.
#[test]
fn row_29_the_reference_lets_these_pass() {
    for (path, expected) in [
        ("/w/prod.pem", Sensitivity::Denied),
        ("/w/tls.key", Sensitivity::Denied),
        ("/w/app.secret", Sensitivity::Denied),
        ("/w/my_token.txt", Sensitivity::Tainted),
        ("/proc/self/environ", Sensitivity::Denied),
        ("/home/u/.ssh/id_rsa", Sensitivity::Denied),
        ("/w/config.json", Sensitivity::None),
        ("/home/u/.sshfoo", Sensitivity::None),
        ("/home/u/.sshfoo/x", Sensitivity::None),
    ] {
        assert_eq!(of(path), expected, "{path}");
    }
}

#[test]
fn hostile_globs_and_paths_take_bounded_time() {
    let globs = [
        "*a*a*a*a*a*a*a*a*b",
        "**/a/**/a/**/a/**/b",
        "[a-z]*[a-z]*[a-z]*[0-9]",
        "a*/a*/a*/a*/**/b",
    ];
    let config =
        FilesConfig { denied: globs.map(str::to_owned).to_vec(), ..FilesConfig::default() };
    let files = SensitiveFiles::new(&config).unwrap();
    for path in
        ["a".repeat(16_000), "/a".repeat(8_000), "/aaaaaaaaab".repeat(1_400), "./".repeat(8_000)]
    {
        let start = processor::time();
        let _ = sensitivity(Path::new(&path), None, &files);
        let took = processor::time() - start;
        assert!(took.as_millis() < 1000, "{took:?}");
    }
}

proptest! {
    #[test]
    fn any_path_is_judged(path in "\\PC{0,120}", home in "\\PC{0,20}") {
        let _ = sensitivity(Path::new(&path), Some(Path::new(&home)), &SensitiveFiles::default());
    }

    #[test]
    fn case_never_helps(
        path in "/(home/u|w)/(\\.env|\\.ssh/id_rsa|a\\.pem|\\.aws/config|my_token\\.txt|\\.netrc)",
        upper in proptest::collection::vec(any::<bool>(), 32),
    ) {
        let other: String = path
            .chars()
            .zip(upper.iter().cycle())
            .map(|(sign, upper)| if *upper { sign.to_ascii_uppercase() } else { sign })
            .collect();
        prop_assert_eq!(of(&path), of(&other), "{}", other);
        prop_assert_ne!(of(&path), Sensitivity::None);
    }

    #[test]
    fn the_owners_strict_lists_only_tighten(path in "/[a-z./]{0,30}", glob in "[a-z.*]{1,8}") {
        let config = FilesConfig { denied: vec![glob.clone()], tainted: vec![glob], ..FilesConfig::default() };
        if let Ok(files) = SensitiveFiles::new(&config) {
            prop_assert!(sensitivity(Path::new(&path), None, &files) >= sensitivity(Path::new(&path), None, &SensitiveFiles::default()));
        }
    }
}
