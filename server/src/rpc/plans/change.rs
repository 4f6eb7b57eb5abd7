//! What a plan changes for the clients of a server: counts, and those that lose or gain most.

use std::time::Duration;

use doorward_engine::division::Share;
use doorward_engine::messages::LeaseSnapshot;
use doorward_engine::time::Time;
use doorward_proto::admin::v1::{PlannedHolder, PlannedResource};

use crate::status::model::{count, millis};

/// Holders listed of those that lose or gain most.
const EXTREMES_MAX: usize = 10;

/// Part of an amount that people take for a rounding.
const ROUNDING: f64 = 1e-6;

/// What changes for the holders of a resource.
#[derive(Default)]
pub(super) struct Changes {
    losing: Extremes,
    gaining: Extremes,
    same: usize,
    /// Sum of what holders lose, child servers included.
    lost: f64,
    /// Latest end of a lease of those that lose, child servers included, from now.
    shrinks_max: Option<Duration>,
}

/// Clients that lose, or those that gain.
#[derive(Default)]
struct Extremes {
    count: usize,
    /// Longest refresh interval of them.
    interval: Option<Duration>,
    /// Those that change most, and by how much, in falling order.
    most: Vec<(f64, PlannedHolder)>,
}

impl Changes {
    /// Adds a client.
    pub(super) fn add(&mut self, lease: &LeaseSnapshot, planned: Share, now: Time) {
        self.add_loss(lease, planned, now);
        match change(lease, planned) {
            // A process that was replaced only waits for the end of its lease.
            0.0 if lease.wants() == 0.0 => {}
            0.0 => self.same += 1,
            less if less < 0.0 => self.losing.add(-less, lease, planned),
            more => self.gaining.add(more, lease, planned),
        }
    }

    /// Adds what a holder loses, and until when it may go on as it is.
    pub(super) fn add_loss(&mut self, lease: &LeaseSnapshot, planned: Share, now: Time) {
        let change = change(lease, planned);
        if change < 0.0 {
            self.lost -= change;
            let lasts = lease.reserved_until.since(now);
            self.shrinks_max = self.shrinks_max.max(Some(lasts));
        }
    }

    /// Leases of that length may be granted until the change is made.
    pub(super) fn write_to(self, planned: &mut PlannedResource, lease_length: Duration) {
        planned.losing_count = count(self.losing.count);
        planned.gaining_count = count(self.gaining.count);
        planned.same_count = count(self.same);
        planned.lost = self.lost;
        planned.shrinks_in_ms = self.losing.interval.map(millis);
        planned.grows_in_ms = self.gaining.interval.map(millis);
        planned.shrinks_max_ms = self.shrinks_max.map(|it| millis(it.max(lease_length)));
        let holders = |it: Extremes| it.most.into_iter().map(|(_, holder)| holder).collect();
        planned.losing = holders(self.losing);
        planned.gaining = holders(self.gaining);
    }
}

impl Extremes {
    fn add(&mut self, by: f64, lease: &LeaseSnapshot, planned: Share) {
        self.count += 1;
        self.interval = self.interval.max(Some(lease.refresh_interval));
        let place = self.most.partition_point(|(most, _)| *most >= by);
        if place < EXTREMES_MAX {
            self.most.insert(place, (by, holder(lease, planned)));
            self.most.truncate(EXTREMES_MAX);
        }
    }
}

/// Returns a client and what it would have.
pub(super) fn holder(lease: &LeaseSnapshot, planned: Share) -> PlannedHolder {
    PlannedHolder {
        holder: lease.holder.name.to_string(),
        wants: lease.wants(),
        granted: lease.granted,
        planned: planned.amount.get(),
        why: planned.reason.to_string(),
    }
}

/// Returns by how much the share of a holder changes: what it has may be on its way to its present share. 0 for
/// roundings.
fn change(lease: &LeaseSnapshot, planned: Share) -> f64 {
    let planned = planned.amount.get();
    let change = planned - lease.share;
    match change.abs() <= ROUNDING * planned.max(lease.share) {
        true => 0.0,
        false => change,
    }
}
