//! Promises of the throttler, on a service in virtual time.
//!
//! A fact is measured after twenty seconds of the load, in which the throttler finds its limit. The tests play the
//! first seeds; `cargo bench -p doorward --bench experiments -- facts` plays 20.

use doorward::overload::Config;

use crate::service::{Callers, Phase, Run, Service, critical_p99, service, work};
use crate::shapes::places;

/// Beginning and end of the measured span, in seconds.
const FROM: f64 = 20.0;
const TO: f64 = 79.0;

/// Seconds of a load.
const LENGTH: f64 = 80.0;

/// Part of work, or of capacity, that was of use.
pub(crate) struct Shares {
    /// Of critical work.
    pub(crate) critical: f64,
    /// Critical work, of capacity.
    pub(crate) critical_of_capacity: f64,
    /// All work, of capacity.
    pub(crate) goodput: f64,
    /// Latency that 99 of 100 critical requests are below, in seconds.
    pub(crate) p99: f64,
}

/// Measures a constant load, a part of which is critical.
pub(crate) fn shares(service: &Service, config: Config, phases: &[Phase], seed: u64) -> Shares {
    let run = Run::new(service, config, seed).play(phases);
    let capacity = (TO - FROM) * service.cores;
    let critical = work(&run, FROM, TO, |it| it.is_critical() && it.is_good());
    Shares {
        critical: critical / work(&run, FROM, TO, crate::service::Ended::is_critical),
        critical_of_capacity: critical / capacity,
        goodput: work(&run, FROM, TO, crate::service::Ended::is_good) / capacity,
        p99: critical_p99(&run, FROM, TO),
    }
}

/// Measures 3 × the capacity, a quarter of it critical. Returns also the p99 at half the capacity.
pub(crate) fn quarter_critical(seed: u64) -> (Shares, f64) {
    let half = [Phase::new(LENGTH, 0.5, 0.25)];
    let half = shares(&service(), Config::default(), &half, seed);
    let overload = [Phase::new(LENGTH, 3.0, 0.25)];
    let overload = shares(&service(), Config::default(), &overload, seed);
    (overload, half.p99)
}

/// Measures 3 × the capacity, half of it critical.
pub(crate) fn half_critical(seed: u64) -> Shares {
    let phases = [Phase::new(LENGTH, 3.0, 0.5)];
    shares(&service(), Config::default(), &phases, seed)
}

/// Measures a minute of 12 × the capacity, with critical work of half the capacity.
pub(crate) fn flood(seed: u64) -> Shares {
    let phases = [
        Phase::new(20.0, 0.8, 0.6),
        Phase::new(60.0, 12.0, 0.5 / 12.0),
    ];
    shares(&service(), Config::default(), &phases, seed)
}

/// Measures the goodput at 4 × the capacity, with the throttler's limit or a fixed one.
pub(crate) fn goodput(fixed_limit: Option<u32>, seed: u64) -> f64 {
    let phases = [Phase::new(LENGTH, 4.0, 0.25)];
    let config = Config {
        fixed_limit,
        ..Config::default()
    };
    shares(&service(), config, &phases, seed).goodput
}

/// Returns the median limit of each hour at 1.1 × the capacity, of requests that take four times as long.
pub(crate) fn hourly_limits(hours: usize, seed: u64) -> Vec<f64> {
    let mut slow = service();
    for operation in &mut slow.operations {
        operation.cost *= 4.0;
    }
    let mut run = Run::new(&slow, Config::default(), seed);
    run.keeps = false;
    let run = run.play(&[Phase::new(hours as f64 * 3600.0, 1.1, 0.25)]);
    let hour = |limits: &[f64]| {
        let mut limits = limits.to_vec();
        limits.sort_by(f64::total_cmp);
        limits[limits.len() / 2]
    };
    run.limits.chunks(3600).map(hour).collect()
}

