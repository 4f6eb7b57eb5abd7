//! Spans as they come in and go out: the tolerance of a node's clock, applied to what it is told and
//! tells. See [`crate::tolerance`].
//!
//! Whichever way a message goes, its promises become shorter and its reports longer.

use std::borrow::Cow;

use crate::refresh;
use crate::request::server::{ServerAsk, ServerLease};
use crate::request::{Has, Lease};
use crate::supply::ParentTerms;
use crate::tolerance::Tolerance;

impl Tolerance {
    /// What a holder says it has, or that is outstanding.
    pub(super) fn has(self, has: Has) -> Has {
        Has {
            expires_in: has.expires_in.map(|lasts| self.report(lasts)),
            ..has
        }
    }

    /// What a server asks its parent.
    pub(super) fn server_ask(self, ask: ServerAsk) -> ServerAsk {
        ServerAsk {
            has: ask.has.map(|has| self.has(has)),
            outstanding: ask.outstanding.map(|has| self.has(has)),
            ..ask
        }
    }

    /// What a client is told.
    pub(super) fn lease(self, lease: Lease) -> Lease {
        if self == Self::LEAST {
            return lease;
        }
        let expires_in = self.promise(lease.expires_in);
        Lease {
            expires_in,
            refresh_in: refresh::within_lease(lease.refresh_in, expires_in),
            ..lease
        }
    }

    /// What a child server is told, or a parent tells.
    pub(super) fn server_lease(self, lease: ServerLease) -> ServerLease {
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

    /// As [`Self::server_lease`], without a copy if nothing changes.
    pub(super) fn received_server_lease(self, lease: &ServerLease) -> Cow<'_, ServerLease> {
        if self == Self::LEAST {
            return Cow::Borrowed(lease);
        }
        Cow::Owned(self.server_lease(lease.clone()))
    }
}
