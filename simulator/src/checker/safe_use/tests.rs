//! Tests of the use in safe mode against the safe capacities.

use super::*;

/// Clients of a resource with capacity 100, and their safe capacities.
struct Clients {
    sums: SafeUse,
}

impl Clients {
    fn new(count: usize) -> Self {
        let mut sums = SafeUse::default();
        (0..count).for_each(|_| sums.join());
        Self { sums }
    }

    /// Answers a client at once.
    fn inform(&mut self, client: u32, safe: f64, at: u64) {
        let at = Time::from_secs(at);
        self.sums.note_safe_capacity(client, safe, at, at);
        self.sums.note_use(client, 1_000.0, Amount::ZERO);
        self.sums.look(100.0, at);
    }

    #[track_caller]
    fn check(&self, worst: f64) {
        assert_eq!(self.sums.worst.value, worst);
    }
}

#[test]
fn safe_capacities_are_judged_once_all_clients_were_informed_since_the_last_join() {
    let mut all = Clients::new(3);
    all.inform(0, 100.0, 0);
    all.inform(0, 100.0, 5);
    all.check(1.0);
    // Until all clients are informed, their safe capacities may add up to more.
    all.inform(1, 50.0, 10);
    all.inform(1, 50.0, 15);
    all.inform(0, 100.0, 10);
    all.check(1.0);
    all.inform(0, 50.0, 20);
    all.check(1.0);
    // Too large a safe capacity after all are informed is found.
    all.inform(2, 34.0, 30);
    for (client, at) in [(0, 35), (1, 36), (2, 37)] {
        all.inform(client, 36.0, at);
    }
    all.check(1.08);
}

#[test]
fn clients_that_left_do_not_count_against_the_others() {
    let mut all = Clients::new(2);
    for (client, at) in [(0, 0), (1, 1), (0, 6), (1, 7)] {
        all.inform(client, 50.0, at);
    }
    all.check(1.0);
    // The server has forgotten client 1 and gives client 0 more. Then client 1 comes back.
    all.sums.note_lapse(1);
    all.inform(0, 100.0, 20);
    all.check(1.0);
    all.inform(1, 50.0, 30);
    all.inform(0, 50.0, 35);
    all.inform(1, 50.0, 36);
    all.check(1.0);
    all.sums.note_gone(1);
    all.sums.note_use(1, 0.0, Amount::ZERO);
    all.inform(0, 100.0, 40);
    all.check(1.0);
    all.inform(0, 101.0, 45);
    all.check(1.01);
}

#[test]
fn without_a_safe_limit_the_wants_count() {
    let mut all = Clients::new(1);
    all.inform(0, f64::INFINITY, 0);
    all.sums.note_use(0, 30.0, Amount::new(30.0).unwrap());
    all.inform(0, f64::INFINITY, 5);
    all.sums.note_use(0, 30.0, Amount::new(30.0).unwrap());
    all.sums.worst = Extreme::default();
    all.sums.is_changed = true;
    all.sums.look(100.0, Time::from_secs(6));
    all.check(0.3);
    assert_eq!(all.sums.peak, 0.3);
}
