//! Tokens that are known by a prefix.

use super::placeholders::{entropy, is_placeholder};
use super::{Secret, run_length, secret};

/// Signs that the rest of a token consists of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Signs {
    /// `0-9 A-Z a-z`.
    Alphanumeric,
    /// Those, `_` and `-`.
    Url,
    /// Those and `.`.
    Dotted,
    /// Those of base64.
    Base64,
    /// Lower-case hexadecimal.
    Hex,
    /// `A-Z 2-7`.
    Base32,
    /// `A-Z 0-9`.
    Upper,
}

/// What else must hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Proof {
    None,
    /// The last six signs are the CRC-32 of those before, in base 62.
    Crc62,
    /// The last eight signs, behind `_`, are the CRC-32 of all before, in hexadecimal.
    CrcHex,
    /// A sign that must occur at this place of the rest.
    At(usize, u8),
    /// The mark that this vendor's keys have inside.
    Contains(&'static str),
}

/// One token format.
#[derive(Debug)]
pub(super) struct Format {
    pub(super) prefix: &'static str,
    kind: &'static str,
    signs: Signs,
    /// Length of what follows the prefix.
    least: usize,
    most: usize,
    proof: Proof,
    confidence: f32,
}

const fn token(
    prefix: &'static str,
    kind: &'static str,
    signs: Signs,
    least: usize,
    most: usize,
) -> Format {
    Format { prefix, kind, signs, least, most, proof: Proof::None, confidence: 0.95 }
}

impl Format {
    const fn proved(mut self, proof: Proof) -> Self {
        self.proof = proof;
        self
    }

    const fn sure(mut self, confidence: f32) -> Self {
        self.confidence = confidence;
        self
    }

    fn has_checksum(&self) -> bool {
        matches!(self.proof, Proof::Crc62 | Proof::CrcHex)
    }

    /// Most signs that may be joined to the beginning of a token: the less likely the prefix is among
    /// signs of chance, the more.
    fn most_before(&self) -> usize {
        match self.prefix.len() {
            _ if self.has_checksum() || matches!(self.signs, Signs::Hex) => usize::MAX,
            ..4 => 0,
            4..TELLING => 8,
            _ => usize::MAX,
        }
    }

    /// The length of a token that other signs may be joined to, in a run of as many signs.
    fn joined_length(&self, run: &[u8]) -> Option<usize> {
        let capitals = matches!(self.signs, Signs::Base32 | Signs::Upper);
        if run.len() < self.least {
            None
        } else if self.proof == Proof::Crc62 {
            crc62_length(run, self.least, self.most)
        } else if capitals && self.prefix.len() < TELLING {
            // There are texts of capital letters alone, in which the prefix is a word.
            (run.len() <= self.most).then_some(run.len())
        } else {
            Some(run.len().min(self.most))
        }
    }
}

/// A prefix of as many signs does not occur by chance.
const TELLING: usize = 6;

use Signs::{Alphanumeric, Base32, Base64, Dotted, Hex, Upper, Url};

