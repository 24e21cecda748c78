//! Every credential is put together here, so that no scanner sees one in the repository.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::*;

const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Chance of our own, the same each time.
fn random(signs: &[u8], length: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(signs[usize::try_from(state >> 33).unwrap() % signs.len()])
        })
        .collect()
}

fn letters(length: usize, seed: u64) -> String {
    random(LETTERS, length, seed)
}

fn checked(prefix: &str) -> String {
    let body = letters(30, 3);
    let mut crc = flate2::Crc::new();
    crc.update(body.as_bytes());
    let mut sum = crc.sum();
    let mut digits = [b'0'; 6];
    for digit in digits.iter_mut().rev() {
        *digit = LETTERS[(sum % 62) as usize];
        sum /= 62;
    }
    format!("{prefix}{body}{}", String::from_utf8_lossy(&digits))
}

fn github() -> String {
    checked("ghp_")
}

fn anthropic() -> String {
    format!("sk-ant-api03-{}AA", letters(93, 4))
}

fn openai() -> String {
    format!("sk-proj-{}", letters(124, 5))
}

fn google() -> String {
    format!("AIza{}", letters(35, 6))
}

fn amazon() -> String {
    format!("AKIA{}", random(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16, 7))
}

fn jwt() -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let (head, claims) = (r#"{"alg":"RS256","typ":"JWT"}"#, r#"{"iss":"a","sub":"b","aud":"c"}"#);
    format!("{}.{}.{}", part(head), part(claims), letters(86, 8))
}

fn private_key() -> String {
    ["-----BEGIN OPENSSH PRIVATE", " KEY-----", &letters(200, 9)].concat()
}

fn going(host: &Host) -> Going<'_> {
    Going { host, secure: true, named: true, trusted: false }
}

fn look(host: &str, head: &str) -> Option<Denial> {
    let host = host.parse().map_or_else(|_| Host::Name(host.to_owned()), Host::Address);
    secret_in_head(
        format!("{head}\r\n\r\n").replace('\n', "\r\n").replace("\r\r", "\r").as_bytes(),
        going(&host),
    )
}

#[track_caller]
fn passes(host: &str, head: &str) {
    assert_eq!(look(host, head), None, "{host}\n{head}");
}

#[track_caller]
fn is_stopped(host: &str, head: &str) {
    let denial = look(host, head).unwrap_or_else(|| panic!("{host}\n{head}"));
    assert_eq!(denial.rule, "egress-secret");
    for secret in [github(), anthropic(), openai(), google(), private_key()] {
        assert!(!denial.to_string().contains(&secret), "{denial}");
    }
}

#[test]
fn a_credential_goes_to_the_host_that_it_is_for() {
    let basic = |token: &str| STANDARD.encode(format!("x-access-token:{token}"));
    let rows = [
        ("api.github.com", format!("Authorization: Bearer {}", github())),
        ("api.github.com", format!("authorization: token {}", github())),
        ("github.com", format!("Authorization: Basic {}", basic(&github()))),
        ("npm.pkg.github.com", format!("authorization: Bearer {}", github())),
        ("ghcr.io", format!("Authorization: Basic {}", basic(&github()))),
        ("github.corp.example", format!("Authorization: Bearer {}", github())),
        ("registry.npmjs.org", format!("authorization: Bearer {}", checked("npm_"))),
        ("gitlab.corp.example", format!("PRIVATE-TOKEN: glpat-{}", letters(20, 1))),
        ("gitlab.com", format!("JOB-TOKEN: glpat-{}", letters(20, 1))),
        ("api.anthropic.com", format!("x-api-key: {}", anthropic())),
        ("api.anthropic.com", format!("Authorization: Bearer {}", anthropic())),
        ("api.openai.com", format!("Authorization: Bearer {}", openai())),
        (
            "api.openai.com",
            format!("Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.{}", openai()),
        ),
        ("generativelanguage.googleapis.com", format!("x-goog-api-key: {}", google())),
        ("slack.com", format!("Authorization: Bearer xoxb-{}", letters(50, 2))),
        ("app.slack.com", format!("Cookie: b=1; d=xoxd-{}", letters(90, 2))),
        ("vault.internal", format!("X-Vault-Token: hvs.{}", letters(90, 2))),
        ("huggingface.co", format!("authorization: Bearer hf_{}", letters(34, 2))),
        ("127.0.0.1", format!("x-api-key: {}", anthropic())),
        ("localhost", format!("Authorization: Bearer {}", github())),
    ];
    for (host, line) in rows {
        passes(host, &format!("POST /v1/x HTTP/1.1\nHost: {host}\n{line}"));
        // The same to anyone else.
        is_stopped("allowed.test", &format!("POST /v1/x HTTP/1.1\nHost: allowed.test\n{line}"));
        let like = format!("{host}.evil.test");
        let named = is_named_after(&Host::Name(like.clone()), &["gitlab", "github", "vault"]);
        if !named {
            is_stopped(&like, &format!("POST /v1/x HTTP/1.1\nHost: {like}\n{line}"));
        }
    }
}

