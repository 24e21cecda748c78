//! Which hosts may be reached through this proxy.
//!
//! These rules come before the decider, and both have to agree: what is refused here is told to the
//! decider only to be recorded.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use thiserror::Error;
use wardkeep_detect::urls::{AddressClass, classify_address, embedded_ipv4};

use super::host::{Host, Target};

/// One entry of a list: `[METHOD[,METHOD…] ]HOST[:PORT][@RANGE]`.
///
/// `example.org` is that name and all below it, `=example.org` only itself, `*.example.org` only what
/// is below; a name of one label is only itself, `*` is every name and every address outside. An
/// address or a range (`10.0.0.0/8`) is itself. Without a port, 80 and 443 are allowed, and every port
/// is denied; `:*` is every port. A name with methods cannot be reached by a tunnel that nobody looks
/// into, and not at all where it is denied with methods. `@RANGE` says that the name may point into a network that is otherwise closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    hosts: Hosts,
    ports: Ports,
    methods: Vec<String>,
    at: Option<IpNet>,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    Every,
    Name { name: String, itself: bool, below: bool },
    Range(IpNet),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ports {
    Usual,
    Every,
    One(u16),
}

/// Why an entry means nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{entry}` cannot be used: {why}")]
pub struct BadRule {
    /// What was written.
    pub entry: String,
    /// What is wrong with it, and what to write instead.
    pub why: &'static str,
}

impl FromStr for Rule {
    type Err = BadRule;

    fn from_str(text: &str) -> Result<Self, BadRule> {
        read(text.trim()).map_err(|why| {
            let entry = text.chars().filter(|sign| !sign.is_control()).take(64).collect();
            BadRule { entry, why }
        })
    }
}

const NO_HOST: &str = "write a host such as `example.org`, `*.example.org`, `10.0.0.0/8` or \
                       `example.org:8443`, without scheme or path";

fn read(text: &str) -> Result<Rule, &'static str> {
    let (methods, rest) = match text.rsplit_once(' ') {
        Some((methods, rest)) => (methods.trim(), rest),
        None => ("", text),
    };
    let methods: Vec<String> = methods
        .split(',')
        .map(str::trim)
        .filter(|method| !method.is_empty())
        .map(str::to_ascii_uppercase)
        .collect();
    if methods.iter().any(|method| !method.bytes().all(|sign| sign.is_ascii_uppercase())) {
        return Err("a method is a word such as GET");
    }
    let (rest, at) = match rest.split_once('@') {
        Some((rest, range)) => (rest, Some(self::range(range).ok_or("its range is none")?)),
        None => (rest, None),
    };
    let rule = |hosts, ports| Rule { hosts, ports, methods, at, text: text.to_owned() };
    if let Some(range) = self::range(rest) {
        return Ok(rule(Hosts::Range(range), Ports::Usual));
    }
    let (host, ports) = match rest.rsplit_once(':') {
        Some((host, "*")) => (host, Ports::Every),
        Some((host, port)) if !port.contains(']') => {
            let port = port.parse().ok().filter(|port| *port != 0);
            let why = if port.is_some() || !rest.contains('/') {
                "its port is no number"
            } else {
                NO_HOST
            };
            (host, Ports::One(port.ok_or(why)?))
        }
        _ => (rest, Ports::Usual),
    };
    if let Some(range) = self::range(host.trim_start_matches('[').trim_end_matches(']')) {
        return Ok(rule(Hosts::Range(range), ports));
    }
    if host == "*" {
        return Ok(rule(Hosts::Every, ports));
    }
    let (name, itself, below) = match (host.strip_prefix('='), host.strip_prefix("*.")) {
        (Some(name), _) => (name, true, false),
        (_, Some(name)) => (name, false, true),
        _ => (host, true, true),
    };
    let Ok(Host::Name(name)) = Host::parse(name.as_bytes()) else { return Err(NO_HOST) };
    let single = !name.contains('.');
    if single && !itself {
        return Err("it means all names below one label; write at least two");
    }
    Ok(rule(Hosts::Name { name, itself, below: below && !single }, ports))
}

