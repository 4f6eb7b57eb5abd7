//! The state of a resource's own lease, below the root: whether the newest request is in flight, and the parent's last
//! answer. Both decide when to ask again.
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
//! The last answer stays while the next request is in flight, and still counts if that request is lost. A parent that
//! was not ready is asked often until it grants a lease, whatever it answers in between. A refusal on top of that ends
//! by itself.

use std::time::Duration;

use crate::amount::Amount;
use crate::messages::RefusalReason;
use crate::resource::retry;
use crate::time::Time;

/// Wait after a refusal.
const REFUSED_LENGTH: Duration = retry::PARENT_REFUSED;

/// Longest wait of a process that is refused because of another process of its node. The server reports the conflict
/// while both live.
const ANOTHER_PROCESS_MAX: Duration = Duration::from_secs(60);

/// Longest wait after a parent was not ready. It is short, so that holders keep their leases although each level of the
/// tree waits for the next one.
const NOT_READY_LENGTH: Duration = Duration::from_millis(250);

/// Wait after an invalid answer.
const INVALID_ANSWER_LENGTH: Duration = Duration::from_secs(1);

/// Delays until changes go up to the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParentPace {
    /// Time after the last request, for changes on which other leases depend.
    pub round: Duration,
    /// Time after the last request, for other changes.
    pub slow: Duration,
}

impl Default for ParentPace {
    fn default() -> Self {
        let (round, slow) = (Duration::from_secs(1), Duration::from_secs(1));
        Self { round, slow }
    }
}

impl ParentPace {
    /// Shortest wait after a parent was not ready.
    pub(crate) fn not_ready(self) -> Duration {
        NOT_READY_LENGTH.min(2 * self.round)
    }
}

/// The state of a resource's own lease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ParentLease {
    stage: Stage,
    last: LastAnswer,
}

/// How far the newest request has come.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// The parent was not asked yet.
    Fresh,
    /// This request is in flight.
    Asked(LeaseRequest),
    /// This request was answered, or it is lost.
    Answered(LeaseRequest),
    /// The server gave back the rest, and there are no holders. It asks nothing more.
    GivenBack,
}

/// The last answer of a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LastAnswer {
    /// Time to ask again, apart from a refusal: to refresh the lease, or because no answer was valid yet. None: the
    /// parent has no lease itself yet. The server asks often until the parent grants one.
    refresh_at: Option<Time>,
    /// The reason of a refusal for holders, and its end. The server does not ask again before.
    refused: Option<(RefusalReason, Time)>,
}

/// A request to the parent, with the values that decide when the next one is due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LeaseRequest {
    /// Its number.
    pub(super) sequence: u64,
    /// Time of sending. The lease counts from then.
    pub(super) sent_at: Time,
    /// See [`Holders::demand_version`](super::holders::Holders::demand_version).
    pub(super) demand_version: u64,
    /// Total wants of all holders in the request.
    pub(super) wants: f64,
    /// Clients served.
    pub(super) clients: f64,
    /// The most that the server has had since it was sent: by its lease, or because its holders may be using it.
    pub(super) holding: Amount,
    /// Whether this server learns.
    pub(super) learning: bool,
}

/// Size of the changes since the newest request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changes {
    /// Other leases depend on them.
    Matters,
    /// No other lease depends on them.
    Little,
    /// No changes.
    None,
}

/// Reason to ask the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// Holders need the lease.
    Holders,
    /// There are no holders, but some may not have reported yet.
    Unreported,
    /// There are no holders, and a rest has to be given back.
    Leftover,
    /// No reason.
    Nothing,
}

/// The request that an answer belongs to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum AnswerTo {
    /// The newest request.
    Newest(LeaseRequest),
    /// An older request, or a request of another server.
    Older,
    /// A request newer than the newest one of this server, with its number. Another server of the node sent it.
    Newer(u64),
}

impl ParentLease {
    /// State before the first request.
    pub(super) const NEW: Self = Self {
        stage: Stage::Fresh,
        last: LastAnswer {
            refresh_at: Some(Time::ZERO),
            refused: None,
        },
    };

    /// Notes a request to the parent.
    pub(super) fn ask(&mut self, request: LeaseRequest) {
        if self.stage != Stage::GivenBack {
            self.stage = Stage::Asked(request);
        }
    }

    /// Notes the last request, which gives back the rest. Its answer does not matter.
    pub(super) fn give_back(&mut self) {
        self.stage = Stage::GivenBack;
        self.last = Self::NEW.last;
    }

    /// Returns the request that an answer with this number belongs to. Without a number, that is the newest request.
    pub(super) fn answer_to(&self, sequence: Option<u64>) -> AnswerTo {
        let Some(request) = self.request() else {
            // This answers a request from before the server gave the lease back.
            return AnswerTo::Older;
        };
        match sequence {
            Some(sequence) if sequence < request.sequence => AnswerTo::Older,
            Some(sequence) if sequence > request.sequence => AnswerTo::Newer(sequence),
            _ => AnswerTo::Newest(request),
        }
    }

