//! The holders of one resource: leases by name, claims by band, the child servers among the holders, and the caller
//! behind each lease.
//!
//! Claims are added, changed and removed only here, so the records stay consistent. A new holder claims first
//! ([`Holders::claim`]), so that its grant is decided with its claim among the others.

use std::collections::{BTreeMap, BTreeSet};

use crate::admission::weight;
use crate::amount::Amount;
use crate::claims::{Bands, Claim, Demand, Subclients};
use crate::continuity::Recovery;
use crate::division::{Bound, DecidedBy, KnownWhy};
use crate::holders::{
    Expired, HolderAsk, Holding, Lease, LeaseTable, Leases, Position, ProcessHistory, Slot,
    Standing, Streaming,
};
use crate::id::{HolderKind, HolderName};
use crate::resource::Effects;
use crate::resource::admit::Arrivals;
use crate::templates::{Algorithm, Shrink};
use crate::time::Time;

/// A decision for a holder, as its holder records it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Decision {
    /// Its newest lease.
    pub(super) lease: Lease,
    /// Its share, which it gets once others have shrunk.
    pub(super) share: Amount,
    /// Why it got what it got.
    pub(super) why: KnownWhy,
    /// It got less than its share because of what others hold.
    pub(super) waits: bool,
    /// The latest lowering of the capacity that this takes into account.
    pub(super) lowering: u32,
}

/// The holders of a resource. See the [module](self).
#[derive(Debug)]
#[repr(C)]
pub(super) struct Holders {
    /// The claims of all holders in the table. Only [`Holders`] changes them, or the holders and their demand.
    pub(super) claims: Bands,
    pub(super) table: LeaseTable,
    /// The child servers among the holders. Absent: there are none.
    #[expect(clippy::box_collection, reason = "without it, it takes one word")]
    children: Option<Box<BTreeMap<HolderName, Slot>>>,
    /// The clients with a stream. Absent: there were none.
    pub(super) streaming: Option<Box<Streaming>>,
    /// The callers that brought holders and priorities.
    pub(super) arrivals: Arrivals,
    demand_version: u64,
    /// Effects of changes since they were last taken.
    pub(super) effects: Effects,
}

impl Holders {
    /// There are no holders.
    pub(super) fn new(seed: u64) -> Self {
        Self {
            table: LeaseTable::new(seed),
            claims: Bands::default(),
            children: None,
            streaming: None,
            arrivals: Arrivals::default(),
            demand_version: 0,
            effects: Effects::default(),
        }
    }

    /// The child servers that hold something.
    pub(super) fn children(&self) -> &BTreeMap<HolderName, Slot> {
        static NOBODY: BTreeMap<HolderName, Slot> = BTreeMap::new();
        self.children.as_deref().unwrap_or(&NOBODY)
    }

    /// A child server that holds something.
    pub(super) fn child(&self, name: &HolderName) -> Option<&Holding> {
        self.table.get(*self.children().get(name)?)
    }

    /// Clients served, those below child servers included.
    pub(super) fn clients(&self) -> f64 {
        self.claims.total_subclients()
    }

    /// Grows whenever a claim comes, goes or changes.
    pub(super) fn demand_version(&self) -> u64 {
        self.demand_version
    }

    /// Bytes of all holders, as estimated.
    pub(super) fn bytes(&self) -> usize {
        self.arrivals.bytes() + weight::shared_bytes(self.table.len(), self.claims.len())
    }

    /// The priorities of a demand that no holder has, and the template does not name. If the algorithm does not look at
    /// them, the usual one is always there.
    pub(super) fn new_priorities(&self, demand: &Demand, algorithm: &Algorithm) -> BTreeSet<i64> {
        let usual = (!algorithm.kind.has_bands()).then_some(Bands::USUAL);
        let is_new = |band: &i64| {
            let is_named = algorithm.min_shares.contains_key(band);
            !is_named && usual != Some(*band) && self.claims.get(*band).is_none()
        };
        let mut new = match demand {
            Demand::Client { priority, .. } => BTreeSet::from([*priority]),
            Demand::Server(demand) => demand.bands().iter().map(|band| band.priority).collect(),
        };
        new.retain(is_new);
        new
    }

