//! The address of a server: `host:port`, or a Unix socket.

use std::fmt;
use std::net::Ipv6Addr;
use std::num::IntErrorKind;

use smol_str::SmolStr;
use thiserror::Error;

/// Longest address, in bytes: a host name has at most 253, plus the port.
pub const ADDRESS_BYTES_MAX: usize = 300;

/// Start of addresses of Unix sockets. A host may have the name `unix`.
const SOCKET: &str = "unix:/";

/// A valid address. Cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(SmolStr);

/// The text is not an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadAddress {
    /// Its port is above the largest port.
    #[error("has a port above 65535")]
    PortTooHigh,
    /// Another problem.
    #[error("is not host:port")]
    NotHostPort,
}

impl Address {
    /// Parses an address from another server or an operator.
    ///
    /// # Errors
    ///
    /// If it is not `host:port` in visible ASCII, or too long.
    pub fn parse(text: &str) -> Result<Self, BadAddress> {
        let is_visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        let is_text = text.len() <= ADDRESS_BYTES_MAX && is_visible && !text.starts_with(SOCKET);
        let parts = text.rsplit_once(':').filter(|_| is_text);
        let Some((_, port)) = parts.filter(|(host, _)| !host.is_empty()) else {
            return Err(BadAddress::NotHostPort);
        };
        match port.parse::<u16>() {
            Ok(1..) => Ok(Self(SmolStr::new(text))),
            Err(error) if *error.kind() == IntErrorKind::PosOverflow => {
                Err(BadAddress::PortTooHigh)
            }
            Ok(0) | Err(_) => Err(BadAddress::NotHostPort),
        }
    }

    /// Returns the address of a Unix socket, `unix:/PATH`, from the program itself: no other server can name one.
    pub fn of_socket(text: &str) -> Option<Self> {
        let path = text.strip_prefix(SOCKET);
        let is_path = path.is_some_and(|it| !it.starts_with('/'));
        let is_socket = is_path && text.len() <= ADDRESS_BYTES_MAX;
        is_socket.then(|| Self(SmolStr::new(text)))
    }

    /// Whether it is a Unix socket.
    pub fn is_socket(&self) -> bool {
        self.0.starts_with(SOCKET)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns advice if the host of an address or URI is an IPv6 address that is not allowed there. HTTP has no zones, and
/// neither have addresses of servers.
pub fn ipv6_advice(text: &str) -> Option<&'static str> {
    let authority = text.split_once("://").map_or(text, |(_, rest)| rest);
    let host = authority.rsplit_once(':');
    let host = host.map_or(authority, |(host, _)| host);
    let is_ipv6 = |text: &str| text.parse::<Ipv6Addr>().is_ok();
    if authority.contains('%') && authority.contains(':') {
        Some("an IPv6 zone cannot be used here; give an address without one, or a host name")
    } else if is_ipv6(authority) || is_ipv6(host) {
        Some("an IPv6 address needs brackets; give [ADDRESS]:PORT, as in [::1]:6970")
    } else {
        None
    }
}

/// Returns the reason why the host and port of a URI have no valid port. The text follows "it".
pub fn missing_port(authority: &str) -> &'static str {
    match Address::parse(authority) {
        Err(BadAddress::PortTooHigh) => "has a port above 65535",
        _ => "has no port",
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_address_needs_brackets_and_has_no_zone() {
        for text in ["::1:6970", "http://2001:db8::1", "http://::1:2379"] {
            let advice = ipv6_advice(text).unwrap_or_default();
            assert!(advice.contains("as in [::1]:6970"), "{text}: {advice}");
        }
        for text in ["[fe80::1%lo]:6970", "http://[fe80::1%251]:1", "fe80::1%2:1"] {
            let advice = ipv6_advice(text).unwrap_or_default();
            assert!(advice.contains("zone"), "{text}: {advice}");
        }
        for text in ["eu-0:6970", "http://[::1]:1", "10.0.0.1:1", "", "a%20b"] {
            assert_eq!(ipv6_advice(text), None, "{text}");
        }
    }

    #[test]
    fn a_server_is_named_by_host_and_port() {
        for address in ["eu-0:6970", "10.0.0.1:1", "[::1]:65535", "unix:1"] {
            assert_eq!(Address::parse(address).unwrap().as_str(), address);
        }
        let long = format!("{}:1", "a".repeat(300));
        for address in [
            "",
            "eu-0",
            ":1",
            "eu-0:",
            "eu-0:0",
            "eu-0:-1",
            "eu-0:x",
            "[::1]",
            "a b:1",
            "a\u{202e}:1",
            "a\n:1",
            "unix:/run/doorward:1",
            &long,
        ] {
            let not_one = Err(BadAddress::NotHostPort);
            assert_eq!(Address::parse(address), not_one, "{address}");
        }
        for address in ["eu-0:65536", "[::1]:99999", "a:99999999999999999999"] {
            let too_high = Err(BadAddress::PortTooHigh);
            assert_eq!(Address::parse(address), too_high, "{address}");
            assert_eq!(missing_port(address), "has a port above 65535");
        }
        assert_eq!(missing_port("eu-0"), "has no port");
    }
}
