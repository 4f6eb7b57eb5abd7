//! Bounds of every algorithm over any window: the first table of `properties.md`.
//!
//! Traffic comes at random, and as fast as the limit admits it. Then every window that begins and ends with a request
//! is checked, because no other window contains more. Named cases show that the bounds are reached.

use doorward_limits::{Decision, Units};
use proptest::prelude::*;

use crate::laws::subject::{KINDS, Kind, Setting, UNIT, pace, setting, subject};
use crate::laws::{START, at};

/// Times and amounts of admitted requests, in parts.
type Passed = Vec<(i64, u128)>;

/// Returns traffic in 48ths of the pace, each request with a cost; refused requests return after their wait.
fn traffic() -> impl Strategy<Value = Vec<(i64, u128)>> {
    let wait = prop_oneof![2 => Just(0), 1 => Just(1), 3 => 0..60_i64];
    let cost = prop_oneof![3 => Just(UNIT), 1 => (1..8_u128).prop_map(|it| it * UNIT)];
    prop::collection::vec((wait, cost), 1..80)
}

/// Returns the admitted requests; for a queue and warm-up, at their start. The first entry is the end of accepted work.
fn passed(kind: Kind, setting: &Setting, traffic: &[(i64, u128)]) -> Passed {
    let (mut it, mut now, mut passed) = (subject(kind, setting), START, Vec::new());
    for (wait, cost) in traffic {
        now += pace(setting) * wait / 48;
        let units = Units::from_parts(*cost);
        let mut answer = it.take(units, at(now));
        if let Decision::After(wait) = answer
            && kind != Kind::Ban
        {
            now += i64::try_from(wait.as_nanos()).unwrap();
            answer = it.take(units, at(now));
            assert!(answer.is_allowed());
        }
        if let Decision::Allowed(allowed) = answer {
            let start = now + i64::try_from(allowed.delay.as_nanos()).unwrap();
            passed.push((start, *cost));
        }
    }
    passed
}

/// Returns every span between two admitted requests: its length, its amount, its last amount, and its end.
fn spans(passed: &Passed) -> impl Iterator<Item = (i64, u128, u128, i64)> {
    (0..passed.len()).flat_map(move |first| {
        let mut sum = 0;
        passed[first..].iter().map(move |(time, cost)| {
            sum += cost;
            (time - passed[first].0, sum, *cost, *time)
        })
    })
}

/// Returns the supply of a span, rounded up.
fn given(setting: &Setting, span: i64) -> u128 {
    let (amount, period) = setting.rate;
    (u128::try_from(span).unwrap() * amount).div_ceil(u128::from(period))
}

/// Returns whether a span's amount is within the algorithm's bound.
fn keeps(kind: Kind, setting: &Setting, span: (i64, u128, u128, i64)) -> bool {
    let (length, sum, last, end) = span;
    let (limit, window) = (setting.limit, i64::try_from(setting.window).unwrap());
    let (from, to) = ((end - length).div_euclid(window), end.div_euclid(window));
    match kind {
        Kind::TokenBucket | Kind::Gcra | Kind::LeakyMeter | Kind::SoftHard => {
            // Exactly: (sum − burst)·period ≤ amount·length
            let over = sum.saturating_sub(limit) * u128::from(setting.rate.1);
            over <= setting.rate.0 * u128::try_from(length).unwrap()
        }
        Kind::LeakyQueue | Kind::WarmUp => sum - last <= given(setting, length + 1),
        Kind::FixedWindow => {
            let windows = u128::try_from(to - from + 1).unwrap();
            sum <= limit * windows && (from != to || sum <= limit)
        }
        Kind::SlidingLog => length >= window || sum <= limit,
        Kind::SlidingCounter => {
            // ⌈p·N⌉ with the position p of the end in its window.
            let position = u128::try_from(end.rem_euclid(window)).unwrap();
            let more = (position * limit).div_ceil(u128::try_from(window).unwrap() * UNIT) * UNIT;
            (from != to || sum <= limit) && (length >= window || sum <= limit + more)
        }
        Kind::Ban => length >= window || sum <= 2 * limit,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn within_any_window_no_more_passes_than_the_bound(
        setting in setting(), traffic in traffic(),
    ) {
        for kind in KINDS {
            for span in spans(&passed(kind, &setting, &traffic)) {
                prop_assert!(keeps(kind, &setting, span), "{:?}: {:?}", kind, span);
            }
        }
    }
}

/// Returns the largest amount within a length, for traffic at those times, of cost 1.
fn most_within(kind: Kind, setting: &Setting, times: &[i64], length: i64) -> u128 {
    let mut it = subject(kind, setting);
    let mut passed = Vec::new();
    for time in times {
        if it.take(Units::ONE, at(*time)).is_allowed() {
            passed.push((*time, UNIT));
        }
    }
    let within = spans(&passed).filter(|span| span.0 <= length);
    within.map(|span| span.1).max().unwrap_or(0) / UNIT
}

#[test]
fn the_bounds_are_reached() {
    let setting = Setting {
        limit: 10 * UNIT,
        rate: (10 * UNIT, 1_000_000_000),
        window: 1_000_000_000,
        wait: 0,
    };
    let second = 1_000_000_000;
    let all_the_time: Vec<i64> = (0..3_000).map(|it| it * 1_000_000).collect();
    // Each millisecond after ten at once.
    let burst = [0; 10].into_iter().chain(all_the_time.iter().copied());
    let burst: Vec<i64> = burst.collect();
    for kind in [Kind::TokenBucket, Kind::Gcra, Kind::LeakyMeter] {
        assert_eq!(most_within(kind, &setting, &burst, second), 20);
    }
    let around: Vec<i64> = [[second - 1; 10], [second; 10]].concat();
    assert_eq!(most_within(Kind::FixedWindow, &setting, &around, 1), 20);
    assert_eq!(
        most_within(Kind::SlidingLog, &setting, &around, second - 1),
        10
    );
    // All at the end of one window, then one as soon as each tenth of it fades.
    let mut fading = vec![second - 1; 10];
    fading.extend((0..10).map(|it| second + it * second / 10 + 1));
    assert_eq!(
        most_within(Kind::SlidingCounter, &setting, &fading, second),
        20
    );
    let late: Vec<i64> = [vec![0], vec![second - 1; 9], vec![second; 10]].concat();
    assert_eq!(most_within(Kind::Ban, &setting, &late, second - 1), 19);
}