pub(super) static FORMATS: &[Format] = &[
    token("ghp_", "github-token", Alphanumeric, 36, 36).proved(Proof::Crc62).sure(0.99),
    token("gho_", "github-token", Alphanumeric, 36, 36).proved(Proof::Crc62).sure(0.99),
    token("ghu_", "github-token", Alphanumeric, 36, 36).proved(Proof::Crc62).sure(0.99),
    token("ghs_", "github-token", Alphanumeric, 36, 36).proved(Proof::Crc62).sure(0.99),
    token("ghr_", "github-token", Alphanumeric, 36, 76).proved(Proof::Crc62).sure(0.99),
    token("github_pat_", "github-fine-grained-token", Url, 82, 82)
        .proved(Proof::At(22, b'_'))
        .sure(0.98),
    token("npm_", "npm-token", Alphanumeric, 36, 36).proved(Proof::Crc62).sure(0.99),
    token("pypi-AgEIcHlwaS5vcmc", "pypi-token", Url, 50, 1000).sure(0.99),
    token("pypi-AgENdGVzdC5weXBpLm9yZw", "pypi-token", Url, 50, 1000).sure(0.99),
    token("AKIA", "aws-access-key", Base32, 16, 16).sure(0.85),
    token("ASIA", "aws-access-key", Base32, 16, 16).sure(0.85),
    token("AIza", "google-api-key", Url, 35, 35),
    token("AIzaSy", "google-api-key", Url, 33, 33),
    token("ya29.", "google-oauth-token", Dotted, 40, 2000),
    token("GOCSPX-", "google-oauth-secret", Url, 28, 28),
    token("1//0", "google-refresh-token", Url, 60, 160).sure(0.8),
    token("xoxb-", "slack-token", Url, 20, 250),
    token("xoxp-", "slack-token", Url, 20, 250),
    token("xoxa-", "slack-token", Url, 20, 250),
    token("xoxr-", "slack-token", Url, 20, 250),
    token("xoxs-", "slack-token", Url, 20, 250),
    token("xoxc-", "slack-token", Url, 20, 250),
    token("xoxd-", "slack-token", Url, 20, 400),
    token("xoxe-", "slack-token", Url, 20, 400),
    token("xapp-", "slack-token", Url, 40, 250),
    token("sk_live_", "stripe-secret-key", Alphanumeric, 24, 247).sure(0.98),
    token("rk_live_", "stripe-secret-key", Alphanumeric, 24, 247).sure(0.98),
    token("sk_test_", "stripe-test-key", Alphanumeric, 24, 247).sure(0.6),
    token("rk_test_", "stripe-test-key", Alphanumeric, 24, 247).sure(0.6),
    token("pk_live_", "stripe-publishable-key", Alphanumeric, 24, 247).sure(0.2),
    token("whsec_", "stripe-webhook-secret", Base64, 32, 64).sure(0.9),
    token("sk-proj-", "openai-key", Url, 40, 200),
    token("sk-svcacct-", "openai-key", Url, 40, 200),
    token("sk-admin-", "openai-key", Url, 40, 200),
    token("sk-ant-", "anthropic-key", Url, 80, 140).sure(0.98),
    token("sk-or-v1-", "openrouter-key", Hex, 64, 64),
    token("sk-", "llm-api-key", Alphanumeric, 32, 64).sure(0.8),
    token("SG.", "sendgrid-key", Dotted, 66, 66).proved(Proof::At(22, b'.')),
    token("key-", "mailgun-key", Hex, 32, 32).sure(0.8),
    token("shpat_", "shopify-token", Hex, 32, 32),
    token("shpca_", "shopify-token", Hex, 32, 32),
    token("shppa_", "shopify-token", Hex, 32, 32),
    token("shpss_", "shopify-token", Hex, 32, 32),
    token("glpat-", "gitlab-token", Dotted, 20, 320),
    token("gldt-", "gitlab-token", Dotted, 20, 320),
    token("glrt-", "gitlab-token", Dotted, 20, 320),
    token("glptt-", "gitlab-token", Hex, 40, 40),
    token("glcbt-", "gitlab-token", Dotted, 20, 320),
    token("gloas-", "gitlab-token", Hex, 64, 64),
    token("glsoat-", "gitlab-token", Dotted, 20, 320),
    token("glagent-", "gitlab-token", Url, 50, 64),
    token("dop_v1_", "digitalocean-token", Hex, 64, 64),
    token("doo_v1_", "digitalocean-token", Hex, 64, 64),
    token("dor_v1_", "digitalocean-token", Hex, 64, 64),
    token("hf_", "huggingface-token", Alphanumeric, 34, 37).sure(0.92),
    token("api_org_", "huggingface-token", Alphanumeric, 34, 34),
    token("AGE-SECRET-KEY-1", "age-key", Upper, 58, 58).sure(0.99),
    token("hvs.", "vault-token", Url, 24, 200),
    token("hvb.", "vault-token", Url, 90, 300),
    token("dckr_pat_", "docker-token", Url, 27, 27),
    token("dckr_oat_", "docker-token", Url, 32, 32),
    token("lin_api_", "linear-key", Alphanumeric, 40, 40),
    token("ntn_", "notion-token", Alphanumeric, 43, 50),
    token("figd_", "figma-token", Url, 40, 60),
    token("glsa_", "grafana-token", Url, 41, 41).proved(Proof::CrcHex).sure(0.99),
    token("glc_eyJ", "grafana-token", Base64, 32, 400),
    token("dapi", "databricks-token", Hex, 32, 32).sure(0.9),
    token("pul-", "pulumi-token", Hex, 40, 40),
    token("ATATT3", "atlassian-token", Base64, 180, 200).sure(0.97),
    token("PMAK-", "postman-key", Url, 59, 59).proved(Proof::At(24, b'-')),
    token("NRAK-", "newrelic-key", Upper, 27, 27),
    token("dp.pt.", "doppler-token", Alphanumeric, 40, 44),
    token("dp.st.", "doppler-token", Dotted, 40, 80),
    token("pscale_tkn_", "planetscale-token", Dotted, 32, 64),
    token("pscale_pw_", "planetscale-token", Dotted, 32, 64),
    token("gsk_", "groq-key", Alphanumeric, 52, 52),
    token("pplx-", "perplexity-key", Alphanumeric, 48, 56),
    token("r8_", "replicate-token", Alphanumeric, 37, 37),
    token("xai-", "xai-key", Alphanumeric, 80, 80),
    token("sbp_", "supabase-token", Hex, 40, 40),
    token("sb_secret_", "supabase-token", Url, 31, 48),
    token("tskey-", "tailscale-key", Url, 30, 64),
    token("sntryu_", "sentry-token", Hex, 64, 64),
    token("sntrys_", "sentry-token", Base64, 60, 300),
    token("rubygems_", "rubygems-key", Hex, 48, 48),
    token("nfp_", "netlify-token", Alphanumeric, 36, 36),
    token("CFPAT-", "contentful-token", Url, 43, 43),
    token("dt0c01.", "dynatrace-token", Dotted, 89, 89).proved(Proof::At(24, b'.')),
    token("LTAI", "alibaba-access-key", Alphanumeric, 12, 20).sure(0.6),
    token("sq0csp-", "square-secret", Url, 43, 43),
    token("sq0atp-", "square-token", Url, 22, 22),
    token("EAAAE", "square-token", Url, 59, 59).sure(0.7),
    token("shippo_live_", "shippo-token", Hex, 40, 40),
    token("fm2_", "fly-token", Base64, 100, 2000),
    token(".atlasv1.", "terraform-token", Url, 60, 70),
    token("hooks.slack.com/services/T", "slack-webhook", Signs::Base64, 35, 60).sure(0.97),
    token("discord.com/api/webhooks/", "discord-webhook", Signs::Base64, 70, 120)
        .proved(Proof::Contains("/")),
    token("discordapp.com/api/webhooks/", "discord-webhook", Signs::Base64, 70, 120)
        .proved(Proof::Contains("/")),
];

