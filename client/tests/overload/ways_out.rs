//! Each state of a limit is left, whatever the traffic was.
//!
//! A bad time is played, and after it a load. From 20 seconds later on, the service must do 90 % of what it can do, or of
//! what comes. The goal is 10 seconds; `cargo bench -p doorward --bench experiments -- recovery` counts
//! the runs that need longer.

use doorward::overload::{Admission, Ask, Config, Offer, Reason, Throttler};
use doorward_limits::Moment;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;

use crate::facts::{BAD_LOADS, BAD_PLACES, recovery};
use crate::service::Callers;
use crate::shapes::{Who, shapes};

const CALLERS: [Callers; 4] = [
    Callers::TellDeadline,
    Callers::Wait,
    Callers::GiveUp,
    Callers::GiveUpAndWorkEnds,
];

proptest! {
    // A few of a thousand runs need longer, so chance would make this test fail now and then.
    #![proptest_config(ProptestConfig {
        cases: 24,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn after_any_bad_time_the_service_works_as_well_as_it_can(
        bad in (select(&BAD_LOADS), select(&BAD_PLACES)),
        load in 0.3..3.0f64,
        callers in select(&CALLERS),
        seed in 1..1_000u64,
    ) {
        let (_, after) = recovery(bad, load, callers, seed);
        prop_assert!(after >= 0.9, "{after}");
    }
}

#[track_caller]
fn assert_at_least(shape: &str, least: f64) {
    let shapes = shapes();
    let shape = shapes.iter().find(|it| it.name == shape).unwrap();
    for seed in 1..=2 {
        let figures = shape.figures(Who::Doorward, seed);
        assert!(figures[0] >= least, "{}: {figures:?}", shape.name);
    }
}

#[test]
fn a_limit_that_was_cut_for_few_places_is_soon_found_again() {
    assert_at_least("3 of 100 places for a minute, after it", 0.9);
}

#[test]
fn places_that_are_slower_than_the_deadline_are_used() {
    assert_at_least("fewer places, callers tell 1 s, 3 left", 0.9);
    assert_at_least("fewer places, callers give up, 3 left", 0.9);
    assert_at_least("fewer places, work ends with its caller, 3 left", 0.9);
    assert_at_least("1 of 20 places left, work ends with its caller", 0.9);
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

#[test]
fn a_start_under_overload_is_soon_over() {
    assert_at_least("4 cores, first 3 s", 0.85);
    assert_at_least("64 cores, first 3 s", 0.85);
}

/// Offers a request each millisecond, each of which takes a time. Returns when the limit comes to a state, or the end.
fn serve(
    throttler: &mut Throttler<()>,
    served: &mut Vec<(i64, Admission)>,
    millis: std::ops::Range<i64>,
    takes: i64,
    until: &str,
) -> i64 {
    for milli in millis.clone() {
        let now = Moment::from_nanos(milli * 1_000_000);
        while let Some(ended) = served.iter().position(|(at, _)| *at <= milli) {
            throttler.handle_end(served.remove(ended).1, None, now);
        }
        if throttler.state() == until {
            return milli;
        }
        if let Offer::Admitted(admission) = throttler.offer(&Ask::default(), || (), now) {
            served.push((milli + takes, admission));
        }
    }
    millis.end
}

/// Returns a throttler whose requests suddenly took 200 ms instead of 10, so its limit was cut; those in flight, and when
/// it was.
fn cut() -> (Throttler<()>, Vec<(i64, Admission)>, i64) {
    let mut throttler = Throttler::new(Config {
        waiting_max: 0,
        ..Config::default()
    });
    let mut served = Vec::new();
    serve(&mut throttler, &mut served, 0..5_000, 10, "falling");
    let slow = 5_000..20_000;
    let cut_at = serve(&mut throttler, &mut served, slow, 200, "falling");
    (throttler, served, cut_at)
}

#[test]
fn slow_requests_are_noticed_before_they_end() {
    let (_, _, cut_at) = cut();
    assert!(cut_at < 5_200, "{cut_at}");
}

#[test]
fn a_limit_is_open_again_as_soon_as_fewer_requests_are_fast() {
    let (mut throttler, mut served, cut_at) = cut();
    let (from, to) = (cut_at + 1, cut_at + 3_000);
    let opened_at = serve(&mut throttler, &mut served, from..to, 10, "open");
    assert!(opened_at < to, "{cut_at} {opened_at}");
}

#[test]
fn requests_that_never_end_do_not_hold_a_limit_that_was_cut() {
    let (mut throttler, _never, cut_at) = cut();
    let (from, to) = (cut_at + 1, cut_at + 10_000);
    let opened_at = serve(&mut throttler, &mut Vec::new(), from..to, 10, "open");
    assert!(opened_at < to, "{cut_at} {opened_at}");
}

/// Fills a throttler whose requests never end, and offers it as many more as asked for.
fn admitted_although_full(config: Config, offers: u32, seconds: i64) -> (u32, u32) {
    let mut throttler = Throttler::<()>::new(Config {
        first_limit: 1,
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
    assert_eq!((trials, shadowed), (0, 99));
}
