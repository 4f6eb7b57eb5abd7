//! What a holder asks of one resource, and what it is told.

use std::time::Duration;

use crate::claim::Claim;
use crate::id::HolderId;
use crate::lease::Lease;
use crate::request::Has;
use crate::template::SafeCapacity;

/// What a holder asks of this resource.
#[derive(Clone, Debug)]
pub struct HolderAsk<'a> {
    /// Who asks.
    pub holder: &'a HolderId,
    /// See [`crate::request::GetCapacity::sequence`].
    pub sequence: Option<u64>,
    /// The band, if the algorithm has bands.
    pub priority: i64,
    /// Wants, on behalf of how many.
    pub claim: Claim,
    /// The most it may be using now.
    pub has: Option<Has>,
}

/// What a holder is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Its newest lease.
    pub lease: Lease,
    /// When it asks again, from now.
    pub refresh_in: Duration,
    /// What it may use in safe mode.
    pub safe_capacity: SafeCapacity,
    /// How it came about.
    pub kind: AnswerKind,
}

/// How an answer came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerKind {
    /// By a decision.
    Decided,
    /// The request came faster than the floor: the current lease again.
    TooEarly,
    /// The request was not newer than the newest seen: the current lease again.
    OutOfOrder,
}

/// What came of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// What it had is free.
    Freed,
    /// It held nothing.
    NotThere,
    /// The release was not newer than the newest request seen; nothing was changed.
    OutOfOrder,
}
