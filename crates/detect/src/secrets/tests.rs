//! Every positive is put together here, so that no scanner sees one in the repository.

use super::formats::base62;
use super::*;
use crate::processor;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

pub(super) const LETTERS: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Chance of our own, the same each time.
pub(crate) fn random(alphabet: &str, length: usize, seed: u64) -> String {
    let signs = alphabet.as_bytes();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(signs[usize::try_from(state >> 33).expect("small") % signs.len()])
        })
        .collect()
}

pub(super) fn checked(prefix: &str, seed: u64) -> String {
    let body = random(LETTERS, 30, seed);
    let sum = base62(crc32fast::hash(body.as_bytes()));
    format!("{prefix}{body}{}", String::from_utf8_lossy(&sum))
}

fn jwt_of(header: &str, claims: &str) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    format!("{}.{}.{}", part(header), part(claims), random(LETTERS, 43, 5))
}

fn card(prefix: &str, length: usize) -> String {
    let body = format!("{prefix}{}", random("0123456789", length - 1 - prefix.len(), 9));
    let sum: u32 = body
        .bytes()
        .rev()
        .enumerate()
        .map(|(place, byte)| {
            let digit = u32::from(byte - b'0') * if place % 2 == 0 { 2 } else { 1 };
            digit / 10 + digit % 10
        })
        .sum();
    format!("{body}{}", (10 - sum % 10) % 10)
}

