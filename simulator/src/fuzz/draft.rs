//! Random world drawn so far: each part adds to it.

use std::time::Duration;

use doorward_engine::templates::AlgorithmKind;

use crate::chance::Chance;
use crate::fuzz::part::{Part, Strength};
use crate::scenario::Scenario;
use crate::scenario::fault::{Event, Fault, Span};

/// Time in which faults happen.
pub(super) const FAULTY_FOR: Duration = Duration::from_secs(200);

/// First fork of the parts' streams.
const PARTS: u64 = 100;

/// Quality of the worst links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quality {
    /// Quick and without loss.
    Quick,
    /// Slower, with little loss.
    Usual,
    /// So slow that messages overtake each other, with loss and duplicates. Answers still come
    /// before servers give up.
    Bad,
}

impl Quality {
    pub(super) const fn draw(chance: &mut Chance) -> Self {
        match chance.below(10) {
            0..=2 => Self::Quick,
            3..=6 => Self::Usual,
            _ => Self::Bad,
        }
    }
}

/// Resource of a random world.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    pub(super) resource: &'static str,
    pub(super) kind: AlgorithmKind,
    pub(super) capacity: f64,
    pub(super) lease: Duration,
    pub(super) refresh: Duration,
    /// `None`: as long as leases last.
    pub(super) learning: Option<Duration>,
    /// Safe capacity of each client; `None`: servers compute it.
    pub(super) safe: Option<f64>,
    /// True for `shrink: immediate`.
    pub(super) is_immediate: bool,
}

impl Spec {
    pub(super) fn has_bands(&self) -> bool {
        self.kind == AlgorithmKind::PriorityBands
    }
}

/// World drawn so far.
pub(super) struct Draft {
    pub(super) strengths: [Strength; Part::ALL.len()],
    pub(super) chance: Chance,
    pub(super) quality: Quality,
    pub(super) specs: Vec<Spec>,
    pub(super) scenario: Scenario,
}

impl Draft {
    /// Returns the strength of a part.
    pub(super) fn strength(&self, part: Part) -> Strength {
        let strength = self.strengths.get(part as usize);
        strength.copied().unwrap_or(Strength::None)
    }

    /// Returns the random stream of a part.
    pub(super) fn chance_of(&self, part: Part) -> Chance {
        self.chance.fork(PARTS + part as u64)
    }

    /// Returns the longest lease length of the templates at the start.
    pub(super) fn lease(&self) -> Duration {
        let leases = self.specs.iter().map(|spec| spec.lease);
        leases.max().unwrap_or_default()
    }

    /// Returns the time for faults: after all clients had an answer, and not right before the end
    /// of the faults.
    pub(super) fn faulty(&self) -> Span {
        (
            Duration::from_secs(20),
            FAULTY_FOR - Duration::from_secs(10),
        )
    }

    /// Draws a time for a fault.
    pub(super) fn some_time(&self, chance: &mut Chance) -> Duration {
        let (least, most) = self.faulty();
        chance.duration(least, most)
    }

    /// Draws a time for a fault, at most `within` after another time.
    pub(super) fn soon(&self, chance: &mut Chance, after: Duration, within: Duration) -> Duration {
        let at = after + chance.duration(Duration::ZERO, within);
        at.min(self.faulty().1)
    }

    /// Leaves a part out of this world.
    pub(super) fn leave_out(&mut self, part: Part) {
        if let Some(strength) = self.strengths.get_mut(part as usize) {
            *strength = Strength::None;
        }
    }

    /// Adds an event that happens once.
    pub(super) fn put(&mut self, at: Duration, event: Event) {
        self.scenario.faults.push(Fault::once(at, event));
    }
}
