//! Local rate limits: decided from memory, in nanoseconds, exactly. No clock, no server, no I/O.
//!
//! ```
//! use doorward_limits::{Decision, Limiter, Moment, TokenBucket};
//!
//! // 10 at once, 10 a second.
//! let mut limit = Limiter::new(TokenBucket::new(10, "10/s".parse()?)?);
//! let now = Moment::ORIGIN;
//! match limit.take(6, now) {
//!     Decision::Allowed(allowed) => assert_eq!(allowed.remaining, 4.into()),
//!     Decision::After(wait) => println!("come back in {wait:?}"),
//!     Decision::Never(reason) => println!("{reason}, so no wait would help"),
//! }
//! // The cost was higher than expected: charge the difference. Unused units come back by `refund`.
//! limit.charge(5, now);
//! assert!(!limit.take(1, now).is_allowed());
//! // Another limit: the available part keeps its ratio, so nothing bursts.
//! limit.set_limit(TokenBucket::new(100, "100/s".parse()?)?, now);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The time is an argument, in nanoseconds since any origin (1970 in UTC for fixed windows). A rate is one
//! value that is parsed: `100/s`, `5000/h`, `10/min`, `4999/day`, `2000/1200s`.
//! Amounts have nine decimal places. An invalid amount (negative, not a number, too large) gives an error with its
//! reason ([`InvalidUnits`]), and so do invalid settings ([`SettingsError`]). No operation panics at any time or cost.
//!
//! # Choice of an algorithm
//!
//! | purpose | take | its guarantee, over any window |
//! | --- | --- | --- |
//! | a rate with a burst: the usual limit of an API. A leaky bucket as a meter gives the same answers. | [`TokenBucket`] | in any span of w at most burst + rate·w |
//! | the same in 24 bytes, for a million keys | [`Gcra`] | the same, field by field |
//! | an even stream for a backend: wait instead of failing | [`LeakyQueue`] | the work that starts in a span of w, without its last start: at most rate·w; no longer wait than the deadline |
//! | quotas of a clock's hour or of a day, as people read them on a bill | [`FixedWindow`] | the limit in each window; **twice the limit** around a boundary |
//! | log-ins, codes by text message: small limits that must hold for every window | [`SlidingLog`] | the limit in every window, exactly; 8 bytes a request |
//! | the same for large limits, with two numbers a key | [`SlidingCounter`] | the limit in each aligned window; at most limit + ⌈p·limit⌉ in one that ends at position p |
//! | a backend that is cold after a rest: caches, pools, just-in-time compilers | [`WarmUp`] | at most rate·w; from cold, a slow start of the given length |
//! | brute force: a caller that exceeds a threshold is refused for long | [`Ban`] | the threshold in each interval, then nothing until the ban ends |
//! | a warning before the refusal | [`SoftHard`] around any of them | its decisions |
//! | several at once: by address *and* by name, requests *and* tokens | [`several`] | each its own; none is charged if one refuses |
//! | a rate that a lease grants | [`FedBucket`] | the amount that the leases gave in it, and one burst |
//! | a number of permits at once, however long they are out, for many threads | [`InFlight`] | the limit |
//!
//! If in doubt, take a token bucket whose burst is the amount of one second: [`TokenBucket::limit`]`("100/s")`. N an
//! hour is not N/3600 a second: if you mean the hour, take a window.
//!
//! # The same traffic
//!
//! The rate is 10 per second (10 at once, where there is a burst), and a column is a twentieth of a second. For each
//! algorithm, the picture shows the number that pass (`·` if all are refused, letters go on after 9) and the amount
//! left. At first a few requests come, then 16 at once (`g`), then 20 per second; after a rest, 16 again.
//!
//! ```text
#![doc = include_str!("side_by_side.txt")]
//! ```
//!
//! Buckets let the burst pass and then every other request. A queue lets all start evenly; it refuses those that would
//! wait longer than half a second. A fixed window lets 16 pass around the first boundary: 6 and 10. A log never has
//! more than 10 within a second; a counter estimates that, and errs for a while. Warm-up is slow after each rest. A ban
//! refuses everything.
//!
//! # Edge cases
//!
//! - **First use**: everything is available. **Exactly**: a token that is due at T is available at T; a request that
//!   was logged at t counts during [t, t + window).
//! - **Waits are exact**: after the wait of a refusal, and not a nanosecond earlier, the same request passes.
//! - **Refused** requests change nothing: a caller that keeps asking gets in as early as one that waits. A ban counts
//!   attempts.
//! - **Debt** has no floor: [`Limiter::charge`] always applies, and until the debt is paid every request is refused,
//!   even one of cost 0.
//! - **Time that goes back** counts as no time. GCRA does not know the time of its last request, and shows a little
//!   less then.
//! - **A clock that is set back** by more than a minute, and by more than ten times the time in which the limit fills,
//!   stops no limit: levels and debts stay, and time goes on from the latest time. A fixed window keeps its use and ends
//!   with the clock's window. A thread that still has a reading from before the step may gain a burst, as after any step
//!   forward. [`FedBucket`] and [`InFlight`] need a clock that is never set back, because a lease ends by it.
//! - **A change of limit** first brings the state up to date. Then the available part keeps its ratio, and a debt its
//!   amount. After a limit of 0 nothing is available. [`FedBucket`] keeps the amount instead; its documentation has the
//!   reason.
//! - **Numbers are whole**, of parts so fine that rate, cost and time fit in them: nothing drifts, at 3/s or 4,999/day,
//!   in ten years. A change of limit rounds against the caller, by less than a part, which is a thousand millionth of a
//!   unit. Only the area under a warm-up's slope is computed in floating point, to a nanosecond.
//!
//! # Many keys, many threads
//!
//! The settings ([`Algorithm`]) are separate from the state of a key ([`Algorithm::State`]), so a million keys store a
//! million small states.
//!
//! - [`Keyed`]: a limit for each key, for many threads, within bounds. Idle keys leave by themselves, keys in use
//!   never. At the bound, new keys share one limit ([`Keyed::with_overflow`]), which the statistics count.
//! - [`Key`] from parts: text, numbers, addresses (IPv6 by /64), hashed with a secret.
//! - [`AtomicBucket`]: a token bucket, one atomic exchange for a take; [`AtomicFedBucket`]: one that a lease feeds.
//! - [`Shared`]: any other limit, behind a short lock.
//! - [`Limit`] is the interface of shared limits, of atomic buckets, and of one key of a map ([`Keyed::at`]).
//!   [`several::take`] takes from any of them, all or nothing.
//! - A [`Clock`] gives the time; the feature `std-clock` has a fast one.
//!
//! # For callers
//!
//! [`headers`] writes decisions as `RateLimit`, `RateLimit-Policy`, `Retry-After` and `X-RateLimit-*`.

