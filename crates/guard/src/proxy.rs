//! Whether trusted proxies are so many that anyone may be one.
//!
//! A gateway believes what a trusted proxy says about who is calling. If everyone is trusted, everyone
//! can say that they are the owner.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// What was made of a list of trusted proxies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyTrust {
    /// Whether anyone may be one.
    pub open: bool,
    /// Why, in a sentence for a person.
    pub why: String,
}

/// More public addresses than a range of this length has are anyone.
const WIDEST_V4: u8 = 8;
const WIDEST_V6: u8 = 24;
/// Longest list that is looked at.
const MAX_ENTRIES: usize = 4096;

/// Words by which servers mean every address.
const EVERYONE: &[&str] = &["*", "all", "any", "everyone", "true", "yes", "on", "0.0.0.0", "::"];
/// Words by which servers mean addresses of the inside.
const INSIDE: &[&str] = &[
    "false",
    "no",
    "off",
    "none",
    "loopback",
    "linklocal",
    "uniquelocal",
    "private_ranges",
    "localhost",
];

/// Judges a list of trusted proxies: ranges, addresses and host names.
///
/// What cannot be read may mean everyone, so that it counts as open.
///
/// ```
/// use wardkeep_guard::proxy::check_proxy_trust;
/// assert!(check_proxy_trust(&["0.0.0.0/1", "128.0.0.0/1"], "gateway:18789").open);
/// assert!(!check_proxy_trust(&["10.0.0.0/8", "192.0.2.7"], "gateway:18789").open);
/// ```
#[must_use]
pub fn check_proxy_trust(trusted: &[&str], gateway: &str) -> ProxyTrust {
    let entries = trusted
        .iter()
        .flat_map(|entry| {
            entry.split(|sign: char| sign == ',' || sign == ';' || sign.is_whitespace())
        })
        .filter(|entry| !entry.is_empty());
    let open = |what: String| ProxyTrust {
        open: true,
        why: format!(
            "{what}, so that whoever reaches `{}` can pose as anybody; name your proxies one by one",
            shown(gateway)
        ),
    };
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for (number, entry) in entries.enumerate() {
        if number >= MAX_ENTRIES {
            return open("the list of trusted proxies is too long to be looked at".to_owned());
        }
        match read(entry) {
            Some(Entry::Everyone) => {
                return open(format!("`{}` trusts every address", shown(entry)));
            }
            Some(Entry::V4(range)) => v4.push(range),
            Some(Entry::V6(range)) => v6.push(range),
            Some(Entry::Machine) => {}
            None => return open(format!("`{}` cannot be read and may mean anyone", shown(entry))),
        }
    }
    let wide_v4 = public_v4(&v4) > size(32 - WIDEST_V4);
    if wide_v4 || public_v6(&v6) > size(128 - WIDEST_V6) {
        return open("the ranges together trust a large part of all addresses".to_owned());
    }
    ProxyTrust { open: false, why: "only the proxies that are listed are trusted".to_owned() }
}

enum Entry {
    Everyone,
    V4(Ipv4Net),
    V6(Ipv6Net),
    /// One machine, or one network of the inside, by name.
    Machine,
}

fn read(entry: &str) -> Option<Entry> {
    let lower = entry.trim_matches(['"', '\'', '[', ']']).to_ascii_lowercase();
    if EVERYONE.contains(&lower.as_str()) {
        return Some(Entry::Everyone);
    }
    if INSIDE.contains(&lower.as_str()) {
        return Some(Entry::Machine);
    }
    let range = if let Some((address, length)) = lower.split_once('/') {
        range(address.trim_matches(['[', ']']), length)?
    } else {
        match lower.parse::<IpAddr>().ok().or_else(|| short(&lower).map(IpAddr::V4)) {
            Some(address) => IpNet::from(address),
            None => return is_name(&lower).then_some(Entry::Machine),
        }
    };
    Some(match range {
        IpNet::V4(range) => entry_v4(range),
        IpNet::V6(range) => match carried_v4(range) {
            Some(range) => entry_v4(range),
            None if range.prefix_len() == 0 => Entry::Everyone,
            None => Entry::V6(range),
        },
    })
}

