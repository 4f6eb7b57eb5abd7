//! Rules that change while requests come.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use doorward::rules::{Descriptor, Entry};
use doorward_limits::Moment;

use crate::story::{Story, rules};

fn per_user(limit: &str) -> String {
    format!("domain: shop\ndescriptors:\n- key: user\n  rate_limit: {limit}\n")
}

#[test]
fn a_changed_limit_keeps_its_ratio() {
    #[track_caller]
    fn check(before: &str, used: u64, after: &str, left: u64) {
        let story = Story::new(&per_user(before));
        assert!(story.ask(&[("user", "ann")], Some(used)).is_allowed);
        story.limiter.replace(rules(&per_user(after)), story.now);
        let decision = story.ask(&[("user", "ann")], Some(0));
        assert_eq!(decision.remaining(), Some(left), "{before} to {after}");
    }
    check("{rate: 10/min}", 4, "{rate: 10/min}", 6);
    check("{rate: 10/min}", 4, "{rate: 100/min}", 60);
    check("{rate: 10/min}", 4, "{rate: 5/min}", 3);
    check("{rate: 10/min}", 4, "{rate: 10/h}", 6);
    check(
        "{rate: 10/min}",
        4,
        "{rate: 100/min, algorithm: sliding_log}",
        60,
    );
    check(
        "{rate: 10/min}",
        4,
        "{rate: 10/min, algorithm: token_bucket, burst: 5}",
        3,
    );
    let bucket = "{rate: 10/min, algorithm: token_bucket, burst: 10}";
    check(bucket, 10, "{rate: 10/min, algorithm: sliding_counter}", 0);
}

#[test]
fn other_rules_are_untouched_and_new_ones_begin_fresh() {
    let story = Story::new(&per_user("{rate: 10/min}"));
    assert!(story.ask(&[("user", "ann")], Some(4)).is_allowed);
    let text = "domain: shop\ndescriptors:\n- key: team\n  rate_limit: {rate: 3/min}\n- key: user\n  value: bob\n  rate_limit: {rate: 1/min}\n- key: user\n  rate_limit: {rate: 10/min}\n";
    story.limiter.replace(rules(text), story.now);
    assert_eq!(story.ask(&[("user", "ann")], Some(0)).remaining(), Some(6));
    assert_eq!(story.ask(&[("user", "bob")], Some(0)).remaining(), Some(1));
    assert_eq!(story.ask(&[("team", "a")], Some(0)).remaining(), Some(3));
    story
        .limiter
        .replace(rules("domain: shop\nempty: true\n"), story.now);
    assert_eq!(story.user("ann").rule(), None);
}

const TWO: &str = "domain: shop\ndescriptors:\n- key: user\n  rate_limit: {rate: 1000/h}\n- key: team\n  rate_limit: {rate: 50/h}\n";

/// Two rules share a limit of 50 in all; from many threads, and while the same rules are replaced, exactly 50 pass, and
/// the other rule counts exactly those.
#[test]
fn many_threads_take_all_or_nothing() {
    let story = Story::new(TWO);
    assert_eq!(passed_by_threads(&story, &[TWO]), 50);
    let left = story.ask(&[("user", "ann")], Some(0)).remaining();
    assert_eq!(left, Some(950));
}

/// A limit that changes keeps its ratio, so no more than the larger one passes.
#[test]
fn limits_that_alternate_let_no_more_pass_than_the_larger_one() {
    let larger = TWO.replace("50/h", "80/h");
    let passed = passed_by_threads(&Story::new(TWO), &[&larger, TWO]);
    assert!((50..=80).contains(&passed), "{passed}");
}

/// Returns the number of requests that pass from four threads, while one of them puts the documents in force in turn.
fn passed_by_threads(story: &Story, documents: &[&str]) -> u64 {
    let passed = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (limiter, passed, now) = (&story.limiter, &passed, story.now);
            scope.spawn(move || {
                for round in 0..500 {
                    let entry = |key, value: &'static str| {
                        let value = Some(value.as_bytes());
                        [Entry { key, value }]
                    };
                    let mut entries = [entry("user", "ann"), entry("team", "a")];
                    if (round + thread) % 2 == 0 {
                        entries.reverse();
                    }
                    let descriptors = entries.each_ref().map(|entries| Descriptor {
                        entries,
                        hits: None,
                    });
                    if limiter.allow("shop", &descriptors, now) {
                        passed.fetch_add(1, Ordering::Relaxed);
                    }
                    if thread == 0 && round % 50 == 0 {
                        limiter.replace(rules(documents[round / 50 % documents.len()]), now);
                    }
                }
            });
        }
    });
    passed.into_inner()
}

#[test]
fn time_that_goes_back_frees_nothing() {
    let mut story = Story::new(&per_user("{rate: 2/min}"));
    story.advance(Duration::from_secs(30));
    assert!(story.ask(&[("user", "ann")], Some(2)).is_allowed);
    story.now = Moment::ORIGIN;
    assert!(!story.user("ann").is_allowed);
}
