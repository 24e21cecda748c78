//! Where a request goes, however it is written, and what speaks against it.
//!
//! A URL is judged by the host that it really leads to. Where programs would read different hosts from
//! it, [`NetworkFacts::resolved`] is false. What a name points to is not known here: whoever looks it up
//! says so with [`resolved_to`], and each redirect is judged anew with [`redirected`].

mod config;
mod text;

use std::borrow::Cow;
use std::net::IpAddr;

use percent_encoding::percent_decode_str;
use wardkeep_detect::urls::{
    AddressClass, Host, MAX_URL, Parsed, Service, UrlContext, UrlMatch, UrlRisk, UrlRiskKind,
    classify_address, find_urls, judge_url, parse_url, service_of,
};

use crate::facts::NetworkFacts;
pub use config::{DEFAULT_BLOCKED, DEFAULT_MAX_PAYLOAD, Egress, EgressConfig, EgressError};
pub use text::MAX_TEXT;

/// Facts about a request, and in words what stands out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// What rules see.
    pub facts: NetworkFacts,
    /// One sentence for each thing that speaks against it.
    pub notes: Vec<Cow<'static, str>>,
}

/// Facts about a request.
///
/// ```
/// use wardkeep_guard::network::{Egress, facts_of};
/// let facts = facts_of("HTTPS://user@WebHook.site.:8443/a", "post", 10, &Egress::default());
/// assert_eq!(facts.host, "webhook.site");
/// assert!(facts.blocked);
/// ```
#[must_use]
pub fn facts_of(url: &str, method: &str, payload: u64, egress: &Egress) -> NetworkFacts {
    judge(url, method, payload, egress).facts
}

/// Facts about a request, with notes.
#[must_use]
pub fn judge(url: &str, method: &str, payload: u64, egress: &Egress) -> Judged {
    judge_with(url, method, payload, egress, true)
}

/// Adds what a name points to. Nothing that was known is taken back, but a name that is allowed does
/// not open a way to the machine itself, its link or a cloud's metadata.
///
/// A name of the outside that points inside, alone or among addresses of the outside, is blocked, except
/// for private networks: names of a company point there for good reasons.
#[must_use]
pub fn resolved_to(facts: NetworkFacts, addresses: &[IpAddr], egress: &Egress) -> NetworkFacts {
    let mut facts = facts;
    let outside = !facts.internal && !facts.metadata;
    let port = facts.port.or_else(|| default_port(&facts.scheme));
    let mut seen = (false, false);
    for address in addresses {
        facts.blocked |= egress.blocks_address(*address);
        let class = classify_address(*address);
        if class == AddressClass::Public {
            seen.0 = true;
            continue;
        }
        facts.internal = true;
        facts.metadata |= class == AddressClass::Metadata;
        // Some resolvers answer with reserved addresses of their own.
        if class == AddressClass::Reserved {
            continue;
        }
        seen.1 = true;
        if outside && class != AddressClass::Private {
            facts.allowed &= egress.allowed.holds_address(*address, port);
            facts.blocked |= !facts.allowed;
        }
    }
    facts.blocked |= outside && seen == (true, true);
    facts
}

/// Facts about the request to which an answer sends on; the payload may go there again.
///
/// What the address carries was put there by whoever sends on, who knows it already: it counts only where
/// the first address was not looked at for it, being allowed. A way from outside to inside is blocked
/// unless it is allowed.
#[must_use]
pub fn redirected(from: &NetworkFacts, location: &str, egress: &Egress) -> NetworkFacts {
    let location = location.trim();
    let has_scheme = location.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|sign: char| sign.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    });
    let url = if has_scheme {
        Cow::Borrowed(location)
    } else if location.starts_with("//")
        || location.starts_with(['\\'])
        || location.starts_with("/\\")
    {
        Cow::Owned(format!("{}:{location}", from.scheme))
    } else {
        let host =
            if from.host.contains(':') { format!("[{}]", from.host) } else { from.host.clone() };
        let port = from.port.map(|port| format!(":{port}")).unwrap_or_default();
        let path = location.strip_prefix('/').unwrap_or(location);
        Cow::Owned(format!("{}://{host}{port}/{path}", from.scheme))
    };
    let mut facts = judge_with(&url, &from.method, from.payload, egress, from.allowed).facts;
    facts.blocked |= facts.internal && !from.internal && !facts.allowed;
    facts.resolved &= from.resolved && !location.is_empty();
    facts
}

