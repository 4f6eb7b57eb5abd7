//! A client's words about its account of a budget, and the answers.

use doorward_session::time::budget::{BudgetState, BudgetWord};

use crate::state::LimitedBy;
use crate::time::Time;

/// A client's word about its account, and what it holds and needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetAsk {
    /// The word.
    pub word: BudgetWord,
    /// Mastership of the granter's last answer.
    pub granted_by: Option<u64>,
    /// The client takes no more than that until it hears an answer.
    pub has: u64,
    /// Headroom that it wants.
    pub need: u64,
}

/// An answer about an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetAnswer {
    /// The state of the budget.
    pub state: BudgetState,
    /// The most that the client may take of that account.
    pub ceiling: u64,
    /// Mastership that answers.
    pub granted_by: Option<u64>,
    /// Reason why the ceiling is not higher.
    pub limited_by: Option<LimitedBy>,
    /// When the request was sent.
    pub sent_at: Time,
    /// Grows with each answer for the resource.
    pub number: u64,
}
