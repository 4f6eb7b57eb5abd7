//! Who gets less than they want: of everybody together, and of each client.
//!
//! A client *gets* the smaller of what it wants and what its lease lets it use; it is *short* while
//! that is less than it wants by more than a hundredth. Whether nobody could have had more, or
//! somebody else had it, is told by what the ideal would have given.

use crate::recording::ClientFigures;

/// What is too little to count, as a part of what is wanted.
const NEGLIGIBLE: f64 = 0.01;

/// The sums of one client.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    wanted: f64,
    got: f64,
    ideal: f64,
    /// Samples in which it wanted something, and in which it was short.
    wanting: u32,
    short: u32,
}

/// What is known of a client at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) wants: f64,
    pub(super) lease: f64,
    pub(super) ideal: f64,
}

/// What averages are made of.
#[derive(Debug, Default)]
pub(super) struct Shortage {
    clients: Vec<Sums>,
    samples: u32,
    /// In which more was wanted than there was.
    scarce: u32,
}

impl Shortage {
    /// Another sample, of all clients in their order. It counts if all is settled by then. Returns
    /// how many clients want something, and how many of these are short.
    pub(super) fn note(
        &mut self,
        clients: impl Iterator<Item = At>,
        capacity: f64,
        counts: bool,
    ) -> (usize, usize) {
        let (mut wanting, mut short, mut demand) = (0, 0, 0.0);
        for (number, at) in clients.enumerate() {
            let got = at.wants.min(at.lease);
            let wants = at.wants > 0.0;
            let is_short = wants && got < at.wants * (1.0 - NEGLIGIBLE);
            wanting += usize::from(wants);
            short += usize::from(is_short);
            demand += at.wants;
            if !counts {
                continue;
            }
            if number == self.clients.len() {
                self.clients.push(Sums::default());
            }
            if let Some(sums) = self.clients.get_mut(number) {
                sums.wanted += at.wants;
                sums.got += got;
                sums.ideal += at.wants.min(at.ideal);
                sums.wanting += u32::from(wants);
                sums.short += u32::from(is_short);
            }
        }
        if counts {
            self.samples += 1;
            self.scarce += u32::from(demand > capacity);
        }
        (wanting, short)
    }

    /// Of all that was wanted, the part that clients got. Of nothing they got all.
    pub(super) fn demand_met(&self) -> f64 {
        let sum = |of: fn(&Sums) -> f64| self.clients.iter().map(of).sum::<f64>();
        let wanted = sum(|sums| sums.wanted);
        if wanted > 0.0 {
            sum(|sums| sums.got) / wanted
        } else {
            1.0
        }
    }

    /// Of all the times at which clients wanted something, the part at which they were short.
    pub(super) fn clients_short(&self) -> f64 {
        let sum = |of: fn(&Sums) -> u32| self.clients.iter().map(|s| f64::from(of(s))).sum::<f64>();
        sum(|sums| sums.short) / sum(|sums| sums.wanting).max(1.0)
    }

    /// The part of the time in which more was wanted than there was.
    pub(super) fn scarce(&self) -> f64 {
        f64::from(self.scarce) / f64::from(self.samples.max(1))
    }

    /// How one client did; its names are left to whoever knows them.
    pub(super) fn of_client(&self, number: usize) -> ClientFigures {
        let sums = self.clients.get(number).copied().unwrap_or_default();
        let samples = f64::from(self.samples.max(1));
        ClientFigures {
            wanted: sums.wanted / samples,
            got: sums.got / samples,
            ideal: sums.ideal / samples,
            short: f64::from(sums.short) / f64::from(sums.wanting.max(1)),
            ..ClientFigures::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(wants: f64, lease: f64) -> At {
        At {
            wants,
            lease,
            ideal: 5.0,
        }
    }

    #[test]
    fn a_client_is_short_while_it_has_less_than_it_wants() {
        let mut shortage = Shortage::default();
        // Before all is settled nothing counts.
        let first = [at(10.0, 0.0), at(4.0, 0.0)];
        assert_eq!(shortage.note(first.into_iter(), 10.0, false), (2, 2));
        assert_eq!(shortage.demand_met(), 1.0);
        // One that wants nothing is not short; more than is wanted is not got.
        let second = [at(10.0, 5.0), at(0.0, 5.0)];
        assert_eq!(shortage.note(second.into_iter(), 10.0, true), (1, 1));
        let third = [at(10.0, 9.95), at(4.0, 5.0)];
        assert_eq!(shortage.note(third.into_iter(), 10.0, true), (2, 0));
        let met = (5.0 + 9.95 + 4.0) / 24.0;
        assert!((shortage.demand_met() - met).abs() < 1e-12);
        assert!((shortage.clients_short() - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(shortage.scarce(), 0.5);
        let one = shortage.of_client(0);
        assert_eq!((one.wanted, one.ideal, one.short), (10.0, 5.0, 0.5));
        let other = shortage.of_client(1);
        assert_eq!((other.wanted, other.got, other.short), (2.0, 2.0, 0.0));
        // Nobody there.
        assert_eq!(shortage.of_client(2).wanted, 0.0);
    }
}