    /// Puts in the claims of a holder that is about to come.
    pub(super) fn claim(&mut self, demand: &Demand) {
        self.claims.insert_all(demand);
        self.note_demand_changed();
    }

    /// Inserts a new holder, which has claimed.
    pub(super) fn insert(
        &mut self,
        ask: &HolderAsk<'_>,
        leases: Leases,
        decision: &Decision,
        now: Time,
    ) -> Slot {
        let (holder, demand) = (ask.holder().clone(), ask.demand.clone());
        let mut holding = Holding::new(holder, demand, leases, decision.why, now);
        holding.caller = ask.caller;
        holding.waits = decision.waits;
        decision.write_to(&mut holding);
        self.arrivals.note_came(&holding, &mut self.effects.charges);
        let slot = self.table.insert(holding);
        if ask.holder().kind == HolderKind::Server {
            let children = self.children.get_or_insert_default();
            children.insert(ask.holder().name.clone(), slot);
        }
        slot
    }

    /// Places a client among those with a stream, or removes it.
    pub(super) fn place(&mut self, slot: Slot, position: Option<Position>) {
        match &mut self.streaming {
            Some(streaming) => streaming.place(slot, position),
            None if position.is_some() => {
                self.streaming.get_or_insert_default().place(slot, position);
            }
            None => {}
        }
    }

    /// A decision reaches a holder that is there.
    pub(super) fn decide(&mut self, slot: Slot, decision: &Decision, shrink: Shrink) {
        let Some(holding) = self.table.get(slot) else {
            return;
        };
        let (kind, waited) = (holding.kind(), holding.waits);
        self.table.change_leases(slot, |leases| {
            grant_by_kind(leases, kind, decision.lease);
            if shrink == Shrink::Immediate {
                leases.forget_older();
            }
        });
        if decision.waits != waited {
            self.table.change_waits(slot, decision.waits);
        }
        self.table.note(slot, |holding| decision.write_to(holding));
    }

    /// This is the newest request that is known of a holder.
    pub(super) fn note_request(&mut self, slot: Slot, ask: &HolderAsk<'_>) {
        self.table.note(slot, |holding| {
            holding.sequence = ask.sequence.unwrap_or(holding.sequence);
            holding.incarnation = ask.incarnation;
            holding.pending = false;
            holding.streams = ask.streams;
        });
        if ask.report.is_some() {
            self.table.change_report(slot, ask.report.clone());
        }
    }

    /// A holder asks for this from now on.
    pub(super) fn change_demand(&mut self, slot: Slot, demand: &Demand) {
        let holding = self.table.get(slot);
        let Some(holding) = holding.filter(|it| it.demand != *demand) else {
            return;
        };
        let before = &holding.demand;
        self.arrivals
            .note_demand(holding, demand, &mut self.effects.charges);
        self.claims.replace_all(before, demand);
        self.table.change_demand(slot, demand.clone());
        self.note_demand_changed();
    }

    /// Notes that a later process of a client's name asks. If the server does not wait for the holder, it drops its
    /// wants.
    pub(super) fn replace(&mut self, slot: Slot, is_waited_for: bool) {
        let Some(holding) = self.table.get(slot) else {
            return;
        };
        let mut newest = holding.newest();
        newest.expires_at = newest.expires_at.min(holding.overdue_at());
        if !is_waited_for {
            newest.capacity = Amount::ZERO;
        }
        self.table.change_standing(slot, Standing::Replaced);
        self.place(slot, None);
        self.table
            .change_leases(slot, |leases| leases.grant(newest));
        if !is_waited_for {
            self.drop_wants(slot);
        }
    }

    /// Notes that a replaced process asks after all later ones have gone.
    pub(super) fn make_newest(&mut self, slot: Slot) {
        self.table.change_standing(slot, Standing::Newest);
    }

    /// Drops the wants of a process that was replaced and is silent, and does not count it as a client any more. Its
    /// leases count until they end.
    fn drop_wants(&mut self, slot: Slot) {
        let Some(holding) = self.table.get(slot) else {
            return;
        };
        let (wants, subclients) = (Amount::ZERO, Subclients::MIN);
        let (priority, claim) = (holding.demand.priority(), Claim { wants, subclients });
        let nothing = Demand::Client { priority, claim };
        self.change_demand(slot, &nothing);
        self.table.change_waits(slot, false);
        let (decided_by, bound) = (DecidedBy::Replaced, Bound::Share);
        self.table.note(slot, |holding| {
            holding.share = Amount::ZERO;
            holding.why = KnownWhy { decided_by, bound };
        });
    }

