//! The state of a resource's own lease, below the root: whether the newest request is in flight, and the parent's last
//! answer. From that follows when to ask again.
//!
//! ```text
//!         ask           an answer, or its loss           give_back
//!  Fresh ─────▶ Asked ─────────────────────────▶ Answered ────────▶ GivenBack
//!                 ▲                                │
//!                 └────────────────────────────────┘
//!                                ask
//! ```
//!
//! On an answer: `become_held`, `become_refused`, `become_not_ready`, `become_behind`, `note_invalid_answer`; without
//! one: `note_lost`.
//!
//! The last answer is kept while the next request is in flight, and still counts if that is lost. A parent that was not
//! ready is asked often until it grants a lease, whatever it answers in between; a refusal on top of that ends by
//! itself.

use std::time::Duration;

use crate::amount::Amount;
use crate::request::RefusalReason;
use crate::retry;
use crate::time::Time;

/// How long to wait after a refusal.
const REFUSED_LENGTH: Duration = retry::PARENT_REFUSED;

/// The longest wait of a process that is refused because of another one of its node: so the conflict is reported for
/// as long as both live.
const ANOTHER_PROCESS_MAX: Duration = Duration::from_secs(60);

/// The longest wait after a parent was not ready: holders with leases must not lose them because each level of the tree
/// waits for the next one.
const NOT_READY_LENGTH: Duration = Duration::from_millis(250);

/// How long to wait after an invalid answer.
const INVALID_ANSWER_LENGTH: Duration = Duration::from_secs(1);

/// How soon changes go up to the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// After the last request, for changes on which other leases depend.
    pub round: Duration,
    /// After the last request, for changes that matter little.
    pub slow: Duration,
}

/// The state of a resource's own lease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ParentLease {
    /// The parent was not asked yet. `last` may be the answer to an earlier request, if the resource was given back
    /// since.
    Fresh {
        /// The parent's last answer.
        last: LastAnswer,
    },
    /// The newest request is in flight.
    Asked {
        /// That request.
        request: LeaseRequest,
        /// The answer before it.
        last: LastAnswer,
    },
    /// The newest request was answered, or it is lost.
    Answered {
        /// That request.
        request: LeaseRequest,
        /// The parent's last answer.
        last: LastAnswer,
    },
    /// The rest was given back, and there are no holders: nothing is asked any more.
    GivenBack,
}

/// The last answer of a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastAnswer {
    /// A lease, to be refreshed at that time. Or no valid answer came yet, and it is asked again at that time.
    Held {
        /// When.
        refresh_at: Time,
    },
    /// It has no lease itself yet. It is asked often until it grants one.
    NotReady,
    /// It refuses the resource, and is not asked before then.
    Refused {
        /// The reason, as holders get it.
        why: RefusalReason,
        /// Until when.
        until: Time,
        /// When to ask again should the refusal be forgotten. None: it was not ready before.
        refresh_at: Option<Time>,
    },
}

/// A request to the parent, as far as it matters for when the next one is due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LeaseRequest {
    /// Its number.
    pub(super) sequence: u64,
    /// When it was sent; the lease counts from then.
    pub(super) sent_at: Time,
    /// See [`Ledger::demand_version`](super::ledger::Ledger::demand_version).
    pub(super) demand_version: u64,
    /// What all holders want, as far as it says so.
    pub(super) wants: f64,
    /// Clients served.
    pub(super) clients: f64,
    /// The larger of what the server has and what its holders may be using.
    pub(super) holding: Amount,
    /// Whether this server learns.
    pub(super) learning: bool,
}

/// How much has changed since the newest request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changes {
    /// Other leases depend on it.
    Matters,
    /// It matters little.
    Little,
    /// Nothing.
    None,
}

/// For what the parent has to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Holders are served.
    Holders,
    /// There are no holders, but some may not have reported yet.
    Unreported,
    /// There are no holders, and a rest has to be given back.
    Leftover,
    /// Nothing.
    Nothing,
}

/// What an answer is to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AnswerTo {
    /// The newest request.
    Newest(LeaseRequest),
    /// An older one, or another server's.
    Older,
    /// A newer one than the newest of this server: another server of its node sent it.
    Newer(u64),
}

