//! A map of keys equals one limiter per key, within a bound.

use std::thread;
use std::time::Duration;

use doorward_limits::{
    Algorithm, Gcra, Key, Keyed, Keys, Limiter, Moment, Rate, SlidingLog, TokenBucket, Units,
};
use proptest::prelude::*;

fn keys() -> Vec<Key> {
    let keys = Keys::new([1, 2]);
    (0..40).map(|it| keys.key().number(it).finish()).collect()
}

fn rate(text: &str) -> Rate {
    text.parse().unwrap()
}

fn gcra(burst: u64, per_second: &str) -> Gcra {
    Gcra::new(burst, rate(per_second)).unwrap()
}

#[derive(Clone, Debug)]
enum Op {
    Take(usize, u64),
    Peek(usize, u64),
    Charge(usize, u64),
    Refund(usize, u64),
    SetLimit(usize),
    Sweep(usize),
    Pass(u64),
}

fn op(limits: usize) -> impl Strategy<Value = Op> {
    let key = || 0..40_usize;
    prop_oneof![
        8 => (key(), 0..6_u64).prop_map(|(key, cost)| Op::Take(key, cost)),
        2 => (key(), 0..6_u64).prop_map(|(key, cost)| Op::Peek(key, cost)),
        1 => (key(), 0..6_u64).prop_map(|(key, cost)| Op::Charge(key, cost)),
        1 => (key(), 0..6_u64).prop_map(|(key, cost)| Op::Refund(key, cost)),
        1 => (0..limits).prop_map(Op::SetLimit),
        1 => (0..3_usize).prop_map(Op::Sweep),
        3 => (0..700_000_000_u64).prop_map(Op::Pass),
    ]
}

