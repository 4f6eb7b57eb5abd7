//! What can go wrong for a user of the library.

use std::time::Duration;

use thiserror::Error;

/// Why a client could not be set up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// No address was given.
    #[error("no server address was given; call `address`")]
    NoAddress,
    /// An address does not parse.
    #[error("\"{address}\" is not an address: {problem}; give host:port or http://host:port")]
    BadAddress {
        /// As given, or as a server named it, with what cannot be seen made visible.
        address: String,
        /// What is wrong with it.
        problem: String,
    },
    /// An address of a node in etcd cannot be used.
    #[error("{0}")]
    BadNodeAddress(String),
    /// The client id is empty or too long.
    #[error("the client id {0:?} does not do; give 1 to 256 printable bytes")]
    BadClientId(String),
    /// No server answered in time.
    #[error("not connected: no server answered within {waited:?}; the last error was: {last}")]
    NotConnected {
        /// How long it was tried.
        waited: Duration,
        /// What the last attempt said.
        last: String,
    },
}

/// Why a resource could not be opened, or what is wanted of it not be changed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ResourceError {
    /// The resource id is empty or too long.
    #[error("the resource id {0:?} does not do; give 1 to 256 printable bytes")]
    BadId(String),
    /// The client uses the resource already.
    #[error("{0} is open already; share its handle")]
    AlreadyOpen(String),
    /// Wants must be a number that a server takes.
    #[error("cannot want {0}; give a finite number from 0 to 10^15")]
    BadWants(f64),
    /// No template matches the resource: no server will grant it until an operator adds one.
    #[error("{resource} is unknown: {message}")]
    Unknown {
        /// Which.
        resource: String,
        /// What the server said.
        message: String,
    },
    /// Another live process has the lease under the same client id.
    #[error("{resource} got no lease: {}", another_process(client_id))]
    AnotherProcess {
        /// Which resource.
        resource: String,
        /// The id that both have.
        client_id: String,
    },
    /// The server refused the resource for another reason, or its answer made no sense.
    #[error("{resource} got no lease: {message}")]
    Refused {
        /// Which.
        resource: String,
        /// What the server said, or what is wrong with what it said.
        message: String,
    },
    /// No server could be asked.
    #[error("not connected: {0}")]
    NotConnected(String),
    /// The client or the resource was closed.
    #[error("the client is closed")]
    Closed,
}

/// Why nothing was acquired from a limiter.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum AcquireError {
    /// Over the limit now.
    #[error("over the limit; come back in {retry_after:?}")]
    RetryAfter {
        /// When it would be admitted if the rate stays as it is; if nothing may be used now, when the
        /// client hears next whether something may.
        retry_after: Duration,
    },
    /// Nothing more may be used until the capacity grows or what is in flight comes back.
    #[error("nothing more may be used at present")]
    Blocked,
    /// No template matches the resource, so no server will grant it until an operator adds one; and
    /// neither a lease from before nor the mode allows anything.
    #[error("the resource is unknown: {message}")]
    UnknownResource {
        /// What the server said.
        message: String,
    },
    /// Another live process has the lease under the same client id, and has had it for longer than a restart takes.
    #[error("{}", another_process(client_id))]
    AnotherProcess {
        /// The id that both have.
        client_id: String,
    },
    /// The cost is no number, negative or infinite; or no permits were asked for.
    #[error("cannot acquire {0}; give a finite number that is not negative")]
    BadCost(f64),
    /// The client or the resource was closed.
    #[error("the client is closed")]
    Closed,
}

/// What is wrong, and what to do.
fn another_process(client_id: &str) -> String {
    format!(
        "another running process has the client id {client_id:?}; give each process an id of its own, or stop one of them"
    )
}
