//! Where requests may go, as the owner says.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use serde::Deserialize;
use thiserror::Error;
use wardkeep_detect::urls::{Host, embedded_ipv4, parse_url};

/// Hosts that show whoever asks what was sent to them.
pub const DEFAULT_BLOCKED: [&str; 6] = [
    "webhook.site",
    "requestbin.com",
    "pipedream.net",
    "canarytokens.com",
    "interact.sh",
    "burpcollaborator.net",
];
/// Bytes that a request may carry.
pub const DEFAULT_MAX_PAYLOAD: u64 = 1 << 20;

/// The owner's `[egress]`. A key that is not written has its default.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EgressConfig {
    /// Hosts that may be asked. If there are any, no others may; if there are none, the owner may go
    /// anywhere that is not blocked, and everybody else nowhere.
    ///
    /// `example.org` is that name and all below it, `*.example.org` only those below; a name of one
    /// label is only itself. Addresses, ranges and a port (`localhost:11434`) are understood.
    pub allowed_domains: Vec<String>,
    /// Hosts that nobody may ask, with all below them; `*` is every host. It wins over what is allowed.
    pub blocked_domains: Vec<String>,
    /// Ranges of addresses that nobody may ask.
    pub blocked_ip_ranges: Vec<String>,
    /// Bytes that a request may carry.
    pub max_payload_size: u64,
    /// Texts in a URL by which data are carried out, letters in either case; `*` is any text.
    pub flag_patterns: Vec<String>,
}

impl Default for EgressConfig {
    fn default() -> Self {
        Self {
            allowed_domains: Vec::new(),
            blocked_domains: DEFAULT_BLOCKED.map(str::to_owned).to_vec(),
            blocked_ip_ranges: Vec::new(),
            max_payload_size: DEFAULT_MAX_PAYLOAD,
            flag_patterns: Vec::new(),
        }
    }
}

/// Why an entry of [`EgressConfig`] means nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{entry}` in `{list}` cannot be used: {why}")]
pub struct EgressError {
    /// The key that it stands in.
    pub list: &'static str,
    /// What was written.
    pub entry: String,
    /// What is wrong with it, and what to write instead.
    pub why: &'static str,
}

/// [`EgressConfig`], read and ready to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Egress {
    pub(super) allowed: Hosts,
    pub(super) blocked: Hosts,
    pub(super) max_payload: u64,
    flags: Vec<Vec<String>>,
    ranges: Vec<IpNet>,
}

impl Egress {
    /// Bytes that a request may carry.
    #[must_use]
    pub fn max_payload(&self) -> u64 {
        self.max_payload
    }

    /// Reads the owner's lists.
    ///
    /// # Errors
    /// At the first entry that means nothing.
    pub fn new(config: &EgressConfig) -> Result<Self, EgressError> {
        let mut egress = Self {
            allowed: Hosts::default(),
            blocked: Hosts::default(),
            max_payload: config.max_payload_size,
            flags: Vec::new(),
            ranges: Vec::new(),
        };
        each("allowed_domains", &config.allowed_domains, |entry| egress.allowed.allow(entry))?;
        each("blocked_domains", &config.blocked_domains, |entry| egress.blocked.block(entry))?;
        each("blocked_ip_ranges", &config.blocked_ip_ranges, |entry| {
            egress.ranges.push(range(entry).ok_or("write a range such as `10.0.0.0/8`")?);
            Ok(())
        })?;
        each("flag_patterns", &config.flag_patterns, |entry| {
            let pieces: Vec<String> =
                entry.split('*').filter(|piece| !piece.is_empty()).map(str::to_lowercase).collect();
            if pieces.is_empty() {
                return Err("it matches every URL; write a part of one");
            }
            egress.flags.push(pieces);
            Ok(())
        })?;
        Ok(egress)
    }

    /// Whether there is a list of allowed hosts.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        !self.allowed.is_empty()
    }

    /// Whether nobody may reach this address; one inside another counts as both.
    pub(super) fn blocks_address(&self, address: IpAddr) -> bool {
        readings(address).any(|address| {
            self.ranges.iter().any(|range| range.contains(&address))
                || self.blocked.holds_address(address, None)
        })
    }

    pub(super) fn has_flags(&self) -> bool {
        !self.flags.is_empty()
    }

    /// Whether a text, in lower case, is one of those that the owner flags.
    pub(super) fn flags(&self, lower: &str) -> bool {
        self.flags.iter().any(|pieces| {
            let mut rest = Some(lower);
            for piece in pieces {
                rest = rest
                    .and_then(|text| text.find(piece.as_str()).map(|at| &text[at + piece.len()..]));
            }
            rest.is_some()
        })
    }
}

impl Default for Egress {
    fn default() -> Self {
        let mut blocked = Hosts::default();
        blocked.names.extend(
            DEFAULT_BLOCKED.map(|name| {
                (name.to_owned(), vec![Reach { itself: true, below: true, port: None }])
            }),
        );
        Self {
            allowed: Hosts::default(),
            blocked,
            max_payload: DEFAULT_MAX_PAYLOAD,
            flags: Vec::new(),
            ranges: Vec::new(),
        }
    }
}

fn each(
    list: &'static str,
    entries: &[String],
    mut add: impl FnMut(&str) -> Result<(), &'static str>,
) -> Result<(), EgressError> {
    entries.iter().try_for_each(|entry| {
        let long = if entry.len() > 512 { Err("it is too long") } else { Ok(()) };
        long.and_then(|()| add(entry.trim())).map_err(|why| {
            let entry = entry.chars().filter(|sign| !sign.is_control()).take(64).collect();
            EgressError { list, entry, why }
        })
    })
}