    /// Takes a holder out.
    pub(super) fn remove(&mut self, slot: Slot, recovery: Option<&mut Recovery>) {
        if let Some(gone) = self.table.remove(slot) {
            self.place(slot, None);
            self.note_gone(&gone, recovery);
        }
    }

    /// Removes holders whose leases have ended. It checks up to `most` holders, and stops after a child server,
    /// which may have a thousand claims. Returns the number of checked ones.
    pub(super) fn expire(
        &mut self,
        most: usize,
        mut recovery: Option<&mut Recovery>,
        now: Time,
    ) -> usize {
        let (mut looked_at, mut child_is_gone) = (0, false);
        while looked_at < most && !child_is_gone {
            match self.table.expire_one(now) {
                Expired::NothingDue => break,
                Expired::Nobody => {}
                Expired::Silent(slot) => self.drop_wants(slot),
                Expired::Holder(slot, holding) => {
                    self.place(slot, None);
                    self.note_gone(&holding, recovery.as_deref_mut());
                    self.effects.expired += 1;
                    child_is_gone = matches!(holding.demand, Demand::Server(_));
                }
                Expired::Part => self.note_unsettled(),
            }
            looked_at += 1;
        }
        looked_at
    }

    /// Changes the history of a child server's name, if it has one.
    pub(super) fn note_past(&mut self, slot: Slot, note: impl FnOnce(&mut ProcessHistory)) {
        self.table.note(slot, |holding| {
            holding.past.as_deref_mut().map(note);
        });
    }

    /// Asserts that all that is kept agrees. O(n), for tests.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub(super) fn assert_consistent(&self, recovery: Option<&Recovery>) {
        self.table.assert_consistent();
        self.arrivals.assert_consistent(self.table.iter());
        let mut claims = 0;
        let mut children = 0;
        let mut keys = BTreeSet::new();
        for holding in self.table.iter() {
            holding.demand.for_each_claim(|_, _| claims += 1);
            children += usize::from(holding.kind() == HolderKind::Server);
            keys.insert(self.table.name_hash(&holding.holder()));
        }
        let there = self.claims.iter().map(|(_, index)| index.len());
        assert_eq!(there.sum::<usize>(), claims, "claims in the index");
        assert_eq!(self.children().len(), children, "child servers");
        if let Some(recovery) = recovery {
            recovery.assert_consistent(|holder| keys.contains(&holder));
        }
    }

    /// A holder was taken out of the table.
    fn note_gone(&mut self, gone: &Holding, recovery: Option<&mut Recovery>) {
        self.claims.remove_all(&gone.demand);
        self.arrivals.note_gone(gone, &mut self.effects.charges);
        if let Some(recovery) = recovery {
            recovery.note_gone(self.table.name_hash(&gone.holder()));
        }
        if let Some(children) = self.children.as_mut()
            && gone.kind() == HolderKind::Server
        {
            children.remove(&gone.name);
        }
        self.note_demand_changed();
    }

    /// Claims have come, gone or changed.
    pub(super) fn note_demand_changed(&mut self) {
        self.demand_version += 1;
        self.table.note_changed();
        self.note_unsettled();
    }

    /// Something changed that may change what child servers should have.
    pub(super) fn note_unsettled(&mut self) {
        self.effects.is_unsettled = true;
    }
}

impl Decision {
    /// Writes the fields that no sum includes.
    fn write_to(&self, holding: &mut Holding) {
        holding.share = self.share;
        holding.why = self.why;
        holding.lowering = self.lowering;
    }
}

/// Adds a lease to those of a holder of that kind. A child server hands out what it has.
pub(super) fn grant_by_kind(leases: &mut Leases, kind: HolderKind, lease: Lease) {
    match kind {
        HolderKind::Client => leases.grant(lease),
        HolderKind::Server => leases.grant_to_server(lease),
    }
}
