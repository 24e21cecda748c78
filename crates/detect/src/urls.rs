//! URLs in a text, read as a browser reads them, and what is risky about them.

mod address;
mod judge;
mod parts;
pub(crate) mod presigned;
mod services;
#[cfg(test)]
mod tests;

pub use address::{AddressClass, classify_address, embedded_ipv4};
pub use judge::{UrlRisk, UrlRiskKind, judge_url};
pub use services::{Service, service_of};

use crate::anchors::{self, Whose};
use crate::finding::Span;
use parts::Parts;
use std::net::{Ipv4Addr, Ipv6Addr};
use url::Url;

/// What a byte costs the real parser, in bytes of an ordinary address.
const CAREFUL: usize = 4;
/// What odd addresses may cost in any text.
const MAX_CAREFUL: usize = 1 << 16;
/// Longest URL that is looked at, in bytes; of a longer one the beginning.
pub const MAX_URL: usize = 8192;

/// A URL and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlMatch {
    /// Where, in the text.
    pub span: Span,
    /// What it says.
    pub url: Parsed,
    /// What it stands in, as far as the text shows.
    pub context: UrlContext,
}

/// What a URL stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UrlContext {
    /// It is loaded without a click: a Markdown or HTML image, a frame, a style sheet.
    pub in_image: bool,
    /// It is the target of a link.
    pub in_link: bool,
    /// It stands in what the model itself writes.
    pub from_model: bool,
}

/// A URL in its parts, canonical: lower-case host without a trailing dot, IDNA as ASCII.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The scheme, in lower case; `https` where none was written.
    pub scheme: String,
    /// The host.
    pub host: Host,
    /// The port, if it is not the scheme's own.
    pub port: Option<u16>,
    /// The path, percent-encoded.
    pub path: String,
    /// The query without `?`.
    pub query: Option<String>,
    /// The fragment without `#`.
    pub fragment: Option<String>,
    /// Whether there is a user name or password in front of the host.
    pub has_userinfo: bool,
    /// Whether the host was written with a dot at its end.
    pub trailing_dot: bool,
    /// Whether an address was written in an unusual way: decimal, octal, hexadecimal, short.
    pub disguised_address: bool,
    /// As it stands in the text.
    pub raw: String,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// A name.
    Domain {
        /// In ASCII: `xn--…` where it is international.
        ascii: String,
        /// As it is meant to be seen.
        unicode: String,
    },
    /// An address.
    Ipv4(Ipv4Addr),
    /// An address.
    Ipv6(Ipv6Addr),
    /// None, as in `data:`.
    None,
}

/// Parses one URL, `//host/…` and `host.tld/…` included.
///
/// ```
/// use wardkeep_detect::urls::{Host, parse_url};
/// let url = parse_url("HTTP://2852039166./latest").unwrap();
/// assert_eq!(url.host, Host::Ipv4([169, 254, 169, 254].into()));
/// ```
pub fn parse_url(text: &str) -> Option<Parsed> {
    let text = text.trim();
    Parts::plain(text).map(|parts| parts.owned()).or_else(|| parse_carefully(text))
}

/// Parses a URL that may be anything.
fn parse_carefully(text: &str) -> Option<Parsed> {
    let raw = text.to_owned();
    let lower = text.get(..16.min(text.len())).unwrap_or(text).to_ascii_lowercase();
    let hostless =
        ["data:", "javascript:", "vbscript:"].iter().any(|scheme| lower.starts_with(scheme));
    let written = if hostless || has_scheme(text) {
        text.to_owned()
    } else {
        format!("https://{}", text.trim_start_matches(['/', '\\']))
    };
    let url = Url::parse(&written).ok()?;
    let trailing_dot = url.host_str().is_some_and(|host| host.ends_with('.'));
    let web = matches!(url.scheme(), "http" | "https" | "ws" | "wss" | "ftp");
    let host = match url.host() {
        None => Host::None,
        Some(url::Host::Ipv4(address)) => Host::Ipv4(address),
        Some(url::Host::Ipv6(address)) => Host::Ipv6(address),
        Some(url::Host::Domain(name)) if web => domain(name),
        Some(url::Host::Domain(name)) => host_of(name),
    };
    let address = matches!(host, Host::Ipv4(_));
    let canonical = match &host {
        Host::Ipv4(address) => address.to_string(),
        _ => String::new(),
    };
    Some(Parsed {
        scheme: url.scheme().to_owned(),
        host,
        port: url.port(),
        path: url.path().to_owned(),
        query: url.query().map(str::to_owned),
        fragment: url.fragment().map(str::to_owned),
        has_userinfo: !url.username().is_empty() || url.password().is_some(),
        trailing_dot,
        disguised_address: address && !written.contains(&canonical),
        raw,
    })
}

