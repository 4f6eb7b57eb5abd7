//! The caller that a connection, and all that it causes, is attributed to: the identity of its certificate, or else an
//! address.
//!
//! An IPv4 address counts as a whole, and so does an IPv4 address mapped into IPv6. Of an IPv6 address only the first
//! 64 bits count, because the owner of one address has the whole /64 network. Callers of Unix sockets are one.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv6Addr};

use doorward_tls::identity::Identity;

/// A value that identifies a caller: an IPv4 address, an IPv6 network, Unix sockets, or the hash of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallerId {
    bits: u128,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Address,
    Identity { is_loopback: bool },
}

/// The bits of an IPv6 address that name its network.
const NETWORK: u128 = !(u64::MAX as u128);

impl CallerId {
    /// All callers of Unix sockets together.
    pub const UNIX: Self = Self::address(u128::MAX);

    /// Returns the caller that `ip` belongs to.
    pub fn of(ip: IpAddr) -> Self {
        let bits = |ip: Ipv6Addr| u128::from_be_bytes(ip.octets());
        match ip.to_canonical() {
            IpAddr::V4(ip) => Self::address(bits(ip.to_ipv6_mapped())),
            IpAddr::V6(ip) => Self::address(bits(ip) & NETWORK),
        }
    }

    const fn address(bits: u128) -> Self {
        let kind = Kind::Address;
        Self { bits, kind }
    }

    /// Returns the same caller, known by its identity.
    pub fn identified(self, identity: &Identity) -> Self {
        let hash = |half: u8| {
            let mut hasher = DefaultHasher::new();
            (half, identity).hash(&mut hasher);
            u128::from(hasher.finish())
        };
        Self {
            bits: hash(0) << 64 | hash(1),
            kind: Kind::Identity {
                is_loopback: self.is_loopback(),
            },
        }
    }

    /// Returns whether it is an address of this machine itself. Only `::1` of `::/64` is in use.
    pub fn is_loopback(self) -> bool {
        if let Kind::Identity { is_loopback } = self.kind {
            return is_loopback;
        }
        let ip = Ipv6Addr::from_bits(self.bits);
        let is_v4 = ip.to_ipv4_mapped().is_some_and(|ip| ip.is_loopback());
        is_v4 || self == Self::of(Ipv6Addr::LOCALHOST.into()) || self == Self::UNIX
    }

    /// Returns whether it is an address, and not an identity.
    pub fn is_address(self) -> bool {
        self.kind == Kind::Address
    }

    /// Returns its bits: those of an IPv6 address, or a hash.
    pub const fn get(self) -> u128 {
        self.bits
    }
}

impl fmt::Display for CallerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.is_address() {
            return write!(f, "identity {:016x}", self.bits >> 64);
        }
        if *self == Self::UNIX {
            return f.write_str("unix");
        }
        let ip = Ipv6Addr::from(self.bits.to_be_bytes());
        match ip.to_ipv4_mapped() {
            Some(ip) => ip.fmt(f),
            None => write!(f, "{ip}/64"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_are_one() {
        for (one, other, same) in [
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
            ("10.0.0.1", "::ffff:10.0.0.1", true),
            ("2001:db8::1", "2001:db8::ffff:1", true),
            ("2001:db8:0:1::1", "2001:db8:0:2::1", false),
            ("127.0.0.1", "::1", false),
            ("0.0.0.0", "::", false),
            ("::ffff:192.0.2.1", "::192.0.2.1", false),
        ] {
            let address = |text: &str| CallerId::of(text.parse().unwrap());
            assert_eq!(address(one) == address(other), same, "{one} and {other}");
        }
    }

    #[test]
    fn loopback_is_known_in_each_form() {
        for (ip, expected) in [
            ("127.0.0.1", true),
            ("127.9.9.9", true),
            ("::ffff:127.0.0.1", true),
            ("::1", true),
            ("10.0.0.1", false),
            ("0.0.0.0", false),
            ("2001:db8::1", false),
            ("::ffff:10.0.0.1", false),
        ] {
            let address = CallerId::of(ip.parse().unwrap());
            assert_eq!(address.is_loopback(), expected, "{ip}");
        }
    }

    #[test]
    fn unix_sockets_are_one_caller_of_this_machine() {
        let last = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff".parse().unwrap();
        assert_ne!(CallerId::UNIX, CallerId::of(last));
        assert!(CallerId::UNIX.is_loopback());
        assert_eq!(CallerId::UNIX.to_string(), "unix");
    }

    #[test]
    fn an_address_is_printed_as_people_write_it() {
        for (ip, printed) in [
            ("10.0.0.1", "10.0.0.1"),
            ("2001:db8::1", "2001:db8::/64"),
            ("::ffff:10.0.0.1", "10.0.0.1"),
        ] {
            assert_eq!(CallerId::of(ip.parse().unwrap()).to_string(), printed);
        }
    }
}