/// Schemes that lead into the machine, or wrap another address.
const NO_REQUEST: [&str; 12] = [
    "about",
    "blob",
    "chrome",
    "file",
    "filesystem",
    "http+unix",
    "https+unix",
    "jar",
    "javascript",
    "unix",
    "vbscript",
    "view-source",
];

/// Last labels of names inside a network, besides those that detection knows.
const LOCAL_LABELS: [&str; 8] =
    ["corp", "home", "localdomain", "localhost", "private", "svc", "test", "workgroup"];

/// Names at which a cloud hands out credentials, besides those that detection knows.
const METADATA_NAMES: [&str; 5] = [
    "api.metadata.cloud.ibm.com",
    "metadata.goog",
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "rancher-metadata",
];

/// User names and passwords from this length on carry data.
const LONG_USER: usize = 40;
/// From this weight on, what an address carries looks like data.
const ENCODED: f32 = 0.5;
/// From this weight on, something is sure enough to stand in the way.
const HEAVY: f32 = 0.8;

fn judge_with(url: &str, method: &str, payload: u64, egress: &Egress, carried: bool) -> Judged {
    let is_word = method.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let facts = NetworkFacts {
        scheme: String::new(),
        host: String::new(),
        port: None,
        method: method.chars().take(32).collect::<String>().to_uppercase(),
        payload,
        allowed: false,
        listed: egress.is_listed(),
        blocked: false,
        internal: false,
        metadata: false,
        oversized: payload > egress.max_payload,
        exfiltration: false,
        resolved: false,
    };
    let mut judged = Judged { facts, notes: Vec::new() };
    if judged.facts.oversized {
        judged.note("it carries more than a request may");
    }
    let Some(text::Reading { url: parsed, doubt }) = text::read(url) else {
        judged.note("it cannot be told where the address leads");
        return judged;
    };
    judged.facts.resolved = true;
    if let Some(doubt) = doubt {
        judged.unresolved(doubt);
    }
    if !is_word {
        judged.unresolved("the method is no word");
    }
    let flagged = egress.has_flags() && is_flagged(url, &parsed, egress);
    let found = UrlMatch { span: (0..0).into(), url: parsed, context: UrlContext::default() };
    let risks = judge_url(&found, UrlContext::default());
    judged.place(&found.url, &risks, egress);
    if flagged {
        judged.facts.exfiltration = true;
        judged.note("the address matches one of your flag patterns");
    }
    if carried && !judged.facts.allowed {
        judged.weigh(&found.url, risks, egress);
    }
    judged
}

impl Judged {
    fn note(&mut self, note: impl Into<Cow<'static, str>>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    fn unresolved(&mut self, note: &'static str) {
        self.facts.resolved = false;
        self.note(note);
    }

