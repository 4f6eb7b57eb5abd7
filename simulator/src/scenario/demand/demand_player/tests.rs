//! Every kind of demand: what it is for, and what holds for all of them.

use proptest::prelude::*;

use super::*;
use crate::scenario::demand::{FlashCrowd, OnOff, Ramp, Sine, Spike};
use crate::scenario::forms::Part;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Plays the demand of a client in the first `until` seconds.
fn played(demand: &Demand, number: usize, until: f64) -> Vec<(f64, f64)> {
    let mut player = DemandPlayer::new(number, Chance::new(7).fork(number as u64));
    std::iter::from_fn(|| player.next_change(demand))
        .map(|change| (change.at.as_secs_f64(), change.wants))
        .take_while(|(at, _)| *at <= until)
        .collect()
}

#[track_caller]
fn check(demand: &Demand, expected: &[(f64, f64)]) {
    assert_eq!(played(demand, 0, 1e6), expected, "{demand:?}");
}

#[test]
fn a_player_is_small() {
    assert!(size_of::<DemandPlayer>() <= 32);
}

#[test]
fn what_is_constant_is_said_once() {
    check(&Demand::Constant(Amount(5.0)), &[(0.0, 5.0)]);
}

#[test]
fn a_step_is_two_amounts() {
    let step = |at_s| Demand::Step {
        from: Amount(1.0),
        to: Amount(9.0),
        at: Time(s(at_s)),
    };
    check(&step(30), &[(0.0, 1.0), (30.0, 9.0)]);
    check(&step(0), &[(0.0, 9.0)]);
}

#[test]
fn a_ramp_ends_exactly_where_it_should() {
    let ramp = Demand::Ramp(Ramp {
        from: Amount(10.0),
        to: Amount(0.0),
        at: Time(s(60)),
        over: Step(s(4)),
        every: Some(Step(s(3))),
    });
    check(&ramp, &[(0.0, 10.0), (63.0, 2.5), (64.0, 0.0)]);
}

#[test]
fn a_spike_comes_and_goes() {
    let spike = Demand::Spike(Spike {
        base: Amount(1.0),
        peak: Amount(50.0),
        at: Time(s(10)),
        length: Step(s(5)),
    });
    check(&spike, &[(0.0, 1.0), (10.0, 50.0), (15.0, 1.0)]);
}

#[test]
fn a_sine_goes_up_and_down_and_clients_may_be_ahead_of_each_other() {
    let sine = Demand::Sine(Sine {
        mean: Amount(10.0),
        amplitude: Amount(10.0),
        period: Step(s(100)),
        shift: Part(0.25),
        every: Some(Step(s(25))),
    });
    let rounded = |number| -> Vec<f64> {
        let changes = played(&sine, number, 100.0);
        changes.iter().map(|(_, wants)| wants.round()).collect()
    };
    assert_eq!(rounded(0), [10.0, 20.0, 10.0, 0.0, 10.0]);
    assert_eq!(rounded(1), [20.0, 10.0, 0.0, 10.0, 20.0]);
}

#[test]
fn a_flash_crowd_comes_quickly_goes_slowly_and_is_gone_in_the_end() {
    let crowd = Demand::FlashCrowd(FlashCrowd {
        base: Amount(1.0),
        peak: Amount(101.0),
        at: Time(s(60)),
        rise: Step(s(10)),
        half_life: Step(s(30)),
        every: Some(Step(s(5))),
    });
    let changes = played(&crowd, 0, 1e6);
    let at = |time| changes.iter().find(|(at, _)| *at == time).unwrap().1;
    assert_eq!([at(0.0), at(65.0), at(70.0)], [1.0, 51.0, 101.0]);
    assert_eq!([at(100.0), at(130.0)], [51.0, 26.0]);
    let (end, last) = *changes.last().unwrap();
    assert_eq!(last, 1.0);
    assert!((360.0..375.0).contains(&end), "{end}");
}

#[test]
fn a_walk_steps_at_once_and_then_every_so_often_within_its_factors() {
    let walk = Demand::Walk {
        start: Amount(100.0),
        factor: (0.9, 1.1),
        every: Step(s(10)),
    };
    let changes = played(&walk, 0, 3_600.0);
    assert_eq!(changes.len(), 361);
    let mut before = 100.0;
    for (step, (at, wants)) in changes.iter().enumerate() {
        assert_eq!(*at, step as f64 * 10.0);
        assert!((before * 0.9..=before * 1.1).contains(wants));
        before = *wants;
    }
    assert_ne!(changes, played(&walk, 1, 3_600.0), "each walks its own way");
}

#[test]
fn on_and_off_take_their_share_of_the_time() {
    let on_off = Demand::OnOff(OnOff {
        peak: Amount(10.0),
        base: Amount(1.0),
        on_for: Step(s(20)),
        off_for: Step(s(60)),
    });
    let mut on_s = 0.0;
    let mut started_on = 0;
    for client in 0..200 {
        let changes = played(&on_off, client, 10_000.0);
        started_on += usize::from(changes[0].1 == 10.0);
        for pair in changes.windows(2) {
            assert_ne!(pair[0].1, pair[1].1, "on and off take turns");
            if pair[0].1 == 10.0 {
                on_s += pair[1].0 - pair[0].0;
            }
        }
    }
    assert!((0.23..0.27).contains(&(on_s / 2e6)), "{on_s}");
    assert!((30..70).contains(&started_on), "{started_on}");
}

