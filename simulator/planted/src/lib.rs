//! Bugs planted in [sessions](doorward_session::planted) and in the [engine](doorward_engine::planted), and where the
//! simulator's worlds by chance find each.
//!
//! What a checker finds of itself nobody knows until there is something to find. So each bug of [`FOUND`] is
//! switched on, and worlds are played until one of them breaks a promise; without the bug the same worlds hold.
//! `cargo test -p doorward-planted`, alone: together with other packages, its features would be theirs, too.

use std::fmt;

use doorward_engine::planted as engine;
use doorward_session::planted as session;
use doorward_simulator::fuzz;

/// Worlds that are played for a bug, at most.
pub const SEEDS_MAX: u64 = 2_000;

/// A bug of either.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// Of a session.
    Session(session::Bug),
    /// Of the engine.
    Engine(engine::Bug),
}

impl Bug {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let sessions = session::Bug::ALL.into_iter().map(Self::Session);
        sessions.chain(engine::Bug::ALL.into_iter().map(Self::Engine))
    }

    /// Switches this one on, for the whole program, and all others off. None: all are off.
    pub fn plant(bug: Option<Self>) {
        session::plant(match bug {
            Some(Self::Session(bug)) => Some(bug),
            _ => None,
        });
        engine::plant(match bug {
            Some(Self::Engine(bug)) => Some(bug),
            _ => None,
        });
    }
}

/// By its name.
impl fmt::Debug for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(bug) => bug.fmt(f),
            Self::Engine(bug) => bug.fmt(f),
        }
    }
}

/// A bug, and from which seed on worlds are played.
#[derive(Clone, Copy, Debug)]
pub struct Planted {
    /// Which.
    pub bug: Bug,
    /// The first seed.
    pub from: u64,
}

/// The bugs that worlds by chance find, and from which seed on they are looked for: one a little before the
/// first that finds it, so that it takes no time. Those that only show in what is not simulated, or in an
/// order of events that chance hardly draws, are caught by the tables beside the machines, and by the engine's
/// own tests.
pub const FOUND: &[Planted] = &[
    of_session(session::Bug::InFlightForgotten, 30_000),
    of_session(session::Bug::DeadlineForgotten, 50_000),
    of_session(session::Bug::WaitWithoutEnd, 50_000),
    of_session(session::Bug::LossNotTold, 30_000),
    of_session(session::Bug::SecondMastershipSilent, 50_000),
    of_session(session::Bug::RenewalForgotten, 30_000),
    of_session(session::Bug::LeaseGoneUnnoticed, 50_000),
    of_session(session::Bug::MarginLeftOut, 1_000_000_000),
    of_session(session::Bug::RenewalFromAnswer, 1_000_000_000),
    of_session(session::Bug::EpochGoesBack, 1_000_000_030),
    of_session(session::Bug::VacantTooEarly, 1_000_000_230),
    of_session(session::Bug::OlderLeasesForgotten, 20_240),
];

const fn of_session(bug: session::Bug, from: u64) -> Planted {
    Planted {
        bug: Bug::Session(bug),
        from,
    }
}

/// The first world of so many that breaks a promise with a bug, and which checker saw it. None: none does.
pub fn find(planted: Planted, seeds: u64) -> Option<(u64, String)> {
    Bug::plant(Some(planted.bug));
    let mut seeds = planted.from..planted.from + seeds;
    let found = seeds.find_map(|seed| {
        let failure = fuzz::play(&fuzz::scenario(seed)).1?;
        Some((seed, failure.to_string()))
    });
    Bug::plant(None);
    found
}
