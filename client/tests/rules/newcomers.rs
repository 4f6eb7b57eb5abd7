//! An identity that invents keys, or names of callers, leaves room for those of others.

use std::time::Duration;

use doorward::rules::{Descriptor, Entry, Leases, Limiter, Rule, Settled};
use doorward_limits::{Decision as Taken, Moment};

use crate::story::rules;

const KEYS_MAX: usize = 80;

/// A caller without leases.
struct By<'a> {
    identity: &'a str,
    name: &'a str,
}

impl Leases for By<'_> {
    fn take(&self, _: &Rule, _: &str, _: u64) -> Option<Result<(), Taken>> {
        None
    }

    fn give_back(&self, _: &Rule, _: &str, _: u64, _: Duration) -> u64 {
        0
    }

    fn charge(&self, _: &Rule, _: &str, _: u64, _: u64) -> u64 {
        0
    }

    fn caller(&self) -> Option<&str> {
        Some(self.name)
    }

    fn identity(&self) -> Option<&str> {
        Some(self.identity)
    }
}

struct World(Limiter);

impl World {
    fn new(rate: &str) -> Self {
        let text =
            format!("domain: shop\ndescriptors:\n- {{key: user, rate_limit: {{rate: {rate}}}}}\n");
        Self(Limiter::new(rules(&text), KEYS_MAX, [1, 2]))
    }

    fn with<R>(user: &str, act: impl FnOnce(&[Descriptor<'_>]) -> R) -> R {
        let entries = [Entry {
            key: "user",
            value: Some(user.as_bytes()),
        }];
        act(&[Descriptor {
            entries: &entries,
            hits: None,
        }])
    }

    fn left(&self, identity: &str, name: &str, user: &str, hits: u64) -> Option<u64> {
        let by = By { identity, name };
        let decision = Self::with(user, |it| {
            self.0
                .decide_with("shop", it, Some(hits), Some(&by), Moment::ORIGIN)
        });
        let refused = !decision.is_allowed;
        assert!(!refused || decision.retry_after().is_some(), "{decision:?}");
        decision.remaining().filter(|_| !refused)
    }
}

#[test]
fn new_keys_of_one_identity_leave_room_for_those_of_others() {
    let world = World::new("2/day");
    let passes = |identity: &str, user: &str| world.left(identity, identity, user, 1).is_some();
    let flood = (0..1_000).filter(|user| passes("thief", &user.to_string()));
    // Half of the room, and an eighth.
    assert_eq!(flood.count(), 50);
    assert!(
        passes("thief", "7"),
        "a key that is there has its own limit"
    );
    for user in ["ann", "bob", "ann", "bob"] {
        assert!(passes("honest", user), "{user}");
    }
    assert!(!passes("honest", "ann"), "it is not the shared limit");
}

#[test]
fn names_of_one_identity_leave_room_for_the_refunds_of_others() {
    let world = World::new("10000/day");
    for name in 0..1_000 {
        world.left("thief", &name.to_string(), "ann", 1).unwrap();
    }
    let left = world.left("honest", "web", "ann", 10).unwrap();
    let by = By {
        identity: "honest",
        name: "web",
    };
    World::with("ann", |it| {
        let limiter = &world.0;
        limiter.settle("shop", it, Some(10), Settled::Refund, &by, Moment::ORIGIN);
    });
    assert_eq!(world.left("honest", "web", "ann", 0), Some(left + 10));
}
