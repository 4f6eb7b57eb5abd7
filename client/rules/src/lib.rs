//! Rules for rate limits: the callers that a service limits, the rule for each of them, and the answer.
//!
//! Pure: time is an argument, and nothing reads a file, a socket or a random number.
//!
//! A document has the format of [envoyproxy/ratelimit](https://github.com/envoyproxy/ratelimit): a domain, and
//! descriptors as a tree of keys and values. [`Rules::load`] reads documents. [`Rules::find`] returns the rule of each
//! descriptor of a request. [`Who`] identifies the client of a request.
//! [`Limiter`] counts and decides.

pub mod address;
pub mod answer;
pub mod decide;
pub mod document;
mod form;
mod forwarded;
mod key;
pub mod path;
pub mod problem;
pub mod rule;
mod tree;
pub mod who;

pub use address::{Address, Network, Trusted};
pub use answer::GrpcRefusal;
pub use decide::{Decision, Descriptor, Limiter, Outcome, Status};
pub use document::Rules;
pub use path::Template;
pub use problem::Problem;
pub use rule::{Action, Limit, OnFailure, Rule, Scope};
pub use tree::{Entry, Found};
pub use who::{Part, Request, Who};
