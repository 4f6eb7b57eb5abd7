//! Mastership as state: which of a node's servers decides, until which time, and whether it learns.
//!
//! Only the master decides. Winning and losing mastership both drop all leases: the new master learns them from the
//! holders.
//!
//! A mastership that was won in an election lasts until a time ([`Node::handle_term`]), and then ends by itself: a
//! process that was frozen, or cut off from etcd, must not decide anything when it continues. So every method checks
//! the time before it checks the mastership.

use std::time::Duration;

use doorward_time::named;

use crate::id::MastershipId;
use crate::messages::NodeEvent;
use crate::node::Node;
use crate::node::pages::Totals;
use crate::resource::pace::longest_interval;
use crate::templates::Algorithm;
use crate::time::Time;
pub use doorward_time::term::Term;

/// Which server of the node is the master, as far as this one knows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Mastership {
    /// This one.
    Master {
        /// Grows with every change of mastership. Absent: there is no election, and nothing to
        /// compare.
        epoch: Option<u64>,
    },
    /// Another one.
    Elsewhere {
        /// Where the master is.
        master_address: String,
        /// Its epoch, if it is known.
        epoch: Option<u64>,
    },
    /// None, or none is known.
    #[default]
    Unknown,
}

static UNKNOWN: Mastership = Mastership::Unknown;

impl Mastership {
    /// Whether it is this server.
    pub const fn is_master(&self) -> bool {
        matches!(self, Self::Master { .. })
    }

    /// The epoch, if there is one and it is known.
    pub const fn epoch(&self) -> Option<u64> {
        match self {
            Self::Master { epoch } | Self::Elsewhere { epoch, .. } => *epoch,
            Self::Unknown => None,
        }
    }
}

/// Result of a request, which only the master serves. Not being the master is no error.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<T> {
    /// Served.
    Served(T),
    /// Go there instead. Never [`Mastership::Master`].
    NotMaster(Mastership),
}

impl Node {
    /// Mastership was won, lost, or is now elsewhere. All leases are forgotten, except when the
    /// mastership this node has is passed in again. Set like this, it lasts until the next call.
    pub fn handle_mastership(&mut self, mastership: Mastership, now: Time) {
        self.end_term_if_over(now);
        self.valid_until = None;
        self.begin(mastership, Some(now), Duration::ZERO, now);
    }

    /// Mastership was won in an election, or confirmed by it: it holds until the term ends, unless
    /// it is confirmed again before. Confirmed too late it is another one: everything is forgotten.
    pub fn handle_term(&mut self, term: Term, now: Time) {
        self.end_term_if_over(now);
        let epoch = Some(term.epoch);
        let master = Mastership::Master { epoch };
        self.begin(master, term.vacant_since, term.longer_leases, now);
        self.valid_until = Some(term.valid_until);
        self.end_term_if_over(now);
    }

    /// Which server is the master at that time.
    pub fn mastership(&self, now: Time) -> &Mastership {
        if self.is_term_over(now) {
            &UNKNOWN
        } else {
            &self.mastership
        }
    }

    /// End of this node's mastership, unless a confirmation or an end comes before. None: it is not the master, or for
    /// ever.
    pub fn valid_until(&self) -> Option<Time> {
        self.valid_until
    }

    /// Number of changes of the mastership.
    pub const fn masterships(&self) -> u64 {
        self.masterships
    }

    /// Whether this node may decide now.
    ///
    /// # Errors
    ///
    /// The master, if it is known.
    pub(super) fn check_master(&mut self, now: Time) -> Result<(), Mastership> {
        self.end_term_if_over(now);
        if self.mastership.is_master() {
            Ok(())
        } else {
            Err(self.mastership.clone())
        }
    }

    pub(super) fn end_term_if_over(&mut self, now: Time) {
        if self.is_term_over(now) {
            self.ended = self.mastership.epoch().zip(self.valid_until.take());
            self.push_event(NodeEvent::TermEnded {
                epoch: self.mastership.epoch(),
            });
            self.set_mastership(Mastership::Unknown);
        }
    }

    fn is_term_over(&self, now: Time) -> bool {
        let is_late = self.valid_until.is_some_and(|until| until <= now);
        self.mastership.is_master() && is_late
    }

