//! Settings of servers and clients, and the limits that verdicts judge by.

use std::time::Duration;

use serde::Deserialize;

use crate::recording::Checker;
use crate::scenario::Connection;
use crate::scenario::forms::{Amount, Part, Span, Time};

/// The settings of servers.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Servers {
    /// The server's flag `--refresh-floor`.
    pub refresh_floor: Time,
    /// The server's flag `--push-round`.
    pub push_round: Time,
    /// The way in which servers ask their parents.
    #[serde(alias = "way_up")]
    pub parent_protocol: Connection,
    /// The time from when a master is gone to when its successor serves. Leases in etcd last for the shorter of the
    /// two, but at least 2 s; etcd ends them late by chance, up to the longer. The event `elections` changes
    /// it.
    pub election: Span,
    /// Whether a server of a node without an election has a state directory, as with the server's flag `--state-dir`. It
    /// stays when the server restarts.
    pub state_directory: bool,
}

/// The time that every client waits after a request before it refreshes early because it wants something else. Absent
/// gaps are as the library has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClientGaps {
    /// The gap while the client does not know whether its server says if it decided. A Doorman server never says.
    pub early: Option<Time>,
    /// The gap towards a server that says it.
    pub news: Option<Time>,
}

/// The limits that verdicts judge by. Absent limits are measured and not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Limits {
    /// The most that clients may use by leases beyond the capacity, as a part of it, work in flight included, at any
    /// instant of the run. After the capacity is lowered, earlier leases may run down. With `shrink: immediate`, too
    /// much use may not last: for a span of a lease length for each level of the tree, clients included, the sum of
    /// the least use of each client counts. NO_ALGORITHM and STATIC promise no total. Use without a lease is in *peak
    /// in safe mode* and *peak with fallback* instead.
    pub overshoot: Option<Amount>,
    /// The most that clients below a node may be able to use by leases beyond the reservation of its parent, as a part
    /// of the capacity or of the reservation, whichever is more.
    pub nesting: Option<Amount>,
    /// The number of grants by servers that are not the master of their node, or whose term is over. Reports show it
    /// only if it is set, or happens.
    pub mastership: Option<Amount>,
    /// The largest distance of clients from the ideal at each time of `right_at`, as a part of all that there is to
    /// have.
    #[serde(alias = "rest")]
    pub settled_unfairness: Option<Amount>,
    /// The largest mean distance of clients from the ideal, as a part of all that there is to have.
    pub unfairness: Option<Part>,
    /// The least mean utilisation. Of each client the smaller one of what it wants and what its lease allows counts.
    pub utilisation: Option<Part>,
    /// The longest time from a change of demand or capacity by more than a twentieth of the capacity to allocations
    /// within 1 % of the ideal. Changes that overlap are one.
    pub convergence: Option<Time>,
    /// The longest time for which a client that wants something has nothing, though there is something for it.
    pub starvation: Option<Time>,
    /// The number of times in a minute that a client's grant may turn (up after down, or down after up) by more than
    /// 1 % without any change of demand.
    pub oscillation: Option<Amount>,
    /// The longest time from when a client without a lease could reach its server again to its next lease.
    pub comeback: Option<Time>,
    /// The number of clients that lost their server and are without a lease at the end, though the server is there.
    pub not_back: Option<Amount>,
    /// The most that all clients may use in safe mode at once, as a part of the capacity. The safe capacities of their
    /// last answers count, after each of them had an answer since the last client joined; use of clients that have
    /// left does not. Servers promise 1, unless templates have a `safe_capacity`.
    pub safe_use: Option<Amount>,
    /// The number of requests that one client may send within a second, for leases and for the master.
    pub requests: Option<Amount>,
}

/// As the flags of the server.
impl Default for Servers {
    fn default() -> Self {
        let second = Duration::from_secs(1);
        Self {
            refresh_floor: Time(second),
            push_round: Time(Duration::from_millis(50)),
            parent_protocol: Connection::Stream,
            election: Span(second * 10, second * 10),
            state_directory: false,
        }
    }
}

impl Limits {
    /// That of a checker, in the unit of its verdicts. None: it is not judged.
    pub fn of(&self, checker: Checker) -> Option<f64> {
        let amount = |limit: Option<Amount>| limit.map(|limit| limit.0);
        let part = |limit: Option<Part>| limit.map(|limit| limit.0);
        let seconds = |limit: Option<Time>| limit.map(|limit| limit.0.as_secs_f64());
        match checker {
            Checker::Overshoot => amount(self.overshoot),
            Checker::Nesting => amount(self.nesting),
            Checker::Fairness => part(self.unfairness),
            Checker::Utilisation => part(self.utilisation),
            Checker::Convergence => seconds(self.convergence),
            Checker::Starvation => seconds(self.starvation),
            Checker::Oscillation => amount(self.oscillation),
            Checker::Mastership => amount(self.mastership),
            Checker::SettledFairness => amount(self.settled_unfairness),
            Checker::Comeback => seconds(self.comeback),
            Checker::NotBack => amount(self.not_back),
            Checker::SafeUse => amount(self.safe_use),
            Checker::Requests => amount(self.requests),
        }
    }
}
