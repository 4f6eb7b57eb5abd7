//! Counted wants of clients: a template may limit what one client can have.

use doorward_engine::templates::AlgorithmKind;
use doorward_engine::time::Time;

use crate::checker::{Watched, amount};

impl Watched {
    /// Notes changed wants of a client.
    pub fn note_wants(&mut self, client: u32, wants: f64, now: Time) {
        self.accounts[client].asked = wants;
        let wants = self.wants_max.map_or(wants, |most| wants.min(most));
        let standing = self.standings[client];
        let before = standing.wish.wants;
        if wants == before {
            return;
        }
        let mut after = standing;
        after.wish.wants = wants;
        self.replace(client, after, now);
        let capacity = self.capacity();
        self.sums.wishes.replace(amount(before), amount(wants));
        let capped = [before, wants].map(|wants| amount(wants.min(capacity)));
        self.sums.capped.replace(capped[0], capped[1]);
        self.starvation
            .note_wants(standing.wish.priority, amount(before), amount(wants));
        if self.algorithm.kind == AlgorithmKind::PriorityBands
            || self.starvation.since(standing.wish.priority).is_none()
        {
            self.look_at_bands(now);
        }
        let change = (wants - before).abs();
        self.convergence.note_change(change, capacity, now);
        self.oscillation.note_unrest(&self.algorithm, now);
    }
}