/// Returns the part of capacity that was of use in each second around a stall of five seconds, at 1.5 × the capacity:
/// that of the second before it, and those of the seconds after it.
pub(crate) fn after_stall(seed: u64) -> (f64, Vec<f64>) {
    let load = |seconds| Phase::new(seconds, 1.5, 0.25);
    let stall = load(5.0).cores(0.0);
    let service = service();
    let run = Run::new(&service, Config::default(), seed).play(&[load(40.0), stall, load(10.0)]);
    let goodput = |from: f64, to: f64| {
        let served = run.ended.iter().filter(|it| it.is_good());
        let served = served.filter(|it| (from..to).contains(&it.ended_at));
        served.map(|it| it.cost).sum::<f64>() / (to - from) / service.cores
    };
    let after = (45..54).map(|second| goodput(f64::from(second), f64::from(second) + 1.0));
    (goodput(30.0, 40.0), after.collect())
}

/// Returns for each user with enough requests the part of them that was of use, in the last full minute of 2 × the
/// capacity without criticality.
pub(crate) fn users(seed: u64) -> Vec<f64> {
    let run = Run::new(&service(), Config::default(), seed).play(&[Phase::new(120.0, 2.0, 0.0)]);
    let mut users = std::collections::BTreeMap::<u64, (f64, f64)>::new();
    for it in run.ended.iter().filter(|it| it.came_at >= 60.0) {
        let (good, all) = users.entry(it.user).or_default();
        *good += f64::from(u8::from(it.is_good()));
        *all += 1.0;
    }
    users.values().map(|(good, all)| good / all).collect()
}

/// Loads of a bad time, and parts of the places that are left in it.
pub(crate) const BAD_LOADS: [f64; 4] = [0.001, 0.5, 1.5, 3.0];
pub(crate) const BAD_PLACES: [f64; 4] = [0.0, 0.05, 0.3, 1.0];

/// Plays 12 bad seconds of a service with 20 places of 100 ms, and then a load. Returns its goodput, as a part of what it
/// can do or of what comes, from 10 to 20 and from 20 to 30 seconds after the bad time.
pub(crate) fn recovery(bad: (f64, f64), load: f64, callers: Callers, seed: u64) -> (f64, f64) {
    let service = Service {
        cores: 20.0,
        deviation: 0.3,
        callers,
        ..places()
    };
    let phases = [
        Phase::new(5.0, 1.0, 0.25),
        Phase::new(12.0, bad.0, 0.25).cores(bad.1),
        Phase::new(32.0, load, 0.25),
    ];
    let run = Run::new(&service, Config::default(), seed).play(&phases);
    let goodput = |from: f64, to: f64| {
        let good = run.ended.iter().filter(|it| it.is_good());
        let good = good.filter(|it| (from..to).contains(&it.ended_at));
        let can = ((to - from) * service.cores).min(work(&run, from, to, |_| true));
        good.map(|it| it.cost).sum::<f64>() / can
    };
    (goodput(27.0, 37.0), goodput(37.0, 47.0))
}

#[test]
fn at_three_times_the_capacity_critical_work_is_served_and_quick() {
    let (overload, half_p99) = quarter_critical(1);
    assert!(overload.critical >= 0.95, "{}", overload.critical);
    let p99 = overload.p99;
    assert!(p99 <= 2.0 * half_p99, "{p99} {half_p99}");
}

#[test]
fn critical_work_gets_the_capacity_if_there_is_enough_of_it() {
    let shares = half_critical(1);
    let part = shares.critical_of_capacity;
    assert!(part >= 0.95, "{part}");
}

#[test]
fn a_flood_does_not_reach_critical_work() {
    let part = flood(1).critical;
    assert!(part >= 0.99, "{part}");
}

#[test]
fn goodput_is_near_that_of_the_best_fixed_limit() {
    let best = goodput(Some(8), 1);
    let found = goodput(None, 1);
    assert!(found >= 0.95 * best, "{found} of {best}");
}

#[test]
fn the_limit_does_not_drift() {
    let hours = hourly_limits(3, 1);
    assert_eq!(hours.len(), 3);
    for hour in &hours {
        assert!((hour / hours[0] - 1.0).abs() <= 0.2, "{hours:?}");
    }
}

#[test]
fn two_seconds_after_a_stall_the_service_works_as_before() {
    let (before, after) = after_stall(1);
    assert!(after[1] >= 0.9 * before, "{before} {after:?}");
}

#[test]
fn most_users_have_all_of_their_requests_served_or_few() {
    let users = users(1);
    let clear = users.iter().filter(|part| !(0.2..0.8).contains(*part));
    let part = clear.count() as f64 / users.len() as f64;
    assert!(part >= 0.65, "{part} of the users");
}