#[test]
fn a_host_named_after_a_product_counts_only_where_the_owner_named_it() {
    let head = format!("GET / HTTP/1.1\r\nPrivate-Token: glpat-{}\r\n\r\n", letters(20, 1));
    let host = Host::Name("gitlab.evil.test".to_owned());
    let named = going(&host);
    assert_eq!(secret_in_head(head.as_bytes(), named), None);
    assert!(secret_in_head(head.as_bytes(), Going { named: false, ..named }).is_some());
    let other = Host::Name("code.corp.example".to_owned());
    let going = Going { host: &other, ..named };
    assert!(secret_in_head(head.as_bytes(), going).is_some());
    assert_eq!(secret_in_head(head.as_bytes(), Going { trusted: true, ..going }), None);
}

#[test]
fn without_tls_known_credentials_stay_here() {
    let plain = |host: &Host, line: &str| {
        let head = format!("GET / HTTP/1.1\r\n{line}\r\n\r\n");
        secret_in_head(head.as_bytes(), Going { secure: false, ..going(host) })
    };
    let github_host = Host::Name("api.github.com".to_owned());
    let line = format!("Authorization: Bearer {}", github());
    assert!(plain(&github_host, &line).unwrap().reason.ends_with("without TLS"));
    assert_eq!(plain(&Host::Name("localhost".to_owned()), &line), None);
    // What nothing is known about: many hosts inside of a network are reached so.
    let inside = Host::Name("wiki.corp.example".to_owned());
    assert_eq!(plain(&inside, &format!("Cookie: s={}", jwt())), None);
    assert_eq!(plain(&inside, "Authorization: Basic YWRtaW46eDk4MmhkazIzOWQ="), None);
}

