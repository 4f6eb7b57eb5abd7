//! Words and answers about budgets: a holder has an account with a granter, in a window.

use std::time::Duration;

/// Largest amount of a budget: up to it, a number of 64 bits with a fraction is exact.
pub const AMOUNT_MAX: u64 = 1_000_000_000_000_000;

/// Milliseconds since 1970; before it, negative.
pub type UnixMillis = i64;

/// From a start to an end, in milliseconds since 1970. The two are its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Window {
    /// First moment.
    pub start: UnixMillis,
    /// The moment after the last one. The largest number: there is none.
    pub end: UnixMillis,
}

impl Window {
    /// Before all windows: a server below the root does not know the present one yet.
    pub const UNKNOWN: Self = Self {
        start: UnixMillis::MIN,
        end: UnixMillis::MIN,
    };

    /// The window of a lifetime.
    pub const LIFETIME: Self = Self {
        start: 0,
        end: UnixMillis::MAX,
    };

    /// Returns what remains of it at a time: nothing after its end. None: it has no end.
    pub fn remaining(self, at: UnixMillis) -> Option<Duration> {
        let left = self.end.saturating_sub(at).max(0);
        (self.end != Self::LIFETIME.end).then(|| Duration::from_millis(left.unsigned_abs()))
    }

    /// Returns the window that follows this one, of those that a template has at a time. None: this one goes on. A window
    /// of another length begins when this one ends, and one after a lifetime at once.
    pub fn followed_by(self, other: Self, at: UnixMillis) -> Option<Self> {
        let start = match self.end {
            UnixMillis::MAX if other.end == UnixMillis::MAX => return None,
            UnixMillis::MAX => other.start.max(self.start.saturating_add(1)),
            end if at < end => return None,
            end => other.start.max(end),
        };
        Some(Self { start, ..other })
    }
}

/// A holder's word about its account of a budget. `has` is the most that it takes until it hears an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetWord {
    /// The holder's book: a random number, as old as its memory.
    pub holder_book: u64,
    /// The granter's book that names the account. Absent: the holder knows of no account.
    pub granter_book: Option<u64>,
    /// Window of the account. Absent: the holder knows of none.
    pub window: Option<Window>,
    /// Amount that it has taken: settled, and reserved by calls in flight.
    pub taken: u64,
    /// Smallest headroom of any use: the smallest call that waits.
    pub least: u64,
    /// Whether it is the holder's last word. The rest of the account is free then.
    pub closes: bool,
}

/// State of a budget, as a granter answers. The capacity of the lease is the ceiling: the most that the holder may take in
/// this window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetState {
    /// The granter's book, which names the account.
    pub granter_book: u64,
    /// The window.
    pub window: Window,
    /// Rest of the window. Absent: it has no end.
    pub ends_in: Option<Duration>,
    /// The whole amount of the budget, as it is now.
    pub total: u64,
    /// Amount that the granter knows the holder has taken.
    pub known_taken: u64,
    /// Whether the soft limit is reached.
    pub soft: bool,
}
