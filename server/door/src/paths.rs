//! Paths of calls that the door treats in a way of their own. The service behind the door hands them in.

/// Lists of paths. A path may be in several of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Paths {
    /// Calls with a rate of their own. The server answers them even if the caller makes too many other calls.
    pub vital: &'static [&'static str],
    /// Calls whose cost grows with the whole state of the server. Each has one message.
    pub looks: &'static [&'static str],
    /// Other calls with one message. Work on such a call begins when its message is complete.
    pub with_one_message: &'static [&'static str],
    /// Calls whose messages may be large.
    pub large: &'static [&'static str],
    /// The only calls that are answered. Empty: all are.
    pub only: &'static [&'static str],
    /// Calls that need no proof of identity.
    pub open: &'static [&'static str],
    /// Calls for which any role suffices.
    pub of_all: &'static [&'static str],
    /// Calls of child servers.
    pub of_servers: &'static [&'static str],
    /// Calls that stay open while their caller listens. Their connection counts as silent.
    pub silent: &'static [&'static str],
}
