//! The caller of a request.

use std::convert::Infallible;
use std::net::SocketAddr;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use doorward_door::caller_id::CallerId;
use doorward_tls::identity::Identity;

use crate::asker::{Asker, caller_name};
use crate::rls::CLIENT;

/// Name and address of a caller, as the connection and the headers give them.
#[derive(Debug)]
pub(super) struct Peer {
    named: Option<String>,
    identity: Option<Identity>,
    /// None: the connection has no address.
    pub(super) address: Option<CallerId>,
}

impl Peer {
    /// Returns the name that the program gives itself in the body, or else in the header. With an identity, the name is
    /// one of that identity's.
    pub(super) fn given_name(&self, in_body: Option<String>) -> Option<String> {
        let given = self.given(in_body)?;
        Some(caller_name(Some(&given), self.identity.as_ref(), None))
    }

    fn given(&self, in_body: Option<String>) -> Option<String> {
        let in_body = in_body.filter(|name| !name.is_empty());
        in_body.or_else(|| self.named.clone())
    }

    /// Returns the identity that it has proved.
    pub(super) fn identity(&self) -> Option<String> {
        self.identity.as_ref().map(ToString::to_string)
    }

    /// Returns the caller.
    pub(super) fn asker(&self, in_body: Option<String>) -> Asker {
        let given = self.given(in_body);
        let (identity, address) = (self.identity.as_ref(), self.address.as_ref());
        Asker::new(given.as_deref(), identity, address)
    }
}

impl<S: Sync> FromRequestParts<S> for Peer {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Infallible> {
        let named = parts.headers.get(CLIENT).and_then(|it| it.to_str().ok());
        let set_by_door = parts.extensions.get::<CallerId>().copied();
        let connected = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        Ok(Self {
            named: named.filter(|name| !name.is_empty()).map(str::to_owned),
            identity: parts.extensions.get().cloned(),
            address: set_by_door.or_else(|| Some(CallerId::of(connected?.0.ip()))),
        })
    }
}
