//! Where a server is: `host:port`.

use std::fmt;

use smol_str::SmolStr;
use thiserror::Error;

/// The longest address, in bytes: a host name has at most 253, plus the port.
pub const ADDRESS_BYTES_MAX: usize = 300;

/// A valid address. Cloning is cheap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(SmolStr);

/// The text is not an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("is not host:port")]
pub struct BadAddress;

impl Address {
    /// Parses an address from another server or an operator.
    ///
    /// # Errors
    ///
    /// If it is not `host:port` in visible ASCII, or too long.
    pub fn parse(text: &str) -> Result<Self, BadAddress> {
        let is_address = text.len() <= ADDRESS_BYTES_MAX
            && text.bytes().all(|byte| byte.is_ascii_graphic())
            && text.rsplit_once(':').is_some_and(|(host, port)| {
                !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
            });
        if is_address {
            Ok(Self(SmolStr::new(text)))
        } else {
            Err(BadAddress)
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
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
    fn a_server_is_named_by_host_and_port() {
        for address in ["eu-0:6970", "10.0.0.1:1", "[::1]:65535"] {
            assert_eq!(Address::parse(address).unwrap().as_str(), address);
        }
        let long = format!("{}:1", "a".repeat(300));
        for address in [
            "",
            "eu-0",
            ":1",
            "eu-0:",
            "eu-0:0",
            "eu-0:65536",
            "a b:1",
            "a\u{202e}:1",
            "a\n:1",
            &long,
        ] {
            assert_eq!(Address::parse(address), Err(BadAddress), "{address}");
        }
    }
}
