//! Each state of a limit is left, whatever the traffic was.
//!
//! A bad time is played, and after it a load. From 20 seconds later on, the service must do 90 % of what it can do, or of
//! what comes. Most runs are there after 10 seconds, which is the goal.

use doorward_limits::Moment;
use doorward_throttle::{Ask, Config, Offer, Reason, Throttler};
use proptest::prelude::*;

use crate::service::{Callers, Operation, Phase, Run, Service, service, work};
use crate::shapes::{Who, shapes};

/// Seconds of the bad time, after which it is measured, and for which it is measured.
const BAD: f64 = 12.0;
const AFTER: f64 = 20.0;
const MEASURED: f64 = 10.0;

/// Returns a service with 20 places of 100 ms.
fn places(callers: Callers) -> Service {
    Service {
        cores: 20.0,
        has_places: true,
        operations: vec![Operation::new(0.1, 1.0)],
        deviation: 0.3,
        callers,
        ..service()
    }
}

fn bad_time() -> impl Strategy<Value = Phase> {
    let load = prop_oneof![Just(0.001), Just(0.5), Just(1.5), Just(3.0)];
    let cores = prop_oneof![Just(0.0), Just(0.05), Just(0.3), Just(1.0)];
    (load, cores).prop_map(|(load, cores)| Phase::new(BAD, load, 0.25).cores(cores))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn after_any_bad_time_the_service_works_as_well_as_it_can(
        bad in bad_time(),
        load in 0.3..3.0f64,
        callers in prop_oneof![
            Just(Callers::TellDeadline),
            Just(Callers::Wait),
            Just(Callers::GiveUp),
        ],
        seed in 1..1_000u64,
    ) {
        let service = places(callers);
        let phases = [
            Phase::new(5.0, 1.0, 0.25),
            bad,
            Phase::new(AFTER + MEASURED + 2.0, load, 0.25),
        ];
        let run = Run::new(&service, Config::default(), seed).play(&phases);
        let from = 5.0 + BAD + AFTER;
        let to = from + MEASURED;
        let good = run.ended.iter().filter(|it| it.is_good() && (from..to).contains(&it.ended_at));
        let good: f64 = good.map(|it| it.cost).sum();
        let can = (MEASURED * service.cores).min(work(&run, from, to, |_| true));
        prop_assert!(good >= 0.9 * can, "{good} of {can}");
    }
}

#[track_caller]
fn assert_at_least(shape: &str, least: f64) {
    let shapes = shapes();
    let shape = shapes.iter().find(|it| it.name == shape).unwrap();
    let figures = shape.figures(Who::Doorward, 1);
    assert!(figures[0] >= least, "{}: {figures:?}", shape.name);
}

#[test]
fn a_limit_that_was_cut_for_few_places_is_soon_found_again() {
    assert_at_least("3 of 100 places for a minute, after it", 0.9);
}

#[test]
fn places_that_are_slower_than_the_deadline_are_used() {
    assert_at_least("fewer places, callers tell 1 s, 3 left", 0.9);
    assert_at_least("fewer places, callers give up, 3 left", 0.9);
}

#[test]
fn a_dependency_that_is_slow_is_no_overload() {
    assert_at_least("dependency 10 x slower for ten minutes", 0.9);
}

#[test]
fn critical_requests_do_not_wait_behind_long_ones() {
    assert_at_least("2 ms critical behind 300 ms", 0.99);
}

#[test]
fn a_new_instance_with_slow_requests_refuses_none() {
    let shapes = shapes();
    for shape in shapes
        .iter()
        .filter(|it| it.name.starts_with("new: "))
        .take(3)
    {
        let figures = shape.figures(Who::Doorward, 1);
        assert!(figures[0] <= 0.05, "{}: {figures:?}", shape.name);
    }
}

/// Fills a throttler whose requests never end, and offers it as many more as asked for.
fn admitted_although_full(config: Config, offers: u32, seconds: i64) -> (u32, u32) {
    let mut throttler = Throttler::<()>::new(Config {
        first_limit: 4,
        waiting_max: 0,
        ..config
    });
    let mut admissions = Vec::new();
    let (mut trials, mut shadowed) = (0, 0);
    for offer in 0..offers {
        let now =
            Moment::from_nanos(i64::from(offer) * seconds * 1_000_000_000 / i64::from(offers));
        if let Offer::Admitted(admission) = throttler.offer(&Ask::default(), || (), now) {
            trials += u32::from(admission.is_trial());
            shadowed += u32::from(admission.shadow() == Some(Reason::Full));
            admissions.push(admission);
        }
    }
    (trials, shadowed)
}

#[test]
fn some_requests_pass_whatever_the_limit_says() {
    // One of 100 refusals; but if such a request does not end, one in ten seconds.
    let (trials, _) = admitted_although_full(Config::default(), 1_000, 1);
    assert_eq!(trials, 1);
    let (trials, _) = admitted_although_full(Config::default(), 10_000, 100);
    assert!((9..=11).contains(&trials), "{trials}");
}

#[test]
fn shadow_mode_admits_all_and_tells_why_it_would_not() {
    let shadow = Config {
        is_shadow: true,
        ..Config::default()
    };
    let (trials, shadowed) = admitted_although_full(shadow, 100, 1);
    assert_eq!((trials, shadowed), (0, 96));
}
