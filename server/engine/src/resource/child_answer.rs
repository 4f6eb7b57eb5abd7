//! The answer to a child server: its lease, and what only its parent knows of the tree as a whole.

use std::ops::Bound;
use std::time::Duration;

use crate::admission::AdmissionGate;
use crate::amount::Amount;
use crate::claims::Demand;
use crate::division::ParentTerms;
use crate::holders::{Asker, HolderAsk, Holding, Slot};
use crate::id::{HolderKind, HolderName};
use crate::messages::{RefusalReason, ServerLease};
use crate::resource::Resource;
use crate::resource::ask::{Answer, AnswerKind};
use crate::resource::pace::interval_of;
use crate::rounding::SHORTFALL;
use crate::time::Time;

/// Time for which a child server that gets pushes may be silent, in addition to twice its refresh interval.
const SILENT_MIN: Duration = Duration::from_secs(5);

impl Resource {
    /// Handles a request of a child server. Returns the origin of the answer, and the answer.
    ///
    /// # Errors
    ///
    /// As [`Resource::handle_ask`].
    pub(crate) fn handle_server_ask(
        &mut self,
        ask: HolderAsk<'_>,
        gate: &mut AdmissionGate<'_>,
        now: Time,
    ) -> Result<(AnswerKind, ServerLease), RefusalReason> {
        let name = &ask.holder().name;
        // For a child that does not report its mastership, this must come before the grant.
        let is_silent = ask.mastership().is_none();
        let before = is_silent.then(|| self.granted_for(name, now));
        let answer = self.handle_ask(ask, gate, now)?;
        let inherited_for = before.unwrap_or_else(|| self.granted_for(name, now));
        let lease = self.server_lease(name, &answer, now, Some(inherited_for), now);
        if let Some(slot) = self.holders.children().get(name).copied() {
            self.holders.note_past(slot, |past| past.note_answer(now));
        }
        // It was just found or put in.
        let lease = lease.ok_or(RefusalReason::NotReady)?;
        Ok((answer.kind, lease))
    }

    /// Asks on behalf of a holder with a stream what it asked for last. None: the answer would not differ from the last
    /// one, or a child server has been silent for too long.
    pub(crate) fn regrant(&mut self, slot: Slot, now: Time) -> Option<Answer> {
        let holding = self.holders.table.get(slot)?;
        if !self.may_regrant(holding, now) {
            return None;
        }
        let asker = Asker::new(holding.holder());
        let ask = HolderAsk::on_behalf_of(&asker, holding);
        let grant = self.grant_known(holding, &ask, self.lowering.kept(holding), now);
        // A client's lease keeps its end, and may not grow for longer than a new lease would last.
        let newest = holding.newest();
        let lasts = newest.expires_at > self.situation(now).lease_end();
        if holding.kind() == HolderKind::Client && lasts && grant.gets > newest.capacity {
            return None;
        }
        let same = |a: Amount, b: Amount| (a.get() - b.get()).abs() <= a.get() * SHORTFALL;
        if same(grant.gets, newest.capacity)
            && (holding.streams || same(grant.share, holding.share))
            && !self.safe_fell(holding, now)
        {
            return None;
        }
        let answer = self.decide(Some(slot), &ask, now);
        self.holders.note_past(slot, |past| past.note_answer(now));
        Some(answer)
    }

    /// Whether this server may decide for a holder that did not ask: not in learning mode, without a lease of its own,
    /// or without a template. When a template is gone, leases run down and none is taken back.
    fn may_regrant(&self, holding: &Holding, now: Time) -> bool {
        let learns = match holding.kind() {
            HolderKind::Client => self.learning_remaining(now).is_some(),
            HolderKind::Server => self.learns_for_child(holding, now).is_some(),
        };
        if holding.pending || learns || !self.situation(now).has_lease() || !self.has_source() {
            return false;
        }
        // A silent child may have ended: its lease must end, too.
        let asked_at = holding
            .report
            .as_ref()
            .map_or(now, |report| report.asked_at);
        let algorithm = self.policy.algorithm();
        let interval = interval_of(algorithm, holding, Duration::ZERO);
        let interval = interval.max(algorithm.refresh_interval);
        now.since(asked_at) <= 2 * interval + SILENT_MIN
    }

    /// Returns the remaining time of learning mode for a child server. At a root that knows a mark, only a child that
    /// learns itself gets no more than it reports, until all leases of predecessors have ended.
    fn learns_for_child(&self, holding: &Holding, now: Time) -> Option<Duration> {
        let child_learns = holding.report.as_ref().is_none_or(|it| it.learning);
        match child_learns {
            true => self.recovery_remaining(now),
            false => self.learning_remaining(now),
        }
    }