fn range(text: &str) -> Option<IpNet> {
    let range: IpNet =
        text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from))?;
    if let IpNet::V6(mapped) = range
        && let Some(address) = mapped.addr().to_ipv4_mapped()
        && let Some(length) = mapped.prefix_len().checked_sub(96)
    {
        return IpNet::new(address.into(), length).ok().map(|range| range.trunc());
    }
    Some(range.trunc())
}

impl Rule {
    /// A rule for exactly this host and port.
    #[must_use]
    pub fn exactly(target: &Target) -> Self {
        let hosts = match &target.host {
            Host::Name(name) => Hosts::Name { name: name.clone(), itself: true, below: false },
            Host::Address(address) => Hosts::Range((*address).into()),
        };
        let ports = Ports::One(target.port);
        Self { hosts, ports, methods: Vec::new(), at: None, text: format!("={target}") }
    }

    /// Whether it names a host that is this machine to whoever asks for it: `localhost`, or a loopback
    /// address.
    #[must_use]
    pub fn names_loopback(&self, host: &str) -> bool {
        let address = host.parse::<IpAddr>().ok();
        let host = address.map_or_else(|| Host::Name(host.to_owned()), Host::Address);
        self.hosts != Hosts::Every && self.names(&host)
    }

    fn names(&self, host: &Host) -> bool {
        match (&self.hosts, host) {
            (Hosts::Every, Host::Name(_)) => true,
            (Hosts::Every, Host::Address(address)) => {
                classify_address(*address) == AddressClass::Public
            }
            (Hosts::Name { name, itself, below }, Host::Name(host)) => {
                *itself && host == name
                    || *below && host.strip_suffix(name).is_some_and(|front| front.ends_with('.'))
            }
            (Hosts::Range(range), Host::Address(address)) => range.contains(address),
            _ => false,
        }
    }

    /// Whether it names every host, and so none.
    pub(super) fn names_all(&self) -> bool {
        self.hosts == Hosts::Every
    }

    /// Whether it names this target, by whatever method.
    pub(super) fn covers(&self, target: &Target) -> bool {
        self.names(&target.host) && self.takes_port(target.port)
    }

    fn takes_port(&self, port: u16) -> bool {
        match self.ports {
            Ports::Usual => matches!(port, 80 | 443),
            Ports::Every => true,
            Ports::One(one) => one == port,
        }
    }

    fn takes_method(&self, method: &str) -> bool {
        self.methods.is_empty() || self.methods.iter().any(|one| one == method)
    }

    /// Whether it denies this method: some hosts take it in any case, and what is in a tunnel may be any.
    fn denies_method(&self, method: &str) -> bool {
        self.methods.is_empty()
            || method == "CONNECT"
            || self.methods.iter().any(|one| one.eq_ignore_ascii_case(method))
    }

    /// Whether it names this address, which lies in a closed network.
    fn opens(&self, range: &IpNet, address: IpAddr) -> bool {
        // Where a cloud hands out credentials has to be meant, not just be in a range.
        let metadata = classify_address(address) == AddressClass::Metadata;
        range.contains(&address) && (!metadata || range.prefix_len() == range.max_prefix_len())
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.text)
    }
}

/// What becomes of a host that no rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unlisted {
    /// It is denied.
    #[default]
    Deny,
    /// The owner is asked; without anyone to ask it is denied.
    Ask,
    /// The decider alone decides.
    Decider,
}

/// The lists in force.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// What may be reached.
    pub allow: Vec<Rule>,
    /// What may not, whatever else is said.
    pub deny: Vec<Rule>,
    /// What becomes of the rest.
    pub unlisted: Unlisted,
}

