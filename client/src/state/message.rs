//! Requests and answers, independent of the wire format.

use std::fmt;
use std::time::Duration;

use crate::capacity::Capacity;
use crate::state::{AMOUNT_MAX, BudgetAsk};
use doorward_session::time::budget::{BudgetState, BudgetWord};

/// A request for capacity of one or more resources.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Request number, which grows with every request of the client.
    pub sequence: u64,
    /// Asks, at most one for each resource.
    pub asks: Vec<Ask>,
    /// Whether it goes on a stream: on the open one, or on a new one. If that fails, by a call.
    pub on_stream: bool,
}

/// A request for one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Id of the resource.
    pub resource: String,
    /// Priority; a higher number is more important.
    pub priority: i64,
    /// Amount that the client could use.
    pub wants: f64,
    /// Amount that may be in use until the answer is applied. Absent: nothing.
    pub has: Option<Has>,
    /// Word about the account of a budget.
    pub budget: Option<BudgetWord>,
}

/// A client's report of its lease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Has {
    /// The larger of its lease and the amount still in flight.
    pub capacity: f64,
    /// Remaining time of its lease.
    pub expires_in: Duration,
    /// Mastership that granted it, as the server sent it.
    pub granted_by: Option<u64>,
}

impl Has {
    /// Returns the ceiling of an account, which does not end.
    pub(super) const fn of_budget(said: &BudgetAsk) -> Self {
        Self {
            capacity: said.has as f64,
            expires_in: Duration::ZERO,
            granted_by: said.granted_by,
        }
    }
}

/// An answer of a master.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Response {
    /// Leases by resource.
    pub granted: Vec<Granted>,
    /// Resources without a lease, with the reasons.
    pub refused: Vec<Refused>,
}

/// A lease as a server sends it, not checked yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Granted {
    /// Id of the resource.
    pub resource: String,
    /// Amount of the lease.
    pub capacity: f64,
    /// Length of the lease, from when the request was sent.
    pub expires_in: Duration,
    /// Time until the client should ask again.
    pub refresh_in: Duration,
    /// Safe capacity, for safe mode.
    pub safe_capacity: Option<Capacity>,
    /// Mastership that grants the lease, a number to return. Absent: the server does not send it.
    pub granted_by: Option<u64>,
    /// Reason why the lease is not larger. Absent: the server does not send it.
    pub limited_by: Option<LimitedBy>,
    /// Longest remaining time of learning mode. Absent: no server above the client is in learning mode, or the server
    /// does not send it.
    pub learning_for: Option<Duration>,
    /// Whether the server decided about the wants of the request. Absent: the server does not send it.
    pub decided: Option<bool>,
    /// Newest request for the resource that a push takes into account. Absent: an answer to a call, or an older server.
    pub sequence: Option<u64>,
    /// State of the budget. Absent: the resource is none.
    pub budget: Option<BudgetState>,
}

/// Reason why a lease is not larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    /// The lease is all that the client wants.
    Wants,
    /// The lease is the client's share; the capacity does not cover all wants.
    Share,
    /// Other holders have the rest of the share until their leases have shrunk.
    Others,
    /// The server is in learning mode: it only confirms leases that clients report.
    Learning,
    /// A server above it is in learning mode.
    ParentLearning,
    /// The capacity was lowered below the sum of the leases, so all leases shrink first.
    CapacityLowered,
    /// The server asks its own parent for more, or will soon.
    Parent,
}

impl LimitedBy {
    /// Returns whether the reason is learning mode, of the server or of one above it.
    pub const fn is_learning(self) -> bool {
        matches!(self, Self::Learning | Self::ParentLearning)
    }
}

/// The text is for a person who asks why there is no more capacity. The caller adds the remaining time of learning
/// mode.
impl fmt::Display for LimitedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wants => "all that is wanted",
            Self::Share => "its share; the capacity does not cover all wants",
            Self::Others => "others still hold the rest; it comes as they shrink or end",
            Self::Learning => "learning mode",
            Self::ParentLearning => "learning mode of a parent",
            Self::CapacityLowered => "the capacity was lowered; all leases shrink first",
            Self::Parent => "the server asks its parent for more; it comes soon if there is any",
        })
    }
}

impl Granted {
    /// Checks the lease. Returns the problem if it is invalid.
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

/// Checks that a server may send the amount.
fn check_amount(what: &str, amount: f64) -> Result<(), String> {
    if (0.0..=AMOUNT_MAX).contains(&amount) {
        return Ok(());
    }
    Err(format!(
        "{what} is {amount}; expected a number from 0 to 10^15"
    ))
}

/// A resource without a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Id of the resource.
    pub resource: String,
    /// Kind of the refusal.
    pub kind: RefusalKind,
    /// Reason, for people.
    pub message: String,
    /// Time until the client should ask again, if the server sends one.
    pub retry_in: Option<Duration>,
}

/// Reason why a resource has no fresh lease: a refusal, or an invalid answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Its kind.
    pub kind: RefusalKind,
    /// The problem, for people.
    pub message: String,
}

/// Kind of a refusal, as far as it makes a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// No template matches the resource: no server grants it until an operator adds one.
    Unknown,
    /// The server waits for its own parent: it will have a lease soon, or when its parent is back.
    NotReady,
    /// Any other reason.
    Other,
}
