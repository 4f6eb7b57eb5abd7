//! Several limits at once, from many threads: all or nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use doorward_limits::{
    AtomicBucket, Ban, Decision, FixedWindow, Gcra, Key, Keyed, Keys, Limit, Moment, Part, Shared,
    SlidingLog, TokenBucket, Units, Verdict, WarmUp, several,
};

const NOW: Moment = Moment::ORIGIN;

fn key(number: u64) -> Key {
    Keys::new([1, 2]).key().number(number).finish()
}

fn gcra(burst: u64) -> Gcra {
    Gcra::new(burst, "1/h".parse().unwrap()).unwrap()
}

fn bucket(burst: u64) -> TokenBucket {
    TokenBucket::new(burst, "1/h".parse().unwrap()).unwrap()
}

fn log(limit: u64) -> SlidingLog {
    SlidingLog::new(format!("{limit}/h").parse().unwrap())
}

fn take<'a>(limits: &[&'a dyn Limit]) -> Verdict<'a> {
    let part = |limit: &&'a dyn Limit| Part {
        name: "",
        limit: *limit,
        cost: Units::ONE,
    };
    let parts: Vec<Part<'a>> = limits.iter().map(part).collect();
    several::take(&parts, NOW).unwrap()
}

/// Four threads take from two limits of nine and of five, in both orders, and also from one limit alone.
#[track_caller]
fn check(name: &str, nine: &dyn Limit, five: &dyn Limit) {
    let (both, alone) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|threads| {
        for thread in 0..4 {
            let (both, alone) = (&both, &alone);
            threads.spawn(move || {
                let limits = [nine, five];
                let other_order = [five, nine];
                for round in 0..6 {
                    let limits = if thread % 2 == 0 { limits } else { other_order };
                    if take(&limits).decision.is_allowed() {
                        both.fetch_add(1, Ordering::Relaxed);
                    }
                    if round == 2 && nine.take(Units::ONE, NOW).is_allowed() {
                        alone.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let (mut both, alone) = (both.into_inner(), alone.into_inner());
    // Threads that meet may be refused needlessly.
    while take(&[nine, five]).decision.is_allowed() {
        both += 1;
    }
    let left = |limit: &dyn Limit| limit.standing(NOW).remaining;
    assert_eq!(left(nine), Units::whole(9 - both - alone), "{name}");
    assert_eq!(left(five), Units::whole(5 - both), "{name}");
    assert!(both == 5 && alone <= 4, "{name}: {both}, {alone}");
}

#[test]
fn no_limit_is_charged_for_a_request_that_another_one_refuses() {
    for _ in 0..200 {
        let bucket = |burst| TokenBucket::new(burst, "1/h".parse().unwrap()).unwrap();
        let (nine, five) = (AtomicBucket::new(bucket(9)), Shared::new(log(5)));
        check("a word and a log", &nine, &five);
        let window = Shared::new(FixedWindow::new("9/h".parse().unwrap()));
        check(
            "a window and a word",
            &window,
            &AtomicBucket::new(bucket(5)),
        );
        let (nine, five) = (Keyed::new(log(9), 10), Keyed::new(gcra(5), 10));
        check("keys of two maps", &nine.at(key(1)), &five.at(key(1)));
        let (nine, five) = (Keyed::new(log(9), 0), Keyed::new(gcra(5), 0));
        check("keys without room", &nine.at(key(1)), &five.at(key(2)));
        // Some of these keys are in the same shard.
        let map = Keyed::new(gcra(9), 100);
        for number in 1..9 {
            let (nine, five) = (map.at(key(0)), map.at(key(number)));
            map.charge(key(number), Units::whole(4), NOW);
            check("keys of one map", &nine, &five);
            map.refund(key(0), Units::whole(9), NOW);
        }
        assert_eq!(map.figures().keys, 8, "the full key is forgotten");
    }
}

#[test]
fn the_same_limit_twice_takes_both_or_nothing() {
    let map = Keyed::new(gcra(3), 10);
    let (limit, word) = (map.at(key(1)), AtomicBucket::new(bucket(3)));
    for limit in [&limit as &dyn Limit, &word] {
        assert!(take(&[limit, limit]).decision.is_allowed());
        assert_eq!(take(&[limit, limit]).refused_by, [1]);
        assert_eq!(limit.standing(NOW).remaining, Units::ONE);
    }
}

#[test]
fn a_ban_by_key_counts_attempts_that_another_limit_refuses() {
    let hour = Duration::from_secs(3_600);
    let bans = Keyed::new(Ban::new("5/min".parse().unwrap(), hour), 10);
    let logins = Shared::new(log(2));
    let ban = bans.at(key(7));
    for attempt in 1..=6 {
        let verdict = take(&[&logins, &ban]);
        assert_eq!(verdict.decision.is_allowed(), attempt <= 2, "{attempt}");
    }
    let minute = Duration::from_secs(60);
    let banned = bans.peek(key(7), Units::ZERO, NOW);
    assert_eq!(banned, Decision::After(hour + minute));
    assert!(bans.peek(key(8), Units::ONE, NOW).is_allowed());
}

#[test]
fn a_refused_warm_up_owes_nothing() {
    let second = Duration::from_secs(1);
    let rate = "10/s".parse().unwrap();
    let warm_up = Shared::new(WarmUp::new(rate, second, Units::whole(3), second).unwrap());
    let before = warm_up.standing(NOW);
    let empty = AtomicBucket::new(bucket(1));
    empty.charge(Units::ONE, NOW);
    assert!(!take(&[&warm_up, &empty]).decision.is_allowed());
    assert_eq!(warm_up.standing(NOW), before);
}

#[test]
fn honest_keys_pass_after_a_flood_of_invented_ones() {
    let flooded = |map: &Keyed<Gcra>| {
        for it in 0..10_000 {
            let _ = map.take(key(it), Units::ONE, NOW);
        }
        let honest = 10_000..11_000;
        honest
            .filter(|it| map.take(key(*it), Units::ONE, NOW).is_allowed())
            .count()
    };
    assert_eq!(flooded(&Keyed::new(gcra(10), 1_000)), 0);
    let map = Keyed::new(gcra(10), 1_000).with_overflow(gcra(20_000));
    assert_eq!(flooded(&map), 1_000);
    assert_eq!(map.figures().overflowed, 10_000);
    // Another limit of a key is none of the overflow.
    map.set_limit(&gcra(1), NOW);
    assert!(map.take(key(20_000), Units::whole(9_000), NOW).is_allowed());
}
