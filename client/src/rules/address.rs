//! The client's address behind proxies.
//!
//! Trusted proxies are a number of hops or a list of networks. An entry that is no address is one that the nearest
//! proxy did not tell, so the identifier is the nearest known address to its right, never one further left. At most 64
//! entries from the right are read. IPv6 addresses are told by prefix, and `::ffff:192.0.2.1` is the IPv4 address.

use std::io::{Cursor, Write as _};
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use smallvec::SmallVec;
use thiserror::Error;

use crate::rules::forwarded::{self, Entry};
use crate::rules::request::Request;
use crate::rules::value::{INLINE, Value};

/// Most entries that are read, from the right.
pub const ENTRIES_MAX: usize = 64;

/// Way to the client's address.
#[derive(Clone, Debug)]
pub struct Address {
    /// Header that proxies write.
    pub from: Forwarding,
    /// Proxies that are trusted.
    pub trusted: Trusted,
    /// Bits of an IPv6 address that identify a client, from 0 to 128; mostly 64. A larger number counts as 128.
    pub ipv6_prefix: u8,
}

/// Header that proxies write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// None: the client is the peer.
    Peer,
    /// `X-Forwarded-For`.
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

/// Proxies that are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trusted {
    /// A number of proxies in front of the service. 0: the client is the peer.
    Hops(usize),
    /// Networks of proxies. If the peer is in none, it is the client.
    Proxies(Vec<Network>),
}

/// A network of proxies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// The Unix socket.
    Unix,
    /// Addresses with a prefix of that many bits.
    Prefix(IpAddr, u8),
}

/// Error: an invalid network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0} is no network; write one such as 10.0.0.0/8, or unix")]
pub struct InvalidNetwork(pub String);

impl Address {
    /// Takes the peer of the connection as the client, for a service without proxies. IPv6 counts by /64.
    pub const fn peer() -> Self {
        Self {
            from: Forwarding::Peer,
            trusted: Trusted::Hops(0),
            ipv6_prefix: 64,
        }
    }

    /// Returns the text of the client's address; `None` if it is missing.
    pub fn client<'a>(&self, request: &Request<'a>) -> Option<Value<'a>> {
        let peer = request.peer.map(|peer| peer.to_canonical());
        let client = match self.from {
            Forwarding::Peer => peer.map(Entry::Known),
            Forwarding::XForwardedFor => {
                let lines = request.lines("x-forwarded-for").rev();
                let entries = lines
                    .flat_map(|line| line.rsplit(|byte| *byte == b',').map(<[u8]>::trim_ascii));
                let entries = entries.filter(|entry| !entry.is_empty());
                self.choose(peer, entries.map(Entry::read))
            }
            Forwarding::Forwarded => {
                let lines = request.lines("forwarded").rev();
                let elements = lines.flat_map(|line| forwarded::elements(line).into_iter().rev());
                self.choose(peer, elements.map(forwarded::entry))
            }
        };
        match client? {
            Entry::Known(address) => Some(self.text(address)),
            Entry::Told(text) => Some(text),
            Entry::Invalid => None,
        }
    }

    /// Returns the client. `entries` are those of the header, from the right.
    fn choose<'a>(
        &self,
        peer: Option<IpAddr>,
        entries: impl Iterator<Item = Entry<'a>>,
    ) -> Option<Entry<'a>> {
        let mut entries = entries.take(ENTRIES_MAX);
        let mut nearest = peer;
        let client = match &self.trusted {
            Trusted::Hops(0) => None,
            Trusted::Hops(hops) => {
                for _ in 1..*hops {
                    match entries.next() {
                        Some(Entry::Known(address)) => nearest = Some(address),
                        Some(_) => {}
                        None => return peer.map(Entry::Known),
                    }
                }
                match entries.next() {
                    None => return peer.map(Entry::Known),
                    client => client,
                }
            }
            Trusted::Proxies(networks) => {
                let is_ours = |it: Option<IpAddr>| networks.iter().any(|net| net.contains(it));
                let mut client = None;
                while client.is_none() && is_ours(nearest) {
                    match entries.next() {
                        None => break,
                        Some(Entry::Known(address)) if is_ours(Some(address)) => {
                            nearest = Some(address);
                        }
                        entry => client = entry,
                    }
                }
                client
            }
        };
        let client = client.filter(|client| *client != Entry::Invalid);
        client.or(nearest.map(Entry::Known))
    }

    fn text<'a>(&self, address: IpAddr) -> Value<'a> {
        let address = match address {
            IpAddr::V4(address) => return v4_text(address.octets()),
            IpAddr::V6(address) => address.to_bits(),
        };
        let bits = self.ipv6_prefix.min(128);
        let prefix = Ipv6Addr::from_bits(high_bits(address, bits));
        let mut text = Cursor::new([0; INLINE]);
        // The longest address has 43 bytes.
        let _ = write!(text, "{prefix}/{bits}");
        let length = usize::try_from(text.position()).unwrap_or(INLINE);
        Value::Owned(SmallVec::from_buf_and_len(text.into_inner(), length))
    }
}

/// Returns the text of an IPv4 address. The standard library takes ten times as long.
fn v4_text<'a>(octets: [u8; 4]) -> Value<'a> {
    let mut text = SmallVec::new();
    for (place, octet) in octets.into_iter().enumerate() {
        if place > 0 {
            text.push(b'.');
        }
        for unit in [100, 10, 1] {
            if octet >= unit || unit == 1 {
                text.push(b'0' + octet / unit % 10);
            }
        }
    }
    Value::Owned(text)
}

/// Returns the first bits of a number, and zeros behind them.
fn high_bits(number: u128, bits: u8) -> u128 {
    let shift = 128 - u32::from(bits.min(128));
    number & u128::MAX.checked_shl(shift).unwrap_or(0)
}

impl Network {
    fn contains(&self, address: Option<IpAddr>) -> bool {
        match (self, address) {
            (Self::Unix, None) => true,
            (Self::Prefix(IpAddr::V4(net), bits), Some(IpAddr::V4(address))) => {
                let differ = u128::from(net.to_bits() ^ address.to_bits()) << 96;
                high_bits(differ, *bits) == 0
            }
            (Self::Prefix(IpAddr::V6(net), bits), Some(IpAddr::V6(address))) => {
                high_bits(net.to_bits() ^ address.to_bits(), *bits) == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        if text == "unix" {
            return Ok(Self::Unix);
        }
        let invalid = || InvalidNetwork(text.to_owned());
        let (address, bits) = text.split_once('/').unwrap_or((text, ""));
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let bits = if text.contains('/') {
            bits.parse()
                .ok()
                .filter(|bits| *bits <= bits_max)
                .ok_or_else(invalid)?
        } else {
            bits_max
        };
        // A mapped IPv4 network has 96 bits in front.
        match (address, address.to_canonical()) {
            (IpAddr::V6(_), IpAddr::V4(mapped)) if bits >= 96 => {
                Ok(Self::Prefix(mapped.into(), bits - 96))
            }
            _ => Ok(Self::Prefix(address, bits)),
        }
    }
}
