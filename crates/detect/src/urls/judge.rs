//! What is risky about a URL.

use super::parts::{HostPart, Parts};
use super::presigned::{is_mark, without_signature};
use super::{AddressClass, Service, UrlContext, UrlMatch, classify_address, service_of};
use crate::words::Words;
use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A kind of risk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum UrlRiskKind {
    /// An image or link that carries data out when it is shown or followed.
    Exfiltration,
    /// Long or encoded data in query, path, fragment or host.
    EncodedData,
    /// A place that the model is to fill with data.
    Placeholder,
    /// A callback, paste, upload or tunnel service.
    DropService,
    /// A shortener or a name that leads elsewhere.
    Redirection,
    /// An address instead of a name.
    RawAddress,
    /// A cloud's metadata service.
    Metadata,
    /// This machine, a private or link-local network.
    Internal,
    /// `data:`.
    DataUri,
    /// `javascript:`, `vbscript:`.
    Script,
    /// A user name in front of the host that poses as a host.
    UserInfo,
    /// Letters of several scripts in one label.
    MixedScript,
    /// An international name.
    Punycode,
    /// An address in an unusual spelling.
    Disguised,
}

impl UrlRiskKind {
    /// The id of the rule that a finding of this kind is of.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Exfiltration => "url.exfiltration",
            Self::EncodedData => "url.encodeddata",
            Self::Placeholder => "url.placeholder",
            Self::DropService => "url.dropservice",
            Self::Redirection => "url.redirection",
            Self::RawAddress => "url.rawaddress",
            Self::Metadata => "url.metadata",
            Self::Internal => "url.internal",
            Self::DataUri => "url.datauri",
            Self::Script => "url.script",
            Self::UserInfo => "url.userinfo",
            Self::MixedScript => "url.mixedscript",
            Self::Punycode => "url.punycode",
            Self::Disguised => "url.disguised",
        }
    }
}

/// One risk.
#[derive(Debug, Clone, PartialEq)]
pub struct UrlRisk {
    /// Its kind.
    pub kind: UrlRiskKind,
    /// How much it weighs, from 0 to 1.
    pub weight: f32,
    /// Why it matters, in a sentence.
    pub reason: Cow<'static, str>,
}

/// Words in a placeholder or a parameter that stand for what must not leave.
static DATA_WORDS: Words<30> = Words::new([
    "data",
    "secret",
    "conversation",
    "history",
    "context",
    "prompt",
    "message",
    "email",
    "password",
    "passwd",
    "token",
    "content",
    "summary",
    "output",
    "base64",
    "encoded",
    "response",
    "chat",
    "memory",
    "env",
    "credential",
    "apikey",
    "api_key",
    "key",
    "result",
    "stolen",
    "exfil",
    "private",
    "system",
    "answer",
]);

/// Parameters that carry long values for honest reasons.
const SIGNED: [&str; 18] = [
    "x-amz-signature",
    "x-amz-credential",
    "x-amz-security-token",
    "x-goog-signature",
    "x-goog-credential",
    "signature",
    "sig",
    "policy",
    "hmac",
    "key-pair-id",
    "code_challenge",
    "state",
    "nonce",
    "integrity",
    "hash",
    "sha256",
    "etag",
    "fingerprint",
];

/// Judges a URL by what it is and what it stands in.
pub fn judge_url(found: &UrlMatch, context: UrlContext) -> Vec<UrlRisk> {
    judge(&Parts::from(&found.url), context)
}

