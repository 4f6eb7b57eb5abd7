//! Laws that hold for any calls: each request is decided once, none above the limit is served, sums are exact.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward::overload::{Admission, Ask, Config, Criticality, Offer, Place, Throttler};
use doorward_limits::Moment;
use proptest::collection::vec;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Call {
    Offer {
        operation: u64,
        tier: usize,
        user: u64,
        deadline: Option<u64>,
    },
    End {
        which: usize,
        cost: Option<f64>,
    },
    Cancel(usize),
    Leave(usize),
    Wait(u64),
}

fn call() -> impl Strategy<Value = Call> {
    let offer = (
        0..5u64,
        0..4usize,
        0..9u64,
        proptest::option::of(0..2_000u64),
    );
    let offer = offer.prop_map(|(operation, tier, user, deadline)| Call::Offer {
        operation,
        tier,
        user,
        deadline,
    });
    let end = (any::<usize>(), proptest::option::of(any::<f64>()));
    prop_oneof![
        6 => offer,
        3 => end.prop_map(|(which, cost)| Call::End { which, cost }),
        1 => any::<usize>().prop_map(Call::Cancel),
        1 => any::<usize>().prop_map(Call::Leave),
        3 => (0..100u64).prop_map(Call::Wait),
    ]
}

/// Requests by what has become of them.
struct World {
    throttler: Throttler<u64>,
    served: Vec<Admission>,
    waiting: BTreeMap<u64, (Place, Criticality)>,
    now: Moment,
    number: u64,
}

impl World {
    fn apply(&mut self, call: Call) {
        let (throttler, now) = (&mut self.throttler, self.now);
        match call {
            Call::Offer {
                operation,
                tier,
                user,
                deadline,
            } => {
                self.number += 1;
                let ask = Ask {
                    operation,
                    criticality: Criticality::ALL[tier],
                    user: (user > 0).then_some(user),
                    deadline: deadline.map(|it| now.after(Duration::from_millis(it))),
                };
                match throttler.offer(&ask, || self.number, now) {
                    Offer::Admitted(admission) => self.served.push(admission),
                    Offer::Queued(place) => {
                        self.waiting.insert(self.number, (place, ask.criticality));
                    }
                    Offer::Refused(_) => {}
                }
            }
            Call::End { which, cost } if !self.served.is_empty() => {
                let admission = self.served.swap_remove(which % self.served.len());
                let used = throttler.handle_end(admission, cost, now);
                assert!((0.0..=1e9).contains(&used), "{used}");
            }
            Call::Cancel(which) if !self.served.is_empty() => {
                let admission = self.served.swap_remove(which % self.served.len());
                throttler.cancel(admission, now);
            }
            Call::Leave(which) if !self.waiting.is_empty() => {
                let number = *self.waiting.keys().nth(which % self.waiting.len()).unwrap();
                let (place, _) = self.waiting.remove(&number).unwrap();
                throttler.leave(place);
            }
            Call::Wait(millis) => {
                self.now = now.after(Duration::from_millis(millis));
                throttler.handle_timeout(self.now);
            }
            Call::End { .. } | Call::Cancel(_) | Call::Leave(_) => {}
        }
        while let Some((number, decision)) = self.throttler.poll_decided() {
            let waited = self.waiting.remove(&number);
            assert!(waited.is_some(), "{number} did not wait");
            self.served.extend(decision);
        }
    }

    fn check(&mut self, limit: Option<u32>) {
        assert_eq!(self.served.len(), self.throttler.in_flight() as usize);
        for tier in Criticality::ALL {
            let waiting = self.waiting.values().filter(|(_, it)| *it == tier).count();
            assert_eq!(self.throttler.waiting(tier), waiting, "{tier}");
        }
        if let Some(limit) = limit {
            assert!(self.served.len() <= limit as usize);
            let has_room = self.served.len() < limit as usize;
            assert!(
                !has_room || self.waiting.is_empty(),
                "a request waits for nothing"
            );
        }
        let due = self.throttler.poll_timeout();
        assert_eq!(due.is_some(), !self.waiting.is_empty());
        assert!(due.is_none_or(|at| at > self.now), "a timeout is overdue");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn each_request_is_decided_once(
        calls in vec(call(), 0..1_000),
        fixed_limit in proptest::option::of(1..6u32),
        waiting_max in 0..20usize,
    ) {
        let config = Config { fixed_limit, waiting_max, ..Config::default() };
        let mut world = World {
            throttler: Throttler::new(config),
            served: Vec::new(),
            waiting: BTreeMap::new(),
            now: Moment::ORIGIN,
            number: 0,
        };
        for call in calls {
            world.apply(call);
            world.check(fixed_limit);
            prop_assert!(world.waiting.len() <= waiting_max);
        }
    }
}