/// Plays the same operations on a map and on one limiter per key.
fn play<A: Algorithm + Clone>(limits: &[A], ops: Vec<Op>) -> Result<(), TestCaseError> {
    let (names, first) = (keys(), limits[0].clone());
    let map = Keyed::new(first.clone(), 1_000);
    let mut each = vec![Limiter::new(first); names.len()];
    let mut now = Moment::from_nanos(3);
    for op in ops {
        match op {
            Op::Take(key, cost) => {
                let answer = map.take(names[key], Units::whole(cost), now);
                prop_assert_eq!(answer, each[key].take(cost, now));
            }
            Op::Peek(key, cost) => {
                let answer = map.peek(names[key], Units::whole(cost), now);
                prop_assert_eq!(answer, each[key].peek(cost, now));
                prop_assert_eq!(map.standing(names[key], now), each[key].standing(now));
            }
            Op::Charge(key, cost) => {
                map.charge(names[key], Units::whole(cost), now);
                each[key].charge(cost, now);
            }
            Op::Refund(key, cost) => {
                map.refund(names[key], Units::whole(cost), now);
                each[key].refund(cost, now);
            }
            Op::SetLimit(next) => {
                map.set_limit(&limits[next], now);
                for one in &mut each {
                    one.set_limit(limits[next].clone(), now);
                }
            }
            Op::Sweep(places) => {
                map.sweep(places, now);
            }
            Op::Pass(nanos) => now = now.after(Duration::from_nanos(nanos)),
        }
    }
    // Keys that are not fresh are stored, and after a walk over all no other keys are.
    map.sweep(1_000, now);
    let in_use = each.iter().filter(|it| !it.is_fresh(now)).count();
    prop_assert_eq!(map.figures().keys, in_use);
    prop_assert_eq!(map.figures().overflowed, 0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_map_is_a_limit_for_each_key(ops in prop::collection::vec(op(3), 1..300)) {
        play(&[gcra(5, "3/s"), gcra(7, "2/s"), gcra(5, "4999/h")], ops)?;
    }

    #[test]
    fn a_map_of_logs_is_a_log_for_each_key(ops in prop::collection::vec(op(2), 1..200)) {
        let log = |amount: &str| SlidingLog::new(rate(amount));
        play(&[log("5/s"), log("9/s")], ops)?;
    }
}

#[test]
fn idle_keys_leave_while_others_ask() {
    let map = Keyed::new(gcra(5, "5/s"), 100_000);
    let keys = Keys::new([3, 4]);
    let key = |it: u64| keys.key().number(it).finish();
    let at = |ms: i64| Moment::from_nanos(ms * 1_000_000);
    for it in 0..10_000 {
        assert!(map.take(key(it), Units::ONE, at(0)).is_allowed());
    }
    assert_eq!(map.figures().keys, 10_000);
    // A token comes back in 200 ms: a nanosecond earlier no key is forgotten.
    let early = Moment::from_nanos(199_999_999);
    assert_eq!(map.sweep(10_000, early), 0);
    // A thousand continue to ask, ten times each, and so look at all the others.
    for round in 0..10 {
        for it in 0..1_000 {
            let _ = map.take(key(it), Units::ONE, at(200 + round));
        }
    }
    // A shard with few of them has looked at most of its keys.
    assert!(map.figures().keys < 1_200, "{:?}", map.figures());
    assert!(map.figures().forgotten > 8_800);
}

#[test]
fn a_key_that_is_full_again_by_a_refund_is_forgotten_at_once() {
    let map = Keyed::new(gcra(5, "5/s"), 100);
    let (key, now) = (keys()[0], Moment::from_nanos(0));
    assert!(map.take(key, Units::whole(2), now).is_allowed());
    assert_eq!(map.figures().keys, 1);
    map.refund(key, Units::ONE, now);
    assert_eq!(map.figures().keys, 1);
    map.refund(key, Units::ONE, now);
    assert_eq!(map.figures().keys, 0);
    // A key that only looked, or asked for too much, is not stored either.
    let _ = map.peek(key, Units::ONE, now);
    assert!(!map.take(key, Units::whole(6), now).is_allowed());
    assert_eq!(map.figures().keys, 0);
}

#[test]
fn keys_without_room_share_one_limit_and_stored_keys_have_their_own() {
    let map = Keyed::new(gcra(5, "1/s"), 10);
    let names = keys();
    let now = Moment::from_nanos(0);
    for key in &names[..10] {
        assert!(map.take(*key, Units::whole(2), now).is_allowed());
    }
    assert_eq!(map.figures().keys, 10);
    // Five for all of the rest.
    let passed = names[10..].iter();
    let passed = passed.filter(|key| map.take(**key, Units::ONE, now).is_allowed());
    assert_eq!(passed.count(), 5);
    assert_eq!(map.figures().overflowed, 30);
    // A stored key has three left.
    for key in &names[..10] {
        assert!(map.take(*key, Units::whole(3), now).is_allowed());
    }
    assert_eq!(map.figures().keys, 10);
    // Five seconds later there is room for new ones.
    let later = now.after(Duration::from_secs(5));
    assert!(map.take(names[39], Units::whole(5), later).is_allowed());
    assert_eq!(map.figures().overflowed, 30);
}

#[test]
fn limits_that_change_often_carry_every_key_over() {
    let map = Keyed::new(TokenBucket::new(8, rate("1/s")).unwrap(), 100);
    let names = keys();
    let mut one = Limiter::new(TokenBucket::new(8, rate("1/s")).unwrap());
    let at = |ms: i64| Moment::from_nanos(ms * 1_000_000);
    for key in &names {
        map.charge(*key, Units::whole(30), at(0));
    }
    one.charge(30, at(0));
    for change in 1..40 {
        let next = TokenBucket::new(8 + change % 3, rate("1/s")).unwrap();
        let now = at(change as i64 * 100);
        map.set_limit(&next, now);
        one.set_limit(next, now);
    }
    for key in names {
        assert_eq!(map.standing(key, at(9_000)), one.standing(at(9_000)));
        assert_eq!(map.peek(key, Units::ONE, at(9_000)), one.peek(1, at(9_000)));
    }
}

#[test]
fn threads_together_take_the_limit_of_each_key() {
    let map = Keyed::new(gcra(50, "1/h"), 1_000);
    let names = keys();
    let passed: usize = thread::scope(|threads| {
        let each = (0..4).map(|_| {
            threads.spawn(|| {
                let takes = (0..4_000).map(|it| names[it % 40]);
                let now = Moment::from_nanos(7);
                takes
                    .filter(|key| map.take(*key, Units::ONE, now).is_allowed())
                    .count()
            })
        });
        let each: Vec<_> = each.collect();
        each.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert_eq!(passed, 40 * 50);
}
