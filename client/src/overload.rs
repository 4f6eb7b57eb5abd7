//! Overload control of a service: which requests it serves when it cannot serve all.
//!
//! A [`Throttler`] admits requests up to a concurrency limit that it finds by itself, and keeps the others in a queue
//! that is bounded by predicted cost. Critical requests go first, and push out waiting ones that are less critical.
//! Nothing has to be configured.
//!
//! | part | purpose |
//! | --- | --- |
//! | [`criticality`] | the order of requests: a tier, and in it a cohort of users |
//! | [`estimate`], [`operations`] | the cost and the latency of a request, predicted from like ones |
//! | [`limit`] | the concurrency limit, which follows latency |
//! | [`queue`] | waiting requests, their cost and their deadlines |
//! | [`throttler`] | the decision |
//!
//! Time is an argument, and there is no chance: equal calls give equal answers. The document `docs/overload.md` of the
//! repository compares it with fixed limits.

pub mod criticality;
pub mod estimate;
pub mod limit;
pub mod operations;
pub mod queue;
pub mod throttler;

pub use criticality::Criticality;
pub use throttler::{Admission, Ask, Config, Offer, Place, Reason, Throttler};
