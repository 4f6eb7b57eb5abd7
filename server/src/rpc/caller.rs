//! The address that a request is attributed to, as the door sets it.

use doorward_engine::id::Caller;
use tonic::Request;

use crate::door::caller_address::CallerAddress;

/// Returns the address that a request is attributed to. None: the door has set none.
pub fn of<T>(request: &Request<T>) -> Option<Caller> {
    let address = request.extensions().get::<CallerAddress>();
    address.copied().map(Caller::from)
}

impl From<CallerAddress> for Caller {
    fn from(address: CallerAddress) -> Self {
        Self::new(address.get())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    #[test]
    fn a_request_is_attributed_to_the_address_it_comes_from() {
        let mut request = Request::new(());
        assert_eq!(of(&request), None);
        let address = CallerAddress::of(IpAddr::V4(Ipv4Addr::LOCALHOST));
        request.extensions_mut().insert(address);
        assert_eq!(of(&request), Some(Caller::new(address.get())));
    }
}
