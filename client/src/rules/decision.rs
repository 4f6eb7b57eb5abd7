//! The answer to a request: allowed or not, by which rule, why, and what to do.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorward_limits::headers::Dialect;
use doorward_limits::{Answer, Decision as Taken, Moment, Standing, Units, several};
use smallvec::SmallVec;

use crate::rules::document::INLINE;
use crate::rules::rule::{Action, OnFailure, Rule};
use crate::rules::tally::Outcome;

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Whether the request passes.
    pub is_allowed: bool,
    /// The reason.
    pub why: Why,
    /// The thing to do now.
    pub advice: Advice,
    /// The answer of each descriptor, in order.
    pub statuses: SmallVec<[Status; INLINE]>,
    /// Place of the status that gives the reason and the advice. `None`: no rule.
    pub told: Option<usize>,
    /// Time of the decision.
    pub at: Moment,
    /// Names of its headers.
    pub dialect: Dialect,
}

/// The answer of a descriptor.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The rule that limits it. `None`: no rule, or one that another replaces.
    pub rule: Option<Arc<Rule>>,
    /// Whether this descriptor refuses the request. Never true in shadow mode, and with `action: degrade`.
    pub is_over: bool,
    /// The reason.
    pub why: Why,
    /// The answer of the limit. `None`: nothing is counted.
    pub answer: Option<Answer>,
    /// Whether a lease has allowed it.
    pub is_leased: bool,
}

/// Reason of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// No rule limits it.
    NoRule,
    /// No rule limits it, and the domain refuses such requests.
    Unmatched,
    /// A rule limits it, and one of its values is longer than [`VALUE_BYTES_MAX`](crate::rules::VALUE_BYTES_MAX).
    LongValue,
    /// Another rule of the request replaces the rule.
    Replaced,
    /// The rule is unlimited.
    Unlimited,
    /// The limit has enough left.
    Within,
    /// Enough is left, but more than the soft limit is in use.
    BeyondSoftLimit,
    /// The limit is used up.
    Over,
    /// The limit is used up, and the rule is in shadow mode.
    OverInShadow,
    /// The limit is used up, and the service shall do less for the request.
    Degraded,
    /// The cost is above the whole limit.
    CostAboveLimit,
    /// The caller is banned.
    Banned,
    /// The limit is shared, and this process has no lease of it.
    NoLease,
}

/// The thing to do with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Serve it.
    Proceed,
    /// Serve it after this time. It is counted already.
    ProceedAfter(Duration),
    /// Serve less: a rule with `action: degrade` is over its limit.
    Degrade,
    /// Refuse it with [`Decision::http_status`].
    Reject,
    /// Close without an answer.
    Drop,
    /// Send the caller elsewhere.
    Redirect,
}

impl Decision {
    /// Makes the answer to a request without descriptors.
    pub(crate) fn new(now: Moment) -> Self {
        Self {
            is_allowed: true,
            why: Why::NoRule,
            advice: Advice::Proceed,
            statuses: SmallVec::new(),
            told: None,
            at: now,
            dialect: Dialect::default(),
        }
    }

    /// Sets the answer to a request by those of its descriptors.
    pub(crate) fn conclude(&mut self) {
        self.is_allowed = !self.statuses.iter().any(|status| status.is_over);
        self.told = told(&self.statuses, self.is_allowed);
        let status = self.status();
        (self.why, self.advice) = status.map_or((Why::NoRule, Advice::Proceed), |status| {
            (status.why, status.advice())
        });
    }

    /// Refuses a request of some descriptors, whatever its rules allow.
    pub(crate) fn refuse(&mut self, why: Why, descriptors: usize) {
        (self.is_allowed, self.why, self.advice) = (false, why, Advice::Reject);
        let statuses = (0..descriptors).map(|_| Status::free(None, why));
        self.statuses.extend(statuses);
    }

    /// Returns the status that gives the reason and the advice.
    pub fn status(&self) -> Option<&Status> {
        self.statuses.get(self.told?)
    }

    /// Returns the rule that gives the reason; `None` without a rule.
    pub fn rule(&self) -> Option<&Rule> {
        self.status()?.rule.as_deref()
    }

    /// Returns the amount of its limit.
    pub fn limit(&self) -> Option<Units> {
        Some(self.rule()?.counted()?.rate.amount())
    }

    /// Returns the whole units that are left of its limit.
    pub fn remaining(&self) -> Option<u64> {
        self.counted().map(Status::remaining)
    }

    /// Returns the time until everything of its limit is available again, or until its window ends; `None` if that
    /// never comes.
    pub fn reset(&self) -> Option<Duration> {
        let rate = self.rule()?.counted()?.rate;
        self.counted()?
            .reset()
            .filter(|_| rate.amount() > Units::ZERO)
    }

    fn counted(&self) -> Option<&Status> {
        self.status().filter(|status| status.answer.is_some())
    }

    /// Returns the time until the same request passes; `None` if it has passed, or no wait is known to help.
    pub fn retry_after(&self) -> Option<Duration> {
        let refused = self.status().filter(|_| !self.is_allowed)?;
        let wait = refused.answer?.decision.retry_after();
        wait.filter(|wait| *wait != Duration::MAX)
    }

    /// Returns the HTTP status of a refusal; `None` if the request passes. 429 for a caller's own quota, 503 for
    /// requests without a rule and for shared limits without a lease.
    pub const fn http_status(&self) -> Option<u16> {
        match self.why {
            _ if self.is_allowed => None,
            Why::Unmatched | Why::NoLease => Some(503),
            _ => Some(429),
        }
    }
}