fn entry_v4(range: Ipv4Net) -> Entry {
    let unspecified = range.prefix_len() == 32 && range.addr().is_unspecified();
    if unspecified || range.prefix_len() == 0 { Entry::Everyone } else { Entry::V4(range) }
}

/// `10.0.0.0/8`, `10/8`, `0x0/0`, `0.0.0.0/0.0.0.0`.
fn range(address: &str, length: &str) -> Option<IpNet> {
    let address = address.parse::<IpAddr>().ok().or_else(|| short(address).map(IpAddr::V4))?;
    let digits = length.bytes().all(|byte| byte.is_ascii_digit());
    let length = match (digits && !length.is_empty(), address) {
        (true, _) => length.parse().ok()?,
        (false, IpAddr::V4(_)) => prefix_of(short(length)?)?,
        (false, IpAddr::V6(_)) => return None,
    };
    IpNet::new(address, length).ok().map(|range| range.trunc())
}

/// The length that a mask stands for, `255.0.0.0` or, in some servers, `0.255.255.255`.
fn prefix_of(mask: Ipv4Addr) -> Option<u8> {
    let bits = mask.to_bits();
    let (ones, zeros) = (bits.leading_ones(), bits.leading_zeros());
    let straight = ones + bits.trailing_zeros() >= 32 || ones == 32;
    let inverted = zeros + bits.trailing_ones() >= 32;
    let length = if straight {
        ones
    } else if inverted {
        zeros
    } else {
        return None;
    };
    u8::try_from(length).ok()
}

/// Up to four numbers; those that are missing are zero.
fn short(address: &str) -> Option<Ipv4Addr> {
    let mut octets = [0_u8; 4];
    let mut count = 0;
    for part in address.split('.') {
        let number = match part.strip_prefix("0x") {
            Some(hex) => u8::from_str_radix(hex, 16).ok(),
            None if part.bytes().all(|byte| byte.is_ascii_digit()) => part.parse().ok(),
            None => None,
        };
        *octets.get_mut(count)? = number?;
        count += 1;
    }
    (count > 0).then(|| Ipv4Addr::from(octets))
}

fn is_name(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    let letters = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    text.len() <= 253 && letters && text.trim_end_matches('.').split('.').all(label)
}

/// `::ffff:0:0/96` is every IPv4 address.
fn carried_v4(range: Ipv6Net) -> Option<Ipv4Net> {
    let address = range.addr().to_ipv4_mapped()?;
    Ipv4Net::new(address, range.prefix_len().checked_sub(96)?).ok()
}

const PRIVATE_V4: &[(Ipv4Addr, u8)] = &[
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
];

const PRIVATE_V6: &[(Ipv6Addr, u8)] = &[
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
];

/// How many addresses that are not private.
fn public_v4(ranges: &[Ipv4Net]) -> u128 {
    let private: Vec<Ipv4Net> =
        PRIVATE_V4.iter().flat_map(|(address, length)| Ipv4Net::new(*address, *length)).collect();
    let count = |range: &Ipv4Net| {
        if private.iter().any(|other| other.contains(range)) {
            return 0;
        }
        let inside = private.iter().filter(|other| range.contains(*other));
        let inside: u128 = inside.map(|other| size(32 - other.prefix_len())).sum();
        size(32 - range.prefix_len()).saturating_sub(inside)
    };
    Ipv4Net::aggregate(&ranges.to_vec()).iter().map(count).sum()
}

fn public_v6(ranges: &[Ipv6Net]) -> u128 {
    let private: Vec<Ipv6Net> =
        PRIVATE_V6.iter().flat_map(|(address, length)| Ipv6Net::new(*address, *length)).collect();
    let public = |range: &&Ipv6Net| !private.iter().any(|other| other.contains(*range));
    let ranges = Ipv6Net::aggregate(&ranges.to_vec());
    let sizes = ranges.iter().filter(public).map(|range| size(128 - range.prefix_len()));
    sizes.fold(0, u128::saturating_add)
}

fn size(bits: u8) -> u128 {
    1_u128.checked_shl(u32::from(bits)).unwrap_or(u128::MAX)
}