    /// Notes a lease of the parent over that capacity, to be refreshed then.
    pub(super) fn become_held(&mut self, capacity: Amount, refresh_at: Time) {
        if let Stage::Asked(request) | Stage::Answered(request) = &mut self.stage {
            request.holding = request.holding.max(capacity);
        }
        self.on_answer(|last| {
            last.refresh_at = Some(refresh_at);
            last.refused = None;
        });
    }

    /// Notes that the parent has no lease itself yet.
    pub(super) fn become_not_ready(&mut self) {
        self.on_answer(|last| {
            last.refresh_at = None;
            last.refused = None;
        });
    }

    /// Notes a refusal of the resource. Returns whether the parent did not refuse it before.
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
        self.on_answer(|last| last.refused = Some((why, now + wait)));
        is_news
    }

    /// Notes an invalid answer: the server asks again later. This ends a refusal.
    pub(super) fn note_invalid_answer(&mut self, now: Time) {
        self.on_answer(|last| {
            last.refresh_at = last.refresh_at.map(|_| now + INVALID_ANSWER_LENGTH);
            last.refused = None;
        });
    }

    /// Notes that another server of the node has asked since. The next request gets a higher number.
    pub(super) fn become_behind(&mut self, now: Time) {
        self.on_answer(|last| last.refresh_at = last.refresh_at.map(|_| now));
    }

    /// Notes that the newest request, its answer, or a push may be lost.
    pub(super) fn note_lost(&mut self, now: Time) {
        self.on_answer(|last| last.refresh_at = last.refresh_at.map(|at| at.min(now)));
    }

    /// Drops a refusal that is over, when there are no holders.
    pub(super) fn forget_refusal(&mut self, now: Time) {
        self.last.refused = self.last.refused.filter(|(_, until)| *until > now);
    }

    /// Whether the parent has not answered the newest request yet.
    pub(super) fn is_asked(&self) -> bool {
        matches!(self.stage, Stage::Asked(_))
    }

    /// Returns the newest request.
    pub(super) fn request(&self) -> Option<LeaseRequest> {
        match self.stage {
            Stage::Asked(request) | Stage::Answered(request) => Some(request),
            Stage::Fresh | Stage::GivenBack => None,
        }
    }

    /// Returns the reason for refusing holders, if the parent refuses the resource.
    pub(super) fn refused(&self, now: Time) -> Option<RefusalReason> {
        let refused = self.last.refused.filter(|(_, until)| *until > now);
        refused.map(|(why, _)| why)
    }

    /// Returns the end of a refusal, also if it is over.
    pub(super) fn refused_until(&self) -> Option<Time> {
        self.last.refused.map(|(_, until)| until)
    }

    /// Whether the parent needs no further request for a resource without holders.
    pub(super) fn is_settled(&self, has_leftover: bool) -> bool {
        match self.stage {
            Stage::GivenBack => true,
            Stage::Asked(_) => false,
            Stage::Fresh | Stage::Answered(_) => !has_leftover && self.last.refused.is_none(),
        }
    }

    /// Returns when to ask the parent, or nothing if only a change can make that necessary. `news` computes what has
    /// changed since that request; it is called only if needed.
    pub(super) fn next_request(
        &self,
        needs: Needs,
        news: impl FnOnce(&LeaseRequest) -> Changes,
        pace: ParentPace,
    ) -> Option<Time> {
        let answered = match self.stage {
            Stage::Asked(_) | Stage::GivenBack => return None,
            Stage::Fresh => None,
            Stage::Answered(request) => Some(request),
        };
        if let Some(until) = self.refused_until() {
            let asked_at = answered.map_or(Time::ZERO, |request| request.sent_at);
            return Some(until.max(asked_at + pace.round)).filter(|_| needs == Needs::Holders);
        }
        let Some(request) = answered else {
            return Some(Time::ZERO).filter(|_| needs == Needs::Holders);
        };
        // The round bounds even a very short refresh interval of the parent.
        let earliest = request.sent_at + pace.round;
        match (needs, self.last.refresh_at) {
            (Needs::Nothing, _) => None,
            (Needs::Leftover, _) => Some(earliest),
            (_, Some(refresh_at)) => {
                let due = match news(&request) {
                    Changes::Matters => refresh_at.min(earliest),
                    Changes::Little => refresh_at.min(request.sent_at + pace.slow),
                    Changes::None => refresh_at,
                };
                Some(due.max(earliest))
            }
            (_, None) => Some(request.sent_at + pace.not_ready()),
        }
    }

    /// Changes the last answer, unless the lease was given back. No request is in flight any more.
    fn on_answer(&mut self, change: impl FnOnce(&mut LastAnswer)) {
        match self.stage {
            Stage::GivenBack => return,
            Stage::Asked(request) => self.stage = Stage::Answered(request),
            Stage::Fresh | Stage::Answered(_) => {}
        }
        change(&mut self.last);
    }
}

#[cfg(test)]
mod tests;