impl ParentLease {
    /// There is no answer yet.
    pub(super) const NEW: Self = Self::Fresh {
        last: LastAnswer::NONE_YET,
    };

    /// A request goes up.
    pub(super) fn ask(&mut self, request: LeaseRequest) {
        if let Some(last) = self.last() {
            *self = Self::Asked { request, last };
        }
    }

    /// The rest is given back with a last request. Its answer does not matter.
    pub(super) fn give_back(&mut self) {
        *self = Self::GivenBack;
    }

    /// What an answer of that number is to. Without a number it is to the newest request.
    pub(super) fn answer_to(&self, sequence: Option<u64>) -> AnswerTo {
        let Some(request) = self.request() else {
            // An answer to what was given back, and is wanted again.
            return AnswerTo::Older;
        };
        match sequence {
            Some(sequence) if sequence < request.sequence => AnswerTo::Older,
            Some(sequence) if sequence > request.sequence => AnswerTo::Newer(sequence),
            _ => AnswerTo::Newest(request),
        }
    }

    /// The parent grants a lease, to be refreshed then.
    pub(super) fn become_held(&mut self, refresh_at: Time) {
        self.on_answer(|_| LastAnswer::Held { refresh_at });
    }

    /// The parent has no lease itself yet.
    pub(super) fn become_not_ready(&mut self) {
        self.on_answer(|_| LastAnswer::NotReady);
    }

    /// The parent refuses the resource. Returns whether it did not before.
    pub(super) fn become_refused(&mut self, reason: RefusalReason, now: Time) -> bool {
        let (why, wait) = match reason {
            RefusalReason::UnknownResource => (reason, REFUSED_LENGTH),
            RefusalReason::AnotherProcess(wait) => {
                let wait = wait.clamp(REFUSED_LENGTH, ANOTHER_PROCESS_MAX);
                (RefusalReason::RefusedByParent, wait)
            }
            _ => (RefusalReason::RefusedByParent, REFUSED_LENGTH),
        };
        let is_news = self.refused_until().is_none();
        self.on_answer(|last| LastAnswer::Refused {
            why,
            until: now + wait,
            refresh_at: last.refresh_at(),
        });
        is_news
    }

    /// The parent's answer is invalid: it is asked again later. This ends a refusal.
    pub(super) fn note_invalid_answer(&mut self, now: Time) {
        let at = now + INVALID_ANSWER_LENGTH;
        self.on_answer(|last| last.with_refresh(|_| at).unrefused());
    }

    /// Another server of the node has asked since: the next request gets a higher number.
    pub(super) fn become_behind(&mut self, now: Time) {
        self.on_answer(|last| last.with_refresh(|_| now));
    }

    /// The newest request, its answer, or a push may be lost.
    pub(super) fn note_lost(&mut self, now: Time) {
        self.on_answer(|last| last.with_refresh(|at| at.min(now)));
    }

    /// Forgets a refusal that is over, when there are no holders.
    pub(super) fn forget_refusal(&mut self, now: Time) {
        let is_over = self.refused_until().is_some_and(|until| until <= now);
        if let Some(last) = self.last_mut().filter(|_| is_over) {
            *last = last.unrefused();
        }
    }

    /// Whether the newest request is not answered yet.
    pub(super) fn is_asked(&self) -> bool {
        matches!(self, Self::Asked { .. })
    }

    /// The newest request.
    pub(super) fn request(&self) -> Option<LeaseRequest> {
        match self {
            Self::Asked { request, .. } | Self::Answered { request, .. } => Some(*request),
            Self::Fresh { .. } | Self::GivenBack => None,
        }
    }

    /// Why holders are refused, if the parent refuses the resource.
    pub(super) fn refused(&self, now: Time) -> Option<RefusalReason> {
        match self.last()? {
            LastAnswer::Refused { why, until, .. } if until > now => Some(why),
            _ => None,
        }
    }

    /// Until when a refusal is remembered.
    pub(super) fn refused_until(&self) -> Option<Time> {
        match self.last()? {
            LastAnswer::Refused { until, .. } => Some(until),
            LastAnswer::Held { .. } | LastAnswer::NotReady => None,
        }
    }