/// Judges a URL in its parts.
pub(super) fn judge(url: &Parts<'_>, context: UrlContext) -> Vec<UrlRisk> {
    let mut risks = Vec::new();
    let mut add = |kind, weight: f32, reason: &'static str| {
        risks.push(UrlRisk { kind, weight, reason: Cow::Borrowed(reason) });
    };
    match url.scheme {
        "javascript" | "vbscript" => add(UrlRiskKind::Script, 0.8, "the link runs a script"),
        "data" => {
            let active = ["text/html", "image/svg", "application/", "javascript"]
                .iter()
                .any(|kind| url.path.to_ascii_lowercase().contains(kind));
            let weight = if active { 0.6 } else { 0.1 };
            add(UrlRiskKind::DataUri, weight, "the content is inside the link itself");
        }
        _ => {}
    }
    judge_host(url, &mut add);
    if url.has_userinfo {
        let posing = userinfo(url.raw).is_some_and(|user| user.contains('.'));
        let weight = if posing { 0.8 } else { 0.3 };
        add(
            UrlRiskKind::UserInfo,
            weight,
            "a user name stands in front of the host and may pose as it",
        );
    }
    let dropped = risks.iter().any(|risk| risk.kind == UrlRiskKind::DropService);
    let (encoded, placeholder) = (carried(url), asked(url.raw));
    let shown = context.in_image || context.in_link;
    if let Some(weight) = encoded {
        let reason = "the address carries long or encoded data";
        risks.push(UrlRisk {
            kind: UrlRiskKind::EncodedData,
            weight,
            reason: Cow::Borrowed(reason),
        });
    }
    if let Some(weight) = placeholder {
        let reason = "the address has a place to be filled with data";
        risks.push(UrlRisk {
            kind: UrlRiskKind::Placeholder,
            weight,
            reason: Cow::Borrowed(reason),
        });
    }
    let payload = encoded.unwrap_or(0.0).max(placeholder.unwrap_or(0.0));
    let queried = url.query.is_some_and(|query| query.contains('='));
    if shown && (payload >= 0.3 || dropped && queried) {
        let base: f32 = if context.in_image { 0.7 } else { 0.4 };
        let weight = (base
            + payload * 0.25
            + if dropped { 0.2 } else { 0.0 }
            + if context.from_model { 0.1 } else { 0.0 })
        .min(1.0);
        let reason = if context.in_image {
            "an image whose address carries data: showing it sends them"
        } else {
            "a link whose address carries data: following it sends them"
        };
        risks.push(UrlRisk {
            kind: UrlRiskKind::Exfiltration,
            weight,
            reason: Cow::Borrowed(reason),
        });
    }
    risks.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(a.kind.cmp(&b.kind)));
    risks
}

fn judge_host(url: &Parts<'_>, add: &mut impl FnMut(UrlRiskKind, f32, &'static str)) {
    if url.disguised_address {
        add(UrlRiskKind::Disguised, 0.8, "the address is spelled so that it is not recognised");
    }
    match url.host {
        HostPart::None => {}
        HostPart::Address(address) => address_risk(address, add),
        HostPart::Domain { ascii, unicode } => {
            match service_of(ascii) {
                Some(Service::Callback) => add(
                    UrlRiskKind::DropService,
                    0.9,
                    "a service that shows its owner every request",
                ),
                Some(Service::Tunnel) => {
                    add(UrlRiskKind::DropService, 0.7, "a tunnel to a machine that nobody can name")
                }
                Some(Service::Upload) => {
                    add(UrlRiskKind::DropService, 0.7, "a service that takes files from anybody")
                }
                Some(Service::Paste) => {
                    add(UrlRiskKind::DropService, 0.6, "a service that takes texts from anybody")
                }
                Some(Service::Shortener) => {
                    add(UrlRiskKind::Redirection, 0.3, "where the link leads is hidden")
                }
                Some(Service::Rebinding) => {
                    let (kind, weight) = match address_in(ascii).map(classify_address) {
                        Some(AddressClass::Public) => (UrlRiskKind::Redirection, 0.7),
                        Some(AddressClass::Metadata) => (UrlRiskKind::Metadata, 0.95),
                        _ => (UrlRiskKind::Internal, 0.7),
                    };
                    add(kind, weight, "the name resolves to the address inside it");
                }
                None => {}
            }
            if is_metadata(ascii) {
                add(
                    UrlRiskKind::Metadata,
                    0.95,
                    "a cloud's metadata service hands out credentials",
                );
            } else if is_local(ascii) {
                add(UrlRiskKind::Internal, 0.3, "a name of the local network");
            }
            let hyphens = memchr::memchr(b'-', ascii.as_bytes()).is_some();
            if hyphens && ascii.split('.').any(|label| label.starts_with("xn--")) {
                add(
                    UrlRiskKind::Punycode,
                    0.3,
                    "an international name, which may look like another",
                );
            }
            if !unicode.is_ascii() && unicode.split('.').any(mixes_scripts) {
                add(UrlRiskKind::MixedScript, 0.8, "letters of several scripts stand in one name");
            }
        }
    }
}

fn is_metadata(host: &str) -> bool {
    match host.as_bytes() {
        [b'm', ..] => matches!(
            host,
            "metadata.google.internal"
                | "metadata"
                | "metadata.azure.com"
                | "metadata.tencentyun.com"
        ),
        [b'i', ..] => host == "instance-data" || host.starts_with("instance-data."),
        _ => false,
    }
}

