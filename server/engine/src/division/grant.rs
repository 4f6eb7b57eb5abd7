//! A decision, before it becomes a lease.

use crate::amount::Amount;
use crate::division::{Share, Why};

/// The amount that a holder gets, and the reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    pub(crate) share: Share,
    pub(crate) gets: Amount,
    /// The most it could have got.
    pub(crate) room: Amount,
    /// It gets less than its share because of leases of others.
    pub(crate) waits: bool,
    /// In learning mode, the amount to confirm, if the holder gets only a part of it because the reports exceed the
    /// capacity.
    pub(crate) cut_from: Option<Amount>,
    pub(crate) why: Why,
}