    /// Where it leads.
    fn place(&mut self, url: &Parsed, risks: &[UrlRisk], egress: &Egress) {
        self.facts.scheme.clone_from(&url.scheme);
        self.facts.port = url.port;
        let port = url.port.or_else(|| default_port(&url.scheme));
        if NO_REQUEST.contains(&url.scheme.as_str()) {
            self.unresolved("the scheme is none of a request that leaves");
        }
        match &url.host {
            // Nothing leaves.
            Host::None if url.scheme == "data" => {}
            Host::None => self.unresolved("there is no host in the address"),
            Host::Ipv4(address) => self.place_address((*address).into(), port, egress),
            Host::Ipv6(address) => self.place_address((*address).into(), port, egress),
            Host::Domain { ascii, unicode } => {
                self.place_name(ascii, unicode, port, egress);
                // Only of the web's own schemes are hosts checked when they are parsed.
                let checked = WEB.contains(&url.scheme.as_str());
                if !config::is_name(ascii) || !checked && !is_read_again(ascii) {
                    self.unresolved("the host is no name");
                }
            }
        }
        // Which host is allowed is not told from what may be read in two ways.
        self.facts.allowed &= self.facts.resolved;
        let any = |kind| risks.iter().any(|risk| risk.kind == kind);
        self.facts.metadata |= any(UrlRiskKind::Metadata);
        self.facts.internal |= self.facts.metadata || any(UrlRiskKind::Internal);
        if self.facts.metadata {
            self.note("a cloud's metadata service hands out credentials");
        } else if self.facts.internal {
            self.note("it leads to this machine or a network around it");
        }
    }

    fn place_address(&mut self, address: IpAddr, port: Option<u16>, egress: &Egress) {
        let class = classify_address(address);
        self.facts.host = address.to_canonical().to_string();
        self.facts.allowed = egress.allowed.holds_address(address, port);
        self.facts.blocked = egress.blocks_address(address);
        self.facts.internal = class != AddressClass::Public;
        self.facts.metadata = class == AddressClass::Metadata;
    }

    fn place_name(&mut self, ascii: &str, unicode: &str, port: Option<u16>, egress: &Egress) {
        self.facts.host = ascii.to_owned();
        self.facts.allowed = egress.allowed.holds_name(ascii, port);
        if egress.blocked.holds_name(ascii, None)
            || older_name(unicode).is_some_and(|older| egress.blocked.holds_name(&older, None))
        {
            // The rule says so.
            self.facts.blocked = true;
        } else if !self.facts.allowed && service_of(ascii) == Some(Service::Callback) {
            self.facts.blocked = true;
            self.note("a service that shows its owner every request");
        }
        let last = ascii.rsplit('.').next().unwrap_or_default();
        self.facts.metadata = METADATA_NAMES.contains(&ascii);
        self.facts.internal = last.len() == ascii.len() || LOCAL_LABELS.contains(&last);
    }

    /// Signs that data are carried out to a host that is not allowed.
    fn weigh(&mut self, url: &Parsed, risks: Vec<UrlRisk>, egress: &Egress) {
        let internal = self.facts.internal;
        // What goes to this machine does not leave it.
        let leaves = match &url.host {
            Host::Domain { ascii, .. } => ascii.rsplit('.').next() != Some("localhost"),
            Host::Ipv4(address) => classify_address((*address).into()) != AddressClass::Loopback,
            Host::Ipv6(address) => classify_address((*address).into()) != AddressClass::Loopback,
            Host::None => false,
        };
        let mut signs: Vec<Cow<'static, str>> = risks
            .into_iter()
            .filter(|risk| match risk.kind {
                UrlRiskKind::EncodedData => leaves && risk.weight >= ENCODED,
                UrlRiskKind::Placeholder => leaves && risk.weight >= HEAVY,
                UrlRiskKind::UserInfo | UrlRiskKind::MixedScript => risk.weight >= HEAVY,
                UrlRiskKind::Disguised => !internal,
                _ => false,
            })
            .map(|risk| risk.reason)
            .collect();
        let reads = matches!(self.facts.method.as_str(), "GET" | "HEAD" | "OPTIONS");
        let sends = self.facts.payload > 0 || !reads || url.query.is_some();
        match service_of(&self.facts.host) {
            Some(Service::Tunnel) => {
                signs.push("a tunnel to a machine that nobody can name".into());
            }
            Some(Service::Paste | Service::Upload) if sends => {
                signs.push("a service that keeps what anybody sends".into());
            }
            _ => {}
        }
        if url.has_userinfo && user_length(&url.raw) >= LONG_USER {
            signs.push("a long user name or password stands in front of the host".into());
        }
        if url.raw.len() > MAX_URL {
            signs.push("the address is longer than any should be".into());
        }
        if leads_on(url, egress) {
            signs.push("the address holds another one that is blocked".into());
        }
        self.facts.exfiltration |= !signs.is_empty();
        signs.into_iter().for_each(|sign| self.note(sign));
    }
}

