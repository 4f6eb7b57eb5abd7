//! Errors of the library.

use std::time::Duration;

use thiserror::Error;

debug_by_text!(ConnectError, ResourceError);

/// An error of setting a client up.
#[derive(Clone, PartialEq, Eq, Error)]
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
    /// The system gives no thread, or no resources for it.
    #[error("no thread for the client: {0}")]
    NoThread(String),
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
#[derive(Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ResourceError {
    /// The resource id is empty or too long.
    #[error("the resource id {0:?} is invalid; give 1 to 256 printable bytes")]
    BadId(String),
    /// The pattern of keyed resources has no place for the key, or several.
    #[error("the pattern {0:?} is invalid; give one {{}} for the key, as in tenants/{{}}")]
    BadPattern(String),
    /// The last handle of the resource is dropped, and permits are out or another thread is closing it.
    #[error(
        "{0} is being closed; open it again later, once its permits are back, or keep its handle"
    )]
    Closing(String),
    /// The resource is open as another kind of limit.
    #[error(
        "{0} is open as another kind of limit; open it as a budget, or as a resource, and not as both"
    )]
    OtherKind(String),
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
    /// The client's task does not run, so it asks no server. A runtime of one thread runs it only while that thread
    /// waits for a future.
    #[error(
        "the client's task has had no thread for {0:?}; use a runtime with worker threads, or `connect_blocking`"
    )]
    TaskIsLate(Duration),
    /// The client or the resource was closed.
    #[error("the client is closed")]
    Closed,
}