#![warn(missing_debug_implementations)]

pub mod algorithm;
mod atomic_bucket;
mod atomic_fed;
mod ban;
mod cell;
pub mod clock;
pub mod decision;
pub mod error;
mod fed;
mod fixed_window;
mod flow;
mod gcra;
pub mod headers;
mod in_flight;
pub mod key;
pub mod keyed;
mod leaky_queue;
mod level;
pub mod limit;
mod limiter;
mod lock;
pub mod moment;
pub mod rate;
pub mod several;
mod shared;
mod sliding_counter;
mod sliding_log;
mod soft_hard;
#[cfg(feature = "std-clock")]
mod std_clock;
mod timeline;
mod token_bucket;
pub mod units;
mod warm_up;
mod wide;
mod window;

pub use algorithm::Algorithm;
pub use atomic_bucket::AtomicBucket;
pub use atomic_fed::{AtomicFedBucket, Wait};
pub use ban::{Ban, BanState};
pub use clock::{Clock, ManualClock};
pub use decision::{Allowed, Answer, Decision, Reason, Standing};
pub use error::{InvalidLimit, SettingsError};
pub use fed::{FedBucket, Feed, Supply};
pub use fixed_window::{FixedWindow, FixedWindowState};
pub use gcra::{Gcra, GcraState};
pub use in_flight::InFlight;
pub use key::{Key, KeyParts, Keys};
pub use keyed::{AtKey, Figures, Keyed};
pub use leaky_queue::{LeakyQueue, LeakyQueueState};
pub use limit::Limit;
pub use limiter::Limiter;
pub use moment::Moment;
pub use rate::{InvalidRate, Rate};
pub use several::{Part, Verdict};
pub use shared::Shared;
pub use sliding_counter::{SlidingCounter, SlidingCounterState};
pub use sliding_log::{SlidingLog, SlidingLogState};
pub use soft_hard::SoftHard;
#[cfg(feature = "std-clock")]
pub use std_clock::StdClock;
pub use token_bucket::{TokenBucket, TokenBucketState};
pub use units::{InvalidUnits, Units};
pub use warm_up::{WarmUp, WarmUpState};
