//! Which wait costs what: of what could be used and is not, whose turn it is.
//!
//! While something that could be used is not, somebody wants more than it may use, and waits for
//! something: for its own gap to be over, for an answer, for others. At every instant what is missing is
//! attributed to these waits, in proportion to how much is missing to the clients in each. Nobody misses
//! more than the whole capacity, which is all that it could be given.
//!
//! What is kept is a sum for each wait, so that a change costs the same however many clients there are.
//! Clients who have their share and want far more stand in these sums beside those who wait for a little:
//! where most want far more than there is, *share* is large because it is long, not because it is slow.

use doorward_engine::amount::Amount;
use doorward_engine::exact_sum::ExactSum;
use doorward_engine::template::{Algorithm, AlgorithmKind};
use doorward_engine::time::Time;

use crate::checker::{ClientStanding, Watched, amount};
use crate::recording::Waits as Parts;

/// What a client that wants more than it may use waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wait {
    /// It asked a moment ago, and keeps its own gap before it says that it wants something else.
    Gap,
    /// Its request, or the answer, is under way.
    Answer,
    /// The server answered without a decision, since it had just decided about this client.
    Floor,
    /// Others hold what it is to get, until they have shrunk.
    Others,
    /// The server, or one above it, is in learning mode.
    Learning,
    /// The server has nothing to give yet, or refused.
    #[default]
    Refused,
    /// It was answered that it has its share, and does not know of more before it asks again.
    Share,
    /// No server answers.
    NoServer,
}

/// How many waits there are.
const COUNT: usize = 8;

/// Sums over all clients, and what came of them so far.
#[derive(Debug, Default)]
pub(super) struct WaitSums {
    /// What is missing to the clients in each wait.
    missing: [ExactSum; COUNT],
    /// What could be used and was not: parts of it, times seconds.
    lost: [f64; COUNT],
}

impl WaitSums {
    /// Somebody in that wait misses something else than before.
    pub(super) fn replace(&mut self, wait: Wait, before: Amount, after: Amount) {
        if let Some(sum) = self.missing.get_mut(wait as usize) {
            sum.replace(before, after);
        }
    }

    /// Nobody misses anything: all are put in again.
    pub(super) fn clear(&mut self) {
        self.missing = [ExactSum::ZERO; COUNT];
    }

    /// A part of what could be used was not, for some time until now: parts times seconds.
    pub(super) fn pass(&mut self, lost: f64) {
        if lost <= 0.0 {
            return;
        }
        // Most are nothing, most of the time.
        let missing = self.missing.each_ref().map(|sum| match sum.is_zero() {
            true => 0.0,
            false => sum.rounded_down(),
        });
        let all: f64 = missing.iter().sum();
        if all <= 0.0 {
            // Of a rounding there is nobody to blame.
            return;
        }
        for (sum, missing) in self.lost.iter_mut().zip(missing) {
            *sum += lost * missing / all;
        }
    }

    /// Parts of what could be used in that many seconds.
    pub(super) fn parts(&self, seconds: f64) -> Parts {
        let part = |wait: Wait| match self.lost.get(wait as usize) {
            Some(lost) if seconds > 0.0 => lost / seconds,
            _ => 0.0,
        };
        Parts {
            gap: part(Wait::Gap),
            answer: part(Wait::Answer),
            floor: part(Wait::Floor),
            others: part(Wait::Others),
            learning: part(Wait::Learning),
            refused: part(Wait::Refused),
            share: part(Wait::Share),
            no_server: part(Wait::NoServer),
        }
    }
}

impl ClientStanding {
    /// What a client misses.
    pub(super) fn missing(&self, algorithm: &Algorithm, capacity: f64) -> Amount {
        let most = match algorithm.kind {
            AlgorithmKind::NoAlgorithm => self.wish.wants,
            _ => self.wish.wants.min(capacity),
        };
        amount((most - self.lease.get()).max(0.0))
    }
}

impl Watched {
    /// If a client wants more than it may use, it waits for this.
    pub(crate) fn note_wait(&mut self, client: usize, wait: Wait, now: Time) {
        let is_new = |account: &&super::Account| account.wait != wait;
        if self.accounts.get(client).filter(is_new).is_none() {
            return;
        }
        self.advance(now);
        let capacity = self.capacity();
        if let (Some(standing), Some(account)) =
            (self.standings.get(client), self.accounts.get_mut(client))
        {
            let missing = standing.missing(&self.algorithm, capacity);
            self.waits.replace(account.wait, missing, Amount::ZERO);
            self.waits.replace(wait, Amount::ZERO, missing);
            account.wait = wait;
        }
    }

    /// What clients miss is something else for all of them.
    pub(super) fn weigh_waits(&mut self) {
        let capacity = self.capacity();
        self.waits.clear();
        for (standing, account) in self.standings.iter().zip(&self.accounts) {
            let missing = standing.missing(&self.algorithm, capacity);
            self.waits.replace(account.wait, Amount::ZERO, missing);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_split_by_how_much_is_missing_in_each_wait() {
        let mut waits = WaitSums::default();
        // Nothing is lost to nobody.
        waits.pass(1.0);
        waits.replace(Wait::Gap, Amount::ZERO, amount(30.0));
        waits.replace(Wait::Others, Amount::ZERO, amount(10.0));
        waits.pass(2.0);
        waits.replace(Wait::Gap, amount(30.0), Amount::ZERO);
        waits.pass(1.0);
        let expected = Parts {
            gap: 0.15,
            others: 0.15,
            ..Parts::NONE
        };
        assert_eq!(waits.parts(10.0), expected);
        assert_eq!(waits.parts(0.0), Parts::NONE);
    }
}