/// What the lists say of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found<'a> {
    /// It may be reached.
    Allowed(&'a Rule),
    /// It is denied.
    Denied(&'a Rule),
    /// The host is allowed, but not this port.
    Port,
    /// Host and port are allowed, but not this method.
    Method,
    /// No rule names it.
    Unlisted,
}

impl Rules {
    /// What the lists say. Without a method only host and port count: whoever asks so asks for each request again.
    #[must_use]
    pub fn find(&self, target: &Target, method: Option<&str>) -> Found<'_> {
        let denies = |rule: &&Rule| {
            rule.names(&target.host)
                && (rule.ports == Ports::Usual || rule.takes_port(target.port))
                && method.map_or(rule.methods.is_empty(), |method| rule.denies_method(method))
        };
        if let Some(rule) = self.deny.iter().find(denies) {
            return Found::Denied(rule);
        }
        let mut found = Found::Unlisted;
        for rule in self.allow.iter().filter(|rule| rule.names(&target.host)) {
            if !rule.takes_port(target.port) {
                if found == Found::Unlisted {
                    found = Found::Port;
                }
            } else if method.is_some_and(|method| !rule.takes_method(method)) {
                found = Found::Method;
            } else {
                return Found::Allowed(rule);
            }
        }
        found
    }

    /// What speaks against an address that `target` points to, by the rule that allows it.
    #[must_use]
    pub fn objection(&self, target: &Target, by: Option<&Rule>, address: IpAddr) -> Option<&str> {
        let address = address.to_canonical();
        let host = Host::Address(address);
        if let Some(rule) = self.deny.iter().find(|rule| {
            rule.hosts != Hosts::Every
                && rule.names(&host)
                && (rule.ports == Ports::Usual || rule.takes_port(target.port))
        }) {
            return Some(&rule.text);
        }
        let why = closed(address)?;
        let named = self.allow.iter().any(|rule| match &rule.hosts {
            Hosts::Range(range) => rule.takes_port(target.port) && rule.opens(range, address),
            _ => false,
        });
        let pointed = by.is_some_and(|rule| {
            let local = matches!(&rule.hosts, Hosts::Name { name, .. } if name == "localhost");
            rule.at.is_some_and(|range| rule.opens(&range, address))
                || local && address.is_loopback()
        });
        (!named && !pointed).then_some(why)
    }

    /// Whether an address of this machine itself was named.
    #[must_use]
    pub fn names_own(&self, target: &Target, by: Option<&Rule>, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.allow.iter().any(|rule| {
            matches!(&rule.hosts, Hosts::Range(range) if rule.takes_port(target.port)
                && rule.opens(range, address))
        }) || by.is_some_and(|rule| {
            rule.at.is_some_and(|range| rule.opens(&range, address))
                || matches!(&rule.hosts, Hosts::Name { name, .. } if name == "localhost")
        })
    }
}

