//! The mark of a resource ([`crate::continuity::mark`]): what it must cover, and what waits for it.

use std::time::Duration;

use crate::amount::Amount;
use crate::continuity::Recovery;
use crate::continuity::mark::{self, KeptMark, Mark, MarkDue, MarkNeeds};
use crate::exact_sum::ExactSum;
use crate::holders::{HolderAsk, Holding, Slot};
use crate::resource::Resource;
use crate::resource::pace::longest_interval;
use crate::time::Time;

/// Knowledge of a new master of the root about the leases of its predecessors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Predecessors {
    /// Templates tell how long they last.
    Unknown {
        /// The mark in etcd, if this mastership keeps marks. It does not count.
        kept: Option<Option<Mark>>,
    },
    /// The mark of the last one. None: there are no leases.
    Marked(Option<Mark>),
    /// The same, of a master that keeps none itself.
    Recorded(Option<Mark>),
}

impl Resource {
    /// Begins the mark and the recovery of a root's resource. There is no recovery if no lease of a predecessor is left,
    /// or nothing promises a total.
    pub(super) fn inherit(&mut self, predecessors: Predecessors, now: Time) {
        let ends_anew = self.start.ends_anew(self.policy.algorithm(), now);
        let kept = |mark, until| Box::new(KeptMark::found(mark, until));
        let algorithm = self.policy.algorithm();
        let (refresh_interval, lease_length) = (algorithm.refresh_interval, algorithm.lease_length);
        let hears_until = |longest: Duration| {
            let interval = longest_interval(refresh_interval, lease_length.max(longest));
            // Requests travel, and clients that have lost their server come back within a second or so.
            now + interval + interval / 4
        };
        match predecessors {
            Predecessors::Unknown { kept: found } => {
                self.mark = found.map(|mark| kept(mark, ends_anew.unwrap_or_default()));
                self.recovery = ends_anew.map(Recovery::of_root);
            }
            Predecessors::Marked(None) => self.mark = Some(kept(None, Time::ZERO)),
            Predecessors::Recorded(None) => {}
            Predecessors::Recorded(Some(mark)) => {
                let ends = self.start.end_of(mark.longest);
                // Holders that report more than that make it learn.
                let capacity = self.supply.capacity;
                let known = mark.amount.map_or(capacity, |amount| amount.min(capacity));
                if ends > now && self.policy.promises_total() {
                    self.is_recorded = true;
                    let hears_until = hears_until(mark.longest);
                    self.recovery = Some(Recovery::of_mark(ends, known, hears_until));
                }
            }
            Predecessors::Marked(Some(mark)) => {
                let ends = self.start.end_of(mark.longest);
                self.mark = Some(kept(Some(mark), ends));
                if ends <= now || !self.policy.promises_total() {
                    return;
                }
                // After a lowering, more may be in use than there is to divide.
                let fits = |amount: &Amount| *amount <= self.supply.capacity;
                let known = mark.amount.filter(fits);
                self.recovery = Some(match known {
                    Some(known) => Recovery::of_mark(ends, known, hears_until(mark.longest)),
                    None => Recovery::of_root(ends_anew.map_or(ends, |until| until.max(ends))),
                });
            }
        }
    }

    /// Learns anew: predecessors may have granted leases that no holder has reported. Returns for how long. None: the
    /// template says that it does not learn, or nothing promises a total.
    pub(crate) fn begin_learning(&mut self, now: Time) -> Option<Duration> {
        self.start.vacant_since = Some(now);
        let algorithm = self.policy.algorithm();
        let ends = self.start.ends_anew(algorithm, now);
        let ends = ends.filter(|_| algorithm.kind.promises_total())?;
        self.end_recovery();
        self.recovery = Some(Recovery::of_root(ends));
        Some(ends.since(now))
    }

    /// Ends recovery, because all leases of predecessors have ended, or are reported. Returns whether it learned.
    pub(crate) fn end_learning(&mut self) -> bool {
        self.start.vacant_since = None;
        self.start.longer_leases = Duration::ZERO;
        let learned = self.learns();
        // Before the parent's first answer, that decides.
        let is_decided = |recovery: &Recovery| recovery.ends_at().is_some();
        if self.recovery.as_deref().is_some_and(is_decided) {
            self.end_recovery();
        }
        learned && self.recovery.is_none()
    }