    /// Returns the lease to push to a child server. The child counts its lease from the time at which it sent its
    /// newest request; this server counts from the arrival of that request.
    pub(crate) fn pushed_lease(
        &self,
        name: &HolderName,
        answer: &Answer,
        now: Time,
    ) -> Option<ServerLease> {
        let holding = self.holders.child(name)?;
        let asked_at = holding.report.as_ref()?.asked_at;
        self.server_lease(name, answer, asked_at, None, now)
    }

    /// Longest time that leases granted to a child server may last; only those of earlier masterships, if the child
    /// reports its mastership. In learning mode it covers leases that this server does not know yet.
    fn granted_for(&self, name: &HolderName, now: Time) -> Duration {
        // Leases that this server does not know have ended when learning mode ends.
        let learns_for = self.recovery_remaining(now).unwrap_or_default();
        let holding = self.holders.child(name);
        // A child that reports its mastership: only leases of earlier ones.
        let masterships = holding.and_then(|it| Some(&it.past.as_ref()?.masterships));
        let until = match masterships.filter(|it| it.current().is_some()) {
            Some(known) => known.inherited(now).and_then(|it| it.in_use_until()),
            None => holding.and_then(|it| it.leases().in_use_until()),
        };
        let lasts = until.map_or(Duration::ZERO, |until| until.since(now));
        lasts.max(learns_for)
    }

    /// The whole answer to a child server with its newest lease, which is counted from
    /// `asked_at`. Before it asked, what it was granted lasted for `inherited_for`.
    fn server_lease(
        &self,
        name: &HolderName,
        answer: &Answer,
        asked_at: Time,
        inherited_for: Option<Duration>,
        now: Time,
    ) -> Option<ServerLease> {
        let holding = self.holders.child(name)?;
        let Demand::Server(demand) = &holding.demand else {
            return None;
        };
        let algorithm = self.policy.algorithm();
        let rule = self.division_for(&holding.demand);
        let masterships = holding.past.as_ref().map(|past| &past.masterships);
        let masterships = masterships.filter(|it| it.current().is_some());
        let inherited = masterships.map(|it| {
            let before = it.inherited(now);
            before.map_or(Amount::ZERO, |before| before.reserved())
        });
        let accounted = masterships
            .and_then(|it| it.accounted())
            .unwrap_or_default();
        // In learning mode nothing is shared out, so how is not known either; nor if our parent is.
        let learns = self.learns_for_child(holding, now);
        let is_known = learns.is_none() && !self.supply.parent_learns();
        let bands = match algorithm.kind.has_bands() && is_known {
            true => rule.bands_of(demand, answer.lease.capacity),
            false => Vec::new(),
        };
        Some(ServerLease {
            budget: None,
            resource: self.id.clone(),
            capacity: answer.lease.capacity,
            expires_in: answer.lease.expires_at.since(asked_at),
            refresh_in: answer.refresh_in,
            algorithm: Some(algorithm.clone()),
            terms: ParentTerms {
                share: holding.share,
                bands,
                per_client: rule.per_client().filter(|_| is_known),
                learning: !is_known,
                learning_for: learns.max(self.learning_for(now)).filter(|_| !is_known),
                reserved: Some(holding.own()),
                reserved_for: Some(holding.leases().last_expiry().since(asked_at)),
                inherited_for,
                inherited,
                accounted,
                predecessor_for: holding
                    .past
                    .as_ref()
                    .and_then(|past| past.expected_by(now))
                    .map(|by| by.since(now)),
                safe_capacity: Some(answer.safe_capacity),
                safe_is_static: self.safe_is_static(),
                holder_bounds: self.policy.holder_bounds(),
            },
            granted_by: Some(self.start.mastership),
            sequence: Some(holding.sequence).filter(|sequence| *sequence > 0),
            decided: Some(answer.decided),
        })
    }

    /// The child servers that hold something, after that one in the order of their names. Absent: all of them.
    pub(crate) fn children_after(
        &self,
        name: Option<&HolderName>,
    ) -> impl Iterator<Item = (&HolderName, Slot)> {
        let from = name.map_or(Bound::Unbounded, Bound::Excluded);
        let children = self.holders.children();
        let later = children.range::<HolderName, _>((from, Bound::Unbounded));
        later.map(|(name, slot)| (name, *slot))
    }
}