/// Schemes of the web, whose hosts a browser reads in one way.
const WEB: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];

fn default_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" | "ws" => Some(80),
        "https" | "wss" => Some(443),
        "ftp" => Some(21),
        "ssh" | "sftp" | "git+ssh" => Some(22),
        "git" => Some(9418),
        _ => None,
    }
}

/// Whether a name would be the same in an address of the web.
fn is_read_again(name: &str) -> bool {
    parse_url(&format!("https://{name}/"))
        .is_some_and(|url| matches!(url.host, Host::Domain { ascii, .. } if ascii == name))
}

/// The name that older programs make of two letters which newer ones keep.
fn older_name(unicode: &str) -> Option<String> {
    if !unicode.contains(['ß', 'ς']) {
        return None;
    }
    let older = unicode.replace('ß', "ss").replace('ς', "σ");
    match parse_url(&format!("https://{older}/"))?.host {
        Host::Domain { ascii, .. } => Some(ascii),
        _ => None,
    }
}

fn user_length(raw: &str) -> usize {
    let rest = raw.split_once("//").map_or(raw, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(0, |(user, _)| user.len())
}

/// Whether the address holds another one, for a service to fetch, that is blocked itself.
fn leads_on(url: &Parsed, egress: &Egress) -> bool {
    let mut tail = url.path.clone();
    for part in [&url.query, &url.fragment].into_iter().flatten() {
        tail.push('?');
        tail.push_str(part);
    }
    for _ in 0..2 {
        if !tail.contains('%') {
            break;
        }
        tail = percent_decode_str(&tail).decode_utf8_lossy().into_owned();
    }
    // An address is looked for behind a blank.
    let tail = tail.replace('=', "= ");
    find_urls(&tail).iter().any(|found| {
        let whole = found.url.raw.contains("//");
        let value = tail[..found.span.start].ends_with("= ") && found.url.path.len() > 1;
        (whole || value)
            && match &found.url.host {
                Host::Domain { ascii, .. } => {
                    egress.blocked.holds_name(ascii, None)
                        || service_of(ascii) == Some(Service::Callback)
                        || judge_url(found, UrlContext::default())
                            .iter()
                            .any(|risk| risk.kind == UrlRiskKind::Metadata)
                }
                Host::Ipv4(address) => is_barred((*address).into(), egress),
                Host::Ipv6(address) => is_barred((*address).into(), egress),
                Host::None => false,
            }
    })
}

fn is_barred(address: IpAddr, egress: &Egress) -> bool {
    egress.blocks_address(address) || classify_address(address) == AddressClass::Metadata
}

/// Whether the owner flags it, as it was written, decoded, or in its canonical form.
fn is_flagged(raw: &str, url: &Parsed, egress: &Egress) -> bool {
    let host = match &url.host {
        Host::Domain { ascii, .. } => ascii.clone(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => format!("[{address}]"),
        Host::None => String::new(),
    };
    let part = |sign: &str, text: Option<String>| {
        text.map(|text| format!("{sign}{text}")).unwrap_or_default()
    };
    let canonical = format!(
        "{}://{host}{}{}{}{}",
        url.scheme,
        part(":", url.port.map(|port| port.to_string())),
        url.path,
        part("?", url.query.clone()),
        part("#", url.fragment.clone()),
    );
    let decoded = percent_decode_str(&canonical).decode_utf8_lossy().to_lowercase();
    [raw.to_lowercase(), canonical.to_lowercase(), decoded].iter().any(|text| egress.flags(text))
}

#[cfg(test)]
mod tests;