    /// Learns if more may be in use than the capacity, by leases of predecessors, too.
    pub(super) fn learn_if_lowered(&mut self) {
        let capacity = self.supply.capacity;
        let reserved = *self.holders.table.reserved();
        let ends = self.start.leases_end(self.policy.algorithm());
        if let Some(recovery) = self.recovery.as_mut().filter(|it| it.is_bounded()) {
            let mut booked = reserved;
            booked.add_sum(&recovery.unreported());
            if booked.exceeds(capacity) {
                recovery.become_unbounded(ends);
            }
        }
    }

    /// Largest sum of leases that may be granted: the capacity, or less while the mark rises. None: any.
    pub(super) fn grants_max(&self) -> Option<Amount> {
        let limit = self.mark.as_ref().and_then(|mark| mark.limit());
        mark::smaller(self.promised(), limit)
    }

    /// The most that all leases together may be. None: the algorithm promises no total, and the mark alone limits leases.
    pub(super) fn promised(&self) -> Option<Amount> {
        let is_divided = self.policy.promises_total() || self.mark.is_none();
        Some(self.supply.capacity).filter(|_| is_divided)
    }

    /// Whether a holder without a lease gets one only when the mark has risen. A holder with a lease gets what fits.
    pub(super) fn must_wait_for_mark(&self, slot: Option<Slot>, ask: &HolderAsk<'_>) -> bool {
        let Some(mark) = &self.mark else {
            return false;
        };
        let holding = slot.and_then(|slot| self.holders.table.get(slot));
        if holding.is_some_and(|holding| !holding.pending) {
            return false;
        }
        let held = holding.map_or(Amount::ZERO, Holding::own);
        let room = self.room_beside_others(held, self.promised());
        // A holder with leases of predecessors keeps them, and grows when the mark has risen.
        let needs = match ask.in_use().is_zero() {
            true => ask.demand.wants(),
            false => ask.in_use(),
        };
        let needs = needs.min(room);
        mark.longest().is_zero() || needs > self.room_beside_others(held, self.grants_max())
    }

    fn mark_needs(&self, now: Time) -> MarkNeeds {
        let table = &self.holders.table;
        let sum = |part: &ExactSum| {
            let mut sum = *part;
            if let Some(recovery) = &self.recovery {
                sum.add_sum(&recovery.unreported());
            }
            sum.rounded_up()
        };
        let capacity = self.supply.capacity;
        // Holders need at least what they have.
        let needs = sum(table.needs());
        let expected = match needs > capacity {
            true => capacity.max(sum(table.reserved())),
            false => needs,
        };
        let in_use = table.in_use_until(now).map(|until| until.since(now));
        let kept = self.mark.as_ref();
        let inherited_until = kept.and_then(|it| it.inherited_until(now));
        let inherited = inherited_until.map(|until| until.since(now));
        let inherited = inherited.max(self.recovery_remaining(now));
        let is_idle = table.is_empty() && self.recovery.is_none();
        MarkNeeds {
            expected,
            capacity,
            is_unbounded: !self.policy.promises_total()
                || self.recovery.as_ref().is_some_and(|it| !it.is_bounded()),
            is_unused: is_idle && inherited_until.is_none(),
            unused_at: inherited_until.filter(|_| is_idle),
            lease_length: self.policy.algorithm().lease_length,
            lasts: in_use.max(inherited).unwrap_or_default(),
        }
    }

    /// Updates when to write the mark. Returns whether that is now.
    pub(crate) fn update_mark(&mut self, now: Time) -> bool {
        if self.mark.is_none() {
            return false;
        }
        let needs = self.mark_needs(now);
        let Some(mark) = &mut self.mark else {
            return false;
        };
        mark.update(&needs, now);
        mark.due() == MarkDue::Now
    }

    /// Begins to write the mark, if that is due. Returns the value, and whether there is one in etcd.
    pub(crate) fn send_mark(&mut self, now: Time) -> Option<(Option<Mark>, bool)> {
        let needs = self.mark_needs(now);
        let mark = self.mark.as_mut()?;
        (mark.due() == MarkDue::Now).then(|| mark.send(&needs))
    }

    /// Notes that etcd has confirmed the mark.
    pub(crate) fn note_mark_written(&mut self) {
        if let Some(mark) = &mut self.mark {
            mark.note_written();
            self.holders.table.note_changed();
            self.holders.note_unsettled();
        }
    }

    /// Whether its mark is still in etcd.
    pub(crate) fn has_mark(&self) -> bool {
        self.mark.as_ref().is_some_and(|mark| !mark.is_gone())
    }
}
