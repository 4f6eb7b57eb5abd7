//! Doorward's client: lease capacity of a shared resource, and throttle yourself to it.
//!
//! ```no_run
//! use doorward_client::limiter::rate::Burst;
//! use doorward_client::{Client, Mode};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! // One client per program. Its id must be unique among those that share a resource.
//! let client = Client::builder("frontend-7").address("127.0.0.1:6970").connect().await?;
//!
//! // One handle per resource: say what you could use…
//! let database = client.resource("example/fair").wants(50.0).mode(Mode::Safe).open()?;
//!
//! // …and let the limiter hold you to what you get, as it changes.
//! let limiter = database.rate_limiter(Burst::default());
//! for _query in 0..1000 {
//!     limiter.acquire(1.0).await?;
//!     // Do one thing that costs 1.
//! }
//!
//! // Give back what you hold, for others to use at once.
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! While a lease is valid the client obeys it. When it cannot be renewed, the resource's [`Mode`]
//! says what to use: nothing (pessimistic), what it wants (optimistic), or the safe capacity the
//! server told (safe).
//!
//! # The two halves
//!
//! [`state`] and [`limiter`] are pure: no clock, no network, no chance but what they are handed.
//! They compile without the feature `transport` and are what the simulator runs. The rest is a
//! tokio and tonic shell around them.

pub mod capacity;
pub mod limiter;
pub mod state;
pub mod time;

#[cfg(feature = "transport")]
mod client;
#[cfg(feature = "transport")]
mod clock;
#[cfg(feature = "transport")]
mod concurrency_limiter;
#[cfg(feature = "transport")]
mod error;
#[cfg(feature = "transport")]
mod hooks;
#[cfg(feature = "transport")]
mod rate_limiter;
#[cfg(feature = "transport")]
mod resource;
#[cfg(feature = "transport")]
mod slot;
#[cfg(feature = "transport")]
mod transport;

pub use capacity::{Capacity, Source};
pub use state::Mode;

#[cfg(feature = "transport")]
pub use client::{Client, ClientBuilder, ResourceBuilder};
#[cfg(feature = "transport")]
pub use concurrency_limiter::{ConcurrencyLimiter, Permit};
#[cfg(feature = "transport")]
pub use error::{AcquireError, ConnectError, ResourceError};
#[cfg(feature = "transport")]
pub use hooks::{Hooks, NoHooks};
#[cfg(feature = "transport")]
pub use rate_limiter::RateLimiter;
#[cfg(feature = "transport")]
pub use resource::{Holding, Resource};
