//! Whom a request is attributed to: the address it comes from.
//!
//! An IPv4 address counts as a whole. Of an IPv6 address the first 64 bits count: whoever has one has all that
//! begin with them. An IPv4 address in IPv6's clothes (`::ffff:192.0.2.1`) is an IPv4 address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use doorward_engine::id::Caller;
use tonic::Request;

/// Whom a request is attributed to, as whoever accepted its connection says: an extension of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerKey(pub Caller);

/// Whom a request is attributed to. None: nobody says.
pub fn of<T>(request: &Request<T>) -> Option<Caller> {
    let key = request.extensions().get::<CallerKey>();
    key.map(|CallerKey(caller)| *caller)
}

/// The caller behind an address.
pub fn caller_of(address: IpAddr) -> Caller {
    Caller::new(match address.to_canonical() {
        IpAddr::V4(address) => of_v4(address),
        IpAddr::V6(address) => of_v6(address),
    })
}

/// As IPv6 writes it, which no first half of an IPv6 address is.
fn of_v4(address: Ipv4Addr) -> u128 {
    u128::from(address.to_ipv6_mapped())
}

fn of_v6(address: Ipv6Addr) -> u128 {
    u128::from(address) & (u128::MAX << 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(a: &str, b: &str, same: bool) {
        let [a, b] = [a, b].map(|text| caller_of(text.parse().expect("an address")));
        assert_eq!(a == b, same, "{a:?} and {b:?}");
    }

    #[test]
    fn an_ipv4_address_is_a_caller() {
        check("192.0.2.1", "192.0.2.1", true);
        check("192.0.2.1", "192.0.2.2", false);
        check("192.0.2.1", "193.0.2.1", false);
        check("0.0.0.0", "::", false);
        check("127.0.0.1", "::1", false);
    }

    #[test]
    fn an_ipv4_address_in_ipv6s_clothes_is_one() {
        check("192.0.2.1", "::ffff:192.0.2.1", true);
        check("::ffff:192.0.2.1", "::ffff:192.0.2.2", false);
        check("::ffff:192.0.2.1", "::192.0.2.1", false);
    }

    #[test]
    fn all_ipv6_addresses_of_one_network_are_one_caller() {
        check("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true);
        check("2001:db8:1:2::1", "2001:db8:1:3::1", false);
        check("::1", "::2", true);
    }

    #[test]
    fn a_request_is_attributed_to_whom_its_extension_says() {
        let mut request = Request::new(());
        assert_eq!(of(&request), None);
        let caller = caller_of(IpAddr::V4(Ipv4Addr::LOCALHOST));
        request.extensions_mut().insert(CallerKey(caller));
        assert_eq!(of(&request), Some(caller));
    }
}
