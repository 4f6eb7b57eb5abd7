//! Bugs planted in [sessions](doorward_session::session_bugs) and in the [engine](doorward_engine::planted), and where the
//! simulator's worlds by chance find each.
//!
//! What a checker finds of itself nobody knows until there is something to find. So each bug of [`FOUND`] is
//! switched on, and worlds are played until one of them breaks a promise; without the bug the same worlds hold.
//! `cargo test -p doorward-planted`, alone: together with other packages, its features would be theirs, too.

use std::fmt;

use doorward_engine::planted as engine;
use doorward_session::session_bugs as session;
use doorward_simulator::fuzz::{self, Part};

/// Worlds that are played for a bug, at most.
pub const SEEDS_MAX: u64 = 2_000;

/// A bug of either.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum AnyBug {
    /// Of a session.
    Session(session::SessionBug),
    /// Of the engine.
    Engine(engine::Bug),
}

impl AnyBug {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        let sessions = session::SessionBug::ALL.into_iter().map(Self::Session);
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
impl fmt::Debug for AnyBug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(bug) => bug.fmt(f),
            Self::Engine(bug) => bug.fmt(f),
        }
    }
}

/// A bug, and in which worlds it is looked for.
#[derive(Clone, Copy, Debug)]
pub struct Planted {
    /// Which.
    pub bug: AnyBug,
    /// What is drawn for sure.
    pub focus: Option<Part>,
    /// The first seed.
    pub from: u64,
}

/// The bugs that worlds by chance find, and in which worlds they are looked for, from a seed on: one a little
/// before the first that finds it, so that it takes no time. Those that only show in what is not simulated, or
/// in an order of events that chance hardly draws, are caught by the tables beside the machines, and by the
/// engine's own tests.
pub const FOUND: &[Planted] = &[
    of_session(session::SessionBug::InFlightForgotten, None, 0),
    of_session(session::SessionBug::DeadlineForgotten, None, 0),
    of_session(session::SessionBug::WaitWithoutEnd, None, 0),
    of_session(session::SessionBug::LossNotReported, None, 0),
    of_session(session::SessionBug::SecondMastershipSilent, None, 0),
    of_session(session::SessionBug::RenewalForgotten, None, 0),
    of_session(session::SessionBug::LeaseGoneUnnoticed, None, 0),
    of_session(session::SessionBug::MarginLeftOut, None, 0),
    of_session(
        session::SessionBug::RenewalFromAnswer,
        Some(Part::Resources),
        0,
    ),
    of_session(session::SessionBug::EpochGoesBack, Some(Part::Clocks), 26),
    of_engine(engine::Bug::OlderLeaseForgotten),
    of_engine(engine::Bug::AcknowledgementForgotten),
    of_engine(engine::Bug::ExpiresTooEarly),
    of_engine(engine::Bug::FormerProcessForgotten),
    of_engine(engine::Bug::VacantSinceForgotten),
    of_engine(engine::Bug::CurveTooCoarse),
    of_engine(engine::Bug::LearningEndsTooSoon),
    of_engine(engine::Bug::OthersForgotten),
    of_engine(engine::Bug::LeaseOutlivesParents),
    of_engine(engine::Bug::OutstandingForgotten),
];

const fn of_session(bug: session::SessionBug, focus: Option<Part>, from: u64) -> Planted {
    Planted {
        bug: AnyBug::Session(bug),
        focus,
        from,
    }
}

/// Worlds in which anything may be drawn find it soon.
const fn of_engine(bug: engine::Bug) -> Planted {
    Planted {
        bug: AnyBug::Engine(bug),
        focus: None,
        from: 0,
    }
}

/// The first world of so many that breaks a promise with a bug, and which checker saw it. None: none does.
pub fn find(planted: Planted, seeds: u64) -> Option<(u64, String)> {
    AnyBug::plant(Some(planted.bug));
    let mut seeds = planted.from..planted.from + seeds;
    let found = seeds.find_map(|seed| {
        let failure = fuzz::play(&fuzz::scenario(seed, planted.focus)).1?;
        Some((seed, failure.to_string()))
    });
    AnyBug::plant(None);
    found
}