    /// Begins a mastership, unless it is the present one. No master has decided anything since the node became
    /// vacant, and former leases last for so long.
    fn begin(
        &mut self,
        mastership: Mastership,
        vacant_since: Option<Time>,
        longer_leases: Duration,
        now: Time,
    ) {
        // If a mastership that ended is confirmed too late, this server knows when it decided last.
        let ended = self
            .ended
            .filter(|(epoch, _)| mastership.is_master() && mastership.epoch() == Some(*epoch));
        if self.set_mastership(mastership) {
            let since = ended.map_or(vacant_since, |(_, ended)| vacant_since.max(Some(ended)));
            // It begins anew, but remembers the leases of its predecessors.
            self.former_leases_until = self.known_leases_until();
            self.vacant_since = since.map(|since| since.min(now));
            self.budgets.begin(now);
            // Its own former leases are forgotten as well.
            let own = |since| self.former_leases_until.since(since);
            let own = self.vacant_since.map_or(Duration::ZERO, own);
            self.longer_leases = longer_leases.max(own);
        } else {
            // The known leases of predecessors never become shorter.
            self.longer_leases = self.longer_leases.max(longer_leases);
        }
    }

    /// Returns the time until which known leases may last by templates that gave longer ones than those in
    /// force. The tolerance of this clock may be added twice: too long, if at all.
    pub(super) fn known_leases_until(&self) -> Time {
        let until = self.mastership_start().end_of(self.longer_leases);
        self.former_leases_until.max(until)
    }

    /// Discards everything that is known of leases. O(1).
    fn forget_leases(&mut self) {
        let resources = self.resources.take();
        let timeouts = std::mem::take(&mut self.timeouts);
        let accounts = self.admission.forget(self.config.seed);
        let (due, unsettled) = (self.upstream.forget(), self.children.forget());
        let conflicts = std::mem::take(&mut self.conflicts);
        let marks = self.marks.take();
        let budgets = self.budgets.forget();
        self.discard(Box::new((resources, timeouts, marks, budgets)));
        self.discard(Box::new((accounts, due, unsettled, conflicts)));
        self.sweep.forget();
    }

    /// Returns whether it is another one than before.
    fn set_mastership(&mut self, mastership: Mastership) -> bool {
        if self.mastership == mastership {
            return false;
        }
        if self.mastership.is_master() || mastership.is_master() {
            self.forget_leases();
        }
        self.mastership = mastership;
        self.masterships += 1;
        self.mastership_id = MastershipId::of(self.config.incarnation, self.masterships);
        true
    }
}

named! {
    /// Whether a node learns, and why.
    ///
    /// Resources learn one by one, and the snapshot of each has the remaining time
    /// ([`crate::messages::ResourceSnapshot`]). This file finds the reason for which any of them still learns.
    #[derive(PartialOrd, Ord, Hash)]
    Learning {
        /// It is not the master, and decides nothing.
        Standby = "standby",
        /// It decides: all leases are known or have ended.
        Over = "over",
        /// The process has started; without an election, the time of a former process's last decision is unknown.
        Started = "started",
        /// It was elected, and leases of the former master may still last.
        Elected = "elected",
        /// A server above it learns, and only confirms existing leases. This one learns no less long.
        Above = "above",
    }
}

impl Node {
    /// Returns the longest remaining learning mode of resources without a holder. None: it is over, or only
    /// the parent can tell, or this is not the master.
    pub fn learning_remaining(&self, now: Time) -> Option<Duration> {
        let is_complete = self.marks.as_ref().is_some_and(|it| it.is_complete());
        if self.config.has_parent || !self.mastership.is_master() || is_complete {
            return None;
        }
        let longest = self.templates().learns_for(self.longer_leases)?;
        let until = self.mastership_start().end_of(longest);
        Some(until.since(now)).filter(|left| !left.is_zero())
    }

    /// Returns the time until all holders of earlier masters are due to have asked this one. Only at the root. None: all
    /// are, or there was no earlier master. O(templates).
    pub fn unheard_for(&self, now: Time) -> Option<Duration> {
        let is_root = !self.config.has_parent && self.mastership.is_master();
        let since = self.vacant_since.filter(|_| is_root)?;
        let intervals = self.templates().iter();
        let interval = |it: &Algorithm| longest_interval(it.refresh_interval, it.lease_length);
        let until = since + intervals.map(|it| interval(&it.algorithm)).max()?;
        Some(until.since(now)).filter(|left| !left.is_zero())
    }

    /// Whether this node learns, and why, by the totals of its resources.
    pub fn learning(&self, totals: &Totals, now: Time) -> Learning {
        let mastership = self.mastership(now);
        if !mastership.is_master() {
            return Learning::Standby;
        }
        match totals.learns || self.learning_remaining(now).is_some() {
            _ if totals.learns_above => Learning::Above,
            true if mastership.epoch().is_none() => Learning::Started,
            true => Learning::Elected,
            false => Learning::Over,
        }
    }
}
