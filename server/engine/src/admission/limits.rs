//! The limits of a node: by name, their values, and the rates among them.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::time::Time;

/// A number of bytes that is no bound.
pub const NO_BOUND: usize = usize::MAX;

/// The bounds of a node. [`crate::admission`] says what each bound is about; each has a name of its own
/// ([`crate::admission::Limit`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory in all. [`NO_BOUND`]: as much as it takes.
    pub memory_max: usize,
    /// Bytes that one caller brings.
    pub memory_per_caller_max: usize,
    /// Bytes of all resources of one template.
    pub memory_per_template_max: usize,
    /// New resources and new leases of clients from one caller.
    pub newcomers_per_caller: Rate,
    /// Requests of clients for resources of one template.
    pub requests_per_template: Rate,
    /// Holders of one resource.
    pub leases_per_resource_max: usize,
    /// Clients of one resource that one caller brings. From [`Limits::leases_per_resource_max`] on, it bounds nothing,
    /// and nothing is counted.
    pub leases_per_caller_max: usize,
    /// Different priorities of one resource that clients bring and its template does not name; each costs
    /// every decision a little.
    pub priorities_max: usize,
}

impl Limits {
    /// Returns the bound of a limit: of a rate, the number each second.
    pub fn max_of(&self, limit: Limit) -> u64 {
        let max = match limit {
            Limit::Memory => self.memory_max,
            Limit::MemoryPerCaller => self.memory_per_caller_max,
            Limit::MemoryPerTemplate => self.memory_per_template_max,
            Limit::NewcomersPerCaller => return self.newcomers_per_caller.per_second.get().into(),
            Limit::RequestsPerTemplate => {
                return self.requests_per_template.per_second.get().into();
            }
            Limit::LeasesPerResource => self.leases_per_resource_max,
            Limit::LeasesPerCaller => self.leases_per_caller_max,
            Limit::Priorities => self.priorities_max,
        };
        u64::try_from(max).unwrap_or(u64::MAX)
    }
}

/// A rate that is not 0 (which would count as 1).
const fn rate(per_second: u32, burst_seconds: u32) -> Rate {
    let per_second = match NonZeroU32::new(per_second) {
        Some(per_second) => per_second,
        None => NonZeroU32::MIN,
    };
    Rate::new(per_second, burst_seconds)
}

/// Ten thousand honest clients behind one address, each with a few resources, never reach any of these, also if they
/// all come at once.
impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_max: NO_BOUND,
            memory_per_caller_max: 512 << 20,
            memory_per_template_max: NO_BOUND,
            newcomers_per_caller: rate(20_000, 5),
            requests_per_template: rate(200_000, 2),
            leases_per_resource_max: 2_000_000,
            leases_per_caller_max: 2_000_000,
            priorities_max: 64,
        }
    }
}

/// A limit of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// Bytes of memory in all.
    Memory,
    /// Bytes of memory that one caller brought.
    MemoryPerCaller,
    /// Bytes of memory of one template.
    MemoryPerTemplate,
    /// New resources and leases each second from one caller.
    NewcomersPerCaller,
    /// Requests each second for resources of one template.
    RequestsPerTemplate,
    /// Holders of one resource.
    LeasesPerResource,
    /// Clients of one resource that one caller brought.
    LeasesPerCaller,
    /// Priorities of one resource that its template does not name.
    Priorities,
}

impl Limit {
    /// All of them, each at the place of its number.
    pub const ALL: [Self; 8] = [
        Self::Memory,
        Self::MemoryPerCaller,
        Self::MemoryPerTemplate,
        Self::NewcomersPerCaller,
        Self::RequestsPerTemplate,
        Self::LeasesPerResource,
        Self::LeasesPerCaller,
        Self::Priorities,
    ];
}

/// A limit is reached: no holder loses anything, and newcomers come back later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// The limit.
    pub limit: Limit,
    /// Its bound.
    pub max: u64,
    /// When to come back, from now.
    pub retry_in: Duration,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a limit of {} is reached", self.max)
    }
}

/// A rate per second, and the burst after a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Tokens per second.
    pub per_second: NonZeroU32,
    /// Burst, in seconds of the rate. 0 counts as 1.
    pub burst_seconds: u32,
}

impl Rate {
    /// A rate of `per_second`, with a burst of `burst_seconds` times that.
    pub const fn new(per_second: NonZeroU32, burst_seconds: u32) -> Self {
        Self {
            per_second,
            burst_seconds,
        }
    }

    /// Cost of one token, in nanoseconds.
    const fn cost(self) -> u64 {
        1_000_000_000 / self.per_second.get() as u64
    }

    /// The burst, in nanoseconds.
    const fn depth(self) -> u64 {
        let seconds = if self.burst_seconds == 0 {
            1
        } else {
            self.burst_seconds as u64
        };
        seconds * 1_000_000_000
    }
}

/// A token bucket, full at first: the time when it is full again. A bucket that stays unused for long enough equals a
/// new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bucket {
    full_at: Time,
}

impl Bucket {
    /// Takes a token.
    ///
    /// # Errors
    ///
    /// The time until there is a token, if there is none now. Then the bucket is unchanged.
    pub(crate) fn take(&mut self, rate: Rate, now: Time) -> Result<(), Duration> {
        self.take_part(rate, 1, now)
    }

    /// Takes a token of a part of the rate and its burst: 4 is a quarter.
    pub(crate) fn take_part(&mut self, rate: Rate, part: u64, now: Time) -> Result<(), Duration> {
        let cost = rate.cost() * part;
        let full_at = self.full_at.max(now) + Duration::from_nanos(cost);
        let spent = full_at.since(now);
        let depth = Duration::from_nanos(rate.depth().max(cost));
        if spent > depth {
            return Err(spent - depth);
        }
        self.full_at = full_at;
        Ok(())
    }

    /// Whether the bucket is full.
    pub(crate) fn is_full(&self, now: Time) -> bool {
        self.full_at <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_its_place() {
        for (position, limit) in Limit::ALL.iter().enumerate() {
            assert_eq!(*limit as usize, position);
        }
    }
}

#[cfg(test)]
mod rate_tests {
    use super::*;

    const RATE: Rate = Rate::new(NonZeroU32::new(10).unwrap(), 2);

    fn taken(bucket: &mut Bucket, now: Time) -> u32 {
        let mut taken = 0;
        while bucket.take(RATE, now).is_ok() {
            taken += 1;
        }
        taken
    }

    #[test]
    fn a_burst_comes_at_once_and_then_the_rate_each_second() {
        let mut bucket = Bucket::default();
        assert_eq!(taken(&mut bucket, Time::from_secs(7)), 20);
        assert_eq!(taken(&mut bucket, Time::from_secs(7)), 0);
        assert_eq!(taken(&mut bucket, Time::from_secs(8)), 10);
        assert!(!bucket.is_full(Time::from_secs(9)));
        assert!(bucket.is_full(Time::from_secs(10)));
        assert_eq!(taken(&mut bucket, Time::from_secs(100)), 20);
    }

    #[test]
    fn a_caller_that_waits_for_the_retry_delay_is_served() {
        let mut bucket = Bucket::default();
        let now = Time::from_secs(7);
        taken(&mut bucket, now);
        let wait = bucket.take(RATE, now).unwrap_err();
        assert!(
            bucket
                .take(RATE, now + wait - Duration::from_millis(1))
                .is_err()
        );
        assert_eq!(bucket.take(RATE, now + wait), Ok(()));
    }
}