/// The address itself, and the one that it carries inside.
fn readings(address: IpAddr) -> impl Iterator<Item = IpAddr> {
    let inside = match address {
        IpAddr::V6(address) => embedded_ipv4(address).map(IpAddr::V4),
        IpAddr::V4(_) => None,
    };
    [Some(address), inside].into_iter().flatten()
}

fn range(text: &str) -> Option<IpNet> {
    let range = text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))?;
    // `::ffff:10.0.0.0/104` is written for IPv4.
    if let IpNet::V6(mapped) = range
        && let Some(address) = mapped.addr().to_ipv4_mapped()
        && let Some(length) = mapped.prefix_len().checked_sub(96)
    {
        return IpNet::new(address.into(), length).ok().map(|range| range.trunc());
    }
    Some(range.trunc())
}

/// A list of hosts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Hosts {
    every: bool,
    names: BTreeMap<String, Vec<Reach>>,
    ranges: Vec<(IpNet, Option<u16>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reach {
    itself: bool,
    below: bool,
    port: Option<u16>,
}

impl Hosts {
    fn is_empty(&self) -> bool {
        !self.every && self.names.is_empty() && self.ranges.is_empty()
    }

    /// Whether a name, canonical, is in it or below one that is; `port` is the one that is meant.
    pub(super) fn holds_name(&self, host: &str, port: Option<u16>) -> bool {
        if self.every {
            return true;
        }
        let mut rest = host;
        loop {
            let whole = rest.len() == host.len();
            let reaches = |reach: &Reach| {
                (if whole { reach.itself } else { reach.below })
                    && reach.port.is_none_or(|wanted| port == Some(wanted))
            };
            if self.names.get(rest).is_some_and(|all| all.iter().any(reaches)) {
                return true;
            }
            match rest.split_once('.') {
                Some((_, shorter)) => rest = shorter,
                None => return false,
            }
        }
    }

    pub(super) fn holds_address(&self, address: IpAddr, port: Option<u16>) -> bool {
        let address = address.to_canonical();
        self.every
            || self.ranges.iter().any(|(range, wanted)| {
                range.contains(&address) && wanted.is_none_or(|wanted| port == Some(wanted))
            })
    }

    fn allow(&mut self, entry: &str) -> Result<(), &'static str> {
        if let Some(range) = range(entry) {
            if range.prefix_len() == 0 {
                return Err("it allows every address; leave the list empty instead");
            }
            self.ranges.push((range, None));
            return Ok(());
        }
        if entry == "*" {
            return Err("it allows every host; leave the list empty instead");
        }
        let (below_only, rest) = below(entry);
        let (name, port) = match rest.rsplit_once(':') {
            Some((name, port)) => (name, Some(port.parse().map_err(|_| "its port is no number")?)),
            None => (rest, None),
        };
        match host(name)? {
            Host::Domain { ascii, .. } => {
                // `com` would be half of the world.
                let below = ascii.contains('.');
                if below_only && !below {
                    return Err("it allows all names below one label; write at least two");
                }
                let reach = Reach { itself: !below_only, below, port };
                self.names.entry(ascii).or_default().push(reach);
            }
            Host::Ipv4(address) if !below_only => {
                self.ranges.push((IpAddr::V4(address).into(), port))
            }
            Host::Ipv6(address) if !below_only => {
                self.ranges.push((IpAddr::V6(address).to_canonical().into(), port));
            }
            _ => return Err(NO_HOST),
        }
        Ok(())
    }

    fn block(&mut self, entry: &str) -> Result<(), &'static str> {
        if let Some(range) = range(entry) {
            self.ranges.push((range, None));
            return Ok(());
        }
        if entry == "*" {
            self.every = true;
            return Ok(());
        }
        match host(below(entry).1)? {
            Host::Domain { ascii, .. } => {
                let reach = Reach { itself: true, below: true, port: None };
                self.names.entry(ascii).or_default().push(reach);
            }
            Host::Ipv4(address) => self.ranges.push((IpAddr::V4(address).into(), None)),
            Host::Ipv6(address) => {
                self.ranges.push((IpAddr::V6(address).to_canonical().into(), None));
            }
            Host::None => return Err(NO_HOST),
        }
        Ok(())
    }
}

const NO_HOST: &str = "write a host such as `example.org`, without scheme, port or path";

/// Whether it is about what lies below a name only, and the name.
fn below(entry: &str) -> (bool, &str) {
    match entry.strip_prefix("*.").or_else(|| entry.strip_prefix('.')) {
        Some(rest) => (true, rest),
        None => (false, entry),
    }
}

fn host(name: &str) -> Result<Host, &'static str> {
    let bracketed = name.starts_with('[') && name.ends_with(']');
    if name.contains(['/', '\\', '@', '?', '#', '%', '*', ' ']) || name.contains(':') && !bracketed
    {
        return Err(NO_HOST);
    }
    let host = parse_url(&format!("https://{name}/")).ok_or(NO_HOST)?.host;
    match &host {
        Host::Domain { ascii, .. } if !is_name(ascii) => Err(NO_HOST),
        _ => Ok(host),
    }
}

/// Whether a name, canonical, can be looked up.
pub(super) fn is_name(host: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
            })
    };
    host.len() <= 253 && host.split('.').all(label)
}
