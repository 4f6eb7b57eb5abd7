//! The refusal of all limiters.

use std::fmt;
use std::time::Duration;

debug_by_text!(Refusal);

/// A refusal: nothing was acquired.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// Time after which to come back: until a limiter would admit the cost if the rate stays; if nothing may be used now,
    /// until the client's next answer. None: the time is unknown, as while all places are in use.
    pub retry_after: Option<Duration>,
    /// Reason.
    pub why: Why,
    /// The resource that refused. None: the one of the limiter that was asked; only an [`Acquire`](crate::Acquire) names it.
    pub limit: Option<Box<str>>,
}

/// The reason of a [`Refusal`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// The cost is over the limit now.
    Over,
    /// No template matches the resource, so no server grants it until an operator adds one. Neither an earlier lease
    /// nor the mode allows anything.
    UnknownResource {
        /// The server's message.
        message: String,
    },
    /// A server has no more of the budget for such a call in this window.
    Exhausted,
    /// The client or the resource was closed.
    Closed,
    /// Overload control cannot serve the request in time.
    #[cfg(feature = "overload")]
    Overloaded(Reason),
}

impl Refusal {
    /// Refuses a cost that is over the limit now, until a time if it is known.
    #[inline]
    pub const fn over(retry_after: Option<Duration>) -> Self {
        Self::new(Why::Over, retry_after)
    }

    pub(crate) const fn new(why: Why, retry_after: Option<Duration>) -> Self {
        Self {
            retry_after,
            why,
            limit: None,
        }
    }

    /// Returns the reason of overload control, if it has refused the request.
    #[cfg(feature = "overload")]
    pub const fn overloaded(&self) -> Option<Reason> {
        match self.why {
            Why::Overloaded(reason) => Some(reason),
            _ => None,
        }
    }
}

#[cfg(feature = "leases")]
impl Refusal {
    pub(crate) const CLOSED: Self = Self::new(Why::Closed, None);

    /// Names the resource.
    pub(crate) fn of(self, limit: impl Into<Box<str>>) -> Self {
        let limit = Some(limit.into());
        Self { limit, ..self }
    }

    /// Returns whether a caller may wait for another answer.
    pub(crate) fn passes(&self) -> bool {
        self.why == Why::Over
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(limit) = &self.limit {
            write!(f, "{limit}: ")?;
        }
        match (&self.why, self.retry_after) {
            (Why::Over, Some(time)) => write!(f, "over the limit; come back in {time:?}"),
            (Why::Over, None) => f.write_str("nothing more may be used at present"),
            (Why::UnknownResource { message }, _) => {
                write!(f, "the resource is unknown: {message}")
            }
            (Why::Exhausted, _) => {
                f.write_str("the budget has too little for this call in this window")
            }
            (Why::Closed, _) => f.write_str("the client is closed"),
            #[cfg(feature = "overload")]
            (Why::Overloaded(reason), _) => write!(f, "{reason}"),
        }
    }
}

/// The reason of a refusal by overload control.
#[cfg(feature = "overload")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Reason {
    /// The requests that wait take longer than this one can wait.
    #[error("the service is overloaded")]
    Full,
    /// A more critical request took its place.
    #[error("a more critical request took the place of this one")]
    PushedOut,
    /// It waited as long as it could, or cannot wait at all.
    #[error("the service cannot answer in time")]
    TooLate,
}
