//! Time and chance: the only file of this crate that reads a clock or draws random numbers.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use doorward_client::time::Time;
use doorward_clock::Instant;
use doorward_engine::id::Incarnation;
use doorward_limits::Moment;

/// Clock that leases count on.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// Returns a clock that shows [`Time::ZERO`] now.
    pub fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    /// Returns the time now.
    pub fn now(&self) -> Time {
        Time::after_origin(self.origin.elapsed())
    }

    /// Sleeps until a time. Cancel safe.
    pub async fn sleep_until(&self, time: Time) {
        doorward_clock::sleep_until(self.origin + time.since_origin()).await;
    }
}

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
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the clock"
)]
pub fn wall() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Moment::ORIGIN.after(since.unwrap_or_default())
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
