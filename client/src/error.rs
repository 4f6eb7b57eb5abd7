//! Errors of the library.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

/// An error of setting a client up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No address was given.
    #[error("no server address was given; call `address`")]
    NoAddress,
    /// An address does not parse.
    #[error("\"{address}\" is not an address: {problem}; give host:port")]
    BadAddress {
        /// The address as given, or as a server named it, with invisible characters escaped.
        address: String,
        /// The problem.
        problem: String,
    },
    /// An address of a node in etcd cannot be used.
    #[error("{0}")]
    BadNodeAddress(String),
    /// The client id is empty or too long.
    #[error("the client id {0:?} is invalid; give 1 to 256 printable bytes")]
    BadClientId(String),
    /// No server answered in time.
    #[error("not connected: no server answered within {waited:?}; the last error was: {last}")]
    NotConnected {
        /// Time for which it tried.
        waited: Duration,
        /// Error of the last attempt.
        last: String,
    },
}

/// An error of opening a resource or of changing its wants.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// The resource id is empty or too long.
    #[error("the resource id {0:?} is invalid; give 1 to 256 printable bytes")]
    BadId(String),
    /// The pattern of keyed resources has no place for the key, or several.
    #[error("the pattern {0:?} is invalid; give one {{}} for the key, as in tenants/{{}}")]
    BadPattern(String),
    /// The last handle of the resource is dropped, and its permits are out.
    #[error("{0} is being closed; open it again once its permits are back, or keep its handle")]
    Closing(String),
    /// The wants are not a number that a server accepts.
    #[error("wants of {0} are invalid; give a finite number from 0 to 10^15")]
    BadWants(f64),
    /// No template matches the resource: no server will grant it until an operator adds one.
    #[error("{resource} is unknown: {message}")]
    Unknown {
        /// Id of the resource.
        resource: String,
        /// The server's message.
        message: String,
    },
    /// The server refused the resource for another reason, or its answer was invalid.
    #[error("{resource} got no lease: {message}")]
    Refused {
        /// Id of the resource.
        resource: String,
        /// The server's message, or the problem with its answer.
        message: String,
    },
    /// No server was reachable.
    #[error("not connected: {0}")]
    NotConnected(String),
    /// The client or the resource was closed.
    #[error("the client is closed")]
    Closed,
}

/// A limiter's refusal: nothing was acquired.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// Time until the limiter would admit the cost if the rate stays; if nothing may be used now, the time until the
    /// client's next answer. None: nobody knows the time, as while all places are in use.
    pub retry_after: Option<Duration>,
    /// Reason.
    pub why: Why,
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
    /// The client or the resource was closed.
    Closed,
}

impl Refusal {
    /// Refuses for now, until a time that nobody knows.
    pub(crate) const BLOCKED: Self = Self {
        retry_after: None,
        why: Why::Over,
    };

    pub(crate) const CLOSED: Self = Self {
        retry_after: None,
        why: Why::Closed,
    };

    #[inline]
    pub(crate) const fn after(time: Duration) -> Self {
        Self {
            retry_after: Some(time),
            why: Why::Over,
        }
    }

    /// Returns whether a caller may wait for another answer.
    pub(crate) fn passes(&self) -> bool {
        self.why == Why::Over
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.why, self.retry_after) {
            (Why::Over, Some(time)) => write!(f, "over the limit; come back in {time:?}"),
            (Why::Over, None) => f.write_str("nothing more may be used at present"),
            (Why::UnknownResource { message }, _) => {
                write!(f, "the resource is unknown: {message}")
            }
            (Why::Closed, _) => f.write_str("the client is closed"),
        }
    }
}