fn fits(signs: Signs, byte: u8) -> bool {
    match signs {
        Signs::Alphanumeric => byte.is_ascii_alphanumeric(),
        Signs::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
        Signs::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
        Signs::Base64 => {
            byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'_' | b'-')
        }
        Signs::Hex => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        Signs::Base32 => matches!(byte, b'A'..=b'Z' | b'2'..=b'7'),
        Signs::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
    }
}

/// As much of a token tells whether it is chance.
const SAMPLE: usize = 64;

/// How far a text was read for tokens.
///
/// INVARIANT: what a prefix may stand in again and again is read once, not once for each.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// Whether other signs may be joined to a token.
    joined: bool,
    /// The end of the last run of each of these signs.
    dotted: usize,
    base64: usize,
    /// The end of what was searched behind a vendor's name.
    twilio: usize,
    aws: usize,
    /// The end of a run in which web tokens were looked for, and how often.
    web: (usize, u8),
}

impl Read {
    /// For tokens that other signs may be joined to.
    pub(super) fn joined() -> Self {
        Self { joined: true, ..Self::default() }
    }

    pub(super) fn is_joined(&self) -> bool {
        self.joined
    }

    /// Whether a web token may begin at a place: a few times in a run where signs may be joined to it.
    pub(super) fn web_token(&mut self, text: &[u8], start: usize) -> bool {
        const TIMES: u8 = 8;
        let sign = |byte| fits(Signs::Url, byte);
        if start == 0 || !sign(text[start - 1]) {
            return true;
        }
        if self.joined && self.web.0 <= start {
            self.web = (start + run_length(text, start, usize::MAX, sign), 0);
        }
        self.web.1 = self.web.1.saturating_add(1);
        self.joined && self.web.1 <= TIMES
    }

    /// Whether a token may begin at a place.
    fn begins(&self, format: &Format, text: &[u8], start: usize) -> bool {
        let inside =
            format.prefix.starts_with(['.', 'h', 'd']) && format.prefix.contains(['/', '.']);
        let most = if self.joined { format.most_before() } else { 0 };
        if inside || most == usize::MAX {
            return true;
        }
        let before = text[..start].iter().rev().take(most + 1);
        before.take_while(|byte| fits(Signs::Url, **byte)).count() <= most
    }

    /// The length of a token in a run of its signs, if it may end there.
    fn ends(&self, format: &Format, text: &[u8], from: usize, run: usize) -> Option<usize> {
        if self.joined && format.most_before() > 0 {
            return format.joined_length(&text[from..from + run]);
        }
        let next = text.get(from + run);
        let goes_on =
            matches!(format.signs, Signs::Hex | Signs::Base32 | Signs::Upper | Signs::Alphanumeric)
                && next.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        ((format.least..=format.most).contains(&run) && !goes_on).then_some(run)
    }

