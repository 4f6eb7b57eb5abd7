//! Scenarios by chance: everything is drawn from the seed, then everything goes wrong for a while,
//! and then nothing does any more. In the first part nobody may ever have too much; at the end of
//! the second everybody must have what is right.
//!
//! A seed that fails is made smaller, as far as it still fails in the same way: fewer faults, fewer
//! clients.

mod addresses;
mod clocks;
mod drawn;
mod elections;
mod etcd;
mod further;
mod healed;
mod shrink;
mod small;
mod twins;
mod wider;

use std::fmt;

use crate::recording::Recording;
use crate::scenario::Scenario;
use crate::world::World;

pub use crate::fuzz::shrink::{Kept, shrink, smaller};

/// So many seeds of each family stand together.
const FAMILY_SEEDS: u64 = 10_000;

/// From this seed on, those of families are drawn that came later: what smaller ones draw stays as it is.
const LATER_SEEDS: u64 = 1_000_000_000;

/// What kind of world a seed draws. Ten thousand seeds are of each family, in this order; then it
/// begins again with the first. Those that came later have seeds from a thousand million on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Trees of up to four levels (`drawn`).
    Deep,
    /// The same, and more of everything (`wider`).
    Wider,
    /// The same, and masters that are cut off from their elections (`further`).
    Further,
    /// Small trees with fast elections and hungry siblings (`small`).
    Small,
    /// Clocks that differ by as much as they may (`clocks`).
    Clocks,
    /// etcd that is wiped and restored (`etcd`).
    Etcd,
    /// Two processes under one name (`twins`).
    Twins,
    /// etcd that servers reach badly (`elections`); came later.
    Elections,
    /// Servers that are looked for where they are not (`addresses`); came later.
    Addresses,
}

impl Family {
    /// Those that were there first, in the order of their seeds.
    const FIRST: [Self; 7] = [
        Self::Deep,
        Self::Wider,
        Self::Further,
        Self::Small,
        Self::Clocks,
        Self::Etcd,
        Self::Twins,
    ];

    /// Those that came later, in the same way.
    const LATER: [Self; 2] = [Self::Elections, Self::Addresses];

    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Deep,
        Self::Wider,
        Self::Further,
        Self::Small,
        Self::Clocks,
        Self::Etcd,
        Self::Twins,
        Self::Elections,
        Self::Addresses,
    ];

    /// That of a seed.
    #[expect(
        clippy::indexing_slicing,
        reason = "it is below their number, which is not 0"
    )]
    pub fn of(seed: u64) -> Self {
        let number = |seed: u64, of: usize| (seed / FAMILY_SEEDS % of as u64) as usize;
        match seed.checked_sub(LATER_SEEDS) {
            None => Self::FIRST[number(seed, Self::FIRST.len())],
            Some(seed) => Self::LATER[number(seed, Self::LATER.len())],
        }
    }

    /// Its first seed.
    pub const fn first_seed(self) -> u64 {
        match self {
            Self::Elections => LATER_SEEDS,
            Self::Addresses => LATER_SEEDS + FAMILY_SEEDS,
            _ => self as u64 * FAMILY_SEEDS,
        }
    }
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// Which promise was broken.
    pub promise: Promise,
    /// How, for people.
    pub detail: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.promise.as_str(), self.detail)
    }
}

/// What must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Nobody ever has too much.
    Overshoot,
    /// What is used below a node is what its parent has reserved for it.
    Nesting,
    /// Nobody decides but the master.
    Mastership,
    /// Soon after nothing goes wrong any more everybody has what is right, and soon after somebody
    /// wants something else.
    Rest,
    /// At rest all that can be used is granted.
    Utilisation,
    /// At rest everybody has what is right.
    Fairness,
}

impl Promise {
    /// As verdicts name it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Overshoot => "overshoot",
            Self::Nesting => "nesting",
            Self::Mastership => "mastership",
            Self::Rest => "rest",
            Self::Utilisation => "utilisation",
            Self::Fairness => "fairness",
        }
    }
}

/// The scenario of a seed.
pub fn scenario(seed: u64) -> Scenario {
    let mut scenario = match Family::of(seed) {
        Family::Deep => drawn::scenario(seed),
        Family::Wider => wider(seed),
        Family::Further => {
            let mut scenario = wider(seed);
            further::draw_more(&mut scenario);
            scenario
        }
        Family::Small => small::scenario(seed),
        Family::Clocks => clocks::scenario(seed),
        Family::Etcd => etcd::scenario(seed),
        Family::Twins => twins::scenario(seed),
        Family::Elections => elections::scenario(seed),
        Family::Addresses => addresses::scenario(seed),
    };
    healed::demand_what_is_right(&mut scenario);
    scenario
}

fn wider(seed: u64) -> Scenario {
    let mut scenario = drawn::scenario(seed);
    wider::widen(&mut scenario);
    scenario
}

/// Plays a scenario, and says what it broke.
pub fn play(scenario: &Scenario) -> (Recording, Option<Failure>) {
    let recording = World::new(scenario).run(|_| {});
    let broken = recording.verdicts.iter().find(|verdict| !verdict.holds);
    let failure = broken.and_then(|verdict| {
        let promise = [
            Promise::Overshoot,
            Promise::Nesting,
            Promise::Mastership,
            Promise::Rest,
            Promise::Utilisation,
            Promise::Fairness,
        ]
        .into_iter()
        .find(|promise| promise.as_str() == verdict.checker.as_str())?;
        let at = verdict
            .at_s
            .map_or(String::new(), |at| format!(", worst at {at:.3} s"));
        Some(Failure {
            promise,
            detail: format!(
                "{} is {:.6}, and must not be beyond {:.6}{at} ({})",
                verdict.checker.as_str(),
                verdict.value,
                verdict.limit.unwrap_or_default(),
                verdict.detail
            ),
        })
    });
    (recording, failure)
}
