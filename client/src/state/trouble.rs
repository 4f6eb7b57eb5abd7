//! Problem of a resource without a fresh lease.

/// Reason why a resource has no fresh lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No template matches the resource: no server grants it until an operator adds one.
    UnknownResource(String),
    /// The server waits for its own parent: it will have a lease soon, or when its parent is back.
    NotReady(String),
    /// The server refused the resource for another reason.
    Refused(String),
    /// The server's answer was invalid.
    Malformed(String),
}

impl Trouble {
    /// Returns the problem, for people.
    pub fn message(&self) -> &str {
        match self {
            Self::UnknownResource(message)
            | Self::NotReady(message)
            | Self::Refused(message)
            | Self::Malformed(message) => message,
        }
    }

    /// Returns whether it soon ends by itself, so that waiting for a lease makes sense.
    pub fn passes(&self) -> bool {
        matches!(self, Self::NotReady(_))
    }
}