/// Text of others, short and without signs that steer a terminal.
fn shown(text: &str) -> String {
    text.chars().take(64).map(|sign| if sign.is_control() { '?' } else { sign }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn open(trusted: &[&str]) -> bool {
        check_proxy_trust(trusted, "127.0.0.1:18789").open
    }

    #[test]
    fn every_spelling_of_everyone_is_open() {
        for entry in [
            "0.0.0.0/0",
            "*",
            "::/0",
            "0/0",
            " 0.0.0.0/0 ",
            "\t*\n",
            "0.0.0.0/00",
            "0.0/0",
            "0x0/0",
            "00.0.0.0/0",
            "1.2.3.4/0",
            "0.0.0.0/0.0.0.0",
            "0.0.0.0/255.255.255.255",
            "::0/0",
            "0::/0",
            "::ffff:0.0.0.0/96",
            "::ffff:0:0/96",
            "[::]/0",
            "[::/0]",
            "0.0.0.0",
            "::",
            "any",
            "ALL",
            "true",
            "*.*.*.*",
            "*.example.org",
            "10.0.0.1,0.0.0.0/0",
            "10.0.0.1 *",
            "\"*\"",
            "'0.0.0.0/0'",
            "0.0.0.0/1",
            "128.0.0.0/1",
            "64.0.0.0/2",
            "2000::/3",
            "8000::/1",
            "10.0.0.0/33",
            "/.*/",
            "0/",
            "10.0.0.0/-1",
            "10.0.0.0/+0",
            "2001:db8::/ffff::",
            "000.000.000.000/000",
            "１０.0.0.0/8",
        ] {
            assert!(open(&[entry]), "{entry:?}");
        }
        assert!(open(&["0.0.0.0/1", "128.0.0.0/1"]));
        assert!(open(&["::/1", "8000::/1"]));
        assert!(open(&["10.0.0.1", "*"]));
        let eighths: Vec<String> = (1..=255).map(|first| format!("{first}.0.0.0/8")).collect();
        assert!(open(&eighths.iter().map(String::as_str).collect::<Vec<_>>()));
        let many = vec!["10.0.0.1"; MAX_ENTRIES + 1];
        assert!(open(&many));
    }

    #[test]
    fn proxies_that_are_named_are_not() {
        assert!(!open(&[]));
        assert!(!open(&[""]));
        for entry in [
            "127.0.0.1",
            "::1",
            "10.0.0.0/8",
            "10/8",
            "172.16.0.0/12",
            "192.168.0.0/255.255.0.0",
            "192.168.0.0/0.0.255.255",
            "100.64.0.0/10",
            "fc00::/7",
            "fe80::/10",
            "203.0.113.7",
            "2001:db8::7",
            "104.16.0.0/13",
            "2400:cb00::/32",
            "nginx",
            "proxy.internal",
            "loopback",
            "private_ranges",
            "[2001:db8::7]",
        ] {
            assert!(!open(&[entry]), "{entry:?}");
        }
        assert!(!open(&[
            "10.0.0.0/8",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "fc00::/7",
            "127.0.0.0/8"
        ]));
    }

    #[test]
    fn a_range_that_is_named_twice_counts_once() {
        assert!(!open(&["52.0.0.0/8", "52.0.0.0/8", "52.1.0.0/16"]));
        assert!(open(&["52.0.0.0/8", "53.0.0.0/8"]));
    }

    #[test]
    fn the_reason_is_safe_to_show() {
        let trust = check_proxy_trust(&["*\u{1b}[2J"], "g\u{1b}]0;x\u{7}");
        assert!(trust.open);
        assert!(!trust.why.contains('\u{1b}'), "{}", trust.why);
    }

    proptest! {
        #[test]
        fn any_list_is_judged(list in proptest::collection::vec("\\PC{0,24}", 0..8)) {
            let list: Vec<&str> = list.iter().map(String::as_str).collect();
            let _ = check_proxy_trust(&list, "");
        }

        #[test]
        fn more_trust_is_never_less_open(
            list in proptest::collection::vec("[0-9]{1,3}\\.0\\.0\\.0/[0-9]{1,2}", 0..6),
            more in "[0-9]{1,3}\\.0\\.0\\.0/[0-9]{1,2}",
        ) {
            let list: Vec<&str> = list.iter().map(String::as_str).collect();
            let mut longer = list.clone();
            longer.push(&more);
            prop_assert!(!open(&list) || open(&longer));
        }
    }
}
