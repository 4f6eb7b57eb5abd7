//! Invariants at each step of a random world: no_overshoot, bounded_gets, nested_leases, and sums that equal their
//! parts.

use doorward_engine::amount::Amount;
use doorward_engine::division::Reason;
use doorward_engine::messages::GetCapacityReply;

use super::by_chance::{ByChance, resource};
use super::mail::Message;

impl ByChance {
    /// Checks no_overshoot for all clients together, and the sums of all nodes.
    pub fn check(&mut self) {
        self.world.assert_consistent();
        if !self.setup.promises() {
            return;
        }
        let (seed, now) = (self.seed, self.world.now);
        let capacity = Amount::new(self.setup.capacity()).unwrap();
        let used = self.world.used();
        // A lease granted at this very moment ends at the very end.
        let excused = now <= self.excused_until;
        assert!(
            excused || !used.exceeds(capacity),
            "seed {seed}, at {now}: {} used of {capacity}\n{:#?}",
            used.rounded_down(),
            self.world.clients
        );
        if self.is_alone {
            self.check_reserved(excused);
        }
    }

    /// Checks that the reserved sum fits the capacity, or falls.
    fn check_reserved(&mut self, excused: bool) {
        let (seed, now, capacity) = (self.seed, self.world.now, self.setup.capacity());
        let Some(snapshot) = self.snapshot(0) else {
            self.reserved_before = None;
            return;
        };
        let reserved = snapshot.reserved;
        if reserved > capacity {
            assert!(
                excused,
                "seed {seed}, at {now}: {reserved} reserved of {capacity}"
            );
            let before = self.reserved_before.unwrap_or(f64::INFINITY);
            assert!(
                reserved <= before,
                "seed {seed}, at {now}: {reserved} after {before}"
            );
        }
        self.reserved_before = Some(reserved);
    }

    /// Checks bounded_gets and nested_leases for an answer to a client.
    pub fn check_answer(&self, number: u64) {
        let Some(Message::Answer(client, _, reply)) = self.world.mail.get(number) else {
            return;
        };
        let (home, seed) = (self.world.clients[*client].home, self.seed);
        assert_eq!(reply.leases.len() + reply.refused.len(), 1, "seed {seed}");
        for lease in &reply.leases {
            assert!(lease.capacity.get().is_finite(), "seed {seed}");
            let is_short = lease.expires_in <= self.longest_lease;
            assert!(is_short, "seed {seed}: the lease is too long");
            let comes_in_time = lease.refresh_in < lease.expires_in || !self.is_alone;
            assert!(comes_in_time, "seed {seed}: refresh comes too late");
        }
        self.check_nested(home, reply);
    }

    /// Checks that a lease ends no later than its server's own lease on record at the parent, which grants ended
    /// capacity to other servers.
    fn check_nested(&self, home: usize, reply: &GetCapacityReply) {
        let Some(parent) = self.world.servers[home].parent else {
            return;
        };
        let (name, now) = (&self.world.servers[home].name, self.world.now);
        let above = &self.world.servers[parent];
        let children = above.node.child_snapshots(&resource(), now);
        // A parent that is down or new has no record of it.
        let own = children.iter().find(|child| child.holder.name == *name);
        let Some(own) = own.filter(|_| above.up) else {
            return;
        };
        // A child may report more than the capacity after it was lowered, until it knows that. A parent does not
        // believe such a report while it learns, or if it learned at the ask and had no lease yet.
        let capacity = self.snapshot(parent).map_or(0.0, |it| it.capacity);
        let says = own.child.as_ref().and_then(|child| child.has);
        let is_fresh = matches!(
            own.why.reason,
            Reason::Learning | Reason::WaitsForParent | Reason::WaitsForMark
        );
        if is_fresh && says.is_some_and(|has| has > capacity) {
            return;
        }
        for lease in &reply.leases {
            let ends = now + lease.expires_in;
            assert!(
                ends <= own.reserved_until || lease.capacity.is_zero(),
                "seed {}, at {now}, with {} in all until {}: {lease:?} of {name} ends at {ends}, outlives {own:?}; \
                 its parent has {:#?}",
                self.seed,
                self.setup.capacity,
                self.excused_until,
                self.snapshot(parent)
            );
        }
    }
}