fn amount() -> impl Strategy<Value = Amount> {
    prop_oneof![Just(0.0), 0.0..1e3, Just(1e15)].prop_map(Amount)
}

fn two() -> impl Strategy<Value = (Amount, Amount)> {
    (amount(), amount())
}

fn time() -> impl Strategy<Value = Time> {
    let time = prop_oneof![
        Just(Duration::ZERO),
        (0_u64..1_000_000).prop_map(Duration::from_millis),
        (0_u64..4_000_000_000).prop_map(Duration::from_secs),
    ];
    time.prop_map(Time)
}

/// A duration.
fn length() -> impl Strategy<Value = Step> {
    time().prop_map(|time| Step(time.0.max(Duration::from_millis(1))))
}

fn every() -> impl Strategy<Value = Option<Step>> {
    length().prop_map(Some)
}

fn demand() -> impl Strategy<Value = Demand> {
    prop_oneof![
        amount().prop_map(Demand::Constant),
        (two(), time()).prop_map(|((from, to), at)| Demand::Step { from, to, at }),
        (two(), time(), length(), every()).prop_map(|((from, to), at, over, every)| {
            Demand::Ramp(Ramp {
                from,
                to,
                at,
                over,
                every,
            })
        }),
        (amount(), 0.0..=1.0, length(), 0.0..=1.0, every()).prop_map(
            |(mean, part, period, shift, every)| Demand::Sine(Sine {
                mean,
                amplitude: Amount(mean.0 * part),
                period,
                shift: Part(shift),
                every,
            })
        ),
        (two(), time(), length()).prop_map(|((base, peak), at, length)| Demand::Spike(Spike {
            base,
            peak,
            at,
            length
        })),
        (amount(), 0.0..1.0, 1.0..3.0, length()).prop_map(|(start, least, most, every)| {
            Demand::Walk {
                start,
                factor: (least, most),
                every,
            }
        }),
        (two(), length(), length()).prop_map(|((peak, base), on_for, off_for)| {
            Demand::OnOff(OnOff {
                peak,
                base,
                on_for,
                off_for,
            })
        }),
        (two(), time(), time(), length(), every()).prop_map(
            |((base, peak), at, rise, half_life, every)| Demand::FlashCrowd(FlashCrowd {
                base,
                peak,
                at,
                rise: Step(rise.0),
                half_life,
                every,
            })
        ),
    ]
}

/// Returns the largest amount of a demand with a bound of its own.
fn bounds(demand: &Demand) -> (f64, f64) {
    let both = |a: Amount, b: Amount| (f64::min(a.0, b.0), f64::max(a.0, b.0));
    match *demand {
        Demand::Constant(wants) => (wants.0, wants.0),
        Demand::Step { from, to, .. } | Demand::Ramp(Ramp { from, to, .. }) => both(from, to),
        Demand::Sine(Sine {
            mean, amplitude, ..
        }) => (mean.0 - amplitude.0, mean.0 + amplitude.0),
        Demand::Spike(Spike { base, peak, .. })
        | Demand::OnOff(OnOff { base, peak, .. })
        | Demand::FlashCrowd(FlashCrowd { base, peak, .. }) => both(base, peak),
        Demand::Diurnal(day) => (day.least.0, day.most.0),
        Demand::Walk { .. } | Demand::Trace(_) => (0.0, f64::INFINITY),
    }
}

proptest! {
    #[test]
    fn changes_come_in_order_from_the_start_and_are_amounts(
        demand in demand(),
        number in 0_usize..10_000_000,
        seed in any::<u64>(),
    ) {
        let (least, most) = bounds(&demand);
        let mut player = DemandPlayer::new(number, Chance::new(seed));
        let mut before: Option<Duration> = None;
        for _ in 0..2_000 {
            let Some(change) = player.next_change(&demand) else {
                prop_assert!(before.is_some(), "there is a first change");
                prop_assert_eq!(player.next_change(&demand), None, "the end is the end");
                break;
            };
            match before {
                None => prop_assert_eq!(change.at, Duration::ZERO),
                Some(before) => prop_assert!(change.at > before),
            }
            before = Some(change.at);
            prop_assert!((0.0..=1e15).contains(&change.wants), "{change:?}");
            let slack = 1e-9 * most.min(1e15);
            prop_assert!(change.wants >= least - slack && change.wants <= most + slack, "{change:?}");
        }
    }

    #[test]
    fn the_same_chance_gives_the_same_demand(demand in demand(), seed in any::<u64>()) {
        let mut twins = [0, 0].map(|number| DemandPlayer::new(number, Chance::new(seed)));
        for _ in 0..100 {
            let [a, b] = twins.each_mut().map(|player| player.next_change(&demand));
            prop_assert_eq!(a, b);
        }
    }
}
