//! Shares of a rule's limit of 300/s by RLS, HTTP and Redis, on a virtual clock: by identity first, then by name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorward::state::Step;
use doorward::time::Time;
use doorward_edge::caller::{By, Caller};
use doorward_edge::holder::Holder;
use doorward_edge::room::Room;
use doorward_engine::id::{HolderName, Incarnation};
use doorward_replica::Replica;

use crate::quotas::{ask, replica};

const STEP: Duration = Duration::from_millis(10);
const MEASURED_EVERY: Duration = Duration::from_millis(250);
const RESOURCE: &str = "shared/api/user=ann";

struct World {
    replica: Replica,
    callers: BTreeMap<String, Arc<Caller>>,
    room: Arc<Room>,
    now: Time,
    measures_at: Time,
    /// Whether the node does not answer.
    is_away: bool,
}

/// Requests of an identity.
#[derive(Clone, Copy, Debug)]
struct Load {
    identity: &'static str,
    /// Number of identities.
    identities: u32,
    /// Requests of each identity per second.
    rate: f64,
    names: Names,
}

#[derive(Clone, Copy, Debug)]
enum Names {
    One(&'static str),
    /// Each request has a new one.
    New,
}

impl World {
    fn new() -> Self {
        // The node has learned before.
        let start = Time::from_secs(1_000);
        let now = start + Duration::from_secs(20);
        let mut replica = replica(1, start);
        while replica.advance(now, Duration::ZERO).is_pending() {}
        Self {
            replica,
            callers: BTreeMap::new(),
            room: Arc::new(Room::new(64 << 20)),
            now,
            measures_at: now,
            is_away: false,
        }
    }

    fn caller(&mut self, identity: &str) -> Arc<Caller> {
        let number = self.callers.len() as u64 + 1;
        let caller = self.callers.entry(identity.to_owned()).or_insert_with(|| {
            let name = HolderName::new(&format!("caller:{identity}")).unwrap();
            let holder = Holder::new(name, 0, Incarnation::new(number).unwrap(), 1);
            Arc::new(Caller::new(
                identity,
                holder,
                Arc::clone(&self.room),
                Arc::default(),
            ))
        });
        Arc::clone(caller)
    }

    fn keep(&mut self, caller: &Caller) {
        caller.publish(self.now);
        while !self.is_away && caller.next_step(self.now) == Step::Send {
            ask(&mut self.replica, caller, self.now);
            caller.publish(self.now);
        }
    }

    fn passes(&mut self, identity: &str, name: &str) -> bool {
        let caller = self.caller(identity);
        let by = By {
            name,
            weight: 1,
            is_safe: true,
            whole: None,
        };
        caller.open(RESOURCE, &by, self.now);
        self.keep(&caller);
        caller.take(RESOURCE, &by, 1, self.now) == Some(Ok(()))
    }

    /// Returns the requests per second of each load that passed in the last half of that time.
    fn play(&mut self, loads: &[Load], seconds: u64) -> Vec<f64> {
        let (start, length) = (self.now, Duration::from_secs(seconds));
        let mut passed = vec![0.0; loads.len()];
        let mut sent = vec![0_u32; loads.len()];
        while self.now < start + length {
            self.now = self.now + STEP;
            let age = self.now.since(start);
            for (number, load) in loads.iter().enumerate() {
                let rate = load.rate * f64::from(load.identities);
                while f64::from(sent[number]) < age.as_secs_f64() * rate {
                    let identity = format!("{}{}", load.identity, sent[number] % load.identities);
                    let name = match load.names {
                        Names::One(name) => name.to_owned(),
                        Names::New => format!("name-{}", sent[number]),
                    };
                    sent[number] += 1;
                    if self.passes(&identity, &name) && age > length / 2 {
                        passed[number] += 2.0 / length.as_secs_f64();
                    }
                }
            }
            if self.now >= self.measures_at {
                self.measures_at = self.now + MEASURED_EVERY;
                let callers: Vec<_> = self.callers.values().cloned().collect();
                for caller in callers {
                    caller.measure(self.now);
                    self.keep(&caller);
                }
            }
        }
        passed
    }
}

/// Checks that each load gets 95 % of the expected rate, and all together no more than the capacity.
#[track_caller]
fn check(loads: &[(Load, f64)], seconds: u64) {
    let all: Vec<Load> = loads.iter().map(|(load, _)| *load).collect();
    let passed = World::new().play(&all, seconds);
    for ((load, expected), passed) in loads.iter().zip(&passed) {
        assert!(
            *passed >= 0.95 * expected,
            "{passed}, not {expected}: {load:?}"
        );
    }
    let sum: f64 = passed.iter().sum();
    assert!(sum <= 300.0 * 1.02, "{sum}: {passed:?}");
}

const fn load(identity: &'static str, identities: u32, rate: f64, names: Names) -> Load {
    Load {
        identity,
        identities,
        rate,
        names,
    }
}

#[test]
fn an_identity_with_new_names_gets_what_it_uses_and_leaves_the_rest() {
    let honest = load("honest", 1, 400.0, Names::One("web"));
    check(
        &[(honest, 290.0), (load("thief", 1, 10.0, Names::New), 9.0)],
        20,
    );
    check(
        &[
            (honest, 150.0),
            (load("thief", 1, 400.0, Names::New), 150.0),
        ],
        20,
    );
}

#[test]
fn rare_callers_hold_only_what_they_use() {
    let busy = load("busy", 1, 250.0, Names::One("web"));
    let rare = load("rare", 500, 0.1, Names::One("cron"));
    check(&[(busy, 250.0), (rare, 47.0)], 60);
    // They may also be names of one identity.
    let names = load("rare", 1, 50.0, Names::New);
    check(&[(busy, 250.0), (names, 50.0)], 20);
}

#[test]
fn names_of_an_identity_share_its_lease_fairly() {
    let all = [
        (load("one", 1, 400.0, Names::One("batch")), 130.0),
        (load("one", 1, 20.0, Names::One("web")), 20.0),
        (load("other", 1, 400.0, Names::One("web")), 150.0),
    ];
    check(&all, 20);
}

#[test]
fn a_debt_is_not_forgotten_by_a_rest() {
    let mut world = World::new();
    assert!(world.passes("thief", "web"));
    let (caller, start) = (world.caller("thief"), world.now);
    let by = By {
        name: "web",
        weight: 1,
        is_safe: true,
        whole: None,
    };
    let now = start + Duration::from_secs(1);
    assert_eq!(caller.take(RESOURCE, &by, 30_000, now), Some(Ok(())));
    let is_gone = |now| {
        caller.close_idle(now);
        caller.close_idle(now)
    };
    // Longer than the lease lasts.
    assert!(!is_gone(now + Duration::from_secs(60)));
    assert!(is_gone(now + Duration::from_secs(1_000_000)));
}

#[test]
fn after_a_lease_callers_share_its_safe_capacity_which_halves() {
    let loads = ["one", "other"].map(|name| load(name, 1, 400.0, Names::One("web")));
    let mut world = World::new();
    world.play(&loads, 10);
    world.is_away = true;
    // The lease of 16 s ends, and then its safe capacity counts for as long.
    for (seconds, expected) in [(20, 150.0), (20, 90.0), (20, 37.5)] {
        for passed in world.play(&loads, seconds) {
            let is_near = (expected * 0.9..=expected * 1.02).contains(&passed);
            assert!(is_near, "{passed}, not {expected}");
        }
    }
}