fn positives() -> Vec<(&'static str, String, String)> {
    let mut rows: Vec<(&'static str, String, String)> = Vec::new();
    let mut plain = |kind, value: String| rows.push((kind, format!("see {value} here"), value));
    for (seed, prefix) in ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"].into_iter().enumerate() {
        plain("github-token", checked(prefix, seed as u64 + 1));
    }
    plain("npm-token", checked("npm_", 7));
    plain(
        "github-fine-grained-token",
        format!("github_pat_{}_{}", random(LETTERS, 22, 1), random(LETTERS, 59, 2)),
    );
    plain("pypi-token", format!("pypi-AgEIcHlwaS5vcmc{}", random(LETTERS, 120, 3)));
    plain("aws-access-key", format!("AKIA{}", random(UPPER, 16, 4)));
    plain("aws-access-key", format!("ASIA{}", random(UPPER, 16, 5)));
    plain("google-api-key", format!("AIza{}", random(LETTERS, 35, 6)));
    plain("google-oauth-token", format!("ya29.{}", random(LETTERS, 120, 7)));
    plain("google-oauth-secret", format!("GOCSPX-{}", random(LETTERS, 28, 8)));
    plain(
        "slack-token",
        format!(
            "xoxb-{}-{}-{}",
            random("123456789", 12, 1),
            random("123456789", 12, 2),
            random(LETTERS, 24, 3)
        ),
    );
    plain(
        "slack-webhook",
        format!(
            "hooks.slack.com/services/T{}/B{}/{}",
            random(UPPER, 8, 1),
            random(UPPER, 8, 2),
            random(LETTERS, 24, 3)
        ),
    );
    plain(
        "discord-webhook",
        format!(
            "discord.com/api/webhooks/{}/{}",
            random("123456789", 18, 1),
            random(LETTERS, 68, 2)
        ),
    );
    plain("stripe-secret-key", format!("sk_live_{}", random(LETTERS, 24, 1)));
    plain("stripe-test-key", format!("sk_test_{}", random(LETTERS, 24, 2)));
    plain("stripe-publishable-key", format!("pk_live_{}", random(LETTERS, 24, 3)));
    plain("openai-key", format!("sk-proj-{}", random(LETTERS, 120, 1)));
    plain("anthropic-key", format!("sk-ant-api03-{}AA", random(LETTERS, 93, 2)));
    plain("llm-api-key", format!("sk-{}", random(LETTERS, 48, 3)));
    plain(
        "telegram-bot-token",
        format!("{}:AA{}", random("123456789", 10, 1), random(LETTERS, 33, 2)),
    );
    plain("sendgrid-key", format!("SG.{}.{}", random(LETTERS, 22, 1), random(LETTERS, 43, 2)));
    plain("mailgun-key", format!("key-{}", random(HEX, 32, 1)));
    plain("mailchimp-key", format!("{}-us12", random(HEX, 32, 8)));
    plain("shopify-token", format!("shpat_{}", random(HEX, 32, 2)));
    plain("gitlab-token", format!("glpat-{}", random(LETTERS, 20, 3)));
    plain("digitalocean-token", format!("dop_v1_{}", random(HEX, 64, 4)));
    plain("huggingface-token", format!("hf_{}", random(LETTERS, 34, 5)));
    plain("age-key", format!("AGE-SECRET-KEY-1{}", random(UPPER, 58, 6)));
    plain("vault-token", format!("hvs.{}", random(LETTERS, 90, 7)));
    plain("grafana-token", {
        let body = random(LETTERS, 32, 1);
        format!("glsa_{body}_{:08x}", crc32fast::hash(format!("glsa_{body}").as_bytes()))
    });
    plain("jwt", jwt_of(r#"{"alg":"HS256","typ":"JWT"}"#, r#"{"sub":"u-77","exp":1999999999}"#));
    plain("credit-card", card("4539", 16));
    plain("credit-card", card("37", 15));
    let mut placed = |kind, text: String, value: String| rows.push((kind, text, value));
    let password = random(LETTERS, 14, 3);
    for (kind, scheme) in [
        ("postgres-url", "postgres"),
        ("postgres-url", "postgresql+psycopg2"),
        ("mysql-url", "mysql"),
        ("mongodb-url", "mongodb+srv"),
        ("redis-url", "rediss"),
        ("amqp-url", "amqp"),
        ("basic-auth-url", "https"),
    ] {
        placed(
            kind,
            format!("URL={scheme}://app:{password}@db.prod.corp:5432/x"),
            password.clone(),
        );
    }
    placed("redis-url", format!("redis://:{password}@cache/0"), password.clone());
    placed(
        "oracle-url",
        format!("jdbc:oracle:thin:scott/{password}@//db:1521/x"),
        password.clone(),
    );
    placed(
        "password",
        format!("jdbc:postgresql://db/x?user=app&password={password}"),
        password.clone(),
    );
    placed("password", format!("  password: \"{password}\""), password.clone());
    placed("password", format!("DB_PASSWORD={password}\n"), password.clone());
    placed("password", format!("mysql --password {password} x"), password.clone());
    placed("password", format!("<password>{password}</password>"), password.clone());
    placed("password", format!("Server=db;Uid=sa;Pwd={password};"), password.clone());
    let key = random(LETTERS, 32, 11);
    placed("generic-secret", format!("{{\"api_key\": \"{key}\"}}"), key.clone());
    placed("generic-secret", format!("{{\\\"api_key\\\": \\\"{key}\\\"}}"), key.clone());
    placed("generic-secret", format!("client_secret => '{key}',"), key.clone());
    placed("generic-secret", format!("export AUTH_TOKEN={key}"), key.clone());
    placed("generic-secret", format!("const secretKey = `{key}`;"), key.clone());
    let hex = random(HEX, 64, 12);
    placed("generic-secret", format!("SECRET_KEY='{hex}'"), hex.clone());
    let aws = random(LETTERS, 40, 13);
    placed("aws-secret-key", format!("aws_secret_access_key = {aws}"), aws.clone());
    let id = format!("AKIA{}", random(UPPER, 16, 14));
    placed("aws-secret-key", format!("{id},{aws}"), aws.clone());
    let azure = STANDARD.encode(random(LETTERS, 64, 15));
    placed(
        "azure-key",
        format!("AccountName=x;AccountKey={azure};EndpointSuffix=y"),
        azure.clone(),
    );
    let sas = random(LETTERS, 43, 16) + "%3D";
    placed(
        "azure-sas-signature",
        format!("https://x.blob.core.windows.net/c?sv=2024-01-01&se=2030-01-01&sig={sas}"),
        sas.clone(),
    );
    placed("bearer-authorization", format!("Authorization: Bearer {key}"), key.clone());
    placed("bearer-authorization", format!("-H \"authorization: token {key}\""), key.clone());
    let basic = STANDARD.encode(format!("admin:{password}"));
    placed("basic-authorization", format!("{{'Authorization': 'Basic {basic}'}}"), basic.clone());
    let discord =
        format!("M{}.{}.{}", random(LETTERS, 23, 1), random(LETTERS, 6, 2), random(LETTERS, 27, 3));
    placed("discord-bot-token", format!("TOKEN = \"{discord}\""), discord.clone());
    let twilio = random(HEX, 32, 17);
    placed("twilio-key", format!("twilio: sid, SK{twilio}"), format!("SK{twilio}"));
    placed(
        "netrc-password",
        format!("machine api.corp\n  login me\n  password {password}\n"),
        password.clone(),
    );
    placed("pgpass-password", format!("db.corp:5432:app:me:{password}"), password.clone());
    let data = random(LETTERS, 64, 18);
    for (kind, label) in [
        ("private-key", "RSA PRIVATE KEY"),
        ("private-key", "PRIVATE KEY"),
        ("private-key", "ENCRYPTED PRIVATE KEY"),
        ("private-key", "EC PRIVATE KEY"),
        ("openssh-private-key", "OPENSSH PRIVATE KEY"),
        ("pgp-private-key", "PGP PRIVATE KEY BLOCK"),
    ] {
        let block = format!("-----BEGIN {label}-----\n{data}\n{data}\n-----END {label}-----");
        placed(kind, format!("x {block} y"), block.clone());
    }
    let block =
        format!("-----BEGIN PRIVATE KEY-----\\n{data}\\n{data}\\n-----END PRIVATE KEY-----");
    placed(
        "gcp-service-account",
        format!("{{\"type\": \"service_account\", \"private_key\": \"{block}\\n\"}}"),
        block.clone(),
    );
    let block = format!("-----BEGIN PRIVATE KEY-----\n{data}\n{data}");
    placed("private-key", block.clone(), block.clone());
    let putty = format!(
        "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: a b\nPublic-Lines: 1\n{data}\nPrivate-Lines: 1\n{data}\nPrivate-MAC: {hex}"
    );
    placed("putty-private-key", format!("{putty}\nrest"), putty.clone());
    rows
}

#[test]
fn every_format_is_found_where_it_stands() {
    for (kind, text, value) in positives() {
        let found = find_secrets(&text);
        let hit = found.iter().find(|secret| secret.kind == kind);
        let Some(hit) = hit else { panic!("{kind} not found in {text}: {found:?}") };
        assert_eq!(&text[hit.span.start..hit.span.end], value, "{kind}");
        let safe = redact(&text, &found);
        assert!(!safe.contains(&value) && safe.contains("[REDACTED:"), "{safe}");
    }
}

fn negatives() -> Vec<String> {
    let mut rows: Vec<String> = [
        "AKIAIOSFODNN7EXAMPLE", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "password = changeme", "password: 'changeme'", "password=\"\"", "PASSWORD=${DB_PASSWORD}", "password: $PASSWORD",
        "password = \"<your password>\"", "api_key = 'YOUR_API_KEY_GOES_HERE_123'", "api_key: xxxxxxxxxxxxxxxxxxxxxxxx",
        "token: ${{ secrets.GITHUB_TOKEN }}", "token = os.environ[\"GITHUB_TOKEN_V2\"]", "const token = process.env.API_TOKEN1;",
        "token = get_token(user_id=42)", "let token = self.tokens[index1].clone();", "password: String,", "password: &str",
        "def f(password: str = None):", "if token == \"abcdefgh12345678abcd\":", "token_type = \"bearer_jwt_v2_access\"",
        "max_tokens = 4096000000000000", "tokenizer = \"cl100k_base_2024_v12\"", "The password must have 8 characters.",
        "Enter password: ", "password_field = \"input-password-2\"", "secret_name: my-app/prod/db-credentials-2",
        "token: 123e4567-e89b-12d3-a456-426614174000", "commit = 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "token = \"9fceb02d0ae598e95dc970b74767f19372d61af8\"",
        "\"integrity\": \"sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==\"",
        "secret = \"sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\"", "checksum = \"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"",
        "postgres://user:password@localhost/db", "postgres://postgres:postgres@db:5432/x", "mysql://root:${PW}@db/x",
        "https://user:<token>@github.com/x", "https://user:pass@example.com/", "mongodb://{user}:{password}@host/db", "redis://localhost:6379/0",
        "https://example.com/a:b@c", "ssh://git@github.com:22/x", "http://host:8080/@x", "ftp://anonymous@host/",
        "Authorization: Bearer <token>", "Authorization: Bearer YOUR_TOKEN_HERE_12345", "Authorization: Bearer ${TOKEN}",
        "authorization is required for basic access to this resource", "Authorization: Basic dXNlcjpwYXNzd29yZA==",
        "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "a block that starts with -----BEGIN RSA PRIVATE KEY----- and goes on in words that nobody would call a key at all, ever",
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
        "eyJub3QganNvbiBhdCBhbGwuLi4.abcdefghijkl.mnopqrstuvwxyz0123", "4111 1111 1111 1111", "4242424242424242", "5555555555554444", "378282246310005",
        "4539 1488 0343 6468", "1234 5678 9012 3456", "order 4000000000000000", "0000 0000 0000 0000", "+49 4512 3456 7890 12", "1716239022123456789",
        "v4.5391488034364671", "ISBN 978-3-16-148410-0", "sk-learn-compatible-estimators-with-long-names-in-them", "risk-adjusted returns and task-based work",
        "ghp_0123456789abcdefghijABCDEFGHIJ012345", "npm_install_something_that_is_quite_long_indeed", "pypi-publish", "hf_hub_download(repo_id)",
        "glpat-", "glpat-xxxxxxxxxxxxxxxxxxxx", "SG.short.key", "key-value-store-with-a-long-name", "key-00000000000000000000000000000000", "machine learning login page password reset",
        "machine HOST login NAME password <password>", "localhost:5432:db:me:changeme", "time 12:5432:99", "xoxb-your-token-here-goes-in-this-place",
        "twilio is a vendor of messages", "status-us1 and node-us2", "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
        "AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;", "AccountKey=<key>;", "sk_live_...", "sk_test_xxxxxxxxxxxxxxxxxxxxxxxx",
        "AIzaSyXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX", "ya29.example", "arn:aws:iam::123456789012:role/x", "secret_path: /run/secrets/db_password_1", "credentials: ./config/credentials.json",
        "csrf_token = \"b7e23ec29af22b0b4e41da31e868d572\"", "public_key_token=b77a5c561934e089", "password_hash = \"$2b$12$KIXQJ8Yx8mQe1uQ9j3Zc5u\"", "passwd:x:1000:1000::/home/me:/bin/sh",
        "token := lexer.next()?;", "Token::Keyword(\"select\")", "secret: { secretName: tls-cert-2024 }", "pwd: /home/me/project1/src",
    ]
    .into_iter()
    .map(str::to_owned)
    .collect();
    // Good but for one sign.
    let mut wrong = checked("ghp_", 21).into_bytes();
    wrong[10] = if wrong[10] == b'a' { b'b' } else { b'a' };
    rows.push(String::from_utf8_lossy(&wrong).into_owned());
    rows.push(format!("{}x", checked("ghp_", 22)));
    rows.push(format!("x{}", checked("ghp_", 23)));
    rows.push(checked("ghp_", 24).to_uppercase());
    rows.push(format!("AKIA{}", random(UPPER, 15, 1)));
    rows.push(format!("AKIA{}", random(UPPER, 17, 1)));
    rows.push(format!("shpat_{}", random(HEX, 31, 1)));
    rows.push(format!("SG.{}", random(LETTERS, 66, 1)));
    rows.push(format!("{}9", card("4539", 16)));
    rows
}

#[test]
fn near_misses_are_left_alone() {
    let rows = negatives();
    assert!(rows.len() >= 80);
    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|text| find_secrets(text).first().map(|s| format!("{} in {text}", s.kind)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_signed_addresses_are_made_of_is_no_secret_by_its_name() {
    let signature = random(HEX, 64, 3);
    let session =
        format!("IQoJb3JpZ2luX2VjE{}%2F{}", random(LETTERS, 300, 4), random(LETTERS, 60, 5));
    let amazon = |key: &str| {
        format!(
            "https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={key}%2F20260101%2Fus-east-1\
             %2Fs3%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Expires=300&X-Amz-Security-Token={session}\
             &X-Amz-Signature={signature}&X-Amz-SignedHeaders=host"
        )
    };
    let kinds = |text: &str| -> Vec<&'static str> {
        find_secrets(text).iter().map(|secret| secret.kind).collect()
    };
    let key = format!("ASIA{}", random(UPPER, 16, 7));
    assert_eq!(kinds(&amazon(&key)), ["aws-access-key"]);
    assert_eq!(kinds(&amazon("[REDACTED:aws-access-key]")), [""; 0]);
    let google = format!(
        "https://storage.googleapis.com/b/k?X-Goog-Algorithm=GOOG4-RSA-SHA256&X-Goog-Credential=reader-1%40my-project-123\
         .iam.gserviceaccount.com%2F20260101%2Fauto%2Fstorage%2Fgoog4_request&X-Goog-Signature={}",
        signature.repeat(8)
    );
    assert_eq!(kinds(&google), [""; 0]);
    let header =
        "Authorization: AWS4-HMAC-SHA256 Credential=abcd/20260101/us-east-1/s3/aws4_request";
    assert_eq!(kinds(header), [""; 0]);
    // Another value under such a name, and a session without a signature.
    let other = random(LETTERS, 40, 9);
    assert_eq!(kinds(&format!("X-Goog-Credential={other}")), ["generic-secret"]);
    assert_eq!(kinds(&format!("X-Amz-Credential={other}/1/aws4_request")), ["generic-secret"]);
    assert_eq!(kinds(&format!("X-Amz-Security-Token={session}")), ["generic-secret"]);
    assert_eq!(kinds(&format!("{}&token={other}", amazon(&key))).last(), Some(&"generic-secret"));
}

#[test]
fn examples_of_specifications_are_no_secrets() {
    let basic = |pair: &str| format!("Authorization: Basic {}", STANDARD.encode(pair));
    let web = |claims: &str, signature: &str| {
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        format!("{}.{}.{signature}", part(r#"{"alg":"HS256","typ":"JWT"}"#), part(claims))
    };
    let sample = web(
        r#"{"sub":"1234567890","name":"John Doe","iat":1516239022}"#,
        "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
    );
    let first = [
        "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9",
        "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ",
        "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
    ];
    for text in [
        basic("Aladdin:open sesame"),
        basic("aladdin:opensesame"),
        basic("Aladdin:OpenSesame"),
        basic("test:123£"),
        basic("s6BhdRkqt3:gX1fBat3bV"),
        "Authorization: Bearer mF_9.B5f-4.1JqM".to_owned(),
        "Authorization: Bearer 2YotnFZFEjr1zCsicMWpAA".to_owned(),
        sample.clone(),
        format!("Authorization: Bearer {sample}"),
        first.join("."),
        format!("Authorization: Bearer {}", first.join(".")),
        format!(
            "{{\"messages\":[{{\"content\":\"see RFC 7617: `{}` is Aladdin\"}}]}}",
            basic("Aladdin:open sesame")
        ),
    ] {
        let found = find_joined_secrets(&text);
        assert!(found.is_empty(), "{text} {found:?}");
    }
    // Only these themselves.
    for (text, kind) in [
        (basic("Aladdin:open sesame7"), "basic-authorization"),
        (basic("root:open sesame"), "basic-authorization"),
        ("Authorization: Bearer 2YotnFZFEjr1zCsicMWpAB".to_owned(), "bearer-authorization"),
        (web(r#"{"sub":"u-77"}"#, &random(LETTERS, 43, 5)), "jwt"),
        (
            format!("Authorization: Bearer {}", web(r#"{"sub":"u-77"}"#, &random(LETTERS, 43, 5))),
            "bearer-authorization",
        ),
    ] {
        assert_eq!(find_joined_secrets(&text).first().map(|one| one.kind), Some(kind), "{text}");
    }
}

#[test]
fn code_behind_the_first_line_of_a_key_is_no_key() {
    let code = r#"if(t.includes("-----BEGIN RSA PRIVATE KEY-----")){return{kind:"privateKey",weight:0.98,matched:t.substring(0,512),path:e.filename}}function r(e,t){var n=e.split("\n");for(var o=0;o<n.length;o++){if(n[o].startsWith("BEGIN")){t.push(n[o])}}return t}"#;
    let patterns = r#"const KEYS=[/-----BEGIN PRIVATE KEY-----/,/AKIA[0-9A-Z]{16}/,/gh[pousr]_[A-Za-z0-9]{36}/,/xox[bpars]-[0-9A-Za-z-]{20,}/,/sk_live_[0-9a-zA-Z]{24}/];"#;
    for text in [code, patterns, "look for -----BEGIN RSA PRIVATE KEY----- in the file"] {
        for text in [text.to_owned(), serde_json::json!({ "content": text }).to_string()] {
            let found = find_joined_secrets(&text);
            assert!(found.is_empty(), "{text} {found:?}");
        }
    }
    // Keys as programs hold them, in lines of whatever length.
    let data = random(LETTERS, 400, 8);
    for (length, apart) in [
        (64, "\n"),
        (64, "\\n"),
        (64, "\" +\n\""),
        (64, "\\n',\n'"),
        (16, "\"+\""),
        (16, "\n"),
        (8, "\n"),
        (4, "\n"),
        (24, "\\\\n"),
        (20, "','"),
    ] {
        let lines: Vec<&str> = (0..data.len())
            .step_by(length)
            .map(|at| &data[at..data.len().min(at + length)])
            .collect();
        let key = [
            "-----BEGIN RSA PRIVATE",
            " KEY-----",
            apart,
            &lines.join(apart),
            apart,
            "-----END RSA PRIVATE KEY-----",
        ]
        .concat();
        for key in [key.clone(), key[..300].to_owned()] {
            assert!(find_joined_secrets(&key).iter().any(|one| one.kind == "private-key"), "{key}");
        }
    }
}

#[test]
fn tokens_with_other_signs_joined_to_them_are_found() {
    let jwt = jwt_of(r#"{"alg":"HS256"}"#, r#"{"sub":"abc","aud":"a"}"#);
    let fine = format!("github_pat_{}_{}", random(LETTERS, 22, 1), random(LETTERS, 59, 2));
    let mut refresh = random(LETTERS, 70, 5);
    let sum = base62(crc32fast::hash(refresh.as_bytes()));
    refresh.push_str(&String::from_utf8_lossy(&sum));
    for (kind, token) in [
        ("github-token", checked("ghp_", 3)),
        ("github-token", checked("ghr_", 4)),
        ("github-token", format!("ghr_{refresh}")),
        ("npm-token", checked("npm_", 5)),
        ("github-fine-grained-token", fine),
        ("gitlab-token", ["gl", "pat-", "x7Kq2mZp9RtW4vBn6LsD"].concat()),
        ("slack-token", format!("xoxb-{}", random(LETTERS, 50, 1))),
        ("google-api-key", format!("AIzaSy{}", random(LETTERS, 33, 2))),
        ("anthropic-key", format!("sk-ant-api03-{}", random(LETTERS, 95, 2))),
        ("digitalocean-token", format!("dop_v1_{}", random(HEX, 64, 2))),
        ("databricks-token", format!("dapi{}", random(HEX, 32, 2))),
        ("telegram-bot-token", format!("1234567890:AAH{}", random(LETTERS, 32, 2))),
        ("jwt", jwt),
    ] {
        let more = "A".repeat(400);
        for (before, behind) in [
            ("", ""),
            ("x", ""),
            ("", "x"),
            ("_", "_"),
            ("-", "-"),
            ("x7", "0aZ"),
            ("", &more),
            ("9", "example"),
        ] {
            let text = format!("a {before}{token}{behind} b");
            let found = find_joined_secrets(&text);
            let hit = found.iter().find(|secret| secret.kind == kind);
            let hit = hit.unwrap_or_else(|| panic!("{kind} in {text}: {found:?}"));
            assert!(text[..hit.span.start].len() <= 2 + before.len(), "{text}");
            assert!(hit.span.end > text.len() - behind.len() - 4 - token.len() / 2, "{text}");
        }
    }
    // What announces something else may end where it begins.
    let text = format!("toke{}", checked("npm_", 5));
    assert_eq!(find_joined_secrets(&text)[0].kind, "npm-token");
    // Within signs of any length, where a checksum or a long prefix tells it.
    for token in [checked("ghp_", 3), format!("sk_live_{}", random(LETTERS, 30, 1))] {
        let text = format!("{}{token}{}", random(LETTERS, 500, 7), random(LETTERS, 500, 8));
        assert_eq!(find_joined_secrets(&text).len(), 1, "{text}");
    }
}

#[test]
fn signs_of_chance_hold_no_joined_tokens() {
    const URL: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let long = random(URL, 4 << 20, 11);
    let hashes: String = (0..20_000).map(|seed| random(URL, 43, seed) + "\n").collect();
    // Proteins: capital letters alone.
    let lines: String =
        (0..20_000).map(|seed| random("ACDEFGHIKLMNPQRSTVWY", 60, seed) + "\n").collect();
    for text in [&long, &hashes, &lines] {
        let found = find_joined_secrets(text);
        assert!(found.is_empty(), "{found:?}");
    }
    // A short prefix is none in a longer run.
    for prefix in ["hf_", "r8_"] {
        let text = format!("{prefix}{}", random(LETTERS, 40, 1));
        assert!(find_joined_secrets(&text).is_empty(), "{text}");
    }
    // Words that end as a prefix begins.
    for text in [
        "/blog/helpdesk-admin-user-management-and-permissions-guide-2024",
        "/docs/desk-admin-Guide-to-user-management-and-permissions-in-2024-edition",
        "task-admin-dashboard-deployment-7d9f8b6c5d-x2x4z-canary",
        "ticketdesk-proj-2024-migration-of-the-customer-portal-phase-2",
        "network_live_NotificationHandlerService",
        "task_live_UpdateSubscriptionManager",
        "configd_SCDynamicStoreNotifyFileDescriptorCallback",
        "usb_secret_key_derivation_function_v2_init",
    ] {
        assert!(find_joined_secrets(text).is_empty(), "{text}");
    }
    // But for tokens that are good.
    for text in negatives().iter().filter(|text| !text.contains("ghp_")) {
        let found = find_joined_secrets(text);
        assert!(found.is_empty(), "{found:?} in {text}");
    }
}

#[test]
fn fingerprints_are_keyed_and_hold_no_value() {
    let token = checked("ghp_", 1);
    let (one, two) = (format!("a {token}"), format!("other text {token} end"));
    let print = |key: u8, text: &str| fingerprint(&[key; 32], text, &find_secrets(text)[0]);
    assert_eq!(print(1, &one), print(1, &two));
    assert_ne!(print(1, &one), print(2, &one));
    assert!(!format!("{:?}", find_secrets(&one)).contains(&token[4..]));
}

#[test]
fn overlaps_are_redacted_once() {
    let text = "0123456789";
    let secrets = [secret("a", 2, 5, 0.5), secret("b", 4, 7, 0.9), secret("c", 8, 9, 0.5)];
    assert_eq!(redact(text, &secrets), "01[REDACTED:b]7[REDACTED:c]9");
    assert_eq!(
        redact("äöü", &[secret("a", 1, 3, 0.5), secret("a", 90, 99, 0.5)]),
        "[REDACTED:a]ü[REDACTED:a]"
    );
}

#[test]
fn a_value_is_redacted_where_nothing_announces_it() {
    let (value, other) = ("s9fK2mQx7Lp", "qZ81+vv0Txkd9");
    let text = format!(
        "It is {value}, they said.\npassword = \"{value}\"\ndb_passwd = '{other}'\n\
         Try {value}{other}{value} or x{other}y: {}.",
        &value[..7]
    );
    let found = find_secrets(&text);
    assert_eq!(found.len(), 2, "{found:?}");
    let safe = redact(&text, &found);
    assert!(!safe.contains(value) && !safe.contains(other), "{safe}");
    assert_eq!(safe.matches("[REDACTED:").count(), 7, "{safe}");
    assert!(safe.ends_with(&format!("y: {}.", &value[..7])), "{safe}");
}

#[test]
fn short_values_and_placeholders_stay_elsewhere() {
    let text = "postgres://app:kz71q@db/app\npassword = \"changeme\"\npassword changeme, kz71q";
    let safe = redact(text, &find_secrets(text));
    assert_eq!(safe, text.replace(":kz71q", ":[REDACTED:postgres-url]"));
}

#[test]
fn long_values_are_redacted_to_their_end() {
    let body = |seed: u64| -> String {
        let key = (1..200).map(|n| format!("{:x}", (seed + n).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        key.collect()
    };
    // Two that begin alike, and differ only behind what is looked for.
    let start = body(0)[..300].to_owned();
    let (one, two) = (format!("{start}{}", body(7)), format!("{start}é{}", body(9)));
    let text = format!("{one} {two} {two}x{one}");
    let secrets = [
        secret("a", 0, one.len(), 0.9),
        secret("b", one.len() + 1, one.len() + 1 + two.len(), 0.9),
    ];
    let safe = redact(&text, &secrets);
    assert_eq!(safe.replace("[REDACTED:a]", "#").replace("[REDACTED:b]", "#"), "# # #x#");
}

#[test]
fn values_that_are_everywhere_stay_linear() {
    let time = |size: usize| {
        // Long values that begin alike, in a text that nearly is one of them everywhere.
        let unit = "k3y-0f.t";
        let text = unit.repeat(size / unit.len());
        let secrets: Vec<_> =
            (1..500).map(|n| secret("a", 0, (n * 96).min(text.len()), 0.9)).collect();
        let began = processor::time();
        let safe = redact(&text, &secrets);
        assert!(safe.len() < size / 1000, "{}", safe.len());
        let text = format!("{}!", unit.repeat(15)).repeat(size / 121);
        redact(&text, &[secret("a", 0, 120, 0.9), secret("a", 1, 119, 0.9)]);
        processor::time() - began
    };
    let (small, large) = (time(1 << 20), time(1 << 22));
    assert!(large < small * 16 + std::time::Duration::from_millis(200), "{small:?} {large:?}");
}

#[test]
fn repetition_stays_linear() {
    for unit in [
        "-----BEGIN RSA PRIVATE KEY-----",
        "eyJ",
        "eyJhbGciOiJ.",
        "://",
        "token=",
        "token",
        "4539 ",
        "45391488",
        "AKIA",
        "machine a login ",
        "PuTTY-User-Key-File-2: a\n",
        "twilio",
        ":5432:",
        ":AA",
        "&sig=",
        "authorization: bearer ",
        "sk-",
        "-us1",
        "passw: \"",
        "hooks.slack.com/services/T",
        "eyJhbGciOiJhbGciOiJhbGci",
        "eyJhbGciOiJhbGciOiJhbGci.",
        "ghr_0123456789012345678901234567890123456789",
        "glpat-012345678901234567890",
    ] {
        let text = unit.repeat((4 << 20) / unit.len());
        for find in [find_secrets, find_joined_secrets] {
            let start = processor::time();
            let _found = find(&text);
            let took = processor::time() - start;
            assert!(took.as_secs() < 8, "{unit} {took:?}");
        }
    }
}

proptest! {
    #[test]
    fn spans_are_text(text in "(token|passw|://|-----BEGIN |PRIVATE KEY-----|eyJ|:AA|AKIA|[ =:\"a-zA-Z0-9äß@/.-]){0,60}") {
        let found = find_secrets(&text);
        for secret in &found {
            prop_assert!(text.get(secret.span.start..secret.span.end).is_some());
        }
        let safe = redact(&text, &found);
        for value in found.iter().map(|one| &text[one.span.start..one.span.end]) {
            prop_assert!(value.len() < 8 || !safe.contains(value), "{value} in {safe}");
        }
    }

    #[test]
    fn any_text_is_read(text in "\\PC{0,300}") {
        let _found = find_secrets(&text);
    }
}
