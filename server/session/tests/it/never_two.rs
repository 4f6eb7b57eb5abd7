//! Never two masters, whatever goes wrong; and one master again after everything is healed.

use std::time::Duration;

use crate::election_world::{ElectionWorld, TTL};
use crate::mishaps::Mishaps;

/// How many worlds of each kind. Set the variable for more, to look for something rare.
fn worlds() -> u64 {
    std::env::var("DOORWARD_SESSION_WORLDS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(50)
}

#[track_caller]
fn play(mishaps: Mishaps) {
    const LENGTH: Duration = TTL.saturating_mul(40);
    let mut masterships = 0;
    for seed in 0..worlds() {
        let count = 2 + (seed % 2) as usize;
        let mut world = ElectionWorld::new(seed, count, mishaps);
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.play(LENGTH)));
        if let Err(failed) = played {
            println!("seed {seed}: {mishaps:?}");
            std::panic::resume_unwind(failed);
        }
        masterships += world.masterships;
    }
    let each = masterships as f64 / worlds() as f64;
    assert!(each > 3.0, "masters come and go: {each}");
}

const CALM: Mishaps = Mishaps {
    lossy: 0.0,
    clocks: 0.001,
    candidates: true,
    goes_back: false,
};

#[test]
fn candidates_die_freeze_resign_and_are_cut_off() {
    play(CALM);
}

#[test]
fn answers_are_lost_and_late_and_what_was_asked_is_done_without_one() {
    play(Mishaps { lossy: 0.3, ..CALM });
}

#[test]
fn clocks_are_as_wrong_as_they_may_be() {
    play(Mishaps {
        lossy: 0.2,
        clocks: 0.1,
        ..CALM
    });
}

#[test]
fn etcd_is_wiped_and_restored_from_backups() {
    play(Mishaps {
        lossy: 0.1,
        candidates: false,
        goes_back: true,
        ..CALM
    });
}