    /// Whether the parent needs no further request for a resource without holders.
    pub(super) fn is_settled(&self, has_leftover: bool) -> bool {
        match self {
            Self::GivenBack => true,
            Self::Asked { .. } => false,
            Self::Fresh { .. } | Self::Answered { .. } => {
                !has_leftover && self.refused_until().is_none()
            }
        }
    }

    /// When to ask the parent. None: not until something changes. `news` computes what has changed since that request;
    /// it is called only if needed.
    pub(super) fn next_request(
        &self,
        needs: Needs,
        news: impl FnOnce(&LeaseRequest) -> Changes,
        pace: Pace,
    ) -> Option<Time> {
        let (sent_at, last) = match self {
            Self::Asked { .. } | Self::GivenBack => return None,
            Self::Fresh { last } => (None, last),
            Self::Answered { request, last } => (Some(request), last),
        };
        if let LastAnswer::Refused { until, .. } = last {
            let asked_at = sent_at.map_or(Time::ZERO, |request| request.sent_at);
            return Some((*until).max(asked_at + pace.round)).filter(|_| needs == Needs::Holders);
        }
        let Some(request) = sent_at else {
            return Some(Time::ZERO).filter(|_| needs == Needs::Holders);
        };
        // No matter how short a refresh interval the parent sends.
        let earliest = request.sent_at + pace.round;
        match (needs, last) {
            (Needs::Nothing, _) => None,
            (Needs::Leftover, _) => Some(earliest),
            (_, LastAnswer::Held { refresh_at }) => {
                let due = match news(request) {
                    Changes::Matters => (*refresh_at).min(earliest),
                    Changes::Little => (*refresh_at).min(request.sent_at + pace.slow),
                    Changes::None => *refresh_at,
                };
                Some(due.max(earliest))
            }
            (_, LastAnswer::NotReady | LastAnswer::Refused { .. }) => {
                Some(request.sent_at + NOT_READY_LENGTH.min(2 * pace.round))
            }
        }
    }

    fn last(&self) -> Option<LastAnswer> {
        match self {
            Self::Fresh { last } | Self::Asked { last, .. } | Self::Answered { last, .. } => {
                Some(*last)
            }
            Self::GivenBack => None,
        }
    }

    fn last_mut(&mut self) -> Option<&mut LastAnswer> {
        match self {
            Self::Fresh { last } | Self::Asked { last, .. } | Self::Answered { last, .. } => {
                Some(last)
            }
            Self::GivenBack => None,
        }
    }

    /// No request is in flight any more, and this is the last answer.
    fn on_answer(&mut self, change: impl FnOnce(LastAnswer) -> LastAnswer) {
        *self = match *self {
            Self::Fresh { last } => Self::Fresh { last: change(last) },
            Self::Asked { request, last } | Self::Answered { request, last } => Self::Answered {
                request,
                last: change(last),
            },
            Self::GivenBack => Self::GivenBack,
        };
    }
}

impl LastAnswer {
    /// No answer yet.
    const NONE_YET: Self = Self::Held {
        refresh_at: Time::ZERO,
    };

    /// When to ask again, apart from a refusal. None: soon, because the parent was not ready.
    fn refresh_at(self) -> Option<Time> {
        match self {
            Self::Held { refresh_at } => Some(refresh_at),
            Self::NotReady => None,
            Self::Refused { refresh_at, .. } => refresh_at,
        }
    }

    /// The same, with another time to ask again. A parent that was not ready is asked often anyway.
    fn with_refresh(self, at: impl FnOnce(Time) -> Time) -> Self {
        match self {
            Self::Held { refresh_at } => Self::Held {
                refresh_at: at(refresh_at),
            },
            Self::NotReady => Self::NotReady,
            Self::Refused {
                why,
                until,
                refresh_at,
            } => Self::Refused {
                why,
                until,
                refresh_at: refresh_at.map(at),
            },
        }
    }

    /// The same without a refusal.
    fn unrefused(self) -> Self {
        self.refresh_at()
            .map_or(Self::NotReady, |refresh_at| Self::Held { refresh_at })
    }
}

#[cfg(test)]
mod tests;
