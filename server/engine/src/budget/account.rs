//! An account of a holder with a granter, and what the two say to each other.

use crate::amount::Amount;
use crate::claims::{Claim, Demand};
use crate::id::{HolderId, MastershipId};
use crate::messages::LimitedBy;
use crate::templates::window::Window;
use crate::time::Time;

/// Accounts of one budget, at most. The oldest silent ones beyond that are folded into one amount.
pub(crate) const ACCOUNTS_MAX: usize = 100_000;

/// One holder, as long as its memory: with another book it is another one. In order of the holders.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AccountId {
    pub(crate) holder: HolderId,
    /// The holder's book.
    pub(crate) book: u64,
}

/// A holder's word about its account, and what it needs.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) sequence: u64,
    /// The granter's book that it is about. None: the holder knows of no account.
    pub(crate) book: Option<u64>,
    /// The mastership of this node that it is about.
    pub(crate) mastership: Option<MastershipId>,
    /// The window that it is about. None: the holder knows of none.
    pub(crate) window: Option<Window>,
    /// The holder takes no more than that until it hears an answer.
    pub(crate) has: u64,
    pub(crate) taken: u64,
    /// Headroom that it wants.
    pub(crate) need: Demand,
    /// Smallest headroom of any use.
    pub(crate) least: u64,
    pub(crate) streams: bool,
    /// Whether it is the last word of this holder.
    pub(crate) closes: bool,
}

/// A granter's answer to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// Amount that the holder may have taken in this window.
    pub(crate) ceiling: u64,
    /// Amount that it is known to have taken.
    pub(crate) taken: u64,
    /// The same, once the mark of the budget has risen.
    pub(crate) share: u64,
    /// Newest word that it takes into account.
    pub(crate) sequence: u64,
    pub(crate) limited_by: LimitedBy,
}

#[derive(Debug)]
pub(super) struct Account {
    /// Number of the window of these amounts. In a later one they are 0.
    pub(super) turn: u64,
    /// The most that the holder may take.
    pub(super) reserved: u64,
    pub(super) taken: u64,
    pub(super) ceiling: u64,
    /// Headroom that waits for the mark of the budget.
    pub(super) rising: u64,
    pub(super) limited_by: LimitedBy,
    /// Reserved amount of the window before.
    pub(super) reserved_before: u64,
    pub(super) need: Demand,
    pub(super) least: u64,
    pub(super) newest: u64,
    /// Whether the newest word waits for the mark.
    pub(super) is_unanswered: bool,
    pub(super) heard_at: Time,
    /// Time of its entry among live or silent holders. None: it has none yet.
    pub(super) queued_at: Option<Time>,
    pub(super) streams: bool,
    /// Whether it was told that more may come.
    pub(super) expects_more: bool,
    /// Whether its need does not count, and all that is reserved counts as taken.
    pub(super) is_silent: bool,
}

impl Account {
    pub(super) fn new(turn: u64) -> Self {
        Self {
            turn,
            reserved: 0,
            taken: 0,
            ceiling: 0,
            rising: 0,
            limited_by: LimitedBy::Wants,
            reserved_before: 0,
            need: nothing(),
            least: 0,
            newest: 0,
            is_unanswered: false,
            heard_at: Time::ZERO,
            queued_at: None,
            streams: false,
            expects_more: false,
            is_silent: true,
        }
    }

    /// Returns the reserved amount, the taken amount, and the amount that a silent holder may have taken beyond that.
    pub(super) fn amounts(&self) -> [u64; 3] {
        let beyond = if self.is_silent {
            self.reserved - self.taken
        } else {
            0
        };
        [self.reserved, self.taken, beyond]
    }
}

/// Returns the need of nothing.
pub(super) fn nothing() -> Demand {
    Demand::Client {
        priority: 0,
        claim: Claim::of_client(Amount::ZERO),
    }
}
