//! Durations in requests and answers: the tolerance of a node's clock, applied to what it sends and receives. See
//! [`doorward_time::tolerance`].
//!
//! In both directions, promises become shorter and reports longer.

use std::borrow::Cow;

use crate::division::ParentTerms;
use crate::messages::{ClientLease, Has, ServerAsk, ServerLease};
use crate::resource::refresh;
use doorward_time::tolerance::Tolerance;

/// Converts durations in messages between this node and others to its clock's tolerance.
pub(super) trait Spans: Sized {
    /// A holder's report of `has` or `outstanding`.
    fn has(self, has: Has) -> Has;
    /// A server's request to its parent.
    fn server_ask(self, ask: ServerAsk) -> ServerAsk;
    /// The answer to a client.
    fn lease(self, lease: ClientLease) -> ClientLease;
    /// The answer to a child server, or of a parent.
    fn server_lease(self, lease: ServerLease) -> ServerLease;
    /// As [`Self::server_lease`], without a copy if nothing changes.
    fn received_server_lease(self, lease: &ServerLease) -> Cow<'_, ServerLease>;
}

impl Spans for Tolerance {
    fn has(self, has: Has) -> Has {
        Has {
            expires_in: has.expires_in.map(|lasts| self.report(lasts)),
            ..has
        }
    }

    fn server_ask(self, ask: ServerAsk) -> ServerAsk {
        ServerAsk {
            has: ask.has.map(|has| self.has(has)),
            outstanding: ask.outstanding.map(|has| self.has(has)),
            ..ask
        }
    }

    fn lease(self, lease: ClientLease) -> ClientLease {
        if self == Self::LEAST {
            return lease;
        }
        let expires_in = self.promise(lease.expires_in);
        ClientLease {
            expires_in,
            refresh_in: refresh::within_lease(lease.refresh_in, expires_in),
            ..lease
        }
    }

    fn server_lease(self, lease: ServerLease) -> ServerLease {
        if self == Self::LEAST {
            return lease;
        }
        let expires_in = self.promise(lease.expires_in);
        ServerLease {
            expires_in,
            refresh_in: refresh::within_lease(lease.refresh_in, expires_in),
            terms: ParentTerms {
                reserved_for: lease.terms.reserved_for.map(|lasts| self.report(lasts)),
                inherited_for: lease.terms.inherited_for.map(|lasts| self.report(lasts)),
                ..lease.terms
            },
            ..lease
        }
    }

    fn received_server_lease(self, lease: &ServerLease) -> Cow<'_, ServerLease> {
        if self == Self::LEAST {
            return Cow::Borrowed(lease);
        }
        Cow::Owned(self.server_lease(lease.clone()))
    }
}