/// The host of a scheme of any kind, read as that of a web address.
fn host_of(host: &str) -> Host {
    let bare = host.strip_suffix('.').unwrap_or(host);
    match url::Host::parse(&percent_decoded(bare)) {
        Ok(url::Host::Ipv4(address)) => Host::Ipv4(address),
        Ok(url::Host::Ipv6(address)) => Host::Ipv6(address),
        Ok(url::Host::Domain(ascii)) => domain(&ascii),
        Err(_) => Host::Domain { ascii: bare.to_ascii_lowercase(), unicode: bare.to_owned() },
    }
}

/// A name in ASCII, as the parser gives it.
fn domain(ascii: &str) -> Host {
    let ascii = ascii.trim_end_matches('.').to_owned();
    let unicode = if ascii.contains("xn--") { idna_unicode(&ascii).0 } else { ascii.clone() };
    Host::Domain { ascii, unicode }
}

fn percent_decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn idna_unicode(ascii: &str) -> (String, bool) {
    let (unicode, result) = idna::domain_to_unicode(ascii);
    (unicode, result.is_ok())
}

fn has_scheme(text: &str) -> bool {
    let length =
        text.bytes().take_while(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b)).count();
    let slashes = text.get(length..).unwrap_or_default();
    // `https:/host` and `https:\\host` are read as `https://host`.
    length > 0 && (slashes.starts_with(":/") || slashes.starts_with(":\\"))
}

#[derive(Debug, Clone, Copy)]
enum Anchor {
    Scheme,
    Hostless,
    Target,
    Attribute,
    Relative,
    Name,
}

const ANCHORS: &[(&str, Anchor)] = &[
    ("://", Anchor::Scheme),
    (":\\\\", Anchor::Scheme),
    ("data:", Anchor::Hostless),
    ("javascript:", Anchor::Hostless),
    ("vbscript:", Anchor::Hostless),
    ("](", Anchor::Target),
    ("]: ", Anchor::Target),
    ("src=", Anchor::Attribute),
    ("href=", Anchor::Attribute),
    ("url(", Anchor::Attribute),
    (" //", Anchor::Relative),
    ("\"//", Anchor::Relative),
    ("'//", Anchor::Relative),
    ("www.", Anchor::Name),
];

/// What an address is announced by, letters in either case.
pub(crate) fn literals() -> impl Iterator<Item = &'static str> {
    ANCHORS.iter().map(|(text, _)| *text).chain(services::names())
}

/// Finds URLs: with a scheme anywhere; without one as the target of a Markdown link or an HTML
/// attribute, behind `//` or `www.`, or when the host is a known service for data on its way out.
pub fn find_urls(text: &str) -> Vec<UrlMatch> {
    let mut search = Search::new(text);
    let mut found = Vec::new();
    anchors::find(text.as_bytes(), |whose, anchor| {
        if whose == Whose::Urls {
            found.extend(search.anchor(anchor).map(Seen::found));
        }
    });
    found
}

/// A URL that a search came upon.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) span: Span,
    pub(crate) context: UrlContext,
    url: Read<'a>,
}

#[derive(Debug)]
enum Read<'a> {
    Plain(Parts<'a>),
    Parsed(Box<Parsed>),
}

impl Seen<'_> {
    fn found(self) -> UrlMatch {
        let url = match self.url {
            Read::Plain(parts) => parts.owned(),
            Read::Parsed(url) => *url,
        };
        UrlMatch { span: self.span, url, context: self.context }
    }

    /// What is risky about it.
    pub(crate) fn judge(&self, context: UrlContext) -> Vec<UrlRisk> {
        match &self.url {
            Read::Plain(parts) => judge::judge(parts, context),
            Read::Parsed(url) => judge::judge(&Parts::from(&**url), context),
        }
    }
}

