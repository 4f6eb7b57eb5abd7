//! Rules for rate limits: the callers that a service limits, the rule for each of them, and the answer.
//!
//! Pure: time is an argument, and nothing reads a file, a socket or a random number.
//!
//! ```
//! use doorward::rules::{Address, Limiter, Part, Request, Rules, Service};
//! use doorward_limits::Moment;
//!
//! let text = "
//! domain: login
//! descriptors:
//! - key: user            # each name has a quota of its own
//!   rate_limit: {rate: 10/min}
//! - key: remote_address  # and so has each address
//!   rate_limit: {rate: 10/min}
//! ";
//! let rules = Rules::load(&[("login.yaml", text)]).unwrap();
//! let limiter = Limiter::new(rules, 100_000, [1, 2]);
//! let parts = vec![
//!     ("user".to_owned(), Part::Header("x-user".to_owned())),
//!     ("remote_address".to_owned(), Part::Address(Address::peer())),
//! ];
//! let service = Service::new(limiter, "login", parts);
//! assert!(service.unknown_keys().is_empty());
//!
//! let headers: [(&str, &[u8]); 1] = [("x-user", b"ann")];
//! let peer = Some([192, 0, 2, 1].into());
//! let request = Request { peer, method: b"POST", path: b"/login", headers: &headers, login: None };
//! for _ in 0..10 {
//!     assert!(service.allow(&request, Moment::ORIGIN));
//! }
//! let decision = service.decide(&request, Moment::ORIGIN);
//! assert_eq!(decision.http_status(), Some(429));
//! assert_eq!(decision.why.to_string(), "over the limit");
//! ```
//!
//! A document has the format of [envoyproxy/ratelimit](https://github.com/envoyproxy/ratelimit): a domain, and
//! descriptors as a tree of keys and values. [`Rules::load`] reads documents. [`Limiter`] counts and decides
//! descriptors; a service with a front of its own uses it alone. [`Service`] builds the descriptors from a request.

pub mod address;
pub mod answer;
pub mod counting;
pub mod decision;
pub mod document;
mod forwarded;
pub mod guarded;
pub mod limiter;
pub mod path;
pub mod problem;
pub mod rank;
mod reader;
mod request;
pub mod rule;
pub mod service;
mod shared;
#[cfg(feature = "tokio")]
pub mod source;
mod star;
pub mod tally;
mod tree;
pub mod value;
mod values;
mod version;
mod warnings;
pub mod who;

pub use address::{Address, Network, Trusted};
pub use answer::GrpcRefusal;
pub use decision::{Advice, Decision, Status, Why};
pub use document::Rules;
pub use limiter::{Descriptor, Limiter, Settled};
pub use path::Template;
pub use problem::{Problem, Problems};
pub use rank::Rank;
pub use reader::domain_of;
pub use rule::{Action, Algorithm, Limit, OnFailure, Rule, Scope};
pub use service::Service;
pub use shared::{ID_BYTES_MAX, Leases, add_encoded, is_plain};
pub use tally::{Outcome, Tally};
pub use tree::{Entry, VALUE_BYTES_MAX};
pub use value::Value;
pub use values::{
    NamedRules, Parts, RateLimit, client_ip, cookie, everyone, header, login, method, path_template,
};
pub use version::version_of;
pub use who::{Part, Request};
