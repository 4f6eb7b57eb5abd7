//! What goes to a server and comes back, free of any wire format.

use std::fmt;
use std::time::Duration;

use crate::capacity::Capacity;
use crate::state::AMOUNT_MAX;

/// A request for capacity of one or more resources.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Grows with every request of the client.
    pub sequence: u64,
    /// A resource at most once.
    pub asks: Vec<Ask>,
}

/// What is asked of one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Of which resource.
    pub resource: String,
    /// Higher is more important.
    pub priority: i64,
    /// What could be used.
    pub wants: f64,
    /// What may be in use until the answer is applied. Absent: nothing.
    pub has: Option<Has>,
}

/// What a client says it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Has {
    /// The larger of its lease and what is still in flight.
    pub capacity: f64,
    /// How long its lease still lasts.
    pub expires_in: Duration,
    /// Who granted it, as the server said with it.
    pub granted_by: Option<u64>,
}

/// The answer of a master.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    /// Leases, by resource.
    pub granted: Vec<Granted>,
    /// What got none, and why.
    pub refused: Vec<Refused>,
}

/// A lease as a server gives it, not checked yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Granted {
    /// Of which resource.
    pub resource: String,
    /// How much.
    pub capacity: f64,
    /// How long, from when the request was sent.
    pub expires_in: Duration,
    /// When to ask again.
    pub refresh_in: Duration,
    /// For safe mode.
    pub safe_capacity: Option<Capacity>,
    /// Which mastership grants it: a number to be given back. Absent: the server does not say.
    pub granted_by: Option<u64>,
    /// Why it is no larger. Absent: the server does not say.
    pub limited_by: Option<LimitedBy>,
    /// How long learning mode still lasts at most. Absent: nobody learns, or the server does not say.
    pub learning_for: Option<Duration>,
    /// Whether the wants of the request were decided about. Absent: the server does not say.
    pub decided: Option<bool>,
}

/// Why a lease is no larger than it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    /// It is all that is wanted.
    Wants,
    /// It is the client's share; there is not enough for everybody.
    Share,
    /// The rest of the share is held by others until they have shrunk.
    Others,
    /// The server is in learning mode: it only confirms what clients say that they have.
    Learning,
    /// The same, of a server above it.
    ParentLearning,
    /// The capacity was lowered below what is out, and everybody shrinks first.
    CapacityLowered,
    /// The server asks its own parent for more, or is about to.
    Parent,
}

impl LimitedBy {
    /// Whether it is because the server, or one above it, does not know yet what there is to give.
    pub const fn is_learning(self) -> bool {
        matches!(self, Self::Learning | Self::ParentLearning)
    }
}

/// As a person reads it who wonders why there is no more. How long learning still lasts is for the
/// caller to add.
impl fmt::Display for LimitedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wants => "all that is wanted",
            Self::Share => "its share; there is not enough for everybody",
            Self::Others => "others still hold the rest; it comes as they shrink",
            Self::Learning => "learning mode",
            Self::ParentLearning => "learning mode of a parent",
            Self::CapacityLowered => "the capacity was lowered; everybody shrinks first",
            Self::Parent => "the server asks its parent for more; it comes soon if there is any",
        })
    }
}

impl Granted {
    /// Whether it makes sense; if not, what is wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        check_amount("the lease's capacity", self.capacity)?;
        if self.expires_in.is_zero() {
            return Err("the lease has ended already".to_owned());
        }
        match self.safe_capacity {
            Some(Capacity::Limited(safe)) => check_amount("the safe capacity", safe),
            Some(Capacity::Unlimited) | None => Ok(()),
        }
    }
}

/// Whether a server may tell that amount.
fn check_amount(what: &str, amount: f64) -> Result<(), String> {
    if (0.0..=AMOUNT_MAX).contains(&amount) {
        return Ok(());
    }
    Err(format!("{what} is {amount}, and no number from 0 to 10^15"))
}

/// A resource that got no lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which.
    pub resource: String,
    /// What kind of refusal it is.
    pub kind: RefusalKind,
    /// Why, for people.
    pub message: String,
    /// When to ask again, if the server says so.
    pub retry_in: Option<Duration>,
}

/// Why a resource got no lease, as far as it makes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// No template matches it.
    Unknown,
    /// The server has no lease itself yet.
    NotReady,
    /// Another live process has the lease under the same client id.
    AnotherProcess,
    /// Anything else.
    Other,
}