/// A search for URLs, literal by literal.
#[derive(Debug)]
pub(crate) struct Search<'a> {
    text: &'a str,
    read: usize,
    last: Option<usize>,
    /// INVARIANT: no more than this is read again for URLs inside others, or that are none.
    again: usize,
    /// Bytes that were read, and what those cost that needed care.
    pub(crate) read_bytes: [usize; 2],
    /// What the latter may cost.
    most: usize,
    /// Whether some were not read because there were too many of those.
    pub(crate) exhausted: bool,
}

impl<'a> Search<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let again = text.len().saturating_mul(2).saturating_add(MAX_URL * 4);
        let most = usize::MAX;
        Self { text, read: 0, last: None, again, read_bytes: [0; 2], most, exhausted: false }
    }

    /// The same; where a text has nothing but odd addresses, not all of them are read.
    pub(crate) fn bounded(text: &'a str) -> Self {
        let most = text.len().saturating_mul(2).saturating_add(MAX_CAREFUL);
        Self { most, ..Self::new(text) }
    }

    /// Reads what one of [`literals`] announces, in the order in which they stand.
    pub(crate) fn anchor(&mut self, hit: anchors::Anchor) -> Option<Seen<'a>> {
        let (text, bytes) = (self.text, self.text.as_bytes());
        let anchor = ANCHORS.get(hit.index).map_or(Anchor::Name, |(_, anchor)| *anchor);
        let start = match anchor {
            Anchor::Scheme => {
                hit.start
                    - back(bytes, hit.start, |b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
            }
            Anchor::Hostless => hit.start,
            Anchor::Target | Anchor::Attribute => after_quote(bytes, hit.end),
            Anchor::Relative => hit.start + 1,
            Anchor::Name => {
                hit.start
                    - back(bytes, hit.start, |b| b.is_ascii_alphanumeric() || b"-._@:".contains(&b))
            }
        };
        let scheme = matches!(anchor, Anchor::Scheme);
        if self.last == Some(start)
            || start < self.read && (!scheme || self.again == 0)
            || scheme && start == hit.start
            || !text.is_char_boundary(start)
        {
            return None;
        }
        let end = end_of(bytes, start, matches!(anchor, Anchor::Attribute));
        self.read_bytes[0] += end - start;
        let again = end.min(self.read).saturating_sub(start);
        let careful = self.read_bytes[1];
        let raw = text.get(start..end).unwrap_or_default();
        let relative = !matches!(anchor, Anchor::Scheme | Anchor::Hostless);
        let fits = !raw.is_empty() && (!relative || has_scheme(raw) || is_bare_host(raw));
        let mut read = || {
            let plain = Parts::plain(raw).map(Read::Plain);
            plain.or_else(|| {
                // Names in other scripts are looked up sign by sign.
                let wide = !raw.is_ascii() || raw.contains("xn--");
                let cost = raw.len() + if wide { 512 } else { 32 };
                if self.read_bytes[1] + cost > self.most {
                    self.exhausted = true;
                    return None;
                }
                self.read_bytes[1] += cost;
                parse_carefully(raw.trim()).map(|url| Read::Parsed(Box::new(url)))
            })
        };
        let url = if fits { read() } else { None };
        // The real parser takes several times as long.
        let share = if self.read_bytes[1] > careful { CAREFUL } else { 1 };
        self.again = self.again.saturating_sub(again.saturating_mul(share));
        match url {
            Some(url) => {
                self.last = Some(start);
                self.read = self.read.max(end);
                let context = context_of(bytes, start);
                return Some(Seen { span: (start..end).into(), context, url });
            }
            None if self.again == 0 => self.read = self.read.max(end),
            None => self.again = self.again.saturating_sub((end - start).saturating_mul(share)),
        }
        None
    }
}

fn back(text: &[u8], from: usize, test: impl Fn(u8) -> bool) -> usize {
    text[..from].iter().rev().take(64).take_while(|byte| test(**byte)).count()
}

fn after_quote(text: &[u8], at: usize) -> usize {
    let skip = text[at..].iter().take(4).take_while(|byte| b" \"'<\t".contains(byte)).count();
    at + skip
}