/// Returns the place of the status that gives the reason and the advice: of a refusal, a missing lease, or else the
/// strictest limit; of an allowed request, a degraded rule, the longest delay, the strictest limit, or else any rule.
fn told(statuses: &[Status], is_allowed: bool) -> Option<usize> {
    let place = |is: fn(&Status) -> bool| statuses.iter().position(is);
    let binding = || {
        let statuses = statuses.iter().enumerate();
        statuses.filter(|(_, status)| status.is_binding())
    };
    let strictest = || {
        let answers = binding().filter_map(|(_, status)| status.answer.as_ref());
        Some(binding().nth(several::strictest(answers)?)?.0)
    };
    if !is_allowed {
        return place(|it| it.is_over && it.answer.is_none()).or_else(strictest);
    }
    let delays = binding().filter_map(|(place, status)| Some((status.delay()?, place)));
    let longest = || delays.max().filter(|(delay, _)| !delay.is_zero());
    place(|it| it.why == Why::Degraded)
        .or_else(|| Some(longest()?.1))
        .or_else(strictest)
        .or_else(|| place(|it| it.rule.is_some()))
        .or_else(|| place(|it| it.why != Why::NoRule))
}

impl Status {
    /// Makes the status of a descriptor that is not counted.
    pub(crate) fn free(rule: Option<Arc<Rule>>, why: Why) -> Self {
        let is_closed =
            |rule: &Arc<Rule>| rule.on_failure == OnFailure::Closed && rule.is_binding();
        Self {
            is_over: why == Why::NoLease && rule.as_ref().is_some_and(is_closed),
            rule,
            why,
            answer: None,
            is_leased: false,
        }
    }

    /// Makes the status of a rule whose lease refuses.
    pub(crate) fn over(rule: &Arc<Rule>, decision: Taken, cost: Units) -> Self {
        let reset = decision.retry_after().unwrap_or_default();
        Self {
            is_over: rule.is_binding(),
            why: match rule.shadow {
                true => Why::OverInShadow,
                false if rule.is_binding() => Why::Over,
                false => Why::Degraded,
            },
            rule: Some(rule.clone()),
            is_leased: false,
            answer: Some(Answer {
                decision,
                standing: Standing::new(Units::ZERO, reset),
                cost,
            }),
        }
    }

    /// Returns the whole units that are left. `u64::MAX` for an unlimited rule, and 0 without a rule or when over.
    pub fn remaining(&self) -> u64 {
        match (&self.rule, &self.answer) {
            (Some(_), None) if !self.is_over => u64::MAX,
            (Some(_), Some(answer)) => answer.standing.remaining.floor(),
            _ => 0,
        }
    }

    /// Lowers the units that are left to those of a lease.
    pub(crate) fn bound_remaining(&mut self, most: Units) {
        if let Some(answer) = &mut self.answer {
            answer.standing.remaining = answer.standing.remaining.min(most);
            if let Taken::Allowed(allowed) = &mut answer.decision {
                allowed.remaining = allowed.remaining.min(most);
            }
        }
    }

    /// Returns the time until everything is available again, or until the window ends, also of a limit of 0. `None`:
    /// nothing is counted, or that never comes.
    pub fn reset(&self) -> Option<Duration> {
        let (rate, reset) = (
            self.rule.as_ref()?.counted()?.rate,
            self.answer?.standing.reset,
        );
        let is_never = reset.is_zero() && rate.amount() == Units::ZERO;
        Some(reset).filter(|reset| *reset != Duration::MAX && !is_never)
    }

    /// Returns whether a limit that may refuse is counted.
    fn is_binding(&self) -> bool {
        self.answer.is_some() && self.rule.as_ref().is_some_and(|rule| rule.is_binding())
    }

    /// Returns the time to wait before the request proceeds; `None` if the limit refuses, or nothing is counted.
    pub fn delay(&self) -> Option<Duration> {
        match self.answer.filter(|_| self.is_binding())?.decision {
            Taken::Allowed(allowed) => Some(allowed.delay),
            Taken::After(_) | Taken::Never(_) => None,
        }
    }

    /// Returns the answer as it is counted.
    pub fn outcome(&self) -> Outcome {
        match self.why {
            _ if self.is_over || self.why == Why::LongValue => Outcome::Refused,
            Why::OverInShadow | Why::Degraded => Outcome::Shadow,
            _ if self.delay().is_some_and(|delay| !delay.is_zero()) => Outcome::Waited,
            _ => Outcome::Allowed,
        }
    }

    /// Returns the thing to do with a request for which this status gives the reason.
    fn advice(&self) -> Advice {
        match self.rule.as_ref().map(|rule| rule.action) {
            _ if self.why == Why::Degraded => Advice::Degrade,
            _ if !self.is_over => match self.delay().unwrap_or_default() {
                Duration::ZERO => Advice::Proceed,
                delay => Advice::ProceedAfter(delay),
            },
            Some(Action::Drop) => Advice::Drop,
            Some(Action::Redirect) => Advice::Redirect,
            Some(Action::Reject | Action::Degrade | Action::Wait) | None => Advice::Reject,
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRule => "no rule",
            Self::Unmatched => "no rule, and the domain rejects unmatched requests",
            Self::LongValue => "a value is longer than 8 KiB",
            Self::Replaced => "replaced by another rule",
            Self::Unlimited => "unlimited",
            Self::Within => "within the limit",
            Self::BeyondSoftLimit => "beyond the soft limit",
            Self::Over => "over the limit",
            Self::OverInShadow => "over the limit, in shadow mode",
            Self::Degraded => "over the limit, degraded",
            Self::CostAboveLimit => "the cost is above the limit",
            Self::Banned => "banned",
            Self::NoLease => "no lease of the shared limit",
        })
    }
}