#[test]
fn tokens_that_nobody_knows_pass_where_credentials_belong() {
    for line in [
        format!("Authorization: Bearer {}", jwt()),
        format!("Authorization: Bearer {}", letters(64, 1)),
        "Authorization: Basic YWRtaW46eDk4MmhkazIzOWQ=".to_owned(),
        format!("Cookie: theme=dark; __Host-session={}; csrf={}", jwt(), letters(32, 2)),
        format!("X-Auth-Token: {}", jwt()),
        format!("x-amz-security-token: {}", STANDARD.encode(letters(300, 3).to_lowercase())),
        format!("DPoP: {}", jwt()),
        format!(
            "X-Registry-Auth: {}",
            STANDARD.encode(format!(r#"{{"identitytoken":"{}"}}"#, jwt()))
        ),
        format!(
            "Authorization: AWS4-HMAC-SHA256 Credential={}/20260101/us-east-1/s3/aws4_request, \
             SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature={}",
            amazon(),
            random(b"0123456789abcdef", 64, 4)
        ),
    ] {
        passes("allowed.test", &format!("GET / HTTP/1.1\nHost: allowed.test\n{line}"));
    }
}

#[test]
fn secrets_elsewhere_are_stopped() {
    let hex: String = github().bytes().map(|byte| format!("{byte:02x}")).collect();
    let escaped = github().replacen('g', "%67", 1).replacen('_', "%5F", 1);
    let twice = escaped.replace('%', "%25");
    // At the host that it is for, too: what is said there may be seen by others.
    for host in ["allowed.test", "api.github.com"] {
        for line in [
            format!("X-Data: {}", github()),
            format!("User-Agent: curl/8.5 {}", github()),
            format!("Referer: https://a.test/?q={}", github()),
            format!("Accept: text/html, {}", github()),
            format!("X-Data: {escaped}"),
            format!("X-Data: {twice}"),
            format!("X-Data: {hex}"),
            format!("X-Data: {}", STANDARD.encode(github())),
            format!("X-Data: {}", URL_SAFE_NO_PAD.encode(format!("a {}", github()))),
            format!("X-Data: {}", STANDARD.encode(STANDARD.encode(github()))),
            format!("X-Data: {}", private_key()),
            format!("X-Data: {}", STANDARD.encode(private_key())),
            format!("X-Data: {}", jwt()),
            format!("{}: 1", github()),
            format!("X-{}: 1", hex),
            format!("Authorization: Bearer {}", private_key()),
            format!("Cookie: k={}", STANDARD.encode(private_key())),
            format!("X-Api-Key: postgres://app:{}@db.internal/app", letters(12, 9)),
            format!("If-None-Match: \"{}\"", github()),
        ] {
            is_stopped(host, &format!("GET / HTTP/1.1\nHost: {host}\n{line}"));
        }
        for target in [
            format!("/{}", github()),
            format!("/{escaped}"),
            format!("/{twice}"),
            format!("/a/{}/b", escaped.replace("%25", "%2525")),
            format!("/?q={escaped}"),
            format!("/?q={}", github()),
            format!("/?a=b&x[]={}&c=d", twice),
            format!("/x;v={escaped}"),
            format!("/{}", STANDARD.encode(github())),
            format!("/?q={}", URL_SAFE_NO_PAD.encode(github())),
            format!("/{hex}"),
            format!("/?token={}", private_key().replace(' ', "+")),
            format!("/{}", jwt()),
        ] {
            is_stopped(host, &format!("GET {target} HTTP/1.1\nHost: {host}\nAccept: */*"));
        }
        is_stopped(host, &format!("glpat-{} / HTTP/1.1\nHost: {host}", letters(20, 1)));
        is_stopped(host, &format!("{} / HTTP/1.1\nHost: {host}", amazon()));
    }
    for other in [
        format!("Authorization: Bearer {}", github()),
        format!("Authorization: Basic {}", STANDARD.encode(format!("u:{}", github()))),
        format!("Authorization: Bearer {escaped}"),
        format!("Cookie: a={hex}"),
    ] {
        is_stopped(
            "api.anthropic.com",
            &format!("GET / HTTP/1.1\nHost: api.anthropic.com\n{other}"),
        );
    }
    is_stopped("api.openai.com", &format!("GET /?key={} HTTP/1.1", google()));
    is_stopped("api.telegram.org", &format!("GET /?u={} HTTP/1.1", google()));
}

#[test]
fn credentials_in_addresses_that_hosts_take_there_pass() {
    let signature = random(b"0123456789abcdef", 64, 4);
    let sas =
        format!("se=2026-01-01T00%3A00%3A00Z&sp=r&sr=b&sv=2025-01-05&sig={}%3D", letters(43, 3));
    for (host, target) in [
        (
            "generativelanguage.googleapis.com",
            format!("/v1beta/models/gemini-2.5-pro:generateContent?key={}", google()),
        ),
        ("api.telegram.org", format!("/bot123456789:AA{}/sendMessage", letters(33, 3))),
        (
            "hooks.slack.com",
            format!(
                "/services/T0{}/B0{}/{}",
                letters(8, 1).to_uppercase(),
                letters(8, 2).to_uppercase(),
                letters(24, 3)
            ),
        ),
        (
            "release-assets.githubusercontent.com",
            format!("/github-production-release-asset/1/2?{sas}&jwt={}", jwt()),
        ),
        ("productionresultssa0.blob.core.windows.net", format!("/a/b?{sas}")),
        (
            "bucket.s3.amazonaws.com",
            format!(
                "/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={}%2F20260101%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Expires=300&X-Amz-Signature={signature}&X-Amz-SignedHeaders=host",
                amazon()
            ),
        ),
        ("gateway.allowed.test", format!("/ws?access_token={}", jwt())),
    ] {
        passes(host, &format!("GET {target} HTTP/1.1\nHost: {host}\nAccept: */*"));
    }
}

#[test]
fn a_page_of_the_same_host_may_be_named_with_its_address() {
    let line = |referer: &str| format!("GET /x HTTP/1.1\nHost: app.test\nReferer: {referer}");
    let page = format!("https://app.test/?a=b&token={}", jwt());
    passes("app.test", &line(&page));
    passes("app.test", &line(&page.replace("app.test", "app.test:8443")));
    passes("www.google.com", &line(&format!("https://www.google.com/maps?key={}", google())));
    for (host, referer) in [
        // Another host is not told, nor the same in the clear, nor what is not in its place.
        ("other.test", page.clone()),
        ("app.test.evil.test", page.clone()),
        ("app.test", page.replace("app.test", "user@app.test")),
        ("app.test", page.replace("https://app.test", "https://evil.test/?u=https://app.test")),
        ("app.test", page.replace("token=", "q=")),
        ("app.test", format!("https://app.test/{}", jwt())),
        ("app.test", format!("https://app.test/?token={}", github())),
        ("app.test", format!("https://app.test/?token={}", private_key().replace(' ', "+"))),
    ] {
        is_stopped(host, &line(&referer));
    }
    let host = Host::Name("app.test".to_owned());
    let head = line(&page).replace('\n', "\r\n") + "\r\n\r\n";
    assert!(secret_in_head(head.as_bytes(), Going { secure: false, ..going(&host) }).is_some());
    is_stopped("app.test", &line(&page).replace("Referer", "X-Data"));
}

#[test]
fn ordinary_traffic_passes() {
    let rows = [
        (
            "github.com",
            "POST /a/b.git/git-receive-pack HTTP/1.1\nHost: github.com\nUser-Agent: git/2.47.1\n\
          Content-Type: application/x-git-receive-pack-request\nAccept: application/x-git-receive-pack-result\n\
          Content-Encoding: gzip\nGit-Protocol: version=2\nContent-Length: 2033",
        ),
        (
            "registry.npmjs.org",
            "GET /@babel%2fcode-frame HTTP/1.1\nHost: registry.npmjs.org\n\
          npm-command: install\nuser-agent: npm/10.9.0 node/v22.11.0 linux x64 workspaces/false\n\
          pacote-integrity: sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==\n\
          pacote-pkg-id: registry:@babel/code-frame\npacote-req-type: packument\npacote-version: 19.0.1\n\
          npm-session: f3b1c7f29d86a2e0\nnpm-in-ci: true\nif-none-match: W/\"8bb3c9fe3a1d9e27a4e8c1e2cbd7a5f4\"\n\
          accept: application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*",
        ),
        (
            "files.pythonhosted.org",
            "GET /packages/4a/2b/c1d2e3f4a5b6c7d8e9f00112233445566778899aabbccddeeff001122334/requests-2.32.3-py3-none-any.whl HTTP/1.1\n\
          Host: files.pythonhosted.org\nUser-Agent: pip/24.3.1 {\"ci\":null,\"cpu\":\"x86_64\",\"distro\":{\"name\":\"Debian GNU/Linux\"},\"openssl_version\":\"OpenSSL 3.0.15\",\"python\":\"3.12.7\"}\n\
          Accept-Encoding: identity\nX-PyPI-Last-Serial: 24713589",
        ),
        (
            "index.crates.io",
            "GET /se/rd/serde HTTP/1.1\nHost: index.crates.io\nUser-Agent: cargo/1.83.0 (5ffbef321 2024-10-29)\n\
          cargo-protocol: version=1\naccept: text/plain\naccept-encoding: gzip\nif-none-match: \"a9d1c7f2d5f1c3b4e6a8097b5d3f1e2c\"",
        ),
        (
            "registry-1.docker.io",
            "HEAD /v2/library/alpine/manifests/sha256:beefdbd8a1da6d2915566fde36db9db0b524eb737fc57cd1367effd16dc0d06d HTTP/1.1\n\
          Host: registry-1.docker.io\nUser-Agent: docker/27.3.1 go/go1.22.7 git-commit/41ca978 kernel/6.8.0 os/linux arch/amd64 UpstreamClient(Docker-Client/27.3.1 \\(linux\\))\n\
          Accept: application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.list.v2+json\n\
          Docker-Content-Digest: sha256:beefdbd8a1da6d2915566fde36db9db0b524eb737fc57cd1367effd16dc0d06d",
        ),
        (
            "api.anthropic.com",
            "POST /v1/messages?beta=true HTTP/1.1\nHost: api.anthropic.com\naccept: application/json\n\
          anthropic-beta: claude-code-20250219,interleaved-thinking-2025-05-14,fine-grained-tool-streaming-2025-05-14\n\
          anthropic-dangerous-direct-browser-access: true\nanthropic-version: 2023-06-01\nuser-agent: claude-cli/2.0.14 (external, cli)\n\
          x-app: cli\nx-stainless-arch: x64\nx-stainless-helper-method: stream\nx-stainless-lang: js\nx-stainless-os: Linux\n\
          x-stainless-package-version: 0.60.0\nx-stainless-retry-count: 0\nx-stainless-runtime: node\nx-stainless-runtime-version: v22.11.0\n\
          x-stainless-timeout: 600\nidempotency-key: stainless-node-retry-5b2f3c14-9d4e-4a5f-8d4c-1f2a3b4c5d6e",
        ),
        (
            "api.openai.com",
            "POST /v1/responses HTTP/1.1\nHost: api.openai.com\nopenai-organization: org-aB3dE5fG7hJ9kL1mN3pQ5rS7\n\
          openai-project: proj_aB3dE5fG7hJ9kL1mN3pQ5rS7\nopenai-beta: responses=v1\nsession_id: 0199a213-81c0-7800-8aa1-bbab2a035a53\n\
          conversation_id: 0199a213-81c0-7800-8aa1-bbab2a035a53\noriginator: codex_cli_rs\n\
          traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\ntracestate: rojo=00f067aa0ba902b7,congo=t61rcWkgMzE\n\
          x-request-id: req_011CSHoEeqs5C35K2UUqR7Fy",
        ),
        (
            "generativelanguage.googleapis.com",
            "POST /v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse HTTP/1.1\n\
          Host: generativelanguage.googleapis.com\nx-goog-api-client: google-genai-sdk/1.16.0 gl-node/v22.11.0\n\
          x-goog-user-project: my-project-123456\nuser-agent: GeminiCLI/0.8.1 (linux; x64) google-api-nodejs-client/9.15.1",
        ),
        (
            "sentry.corp.example",
            "POST /api/42/envelope/?sentry_version=7&sentry_key=4f1c2b3a4d5e6f708192a3b4c5d6e7f8 HTTP/1.1\n\
          sentry-trace: 4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1\n\
          baggage: sentry-environment=production,sentry-public_key=4f1c2b3a4d5e6f708192a3b4c5d6e7f8,sentry-trace_id=4bf92f3577b34da6a3ce929d0e0e4736",
        ),
        (
            "example.org",
            "GET /style.css?v=sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU= HTTP/1.1\n\
          Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\nIf-Modified-Since: Wed, 21 Oct 2026 07:28:00 GMT\n\
          X-Client-Data: CIa2yQEIprbJAQipncoBCMDdygEIlaHLAQiFoM0BCLnKzQE=\nContent-MD5: Q2hlY2sgSW50ZWdyaXR5IQ==\n\
          Cookie: _ga=GA1.2.1234567890.1700000000; _gid=GA1.2.987654321.1700000000; cf_clearance=a.b-1700000000-1.2.1.1-AbC_dEf",
        ),
    ];
    for (host, head) in rows {
        passes(host, head);
    }
}

#[test]
fn what_is_recorded_holds_no_secret() {
    let escaped = github().replacen('g', "%67", 1);
    let coded = STANDARD.encode(github());
    for value in [github(), escaped, coded] {
        let said = without_secrets(&format!("http://a.test/x?q={value}&b=c"));
        assert!(said.starts_with("http://a.test/x?q=[REDACTED:github-token]"), "{said}");
    }
    assert_eq!(without_secrets("http://a.test/x?q=%41"), "http://a.test/x?q=%41");
}

#[test]
fn a_head_is_looked_at_quickly() {
    // Linear: the longest head that is read, of whatever looks most like work.
    for unit in
        ["%25", "ghp_", "eyJ", "dHR0dHR0", "7474", "\\u0025", "AKIA", "X-Key: a\r\n", "&token="]
    {
        let head = format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", unit.repeat((64 << 10) / unit.len()));
        let host = Host::Name("a.test".to_owned());
        // The best of several: other work on the machine only ever adds.
        let quick = (0..5).any(|_| {
            let began = std::time::Instant::now();
            let _ = secret_in_head(head.as_bytes(), going(&host));
            began.elapsed() < std::time::Duration::from_secs(2)
        });
        assert!(quick, "{unit}");
    }
}

#[test]
fn data_in_addresses_is_counted() {
    let line = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZWQyNTUxOQ";
    assert!(encoded_bytes(&format!("http://a.test/{line}{line}")) > 100);
    for url in ["http://a.test/", "http://a.test/index.html?q=hello+world", "http://a.test/v1/x"] {
        assert_eq!(encoded_bytes(url), 0, "{url}");
    }
}
