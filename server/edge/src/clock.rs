//! Clocks and chance: the only file of this crate that draws random numbers.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

pub use doorward_clock::Clock;
use doorward_engine::id::Incarnation;
use doorward_limits::Moment;

/// Wall clock that rules count on.
#[derive(Clone, Debug, Default)]
pub enum Wall {
    /// The clock of the machine.
    #[default]
    Machine,
    /// A clock that a test sets, in nanoseconds since 1970.
    Set(Arc<AtomicI64>),
}

impl Wall {
    /// Returns the time now.
    pub fn now(&self) -> Moment {
        match self {
            Self::Machine => wall(),
            Self::Set(nanos) => Moment::from_nanos(nanos.load(Ordering::Relaxed)),
        }
    }
}

/// Returns the wall clock, for windows that begin with 1970.
pub fn wall() -> Moment {
    Moment::ORIGIN.after(doorward_clock::wall())
}

/// Returns a number above those of earlier requests of the same name: the wall clock in microseconds.
pub fn sequence() -> u64 {
    wall().nanos().unsigned_abs() / 1_000
}

/// Returns a random number, uniform in 0…1.
pub fn chance() -> f64 {
    rand::random()
}

/// Returns a new incarnation.
pub fn incarnation() -> Incarnation {
    Incarnation::new(rand::random()).unwrap_or(Incarnation::FIRST)
}

/// Returns the number of the first strategy of a stream.
pub fn generation() -> u32 {
    rand::random()
}

/// Returns a seed for the hash of keys.
pub fn seed() -> [u64; 2] {
    rand::random()
}
