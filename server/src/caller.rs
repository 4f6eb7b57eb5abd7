//! The caller that a request is attributed to, as the door sets it.

use doorward_door::caller_id::CallerId;
use doorward_engine::id::Caller;
use doorward_tls::identity::Identity;
use tonic::Request;

/// Returns the identity that the caller of a request has proved, if it has.
pub fn identity<T>(request: &Request<T>) -> Option<&Identity> {
    request.extensions().get::<Identity>()
}

/// Returns the caller that a request is attributed to. None: the door has set none.
pub fn of<T>(request: &Request<T>) -> Option<Caller> {
    let caller = request.extensions().get::<CallerId>();
    caller.map(|caller| Caller::new(caller.get()))
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    #[test]
    fn a_request_is_attributed_to_the_address_it_comes_from() {
        let mut request = Request::new(());
        assert_eq!(of(&request), None);
        let address = CallerId::of(IpAddr::V4(Ipv4Addr::LOCALHOST));
        request.extensions_mut().insert(address);
        assert_eq!(of(&request), Some(Caller::new(address.get())));
    }
}