/// Why an address is closed unless it is named.
fn closed(address: IpAddr) -> Option<&'static str> {
    if let IpAddr::V6(address) = address
        && embedded_ipv4(address).is_some()
        // Networks without IPv4 reach it this way.
        && !matches!(address.segments(), [0x64, 0xff9b, 0, 0, 0, 0, _, _])
    {
        return Some("an address with another one inside");
    }
    match classify_address(address) {
        AddressClass::Public => None,
        AddressClass::Loopback => Some("this machine (loopback)"),
        AddressClass::Private => Some("a private network"),
        AddressClass::LinkLocal => Some("the local link"),
        AddressClass::Metadata => Some("a cloud's metadata service"),
        AddressClass::Reserved => Some("a multicast or reserved address"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], deny: &[&str]) -> Rules {
        let read = |all: &[&str]| all.iter().map(|text| text.parse().unwrap()).collect();
        Rules { allow: read(allow), deny: read(deny), unlisted: Unlisted::Deny }
    }

    fn target(text: &str) -> Target {
        Target::parse(text.as_bytes(), Some(443)).unwrap()
    }

    #[test]
    fn rules_name_hosts_ports_and_methods() {
        let rules = rules(
            &[
                "example.org",
                "=one.test",
                "*.two.test",
                "git.test:22",
                "GET,HEAD read.test",
                "any.test:*",
                "198.51.100.0/24",
                "10.1.2.3:5432",
                "localhost:3000",
            ],
            &["bad.example.org", "example.org:80"],
        );
        let is = |text: &str, method: &str| match rules.find(&target(text), Some(method)) {
            Found::Allowed(_) => "allowed",
            Found::Denied(_) => "denied",
            Found::Port => "port",
            Found::Method => "method",
            Found::Unlisted => "unlisted",
        };
        for (text, method, expected) in [
            ("example.org", "CONNECT", "allowed"),
            ("a.b.example.org", "CONNECT", "allowed"),
            ("bad.example.org", "CONNECT", "denied"),
            ("x.bad.example.org:8443", "CONNECT", "denied"),
            ("notexample.org", "CONNECT", "unlisted"),
            ("example.org.evil.test", "CONNECT", "unlisted"),
            ("example.org:22", "CONNECT", "port"),
            ("example.org:80", "GET", "denied"),
            ("one.test", "GET", "allowed"),
            ("a.one.test", "GET", "unlisted"),
            ("two.test", "GET", "unlisted"),
            ("a.two.test", "GET", "allowed"),
            ("git.test:22", "CONNECT", "allowed"),
            ("git.test:443", "CONNECT", "port"),
            ("read.test:80", "GET", "allowed"),
            ("read.test:80", "POST", "method"),
            ("read.test", "CONNECT", "method"),
            ("any.test:6379", "CONNECT", "allowed"),
            ("198.51.100.9", "CONNECT", "allowed"),
            ("198.51.101.9", "CONNECT", "unlisted"),
            ("10.1.2.3:5432", "CONNECT", "allowed"),
            ("10.1.2.3:80", "CONNECT", "port"),
            ("localhost:3000", "GET", "allowed"),
            ("a.localhost:3000", "GET", "unlisted"),
        ] {
            assert_eq!(is(text, method), expected, "{text} {method}");
        }
        for text in
            ["", "*.com", "http://a.test", "a/b", "a.test:x", "a.test:0", "b.test@x", "ü.de"]
        {
            assert!(text.parse::<Rule>().is_err(), "{text}");
        }
    }

    #[test]
    fn closed_networks_open_only_where_they_are_named() {
        let rules = rules(
            &[
                "site.test",
                "corp.test@10.1.0.0/16",
                "localhost:3000",
                "172.16.0.0/12",
                "169.254.0.0/16",
            ],
            &["203.0.113.0/24", "8.8.4.4"],
        );
        let open = |name: &str, address: &str| {
            let target = target(name);
            let Found::Allowed(rule) = rules.find(&target, None) else { panic!("{name}") };
            rules.objection(&target, Some(rule), address.parse().unwrap()).is_none()
        };
        for (name, address, expected) in [
            ("site.test", "93.184.215.14", true),
            ("site.test", "2606:4700::1111", true),
            ("site.test", "127.0.0.1", false),
            ("site.test", "::1", false),
            ("site.test", "0.0.0.0", false),
            ("site.test", "10.1.0.1", false),
            ("site.test", "192.168.0.1", false),
            ("site.test", "100.64.0.1", false),
            ("site.test", "224.0.0.1", false),
            ("site.test", "255.255.255.255", false),
            ("site.test", "fe80::1", false),
            ("site.test", "fd00::1", false),
            ("site.test", "ff02::1", false),
            ("site.test", "::ffff:127.0.0.1", false),
            ("site.test", "64:ff9b::7f00:1", false),
            ("site.test", "64:ff9b::808:808", true),
            ("site.test", "2002:808:808::1", false),
            ("site.test", "169.254.169.254", false),
            ("site.test", "169.254.1.1", true),
            ("site.test", "172.16.0.1", true),
            ("site.test", "203.0.113.4", false),
            ("site.test", "8.8.4.4", false),
            ("corp.test", "10.1.0.1", true),
            ("corp.test", "10.2.0.1", false),
            ("localhost:3000", "127.0.0.1", true),
            ("localhost:3000", "::1", true),
            ("localhost:3000", "10.0.0.1", false),
        ] {
            assert_eq!(open(name, address), expected, "{name} {address}");
        }
    }
}