fn is_local(host: &str) -> bool {
    let (name, last) = host.rsplit_once('.').unwrap_or(("", host));
    match last {
        "localhost" => true,
        "local" | "internal" | "lan" | "intranet" => last.len() < host.len(),
        "arpa" => name.ends_with(".home"),
        _ => false,
    }
}

fn address_risk(address: IpAddr, add: &mut impl FnMut(UrlRiskKind, f32, &'static str)) {
    match classify_address(address) {
        AddressClass::Metadata => {
            add(UrlRiskKind::Metadata, 0.95, "a cloud's metadata service hands out credentials")
        }
        AddressClass::Loopback | AddressClass::Private => {
            add(UrlRiskKind::Internal, 0.3, "an address of this machine or a private network")
        }
        AddressClass::LinkLocal => add(UrlRiskKind::Internal, 0.6, "an address of this link only"),
        AddressClass::Reserved => add(UrlRiskKind::RawAddress, 0.3, "an address that is reserved"),
        AddressClass::Public => add(UrlRiskKind::RawAddress, 0.4, "an address instead of a name"),
    }
}

/// `10.0.0.1.nip.io`, `10-0-0-1.nip.io`, `app-0a000001.nip.io`, `fd00-ec2--254.sslip.io`.
fn address_in(host: &str) -> Option<IpAddr> {
    let numbers: Vec<u8> = host.split(['.', '-']).filter_map(|part| part.parse().ok()).collect();
    if let Some([a, b, c, d]) = numbers.last_chunk() {
        return Some(Ipv4Addr::new(*a, *b, *c, *d).into());
    }
    let long = |label: &str| label.replace('-', ":").parse::<Ipv6Addr>().ok();
    if let Some(address) = host.split('.').filter(|label| label.contains("-")).find_map(long) {
        return Some(address.into());
    }
    let hex = host.split(['.', '-']).find(|label| label.len() == 8)?;
    u32::from_str_radix(hex, 16).ok().map(|bits| Ipv4Addr::from(bits).into())
}

fn userinfo(raw: &str) -> Option<&str> {
    let rest = raw.split_once("//").map_or(raw, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    Some(authority.rsplit_once('@')?.0)
}

fn mixes_scripts(label: &str) -> bool {
    let mut seen = [false; 3];
    for sign in label.chars() {
        match sign {
            'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' => seen[0] = true,
            '\u{400}'..='\u{52f}' => seen[1] = true,
            '\u{370}'..='\u{3ff}' | '\u{530}'..='\u{58f}' | '\u{13a0}'..='\u{13ff}' => {
                seen[2] = true
            }
            _ => {}
        }
    }
    seen.iter().filter(|seen| **seen).count() > 1
}

/// Values from this length on say something.
const LONG_VALUE: usize = 24;

/// How much looks like data on its way out.
fn carried(url: &Parts<'_>) -> Option<f32> {
    if matches!(url.host, HostPart::None) {
        return None;
    }
    let mut weight: f32 = 0.0;
    let parts = [url.query, url.fragment].into_iter().flatten();
    for part in parts.filter(|part| part.len() >= LONG_VALUE) {
        let mut length = 0;
        for pair in part.split(['&', ';']).take(64) {
            let (name, value) = pair.split_once('=').unwrap_or(("", pair));
            let name = name.to_ascii_lowercase();
            if SIGNED.contains(&name.as_str()) || name.starts_with("utm_") {
                continue;
            }
            length += value.len();
            let named = value.len() >= LONG_VALUE && DATA_WORDS.stand_in(name.as_bytes());
            weight = weight.max(encoded(value) + if named { 0.2 } else { 0.0 });
        }
        if length >= 200 {
            weight = weight.max(0.4 + if length >= 600 { 0.2 } else { 0.0 });
        }
    }
    // Hashes are common in paths: only more than any hash counts.
    if url.path.len() >= 100 {
        for segment in url.path.split('/').take(32).filter(|segment| segment.len() >= 100) {
            weight = weight.max(encoded(segment) - 0.1);
        }
    }
    if let HostPart::Domain { ascii, .. } = url.host
        && ascii.len() >= 32
    {
        let long = ascii
            .split('.')
            .filter(|label| label.len() >= 32 && !label.starts_with("xn--") && encoded(label) > 0.0)
            .count();
        if long > 0 {
            weight = weight.max(if long > 1 { 0.8 } else { 0.5 });
        }
    }
    (weight > 0.0).then_some(weight.min(1.0))
}

/// Base64, hexadecimal or percent-encoded bytes.
fn encoded(value: &str) -> f32 {
    let bytes = value.as_bytes();
    let hex = bytes.iter().all(u8::is_ascii_hexdigit);
    let dense = bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"+/=_-%".contains(b));
    let digits = bytes.iter().filter(|b| b.is_ascii_digit()).count();
    let upper = bytes.iter().filter(|b| b.is_ascii_uppercase()).count();
    let lower = bytes.iter().filter(|b| b.is_ascii_lowercase()).count();
    let percent = bytes.iter().filter(|b| **b == b'%').count();
    match bytes.len() {
        // 32, 40 and 64 digits are identifiers more often than data.
        32 | 40 | 64 if hex && digits > 0 => 0.25,
        32.. if hex && digits > 0 => 0.6,
        40.. if percent * 4 >= bytes.len() => 0.6,
        40.. if dense
            && upper >= 4
            && lower >= 4
            && digits >= 1
            && upper + lower + digits >= bytes.len() * 9 / 10 =>
        {
            0.6
        }
        _ => 0.0,
    }
}

/// Whether somebody is to fill something in.
fn asked(raw: &str) -> Option<f32> {
    let raw = without_signature(raw);
    let decoded = match memchr::memchr(b'%', raw.as_bytes()) {
        Some(_) => percent_encoding::percent_decode_str(&raw).decode_utf8_lossy(),
        None => Cow::Borrowed(&*raw),
    };
    let tail = &decoded
        [decoded.find(['?', '#']).or_else(|| decoded.find("//").map(|at| at + 2)).unwrap_or(0)..];
    if !tail.bytes().any(is_telling) {
        return None;
    }
    let mut weight: f32 = 0.0;
    if tail.bytes().any(|byte| matches!(byte, b'{' | b'<' | b'[' | b'$' | b'%' | b'_')) {
        weight = placeholders(tail);
    }
    if tail.bytes().any(|byte| byte.is_ascii_uppercase()) {
        weight = weight.max(capitals(tail));
    }
    (weight > 0.0).then_some(weight)
}

/// A capital, or a sign that placeholders are written with.
fn is_telling(byte: u8) -> bool {
    byte.is_ascii_uppercase() || matches!(byte, b'{' | b'<' | b'[' | b'$' | b'%' | b'_')
}

/// `{secret}`, `<secret>`, `[secret]`, `$(…)`, `%s`, `__secret__`.
fn placeholders(tail: &str) -> f32 {
    let mut weight: f32 = 0.0;
    for (open, close) in [("{", "}"), ("<", ">"), ("[", "]"), ("$(", ")"), ("%s", ""), ("__", "__")]
    {
        let mut rest = tail;
        for _ in 0..16 {
            let Some((_, inner)) = rest.split_once(open) else { break };
            rest = inner;
            let near = &inner[..inner.floor_char_boundary(80 + close.len())];
            let Some(end) = near.find(close).filter(|end| *end <= 80) else { continue };
            if open == "[" && is_mark(&inner[..end]) {
                continue;
            }
            let name = inner[..end].to_ascii_lowercase();
            if open == "[" && name.is_empty() || open == "__" && name.is_empty() {
                continue;
            }
            weight = weight.max(if DATA_WORDS.stand_in(name.as_bytes()) { 0.8 } else { 0.2 });
        }
    }
    weight
}

/// Parts of what asks for something to be put there.
static ASKS: Words<7> =
    Words::new(["base64_of", "insert", "your_", "put_", "encode", "_here", "replace"]);

/// `YOUR_SECRET_HERE`.
fn capitals(tail: &str) -> f32 {
    let mut weight: f32 = 0.0;
    let words = tail
        .split(|sign: char| !(sign.is_ascii_uppercase() || sign.is_ascii_digit() || sign == '_'));
    for word in words.filter(|word| word.len() >= 4).take(64) {
        let lower = word.to_ascii_lowercase();
        let wanted = DATA_WORDS.stand_in(lower.as_bytes());
        let asks = ASKS.stand_in(lower.as_bytes());
        if wanted && asks {
            weight = weight.max(0.8);
        } else if wanted && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
            || asks
        {
            weight = weight.max(0.4);
        }
    }
    weight
}
