//! Which part of the network an address belongs to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A part of the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressClass {
    /// Reachable from everywhere.
    Public,
    /// This machine.
    Loopback,
    /// RFC 1918, unique local, shared carrier space.
    Private,
    /// Only this link.
    LinkLocal,
    /// Where a cloud hands out credentials.
    Metadata,
    /// Multicast, documentation, reserved, unspecified.
    Reserved,
}

/// Classifies an address; one that carries an IPv4 address inside IPv6 counts as that.
pub fn classify_address(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => v4(address),
        IpAddr::V6(address) => v6(address),
    }
}

fn v4(address: Ipv4Addr) -> AddressClass {
    match address.octets() {
        // AWS, GCP, Azure, DigitalOcean, Oracle; ECS tasks; EKS pods; Alibaba; Azure's wire server.
        [169, 254, 169, 254]
        | [169, 254, 170, 2 | 23]
        | [100, 100, 100, 200]
        | [168, 63, 129, 16]
        | [192, 0, 0, 192] => AddressClass::Metadata,
        [0, ..] | [127, ..] => AddressClass::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => {
            AddressClass::Private
        }
        [169, 254, ..] => AddressClass::LinkLocal,
        [192, 0, 0 | 2, _]
        | [198, 18..=19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [224..=255, ..] => AddressClass::Reserved,
        _ => AddressClass::Public,
    }
}

fn v6(address: Ipv6Addr) -> AddressClass {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => AddressClass::Loopback,
        [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x254 | 0x23] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => {
            AddressClass::Metadata
        }
        [0xfc00..=0xfdff, ..] => AddressClass::Private,
        [0xfe80..=0xfeff, ..] => AddressClass::LinkLocal,
        [0xff00..=0xffff, ..] | [0x2001, 0xdb8, ..] | [0x100, 0, 0, 0, ..] => {
            AddressClass::Reserved
        }
        _ => embedded_ipv4(address).map_or(AddressClass::Public, v4),
    }
}

/// The IPv4 address that an IPv6 address carries: mapped, compatible, translated, by NAT64, 6to4 or Teredo.
pub fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let (high, low) = match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => return None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0 | 1, _, _, _, high, low]
        | [0x2002, high, low, ..] => (high, low),
        // Teredo keeps the client's address inverted.
        [0x2001, 0, .., high, low] => (!high, !low),
        _ => return None,
    };
    Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
}
