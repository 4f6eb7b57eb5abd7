//! How servers and clients are set up, and what must hold.

use std::time::Duration;

use doorward_client::state::ClientConfig;

use crate::recording::Checker;
use crate::scenario::fault::Span;
use crate::scenario::shape::{amount, duration, part, span, word};

record! {
    /// How servers are set up.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Servers ("{election: 10s}") {
        /// As the server's flag `--refresh-floor`.
        refresh_floor: Duration = duration(), or(Servers::default().refresh_floor);
        /// As the server's flag `--push-round`.
        push_round: Duration = duration(), or(Servers::default().push_round);
        /// How servers ask their parents: on a stream, on which both sides say what changes, or by calls.
        parent_protocol as "parent_protocol" | "way_up": ParentProtocol = word(), or(Servers::default().parent_protocol);
        /// From when a master is gone to when its successor serves. The leases of candidates in etcd last for
        /// the shorter of the two; etcd lets them end later, by chance, up to the longer. Below half a second
        /// they last for 2 s, the least that servers take: so long there is no master after one has died, but
        /// one that hands over is succeeded at once. The event `elections` changes it.
        election: Span = span(), or(Servers::default().election);
    }
}

words! {
    /// How servers ask their parents.
    pub enum ParentProtocol {
        /// On a stream, on which both sides send what changes.
        Stream = "stream",
        /// By calls.
        Poll = "poll",
    }
}

record! {
    /// How long every client waits after a request before it says, earlier than it was to refresh, that it
    /// wants something else.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ClientGaps ("{news: 100ms}") {
        /// While it does not know whether its server says if it decided, as a Doorman server does not.
        early: Duration = duration(), or(ClientGaps::default().early);
        /// Towards a server that says so.
        news: Duration = duration(), or(ClientGaps::default().news);
    }
}

record! {
    /// What must hold; absent: it is measured and not judged. Parts are 0…1.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub struct Limits ("{overshoot: 0}") {
        /// The most that clients may use by leases, work in flight included, beyond the capacity at any instant
        /// of the whole run, as a part of it. What is out when the capacity is lowered may run down until its
        /// leases end. Without a promise of a total (NO_ALGORITHM, STATIC) nothing is held against it. With
        /// `shrink: immediate` what is too much may not last: of any span of a lease length for each level of
        /// the tree, clients included, the least that each client could use in it may add up to no more. What
        /// clients use without a lease, in their modes, is not in it: see *peak in safe mode* and *peak with
        /// fallback*.
        overshoot_max as "overshoot": Option<f64> = amount(), optional("not judged");
        /// The most that clients below a node may be able to use by leases beyond what its parent has reserved
        /// for it, as a part of the capacity or of what is reserved, whichever is more. It is held against the
        /// books of every parent that is up and past learning, with each sample, and ten times a second while
        /// something goes wrong and for two lease lengths after it.
        nesting_max as "nesting": Option<f64> = amount(), optional("not judged");
        /// How often a server may grant something that is not the master of its node, or whose term is over.
        /// Reported only where it is set, or happens.
        mastership_max as "mastership": Option<f64> = amount(), optional("not judged");
        /// The largest distance of clients from what is ideal at each time of `right_at`, as a part of what
        /// there is to have.
        settled_unfairness_max as "settled_unfairness" | "rest": Option<f64> = amount(), optional("not judged");
        /// The largest mean distance of clients from what is ideal, as a part of what there is to have.
        unfairness_max as "unfairness": Option<f64> = part(), optional("not judged");
        /// The least mean part of what could be used that is used: of each client the smaller of what it wants
        /// and what its lease lets it use. What is granted beyond that does not count.
        utilisation_min as "utilisation": Option<f64> = part(), optional("not judged");
        /// The longest from a change of demand or capacity, by more than a twentieth of the capacity at one
        /// instant, to allocations no further from the ideal than 1 % of what could be used. Changes that
        /// overlap are one.
        convergence_max as "convergence": Option<Duration> = duration(), optional("not judged");
        /// The longest that a client that wants something has nothing, though there is something for it.
        starvation_max as "starvation": Option<Duration> = duration(), optional("not judged");
        /// How often per minute a client's grant may turn (up after down, or down after up) by more than 1 %
        /// while nobody's demand changes.
        oscillation_max as "oscillation": Option<f64> = amount(), optional("not judged");
        /// The longest from when a client without a lease could reach its server again to its next lease.
        comeback_max as "comeback": Option<Duration> = duration(), optional("not judged");
        /// How many clients that had lost their server may be without a lease at the end, though it is there.
        not_back_max as "not_back": Option<f64> = amount(), optional("not judged");
        /// The most that all clients may use in safe mode at once, whatever they want, as a part of the
        /// capacity. It is held against what they heard whenever each of them heard it since the last one
        /// joined (in the answer to a request that was sent a second later, when all servers know), whether
        /// anybody is in safe mode then or not. 1 is what servers promise, unless templates have a
        /// `safe_capacity`. Nothing is held against what clients that have left, as far as their server knows,
        /// use beside those who stay.
        safe_use_max as "safe_use": Option<f64> = amount(), optional("not judged");
        /// How many requests one client may send within a second, for leases and for who the master is. A client
        /// that keeps its gaps, follows a few redirects and waits after each failure stays below 60.
        requests_max as "requests": Option<f64> = amount(), optional("not judged");
    }
}

/// As the flags of the server.
impl Default for Servers {
    fn default() -> Self {
        let second = Duration::from_secs(1);
        Self {
            refresh_floor: second,
            push_round: Duration::from_millis(50),
            parent_protocol: ParentProtocol::Stream,
            election: (second * 10, second * 10),
        }
    }
}

/// As the library has them.
impl Default for ClientGaps {
    fn default() -> Self {
        let config = ClientConfig::default();
        Self {
            early: config.early_gap,
            news: config.news_gap,
        }
    }
}

impl Limits {
    /// That of a checker, in the unit of its verdicts. None: it is not judged.
    pub fn of(&self, checker: Checker) -> Option<f64> {
        let seconds = |limit: Option<Duration>| limit.map(|limit| limit.as_secs_f64());
        match checker {
            Checker::Overshoot => self.overshoot_max,
            Checker::Nesting => self.nesting_max,
            Checker::Fairness => self.unfairness_max,
            Checker::Utilisation => self.utilisation_min,
            Checker::Convergence => seconds(self.convergence_max),
            Checker::Starvation => seconds(self.starvation_max),
            Checker::Oscillation => self.oscillation_max,
            Checker::Mastership => self.mastership_max,
            Checker::SettledFairness => self.settled_unfairness_max,
            Checker::Comeback => seconds(self.comeback_max),
            Checker::NotBack => self.not_back_max,
            Checker::SafeUse => self.safe_use_max,
            Checker::Requests => self.requests_max,
        }
    }
}