    /// How many bytes from `from` on a token could consist of, and one more if there are too many.
    fn run(&mut self, format: &Format, text: &[u8], from: usize) -> usize {
        let fits = |byte| fits(format.signs, byte);
        let end = match format.signs {
            Signs::Dotted => &mut self.dotted,
            Signs::Base64 => &mut self.base64,
            _ => return run_length(text, from, format.most + 1, fits),
        };
        if *end < from {
            *end = from + run_length(text, from, usize::MAX, fits);
        }
        (*end - from).min(format.most + 1)
    }
}

/// Checks a token whose prefix was seen, in whatever case.
pub(super) fn check(
    format: &Format,
    text: &[u8],
    start: usize,
    read: &mut Read,
    found: &mut Vec<Secret>,
) {
    let from = start + format.prefix.len();
    if text[start..from] != *format.prefix.as_bytes() || !read.begins(format, text, start) {
        return;
    }
    // The last of several prefixes in a row is the one of a token.
    if text[from..].starts_with(format.prefix.as_bytes()) {
        return;
    }
    let mut run = read.run(format, text, from);
    // A dot ends the sentence, not the token.
    while run > 0 && matches!(text[from + run - 1], b'.' | b'-') {
        run -= 1;
    }
    let Some(length) = read.ends(format, text, from, run) else { return };
    let rest = &text[from..from + length];
    let proved = match format.proof {
        Proof::None => true,
        Proof::Crc62 => crc62(rest),
        Proof::CrcHex => crc_hex(format.prefix, rest),
        Proof::At(place, sign) => rest.get(place) == Some(&sign),
        Proof::Contains(part) => memchr::memmem::find(rest, part.as_bytes()).is_some(),
    };
    let before = start.checked_sub(1).map(|at| text[at]);
    if read.joined && before.is_some_and(|byte| fits(Signs::Url, byte)) && !is_no_word(format, rest)
    {
        return;
    }
    // What is joined to it need not look like it.
    let least = if read.joined { format.least } else { length };
    if proved && [length, least].iter().any(|length| is_chance(format, &rest[..*length])) {
        let start =
            if format.prefix.starts_with('.') { terraform_start(text, start) } else { start };
        found.push(secret(format.kind, start, from + length, format.confidence));
    }
    if format.kind == "aws-access-key" {
        aws_secret(text, from + length, read, found);
    }
}

/// Whether a token is made of signs of chance.
fn is_chance(format: &Format, rest: &[u8]) -> bool {
    let least_entropy = if matches!(format.signs, Signs::Hex) { 2.6 } else { 2.9 };
    let sample = &rest[..rest.len().min(SAMPLE)];
    digits_or_mixed(sample) && entropy(sample) >= least_entropy && !is_placeholder(sample)
}

/// Whether a token whose prefix may be the end of a word (`help` + `desk-admin-…`) is no words either: it has digits,
/// capitals and small letters, and few signs that part words.
fn is_no_word(format: &Format, rest: &[u8]) -> bool {
    if format.has_checksum() || matches!(format.signs, Signs::Hex | Signs::Base32 | Signs::Upper) {
        return true;
    }
    let rest = &rest[..rest.len().min(format.least)];
    let parts = rest.iter().filter(|byte| !byte.is_ascii_alphanumeric()).count();
    let has = |is: fn(&u8) -> bool| rest.iter().any(is);
    has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && parts * 8 <= rest.len()
}

