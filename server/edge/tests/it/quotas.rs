//! Envoys with buckets, on a virtual clock: they use what they are assigned, and report every five seconds.

mod world;

use std::time::Duration;

use doorward::rules::{Limiter, Rules};
use doorward_door::caller_id::CallerId;
use doorward_edge::asker::Asker;
use proptest::prelude::*;

use self::world::{REPORTS_EVERY, STEP, World, replica_of};
pub(crate) use self::world::{ask, replica};

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn envoys_share_a_limit_fairly_and_follow_demand_within_ten_seconds() {
    let mut world = World::new(&[40.0, 150.0, 400.0]);
    world.play(seconds(30));
    world.check_rates(&[40.8, 129.0, 129.0]);
    for (envoy, demand) in world.envoys.iter_mut().zip([150.0, 400.0, 40.0]) {
        envoy.demand = demand;
    }
    world.play(seconds(10));
    world.check_rates(&[129.0, 129.0, 40.8]);
    world.envoys[1].demand = 0.0;
    world.play(seconds(10));
    world.check_rates(&[153.0, 0.0, 40.8]);
}

#[test]
fn streams_of_one_envoy_have_one_share_whatever_they_report() {
    let mut world = World::new(&[400.0; 5]);
    // One opens four streams, and reports that a thousand times what counts was denied.
    for number in 1..5 {
        world.envoys[number].asker = world.envoys[1].asker.clone();
        world.envoys[number].denied_in_addition = u64::MAX;
    }
    world.play(seconds(60));
    world.check_rates(&[150.0, 37.5, 37.5, 37.5, 37.5]);
}

#[test]
fn names_of_one_identity_divide_its_share() {
    let mut world = World::new(&[400.0; 4]);
    let address = CallerId::of([192, 0, 2, 1].into());
    for number in 1..4 {
        let name = format!("envoy-{number}");
        world.envoys[number].asker = Asker::new(Some(&name), None, Some(&address));
    }
    world.envoys[3].demand = 20.0;
    world.play(seconds(60));
    world.check_rates(&[150.0, 64.8, 64.8, 20.4]);
}

#[test]
fn streams_of_one_identity_divide_a_limit_that_the_node_does_not_know() {
    let mut world = World::new(&[400.0; 4]);
    world.replica = replica_of("shared/api/other=*", 1, world.now);
    let address = CallerId::of([192, 0, 2, 1].into());
    for (number, name) in [(1, "one"), (2, "one"), (3, "other")] {
        world.envoys[number].asker = Asker::new(Some(name), None, Some(&address));
    }
    world.play(seconds(60));
    world.check_rates(&[150.0, 50.0, 50.0, 50.0]);
}

#[test]
fn envoys_of_weights_1_and_3_divide_a_limit_1_to_3() {
    let callers = "{name: envoy-1, weight: 3}";
    let mut world = World::with_callers(callers, &[400.0, 400.0]);
    world.play(seconds(30));
    world.check_rates(&[75.0, 225.0]);
    world.envoys[1].demand = 100.0;
    world.play(seconds(10));
    world.check_rates(&[198.0, 102.0]);
}

#[test]
fn an_envoy_of_higher_priority_is_served_first() {
    let callers = "{name: envoy-1, priority: 1}, {name: envoy-2, priority: -1}";
    let mut world = World::with_callers(callers, &[400.0, 200.0, 400.0]);
    world.play(seconds(30));
    world.check_rates(&[96.0, 204.0, 0.0]);
    // Another document changes the ranks of open buckets.
    let rules =
        "domain: api\ndescriptors:\n- {key: user, scope: shared, rate_limit: {rate: 300/s}}\n";
    let rules = Rules::load(&[("api.yaml", rules)]).unwrap();
    world.limiter = Limiter::new(rules, 100, [1, 2]);
    world.play(seconds(15));
    world.check_rates(&[100.0, 100.0, 100.0]);
}

#[test]
fn what_an_envoy_without_a_stream_may_use_stays_reserved_until_it_ends() {
    let mut world = World::new(&[400.0, 400.0]);
    world.play(seconds(30));
    world.check_rates(&[150.0, 150.0]);
    world.envoys[0].demand = 0.0;
    world.cut(0);
    world.envoys[0].reported_at = None;
    world.play(seconds(8));
    world.check_rates(&[150.0, 150.0]);
    world.play(seconds(10));
    world.check_rates(&[0.0, 300.0]);
}

#[test]
fn an_envoy_whose_stream_is_reset_has_its_share_again_at_its_next_report() {
    let mut world = World::new(&[400.0, 400.0, 400.0]);
    world.play(seconds(30));
    for _ in 0..3 {
        world.cut(0);
        world.play(REPORTS_EVERY + STEP);
        world.check_rates(&[100.0, 100.0, 100.0]);
    }
}

/// One that gives itself no name may be another one, behind the same address.
#[test]
fn a_nameless_envoy_takes_over_nothing() {
    let mut world = World::new(&[400.0, 400.0]);
    let address = CallerId::of([192, 0, 2, 0].into());
    world.envoys[0].asker = Asker::new(None, None, Some(&address));
    world.play(seconds(30));
    world.cut(0);
    world.play(REPORTS_EVERY + STEP);
    world.check_rates(&[0.0, 150.0]);
}

#[test]
fn a_new_agent_assigns_nothing_until_former_assignments_have_ended() {
    let mut world = World::new(&[40.0, 400.0]);
    world.play(seconds(30));
    world.restart();
    world.play(seconds(7));
    world.check_rates(&[40.8, 259.2]);
    world.play(seconds(8));
    world.check_rates(&[0.0, 0.0]);
    world.play(seconds(3));
    world.check_rates(&[40.8, 259.2]);
}

#[test]
fn a_new_agent_with_a_directory_goes_on_with_assignments_by_name_and_its_own_callers_have_the_rest()
{
    let mut world = World::new(&[40.0, 100.0, 400.0]).with_directory();
    world.own = 60.0;
    world.play(seconds(32));
    let before = world.rates();
    world.check_rates(&[40.8, 97.0, 97.0]);
    for _ in 0..3 {
        world.restart();
        // No Envoy has reported yet.
        world.play(seconds(1));
        let own: f64 = world.passed.iter().map(|it| it[0]).sum();
        assert!((50.0..=60.0).contains(&own), "{own} of its own pass");
        assert_eq!(world.rates(), before);
        world.play(REPORTS_EVERY - seconds(1));
        world.check_rates(&before);
    }
}

#[test]
fn an_idle_bucket_is_abandoned_and_comes_back() {
    let mut world = World::new(&[100.0, 400.0]);
    world.play(seconds(30));
    world.envoys[0].demand = 0.0;
    world.play(seconds(75));
    assert!(world.envoys[0].is_abandoned);
    assert_eq!(world.envoys[0].stream.as_ref().unwrap().len(), 0);
    world.check_rates(&[0.0, 300.0]);
    world.envoys[0].demand = 100.0;
    world.play(seconds(15));
    world.check_rates(&[102.0, 198.0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn assignments_never_exceed_the_capacity(
        changes in prop::collection::vec((0_usize..5, 0.0..500.0_f64, 0_u8..12, 1_u64..9), 1..20),
        has_directory: bool,
    ) {
        let mut world = World::new(&[0.0; 4]);
        if has_directory {
            world = world.with_directory();
        }
        for (number, demand, event, length) in changes {
            match event {
                0 => world.restart(),
                _ if number == 4 => world.own = demand,
                1 | 2 => world.cut(number),
                _ => world.envoys[number].demand = demand,
            }
            world.play(seconds(length));
        }
    }
}
