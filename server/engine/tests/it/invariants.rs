//! The invariants of `docs/algorithms.md`, each under random interleavings of requests, losses,
//! delays, duplicates, releases, expiries, crashes, template changes and mastership changes.
//!
//! Each run is drawn from a seed, which a failure prints. `DOORWARD_CASES=10000 cargo test
//! --release -p doorward-engine --test it invariants` runs more of them, and `DOORWARD_SEED=7` runs
//! one.

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::division::{Bound, Reason};
use doorward_engine::messages::{
    GetCapacity, Has, LeaseSnapshot, ReleaseCapacity, ResourceSnapshot,
};
use doorward_engine::templates::{AlgorithmKind, Shrink};

use crate::asking::{amount, ask, do_due, holder, release_request, request};
use crate::story::by_chance::{ByChance, resource, sharing};
use crate::story::chance::{Chance, seeds};
use crate::whole::Whole as _;

fn rough(seed: u64) -> ByChance {
    ByChance::alone(seed, sharing(seed), Shrink::Acknowledged)
}

/// Returns a world after a time with faults, and then a time without any.
fn healed(seed: u64, kind: AlgorithmKind) -> ByChance {
    let mut play = ByChance::alone(seed, kind, Shrink::Acknowledged);
    play.steps(200);
    play.heal();
    play
}

#[test]
fn no_overshoot_and_bounded_gets_and_nested_leases() {
    // The world checks all three at each step.
    let mut answered = 0;
    for seed in seeds(100) {
        let mut play = rough(seed);
        play.steps(1000);
        let answers = play.world.clients.iter().map(|client| client.answers);
        answered += answers.sum::<u64>();
    }
    assert!(answered > 10_000, "only {answered} requests were answered");
}

#[test]
fn no_overshoot_holds_for_the_reserved_sum_also_with_immediate_shrink() {
    for seed in seeds(50) {
        let mut play = ByChance::alone(seed, sharing(seed), Shrink::Immediate);
        for _ in 0..500 {
            play.step();
            if let Some(snapshot) = play.snapshot(0) {
                let fits = snapshot.reserved <= play.setup.capacity();
                let excused = play.world.now < play.excused_until;
                assert!(fits || excused, "seed {seed}: {snapshot:?}");
            }
        }
    }
}

#[test]
fn an_algorithm_without_a_total_gives_each_client_its_own() {
    for seed in seeds(20) {
        for kind in [AlgorithmKind::NoAlgorithm, AlgorithmKind::Static] {
            let play = healed(seed, kind);
            for client in &play.world.clients {
                let expected = match kind {
                    AlgorithmKind::Static => client.wants.min(play.setup.capacity),
                    _ => client.wants,
                };
                let (has, _) = client.lease.unwrap();
                assert_eq!(has, amount(expected), "seed {seed}: {client:?}");
            }
        }
    }
}

#[test]
fn a_snapshot_is_bounded_and_agrees_with_itself() {
    let mut seen = 0;
    for seed in seeds(100) {
        let mut play = rough(seed);
        for _ in 0..300 {
            play.step();
            let now = play.world.now;
            let rows = play.root().lease_snapshots(&resource(), 100, now);
            for row in &rows {
                let possible = 0.0..=row.wants();
                let bounded = possible.contains(&row.granted) && possible.contains(&row.share);
                let is_reserved = row.granted <= row.reserved;
                assert!(bounded && is_reserved, "seed {seed}: {row:?}");
            }
            let Some(all) = play.snapshot(0) else {
                continue;
            };
            let is_decided = |row: &LeaseSnapshot| {
                let undecided = [
                    Reason::Learning,
                    Reason::TemplateGone,
                    Reason::WaitsForParent,
                    Reason::WaitsForMark,
                ];
                !undecided.contains(&row.why.reason)
            };
            if all.kind.promises_total()
                && all.learning_remaining.is_none()
                && !rows.is_empty()
                && rows.iter().all(is_decided)
            {
                seen += 1;
                check_agreement(&all, &rows, seed);
            }
        }
    }
    assert!(seen > 1_000, "{seen}");
}

/// Checks that shares add up, and that each row explains its lease.
fn check_agreement(all: &ResourceSnapshot, rows: &[LeaseSnapshot], seed: u64) {
    let (capacity, wants) = (all.capacity, all.wants);
    let shares: f64 = rows.iter().map(|row| row.share).sum();
    // The unreported part is divided only as long as its holders may report.
    let rounding = 1e-9 * capacity.max(1.0);
    let adds_up = |divided: f64| (shares - divided.min(wants)).abs() <= rounding;
    assert!(
        adds_up(capacity) || adds_up(capacity - all.unreported),
        "seed {seed}: shares add up to {shares}, and {} of {capacity} is not reported: {rows:#?}",
        all.unreported,
    );
    for row in rows {
        let beyond = row.granted - row.share;
        let agrees = match row.why.bound {
            Bound::Share => beyond.abs() <= 1e-9 * capacity.max(row.share),
            Bound::ShrinksNext => beyond > 0.0,
            Bound::Unreported => beyond <= 1e-9 * capacity,
            _ => beyond < 0.0,
        };
        let says_enough = row.why.reason == Reason::EnoughForAll;
        let is_enough = wants <= capacity * (1.0 + 1e-9);
        assert!(
            agrees && (is_enough || !says_enough),
            "seed {seed}: {row:?}"
        );
    }
}

