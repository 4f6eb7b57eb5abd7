//! Bugs planted in [sessions](doorward_session::planted), and where the simulator's worlds by chance find each.
//!
//! What a checker finds of itself nobody knows until there is something to find. So each bug of [`FOUND`] is
//! switched on, and worlds are played until one of them breaks a promise; without the bug the same worlds hold.
//! `cargo test -p doorward-planted`, alone: together with other packages, its feature would be theirs, too.

use doorward_session::planted::{self, Bug};
use doorward_simulator::fuzz::{self, Part};

/// Worlds that are played for a bug, at most.
pub const SEEDS_MAX: u64 = 2_000;

/// A bug, and in which worlds it is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Planted {
    /// Which.
    pub bug: Bug,
    /// What is drawn for sure.
    pub focus: Option<Part>,
    /// The first seed.
    pub from: u64,
}

/// The bugs that worlds by chance find, and in which worlds they are looked for, from a seed on: one a little
/// before the first that finds it, so that it takes no time. Those that only show in what is not simulated,
/// or in an order of events that chance hardly draws, are caught by the tables beside the machines.
pub const FOUND: &[Planted] = &[
    Planted::new(Bug::InFlightForgotten, None, 0),
    Planted::new(Bug::DeadlineForgotten, None, 0),
    Planted::new(Bug::WaitWithoutEnd, None, 0),
    Planted::new(Bug::LossNotTold, None, 0),
    Planted::new(Bug::SecondMastershipSilent, None, 0),
    Planted::new(Bug::RenewalForgotten, None, 0),
    Planted::new(Bug::LeaseGoneUnnoticed, None, 0),
    Planted::new(Bug::MarginLeftOut, None, 0),
    Planted::new(Bug::RenewalFromAnswer, Some(Part::Etcd), 0),
    Planted::new(Bug::EpochGoesBack, Some(Part::Etcd), 0),
    Planted::new(Bug::VacantTooEarly, Some(Part::Etcd), 0),
    Planted::new(Bug::OlderLeasesForgotten, Some(Part::Etcd), 0),
];

impl Planted {
    const fn new(bug: Bug, focus: Option<Part>, from: u64) -> Self {
        Self { bug, focus, from }
    }
}

/// The first world of so many that breaks a promise with a bug, and which checker saw it. None: none does.
pub fn find(planted: Planted, seeds: u64) -> Option<(u64, String)> {
    planted::plant(Some(planted.bug));
    let mut seeds = planted.from..planted.from + seeds;
    let found = seeds.find_map(|seed| {
        let failure = fuzz::play(&fuzz::scenario(seed, planted.focus)).1?;
        Some((seed, failure.to_string()))
    });
    planted::plant(None);
    found
}