/// `sk-` and the like also begin words: `sk-learn-compatible…` has neither digits nor capitals.
fn digits_or_mixed(rest: &[u8]) -> bool {
    rest.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

fn terraform_start(text: &[u8], start: usize) -> usize {
    let back =
        text[..start].iter().rev().take(14).take_while(|b| b.is_ascii_alphanumeric()).count();
    start - back
}

/// The secret key that follows an access key, within the next lines: a run of forty signs.
fn aws_secret(text: &[u8], from: usize, read: &mut Read, found: &mut Vec<Secret>) {
    const LENGTH: usize = 40;
    let sign = |byte: u8| fits(Signs::Base64, byte) && byte != b'=';
    let end = text.len().min(from + 160);
    let mut at = from.max(read.aws);
    while at < end {
        let Some(start) = text.get(at..at + LENGTH) else { return };
        // From the end: what breaks the run near its end need not be passed byte by byte.
        if let Some(gap) = start.iter().rposition(|byte| !sign(*byte)) {
            at += gap + 1;
            read.aws = at;
            continue;
        }
        let length = run_length(text, at, 200, sign);
        let value = &text[at..at + length];
        if length == LENGTH && entropy(value) > 4.2 && !is_placeholder(value) {
            found.push(secret("aws-secret-key", at, at + length, 0.95));
            return;
        }
        at += length + 1;
        read.aws = at;
    }
}

/// The checksum of GitHub and npm tokens.
fn crc62(rest: &[u8]) -> bool {
    let Some(split) = rest.len().checked_sub(6) else { return false };
    let (body, sum) = rest.split_at(split);
    base62(crc32fast::hash(body)) == *sum
}

/// The length of a beginning with that checksum.
fn crc62_length(run: &[u8], least: usize, most: usize) -> Option<usize> {
    let (head, tail) = run.split_at_checked(least.checked_sub(6)?)?;
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    for (more, byte) in tail.iter().take(most + 1 - least).enumerate() {
        let sum = base62(hasher.clone().finalize());
        if tail[more..].starts_with(&sum) {
            return Some(least + more);
        }
        hasher.update(&[*byte]);
    }
    None
}

pub(super) fn base62(mut value: u32) -> [u8; 6] {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut out = [b'0'; 6];
    for digit in out.iter_mut().rev() {
        *digit = DIGITS[(value % 62) as usize];
        value /= 62;
    }
    out
}

fn crc_hex(prefix: &str, rest: &[u8]) -> bool {
    let Some((body, sum)) = rest.split_at_checked(33) else { return false };
    let whole = [prefix.as_bytes(), &body[..32]].concat();
    let sums = [crc32fast::hash(&whole), crc32fast::hash(&body[..32])];
    body[32] == b'_' && sums.iter().any(|value| format!("{value:08x}").as_bytes() == sum)
}

/// `digits:AA…`.
pub(super) fn telegram(text: &[u8], start: usize, joined: bool, found: &mut Vec<Secret>) {
    const LENGTH: usize = 35;
    let most = if joined { 10 } else { 11 };
    let digits =
        text[..start].iter().rev().take(most).take_while(|byte| byte.is_ascii_digit()).count();
    let length = run_length(text, start + 1, 40, |byte| fits(Signs::Url, byte));
    let before = (start - digits).checked_sub(1).map_or(b' ', |place| text[place]);
    // `bot123:AA…` is how the token stands in a URL.
    let alone = length == LENGTH && (!before.is_ascii_alphanumeric() || before == b't');
    // Data that begin with zeros begin so, too.
    let joined = joined && length >= LENGTH && !text[start..].starts_with(b":AAA");
    if (8..=10).contains(&digits) && (alone || joined) && text[start..].starts_with(b":AA") {
        let end = start + 1 + LENGTH;
        let value = &text[start + 3..end];
        if entropy(value) > 3.5 && !is_placeholder(value) {
            found.push(secret("telegram-bot-token", start - digits, end, 0.97));
        }
    }
}

/// `SK…` and 32 digits near the vendor's name.
pub(super) fn twilio(text: &[u8], from: usize, read: &mut Read, found: &mut Vec<Secret>) {
    let end = text.len().min(from + 160);
    let mut at = from.max(read.twilio);
    while at < end {
        let length = run_length(text, at, 64, |byte| byte.is_ascii_alphanumeric());
        let value = &text[at..at + length];
        let digits = value.strip_prefix(b"SK").unwrap_or(value);
        let known = digits.len() == 32 && digits.iter().all(|byte| fits(Signs::Hex, *byte));
        if known && entropy(digits) > 2.8 && !is_placeholder(digits) {
            found.push(secret("twilio-key", at, at + length, 0.8));
        }
        at += length.max(1);
        read.twilio = at;
    }
}

/// 32 digits, `-us` and the data centre.
pub(super) fn mailchimp(text: &[u8], start: usize, end: usize, found: &mut Vec<Secret>) {
    let centre = run_length(text, end, 3, |byte| byte.is_ascii_digit());
    let digits =
        text[..start].iter().rev().take(33).take_while(|byte| fits(Signs::Hex, **byte)).count();
    if (1..=2).contains(&centre) && digits == 32 {
        let from = start - digits;
        if entropy(&text[from..start]) > 2.8 && !is_placeholder(&text[from..start]) {
            found.push(secret("mailchimp-key", from, end + centre, 0.93));
        }
    }
}