/// Where the URL ends: at a blank or a quote, without the punctuation of the sentence.
fn end_of(text: &[u8], start: usize, attribute: bool) -> usize {
    let limit = text.len().min(start + MAX_URL);
    let mut at = start;
    let mut depth = 0_i32;
    while at < limit {
        match text[at] {
            b'"' | b'`' | 0..=b' ' | 0x7f => break,
            b'\'' if attribute => break,
            b'>' => break,
            // `?q=<secret>`: a placeholder is part of the query.
            b'<' => match placeholder_length(&text[at..limit]) {
                Some(length) if at > start && matches!(text[at - 1], b'=' | b'/') => {
                    at += length;
                    continue;
                }
                _ => break,
            },
            // `?x=$(cat /etc/passwd)`: so is what a shell would put there.
            b'$' if text.get(at + 1) == Some(&b'(') => {
                let close = text[at..limit].iter().take(128).position(|byte| *byte == b')');
                at += close.unwrap_or(0) + 1;
                continue;
            }
            b'(' => depth += 1,
            b')' if depth == 0 => break,
            b')' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    while at > start && b".,;:!?'*_]|\\".contains(&text[at - 1]) {
        at -= 1;
    }
    // The limit may have split a character.
    while at > start && text.get(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
        at -= 1;
    }
    at
}

fn placeholder_length(text: &[u8]) -> Option<usize> {
    let inner = text[1..].iter().take(48).position(|byte| *byte == b'>')?;
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || b"_- ".contains(byte);
    (inner > 0 && text[1..=inner].iter().all(word)).then_some(inner + 2)
}

/// `host.tld`, `//host.tld/path`, an address: not a file name such as `notes.md`.
fn is_bare_host(raw: &str) -> bool {
    let rest = raw.trim_start_matches(['/', '\\']);
    let slashes = raw.len() - rest.len();
    if slashes == 1 {
        return false;
    }
    let host = rest.split(['/', '?', '#', ':', '\\']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default().trim_end_matches('.');
    let Some((name, last)) = host.rsplit_once('.') else {
        return slashes == 2 && host == "localhost";
    };
    let files = [
        "md", "html", "htm", "png", "jpg", "jpeg", "gif", "svg", "txt", "rs", "py", "js", "ts",
        "css", "json", "yml", "yaml", "toml", "sh", "pdf", "c", "h", "cpp", "go",
    ];
    let lone = rest.len() == host.len() && slashes == 0;
    let service = || services::service_of(host).is_some();
    let letters = last.chars().all(char::is_alphabetic) && last.chars().count() >= 2;
    let address = host.parse::<Ipv4Addr>().is_ok();
    let signs = host.chars().all(|sign| sign.is_alphanumeric() || matches!(sign, '-' | '.'));
    !name.is_empty()
        && signs
        && (letters || address || last.starts_with("xn--"))
        && (slashes == 2 || !(lone && files.contains(&last)) || service())
}

/// Whether an image or a link surrounds this place: by the signs in front of it.
fn context_of(text: &[u8], start: usize) -> UrlContext {
    let before = &text[start.saturating_sub(256)..start];
    let mut context = UrlContext::default();
    let trimmed = before.trim_ascii_end();
    let trimmed = trimmed.strip_suffix(b"<").unwrap_or(trimmed);
    if trimmed.ends_with(b"](") || trimmed.ends_with(b"]:") {
        // The label, balanced: `[![…](…)](here)`.
        let mut depth = 0_i32;
        let close = trimmed.len() - 2;
        let open = trimmed[..=close].iter().rposition(|byte| {
            depth += i32::from(*byte == b']') - i32::from(*byte == b'[');
            *byte == b'[' && depth <= 0
        });
        let image = open.is_some_and(|open| open > 0 && trimmed[open - 1] == b'!');
        context.in_image = image || open.is_some() && trimmed.ends_with(b"]:");
        context.in_link = !image;
        return context;
    }
    let bare =
        trimmed.strip_suffix(b"\"").or_else(|| trimmed.strip_suffix(b"'")).unwrap_or(trimmed);
    if !bare.ends_with(b"=") && !bare.ends_with(b"(") {
        return context;
    }
    let ends = |with: &[u8]| {
        let from = bare.len().saturating_sub(with.len());
        bare[from..].eq_ignore_ascii_case(with)
    };
    let loads = [&b"src="[..], b"srcset=", b"url(", b"background=", b"poster="];
    let link = ends(b"href=");
    let tag = &bare[bare.iter().rposition(|byte| *byte == b'<').unwrap_or(0)..];
    let sheet = link && tag.get(..5).is_some_and(|tag| tag.eq_ignore_ascii_case(b"<link"));
    context.in_image = sheet || loads.iter().any(|attribute| ends(attribute));
    context.in_link = link && !context.in_image;
    context
}
