//! Tests of the generator and of its distributions.

use super::*;

#[test]
fn it_is_the_published_generator() {
    // First numbers for the seed 1234567, as other implementations give them.
    let mut chance = Chance::new(1_234_567);
    let first = [chance.bits(), chance.bits(), chance.bits()];
    assert_eq!(
        first,
        [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423
        ]
    );
}

#[test]
fn draws_are_within_their_bounds_and_spread_evenly() {
    let mut chance = Chance::new(1);
    let (short, long) = (Duration::from_secs(2), Duration::from_secs(3));
    let (mut sum, mut exponential, mut counts) = (0.0, 0.0, [0; 7]);
    for _ in 0..70_000 {
        let u = chance.uniform();
        assert!((0.0..1.0).contains(&u));
        sum += u;
        counts[chance.below(7)] += 1;
        assert!((0.9..=1.1).contains(&chance.between(0.9, 1.1)));
        assert!((short..=long).contains(&chance.duration(short, long)));
        exponential += chance.exponential(5.0);
    }
    assert!((sum / 70_000.0 - 0.5).abs() < 0.01);
    assert!((exponential / 70_000.0 - 5.0).abs() < 0.1);
    assert!(
        counts.iter().all(|n| (9_500..10_500).contains(n)),
        "{counts:?}"
    );
}

#[test]
fn bounds_may_be_one_and_the_same_or_as_far_apart_as_can_be() {
    let mut chance = Chance::new(1);
    assert_eq!(chance.below(0), 0);
    assert_eq!(chance.below(1), 0);
    assert_eq!(chance.between(3.0, 3.0), 3.0);
    let second = Duration::from_secs(1);
    assert_eq!(chance.duration(second, second), second);
    assert!(chance.duration(Duration::ZERO, Duration::MAX) <= Duration::MAX);
    assert_eq!(chance.exponential_duration(Duration::ZERO), Duration::ZERO);
}

#[test]
fn everything_is_picked_as_often() {
    let mut chance = Chance::new(5);
    let mut counts = [0; 3];
    for _ in 0..9_000 {
        counts[chance.pick([0, 1, 2])] += 1;
    }
    assert!(
        counts.iter().all(|n| (2_800..3_200).contains(n)),
        "{counts:?}"
    );
    assert_eq!(chance.pick(["the only one"]), "the only one");
}

#[test]
fn streams_are_different_and_leave_each_other_alone() {
    let mut whole = Chance::new(3);
    let (mut a, mut b) = (whole.fork(0), whole.fork(1));
    assert_eq!(whole.fork(0), a);
    let streams = [whole.bits(), a.bits(), b.bits()];
    assert_eq!(Chance::new(3).bits(), streams[0]);
    assert!(streams[0] != streams[1] && streams[1] != streams[2] && streams[0] != streams[2]);
}
