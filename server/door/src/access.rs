//! TLS of connections, and the proof of an identity that a call needs.
//!
//! A caller proves its identity by a certificate, for the whole connection, or by a token in each call. A certificate
//! has the role of a client, and that of a child server unless [`Access::children`] says otherwise.

use std::io;
use std::sync::Arc;

use axum::http::{Extensions, HeaderMap, header};
use doorward_tls::identity::Identity;
use doorward_tls::server::{Certificate, Protocol, ServerTls, linger};
use doorward_tls::tokens::{Holder, Role, Tokens};
use thiserror::Error;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tonic::Status as RpcStatus;

use crate::limit::LimitTexts;
use crate::overload;
use crate::refusals::Refusals;

/// Requirements on connections and calls. The default has none.
#[derive(Debug, Default)]
pub struct Access {
    /// TLS of connections. None: they are plain.
    pub tls: Option<ServerTls>,
    /// Whether plain connections are accepted beside those by TLS, and calls without an identity, while callers change
    /// over.
    pub accepts_plain: bool,
    /// Tokens of callers.
    pub tokens: Option<Tokens>,
    /// Whether a call needs an identity.
    pub needs_identity: bool,
    /// Identities of certificates that may act as child servers. A star at the end stands for any characters. Empty:
    /// all may.
    pub children: Vec<String>,
    /// Connections that were refused.
    pub failures: Refusals,
    /// Calls whose caller proved no identity, or lacks a role.
    pub denied: Refusals,
}

/// Marks the call of an operator, as an extension of its request.
#[derive(Clone, Copy, Debug)]
pub struct Operator;

/// Reason why a call is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Denied {
    /// Its caller proves no identity.
    #[error(
        "prove who calls: by a client certificate, or by a token (authorization: Bearer TOKEN)"
    )]
    NoIdentity,
    /// Its token is not one of this server.
    #[error("this server does not know the token; its --tokens names the file of tokens")]
    UnknownToken,
    /// There were too many unknown tokens before.
    #[error("there are too many {}; try again in seconds ({})", .0.what, .0.flag)]
    Guesses(LimitTexts, u64),
    /// It is not served here.
    #[error("this port serves Doorman's clients only")]
    NotHere,
    /// Its identity lacks a role.
    #[error("{0} may not do this; it needs the role \"{1}\", by --tokens or --child-identities")]
    NoRole(Identity, &'static str),
}

impl Denied {
    /// Returns the status of a gRPC call.
    pub fn status(&self) -> RpcStatus {
        match self {
            Self::NoIdentity | Self::UnknownToken => RpcStatus::unauthenticated(self.to_string()),
            Self::Guesses(limit, number) => overload::exhausted(*limit, *number),
            Self::NotHere | Self::NoRole(..) => RpcStatus::permission_denied(self.to_string()),
        }
    }
}

/// Proof of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proof {
    pub(crate) identity: Option<Identity>,
    pub(crate) is_operator: bool,
}

impl Proof {
    /// Adds it to the extensions of a request: an [`Identity`], and [`Operator`].
    pub(crate) fn extend(self, extensions: &mut Extensions) {
        if let Some(identity) = self.identity {
            extensions.insert(identity);
        }
        if self.is_operator {
            extensions.insert(Operator);
        }
    }
}

impl Access {
    /// Looks at the first bytes of a new connection. Returns the TLS of the handshake that follows. None: it is plain.
    ///
    /// # Errors
    ///
    /// If the connection is plain and must not be.
    pub(crate) async fn look(
        &self,
        mut socket: TcpStream,
        protocol: Protocol,
    ) -> io::Result<(TcpStream, Option<&ServerTls>)> {
        let Some(tls) = &self.tls else {
            return Ok((socket, None));
        };
        if ServerTls::is_tls(&socket).await? {
            return Ok((socket, Some(tls)));
        }
        if self.accepts_plain {
            return Ok((socket, None));
        }
        socket.write_all(needs_tls(protocol)).await?;
        linger(socket).await;
        Err(io::Error::other("the caller does not use TLS"))
    }

    /// Returns whether all that was proved on a connection is still valid.
    pub(crate) fn is_valid(
        &self,
        certificate: Option<&Certificate>,
        holders: &[Arc<Holder>],
    ) -> bool {
        let is_trusted = |it| self.tls.as_ref().is_some_and(|tls| tls.is_valid(it));
        let is_known = |it: &Arc<Holder>| self.tokens.as_ref().is_some_and(|all| all.has(it));
        certificate.is_none_or(is_trusted) && holders.iter().all(is_known)
    }

    /// Returns the proof of a call. `certificate`: the identity of the connection; `find` returns the holder of a token;
    /// `needs`: roles of which one suffices. Without any, the call needs no proof.
    ///
    /// # Errors
    ///
    /// If the proof is missing or not good enough.
    pub(crate) fn prove(
        &self,
        certificate: Option<&Identity>,
        token: Option<&[u8]>,
        needs: &[Role],
        find: impl FnOnce(&Tokens, &[u8]) -> Result<Arc<Holder>, Denied>,
    ) -> Result<Proof, Denied> {
        let Some(role) = needs.first() else {
            return Ok(Proof::default());
        };
        if let (Some(tokens), Some(token)) = (&self.tokens, token) {
            let holder = find(tokens, token)?;
            let (identity, roles) = (holder.identity.clone(), &holder.roles);
            if !needs.iter().any(|role| roles.contains(role)) {
                return Err(Denied::NoRole(identity, role.as_str()));
            }
            return Ok(Proof {
                identity: Some(identity),
                is_operator: roles.contains(&Role::Operator),
            });
        }
        match certificate {
            None if self.needs_identity && !self.accepts_plain => Err(match token {
                Some(_) => Denied::UnknownToken,
                None => Denied::NoIdentity,
            }),
            Some(identity) if needs == [Role::Server] && !self.may_be_child(identity) => {
                Err(Denied::NoRole(identity.clone(), role.as_str()))
            }
            _ => Ok(Proof {
                identity: certificate.cloned(),
                is_operator: false,
            }),
        }
    }

    fn may_be_child(&self, identity: &Identity) -> bool {
        let identity = identity.to_string();
        let matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some(prefix) => identity.starts_with(prefix),
            None => identity == *pattern,
        };
        self.children.is_empty() || self.children.iter().any(matches)
    }
}

/// Returns the token in the headers of a call. Several are an unknown one: another program may go by the other one.
pub(crate) fn token(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let first = values.next()?;
    if values.next().is_some() {
        return Some(b"");
    }
    let (scheme, token) = first.as_bytes().split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}

/// Returns the answer to a plain connection, in its own protocol.
const fn needs_tls(protocol: Protocol) -> &'static [u8] {
    match protocol {
        // SETTINGS without a setting, and GOAWAY with the code INADEQUATE_SECURITY (RFC 9113, sections 6.5 and 6.8).
        Protocol::Http2 => {
            b"\0\0\0\x04\0\0\0\0\0\0\0\x2c\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0cthis port needs TLS (https, or --ca)"
        }
        Protocol::Http1 => {
            b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 30\r\nconnection: close\r\n\r\nthis port needs TLS: https://\n"
        }
        Protocol::Other => b"-ERR this port needs TLS\r\n",
    }
}