#[test]
fn work_conserving_and_max_min() {
    for seed in seeds(60) {
        let mut play = healed(seed, sharing(seed));
        play.step_demand();
        play.run_until(play.world.now + 2 * play.setup.refresh);
        play.check_settled("two refresh intervals after a step of demand");
    }
}

#[test]
fn learning_is_safe() {
    for seed in seeds(60) {
        let mut play = healed(seed, sharing(seed));
        let before = play.uses();
        play.lose(0);
        play.run_until(play.world.now + play.chance.clone().span(Duration::from_secs(3)));
        play.win(0);
        // A liar comes first, and claims the largest amount.
        let everything = ask(resource(), 0, Amount::MAX, Some(Has::untimed(Amount::MAX)));
        let liar = request(holder("liar"), vec![everything]);
        let lies = play.chance.happens(0.5);
        if lies {
            let reply = play.serve(&liar);
            assert!(reply.leases[0].capacity.get() <= play.setup.capacity());
            // Honest holders may lose the amount that the liar got: the capacity does not grow.
            play.excuse();
        }
        let end = play.world.now + play.setup.lease;
        while play.world.now < end {
            play.step();
            if lies && play.chance.happens(0.1) {
                play.serve(&liar);
            }
            let Some(snapshot) = play.snapshot(0) else {
                continue;
            };
            let most = snapshot.granted.max(snapshot.reserved);
            assert!(most <= play.setup.capacity(), "seed {seed}: {snapshot:?}");
            if snapshot.learning_remaining.is_some() && !lies {
                for (has, before) in play.uses().iter().zip(&before) {
                    assert!(has >= before, "seed {seed}: had {before}, has {has}");
                }
            }
        }
    }
}

#[test]
fn release_frees() {
    for seed in seeds(60) {
        let mut play = healed(seed, AlgorithmKind::FairShare);
        let (capacity, now) = (play.setup.capacity(), play.world.now);
        for number in 0..play.world.clients.len() {
            let release = play.world.clients[number].release();
            play.root().handle_release_capacity(&release, now);
            play.root().assert_consistent();
        }
        let left = play.snapshot(0).filter(|_| play.marks.is_none());
        assert_eq!(left, None, "seed {seed}: no holder is left");
        // The next request may get the whole capacity.
        let mut all = play.world.clients[0].request(Duration::from_secs(2), now);
        all.asks[0].wants = amount(capacity);
        let reply = play.serve(&all);
        assert_eq!(reply.leases[0].capacity.get(), capacity, "seed {seed}");
        // The same holds after that lease has expired.
        let later = now + play.setup.lease;
        do_due(play.root(), later);
        let left = play.root().resource_snapshot(&resource(), later);
        let left = left.filter(|_| play.marks.is_none());
        assert_eq!(left, None, "seed {seed}");
    }
}

#[test]
fn a_late_duplicate_acknowledges_and_releases_nothing() {
    for seed in seeds(30) {
        let mut play = healed(seed, sharing(seed));
        let now = play.world.now;
        let before = play.root().snapshot(now).resources;
        for number in 0..play.world.clients.len() {
            let client = &play.world.clients[number];
            let (name, incarnation) = (client.name.clone(), client.incarnation);
            let sequence = Some(1 + Chance(seed).bits() % (client.sequence() - 1));
            let nothing = ask(resource(), 3, Amount::ZERO, None);
            let old = GetCapacity {
                incarnation,
                sequence,
                ..request(name.clone(), vec![nothing])
            };
            play.root().handle_get_capacity(&old, now);
            let old = ReleaseCapacity {
                incarnation,
                sequence,
                ..release_request(name, vec![resource()])
            };
            play.root().handle_release_capacity(&old, now);
        }
        let after = play.root().snapshot(now).resources;
        assert_eq!(after, before, "seed {seed}");
    }
}

#[test]
fn deterministic() {
    for seed in seeds(20) {
        let run = || {
            let mut play = rough(seed);
            play.steps(800);
            play.history
        };
        let history = run();
        assert!(!history.is_empty());
        assert_eq!(history, run(), "seed {seed}");
    }
}
