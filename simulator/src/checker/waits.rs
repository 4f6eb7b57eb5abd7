//! Splits unused capacity by what clients wait for at the time.
//!
//! While capacity is unused, some client wants more than it may use and waits: for its own gap to
//! end, for an answer, or for other clients. At every instant this file attributes the unused part
//! to these waits, in proportion to what the clients in each wait miss. A client never misses more
//! than the whole capacity.
//!
//! It keeps one sum for each wait, so a change costs the same with any number of clients. Clients
//! that have their share and want far more count beside clients that wait for a little. Where
//! demand far exceeds the capacity, *share* is therefore large because it lasts, not because it is
//! slow.

use doorward_engine::amount::Amount;
use doorward_engine::exact_sum::ExactSum;
use doorward_engine::templates::{Algorithm, AlgorithmKind};
use doorward_engine::time::Time;

use crate::checker::{ClientStanding, Watched, amount};
use crate::recording::{Wait, Waits, part};

/// Number of waits.
const COUNT: usize = Wait::ALL.len();

/// Sums over all clients, and the attributed loss so far.
#[derive(Debug, Default)]
pub(super) struct WaitSums {
    /// Amount that the clients in each wait miss.
    missing: [ExactSum; COUNT],
    /// Unused part of what could be used, in seconds.
    lost: [f64; COUNT],
}

impl WaitSums {
    /// Updates what a client in that wait misses.
    pub(super) fn replace(&mut self, wait: Wait, before: Amount, after: Amount) {
        if let Some(sum) = self.missing.get_mut(wait as usize) {
            sum.replace(before, after);
        }
    }

    /// Resets the sums, so that all clients can be added again.
    pub(super) fn clear(&mut self) {
        self.missing = [ExactSum::ZERO; COUNT];
    }

    /// Attributes the part of what could be used that stayed unused until now, in seconds.
    pub(super) fn pass(&mut self, lost: f64) {
        if lost <= 0.0 {
            return;
        }
        // Most sums are zero most of the time.
        let missing = self.missing.each_ref().map(|sum| match sum.is_zero() {
            true => 0.0,
            false => sum.rounded_down(),
        });
        let all: f64 = missing.iter().sum();
        if all <= 0.0 {
            // The loss is a rounding error.
            return;
        }
        for (sum, missing) in self.lost.iter_mut().zip(missing) {
            *sum += lost * missing / all;
        }
    }

    /// Returns the parts of what could be used in that many seconds.
    pub(super) fn parts(&self, seconds: f64) -> Waits {
        let lost = self.lost.map(|lost| part(lost, seconds, 0.0));
        Wait::ALL.into_iter().zip(lost).collect()
    }
}

impl ClientStanding {
    /// Returns what a client misses.
    pub(super) fn missing(&self, algorithm: &Algorithm, capacity: f64) -> Amount {
        let most = match algorithm.kind {
            AlgorithmKind::NoAlgorithm => self.wish.wants,
            _ => self.wish.wants.min(capacity),
        };
        amount((most - self.lease.get()).max(0.0))
    }
}

impl Watched {
    /// Notes the reason for which a client waits, if it wants more than it may use.
    pub(crate) fn note_wait(&mut self, client: u32, wait: Wait, now: Time) {
        if self.accounts[client].wait == wait {
            return;
        }
        self.advance(now);
        let missing = self.standings[client].missing(&self.algorithm, self.capacity());
        let account = &mut self.accounts[client];
        self.waits.replace(account.wait, missing, Amount::ZERO);
        self.waits.replace(wait, Amount::ZERO, missing);
        account.wait = wait;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_split_by_the_misses_of_clients_in_each_wait() {
        let mut waits = WaitSums::default();
        // Without clients the loss is attributed to none.
        waits.pass(1.0);
        waits.replace(Wait::Gap, Amount::ZERO, amount(30.0));
        waits.replace(Wait::Others, Amount::ZERO, amount(10.0));
        waits.pass(2.0);
        waits.replace(Wait::Gap, amount(30.0), Amount::ZERO);
        waits.pass(1.0);
        for (wait, part) in waits.parts(10.0) {
            let is_some = matches!(wait, Wait::Gap | Wait::Others);
            assert_eq!(part, if is_some { 0.15 } else { 0.0 });
        }
        assert!(waits.parts(0.0).values().all(|part| *part == 0.0));
    }
}
