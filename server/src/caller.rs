//! The caller that a request is attributed to, and what it may change, as the door says.

use doorward_door::access::Operator;
use doorward_door::caller_id::CallerId;
use doorward_engine::id::Caller;
use doorward_tls::identity::Identity;
use tonic::{Extensions, Request, Status};

/// Returns the identity that the caller of a request has proved, if it has.
pub fn identity<T>(request: &Request<T>) -> Option<&Identity> {
    request.extensions().get::<Identity>()
}

/// Returns the caller that a request is attributed to. None: the door has set none.
pub fn of<T>(request: &Request<T>) -> Option<Caller> {
    let caller = request.extensions().get::<CallerId>();
    caller.map(|caller| Caller::new(caller.get()))
}

/// Returns whether a caller may change rules and templates: an operator, or a caller on the server's own machine without
/// an identity, if the server needs none.
pub fn may_write(extensions: &Extensions) -> bool {
    let address = extensions.get::<CallerId>();
    let is_here = address.is_some_and(|id| id.is_loopback());
    let is_open = is_here && extensions.get::<Identity>().is_none();
    is_open || is_operator(extensions)
}

/// Returns whether a caller has proved that it is an operator.
pub fn is_operator(extensions: &Extensions) -> bool {
    extensions.get::<Operator>().is_some()
}

/// Returns the caller's identity, or else its address, if the caller may change rules and templates.
///
/// # Errors
///
/// If it may not.
pub fn writer(extensions: &Extensions) -> Result<String, Status> {
    if !may_write(extensions) {
        let problem = "rules and templates are changed with the token of an operator or, without identities, from the \
                       server's own machine; or change the file, directory or etcd itself";
        return Err(Status::permission_denied(problem));
    }
    let identity = extensions.get::<Identity>().map(ToString::to_string);
    let address = extensions.get::<CallerId>().map(ToString::to_string);
    Ok(identity.or(address).unwrap_or_default())
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

    #[test]
    fn operators_may_write_and_so_may_this_machine_without_an_identity() {
        let at = |ip: Ipv4Addr| CallerId::of(IpAddr::V4(ip));
        let (here, there) = (at(Ipv4Addr::LOCALHOST), at(Ipv4Addr::new(192, 0, 2, 1)));
        let ann = Identity::parse("token:ann").unwrap();
        for (address, identity, is_operator, who) in [
            (here, None, false, Some("127.0.0.1")),
            (there, None, false, None),
            (here, Some(&ann), false, None),
            (there, Some(&ann), false, None),
            (there, Some(&ann), true, Some("token:ann")),
        ] {
            let mut extensions = Extensions::default();
            extensions.insert(address);
            if let Some(identity) = identity {
                extensions.insert(identity.clone());
            }
            if is_operator {
                extensions.insert(Operator);
            }
            let writer = writer(&extensions).ok();
            assert_eq!(
                writer.as_deref(),
                who,
                "{address} {identity:?} {is_operator}"
            );
        }
    }
}
