//! The invariants of `docs/algorithms.md`, each under random interleavings of requests, losses,
//! delays, duplicates, releases, expiries, crashes, template changes and mastership changes.
//!
//! Every run is drawn from a seed, which a failure prints. `DOORWARD_CASES=10000 cargo test
//! --release -p doorward-engine --test it invariants` runs more of them.

use std::time::Duration;

use doorward_engine::algorithm::{Bound, Reason};
use doorward_engine::amount::Amount;
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::request::{GetCapacity, Has, ReleaseCapacity};
use doorward_engine::snapshot::LeaseSnapshot;
use doorward_engine::template::{AlgorithmKind, Shrink};

use crate::asking::{ask, holder, release_request, request, served};
use crate::story::by_chance::{ByChance, resource};
use crate::story::chance::Chance;
use crate::story::client::{Client, EARLY_GAP};
use crate::story::setup::Faults;

const SHARING: [AlgorithmKind; 3] = [
    AlgorithmKind::FairShare,
    AlgorithmKind::ProportionalShare,
    AlgorithmKind::PriorityBands,
];

fn seeds(cases: u64) -> impl Iterator<Item = u64> {
    let cases = std::env::var("DOORWARD_CASES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(cases);
    1..=cases
}

fn kind_of(seed: u64) -> AlgorithmKind {
    SHARING[usize::try_from(seed % 3).unwrap()]
}

/// A world that had a rough time, and then some quiet.
fn healed(seed: u64, kind: AlgorithmKind) -> ByChance {
    let mut play = ByChance::alone(seed, kind, Shrink::Acknowledged);
    for _ in 0..200 {
        play.step();
    }
    heal(&mut play);
    play
}

fn heal(play: &mut ByChance) {
    play.faults = Faults::NONE;
    if !play.setup.exists {
        play.setup.exists = true;
        play.world.servers[0]
            .node
            .handle_templates(play.setup.templates(), play.world.now);
    }
    if play.world.servers[0].node.mastership(play.world.now) == &Mastership::Unknown {
        play.win(0);
    }
    for client in &mut play.world.clients {
        if client.crashed {
            client.restart(play.world.now);
        }
    }
    // Every lease from before has ended, and every learning mode.
    play.run_until(play.world.now + Duration::from_secs(200));
}

/// Σ of what clients have, and Σ of what they want.
fn totals(play: &ByChance) -> (f64, f64) {
    let has = play
        .world
        .clients
        .iter()
        .map(|client| client.uses(play.world.now).get())
        .sum();
    (
        has,
        play.world.clients.iter().map(|client| client.wants).sum(),
    )
}

#[test]
fn no_overshoot_and_bounded_gets_and_nested_leases() {
    // The world checks all three at every step.
    let mut answered = 0;
    for seed in seeds(300) {
        let mut play = ByChance::alone(seed, kind_of(seed), Shrink::Acknowledged);
        for _ in 0..1000 {
            play.step();
        }
        answered += play
            .world
            .clients
            .iter()
            .map(|client| client.answers)
            .sum::<u64>();
    }
    assert!(answered > 10_000, "only {answered} requests were answered");
}

#[test]
fn no_overshoot_holds_for_what_is_reserved_also_with_immediate_shrink() {
    for seed in seeds(50) {
        let mut play = ByChance::alone(seed, kind_of(seed), Shrink::Immediate);
        for _ in 0..500 {
            play.step();
            if let Some(snapshot) = play.snapshot(0) {
                let fits = snapshot.reserved <= play.setup.capacity();
                assert!(
                    fits || play.world.now < play.excused_until,
                    "seed {seed}: {snapshot:?}"
                );
            }
        }
    }
}

#[test]
fn what_promises_no_total_gives_everyone_its_own() {
    for seed in seeds(40) {
        for kind in [AlgorithmKind::NoAlgorithm, AlgorithmKind::Static] {
            let play = healed(seed, kind);
            for client in &play.world.clients {
                let expected = match kind {
                    AlgorithmKind::Static => client.wants.min(play.setup.capacity),
                    _ => client.wants,
                };
                let has = client.lease.unwrap().0.get();
                assert_eq!(
                    has,
                    Amount::new(expected).unwrap().get(),
                    "seed {seed}: {client:?}"
                );
            }
        }
    }
}

#[test]
fn bounded_gets() {
    for seed in seeds(100) {
        let mut play = ByChance::alone(seed, kind_of(seed), Shrink::Acknowledged);
        for _ in 0..300 {
            play.step();
            for lease in
                play.world.servers[0]
                    .node
                    .lease_snapshots(&resource(), 100, play.world.now)
            {
                let bounded = (0.0..=lease.wants).contains(&lease.granted);
                assert!(
                    bounded && lease.granted <= lease.reserved,
                    "seed {seed}: {lease:?}"
                );
                assert!(
                    (0.0..=lease.wants).contains(&lease.share),
                    "seed {seed}: {lease:?}"
                );
            }
        }
    }
}

#[test]
fn what_is_shown_at_one_moment_agrees_with_itself() {
    let mut seen = 0;
    for seed in seeds(100) {
        let kind = kind_of(seed);
        let mut play = ByChance::alone(seed, kind, Shrink::Acknowledged);
        for _ in 0..300 {
            play.step();
            let Some(all) = play.snapshot(0) else {
                continue;
            };
            let rows = play.world.servers[0]
                .node
                .lease_snapshots(&resource(), 100, play.world.now);
            if !all.kind.promises_total() || all.learning_remaining.is_some() {
                continue;
            }
            let decided = |row: &&LeaseSnapshot| {
                let reason = row.why.reason;
                !matches!(reason, Reason::Learning | Reason::TemplateGone)
            };
            if rows.is_empty() || rows.iter().filter(decided).count() < rows.len() {
                continue;
            }
            seen += 1;
            let shares: f64 = rows.iter().map(|row| row.share).sum();
            let expected = all.capacity.min(all.wants);
            assert!(
                (shares - expected).abs() <= 1e-9 * expected.max(1.0),
                "seed {seed}: shares add up to {shares}, not {expected}: {rows:#?}"
            );
            for row in &rows {
                let is_share = row.granted - row.share;
                let says = row.why.bound;
                let agrees = match says {
                    Bound::Share => is_share.abs() <= 1e-9 * all.capacity.max(row.share),
                    Bound::ShrinksNext => is_share > 0.0,
                    _ => is_share < 0.0,
                };
                assert!(agrees, "seed {seed}: {row:?}");
                let enough = row.why.reason == Reason::EnoughForAll;
                assert!(
                    !enough || all.wants <= all.capacity * (1.0 + 1e-9),
                    "seed {seed}: {row:?}"
                );
            }
        }
    }
    assert!(seen > 1_000, "{seen}");
}

#[test]
fn work_conserving_and_max_min() {
    for seed in seeds(150) {
        let kind = kind_of(seed);
        let mut play = healed(seed, kind);
        play.world.clients.iter_mut().for_each(Client::finish);
        // A step of demand, which clients tell as soon as the floor lets them.
        for number in 0..play.world.clients.len() {
            play.world.clients[number].wants = play.chance.wants();
            let now = play.world.now;
            let client = &mut play.world.clients[number];
            client.next_send = client.next_send.min(now + EARLY_GAP);
            // Work that goes on is capacity that cannot move.
            client.gauge = false;
        }
        let shifted = play.world.now;
        play.run_until(shifted + 2 * play.setup.refresh);
        let (has, wants) = totals(&play);
        let expected = wants.min(play.setup.capacity());
        let close = (has - expected).abs() <= 1e-9 * expected.max(1e-9);
        assert!(
            close,
            "seed {seed}, {kind}: {has} of {expected}\n{:#?}",
            play.world.clients
        );
        if kind == AlgorithmKind::FairShare {
            check_max_min(&play);
        }
    }
}

/// Nobody is below what another has who could give: all who do not have what they want have the
/// same, and nobody has more.
fn check_max_min(play: &ByChance) {
    let seed = play.seed;
    let most = play
        .world
        .clients
        .iter()
        .map(|c| c.uses(play.world.now).get())
        .fold(0.0, f64::max);
    for client in &play.world.clients {
        let has = client.uses(play.world.now).get();
        let satisfied = has >= client.wants * (1.0 - 1e-9);
        assert!(
            satisfied || has >= most * (1.0 - 1e-9),
            "seed {seed}: {has} of {most}: {client:?}"
        );
    }
}

#[test]
fn learning_is_safe() {
    for seed in seeds(150) {
        let mut play = healed(seed, kind_of(seed));
        let before: Vec<Amount> = play
            .world
            .clients
            .iter()
            .map(|c| c.uses(play.world.now))
            .collect();
        play.lose(0);
        play.run_until(play.world.now + play.chance.clone().span(Duration::from_secs(3)));
        play.win(0);
        // A liar comes first, and claims everything.
        let liar = request(
            holder("liar"),
            vec![ask(
                resource(),
                0,
                Amount::MAX,
                Some(Has {
                    granted_by: None,
                    capacity: Amount::MAX,
                    expires_in: None,
                }),
            )],
        );
        let lies = play.chance.happens(0.5);
        if lies {
            let answer = play.world.servers[0]
                .node
                .handle_get_capacity(&liar, play.world.now);
            let reply = served(answer);
            assert!(reply.leases[0].capacity.get() <= play.setup.capacity());
            // What it got of it, honest holders may lose: there is no more than there is.
            play.excuse();
        }
        let end = play.world.now + play.setup.lease;
        while play.world.now < end {
            play.step();
            if lies && play.chance.happens(0.1) {
                let again = play.world.servers[0]
                    .node
                    .handle_get_capacity(&liar, play.world.now);
                assert!(matches!(again, Outcome::Served(_)), "it is the master");
            }
            let Some(snapshot) = play.snapshot(0) else {
                continue;
            };
            assert!(
                snapshot.granted <= play.setup.capacity(),
                "seed {seed}: {snapshot:?}"
            );
            assert!(
                snapshot.reserved <= play.setup.capacity(),
                "seed {seed}: {snapshot:?}"
            );
            if snapshot.learning_remaining.is_some() && !lies {
                for (client, before) in play.world.clients.iter().zip(&before) {
                    let has = client.uses(play.world.now);
                    assert!(has >= *before, "seed {seed}: had {before}: {client:?}");
                }
            }
        }
    }
}

#[test]
fn release_frees() {
    for seed in seeds(150) {
        let mut play = healed(seed, AlgorithmKind::FairShare);
        let capacity = play.setup.capacity();
        for number in 0..play.world.clients.len() {
            let release = play.world.clients[number].release();
            let now = play.world.now;
            play.world.servers[0]
                .node
                .handle_release_capacity(&release, now);
            play.world.servers[0].node.assert_consistent();
        }
        assert_eq!(play.snapshot(0), None, "seed {seed}: nobody holds anything");
        // The very next request may have everything.
        let mut all = play.world.clients[0].request(Duration::from_secs(2), play.world.now);
        all.asks[0].wants = Amount::new(capacity).unwrap();
        let reply = served(
            play.world.servers[0]
                .node
                .handle_get_capacity(&all, play.world.now),
        );
        assert_eq!(reply.leases[0].capacity.get(), capacity, "seed {seed}");
        // And again once that has ended by itself.
        let later = play.world.now + play.setup.lease;
        while play.world.servers[0]
            .node
            .poll_timeout()
            .is_some_and(|timeout| timeout.at <= later)
        {
            play.world.servers[0].node.handle_timeout(later);
        }
        assert_eq!(
            play.world.servers[0]
                .node
                .resource_snapshot(&resource(), later),
            None,
            "seed {seed}"
        );
    }
}

#[test]
fn a_late_duplicate_acknowledges_and_releases_nothing() {
    for seed in seeds(60) {
        let mut play = healed(seed, kind_of(seed));
        let before = play.world.servers[0]
            .node
            .snapshot(play.world.now)
            .resources;
        for number in 0..play.world.clients.len() {
            let client = &play.world.clients[number];
            let sequence = Some(1 + Chance(seed).bits() % (client.sequence() - 1));
            let old = GetCapacity {
                incarnation: client.incarnation,
                sequence,
                ..request(
                    client.name.clone(),
                    vec![ask(resource(), 3, Amount::ZERO, None)],
                )
            };
            play.world.servers[0]
                .node
                .handle_get_capacity(&old, play.world.now);
            let old = ReleaseCapacity {
                incarnation: old.incarnation,
                sequence,
                ..release_request(old.client, vec![resource()])
            };
            play.world.servers[0]
                .node
                .handle_release_capacity(&old, play.world.now);
        }
        assert_eq!(
            play.world.servers[0]
                .node
                .snapshot(play.world.now)
                .resources,
            before,
            "seed {seed}"
        );
    }
}

#[test]
fn deterministic() {
    for seed in seeds(20) {
        let run = || {
            let mut play = ByChance::alone(seed, kind_of(seed), Shrink::Acknowledged);
            for _ in 0..800 {
                play.step();
            }
            play.history
        };
        let history = run();
        assert!(!history.is_empty());
        assert_eq!(history, run(), "seed {seed}");
    }
}
