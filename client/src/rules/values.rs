//! Rules as values: limits in Rust instead of YAML.
//!
//! ```
//! use doorward::rules::{RateLimit, Rules, client_ip, header, method};
//!
//! let rules = Rules::named("api")
//!     .per(header("x-user"), "5/s")
//!     .per(client_ip().behind(1), "600/min")
//!     .per([header("x-tenant"), method()], RateLimit::new("1000/day").soft_limit(900));
//! println!("{rules}");
//! # rules.load().unwrap();
//! ```
//!
//! The values are written as a document, which [`Rules::load`] reads as any other. So they print as YAML, and mean what
//! the document means.

use std::fmt::{self, Write as _};
use std::time::Duration;

use doorward_limits::Rate;
use serde::Serialize;

use crate::rules::address::{Address, Forwarding, Trusted};
use crate::rules::path::Template;
use crate::rules::problem::Problems;
use crate::rules::rule::{Action, Algorithm, OnFailure, Scope};
use crate::rules::who::Part;
use crate::rules::{Rules, domain_of};

/// A second, in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// Rules of one domain, and the parts of a request that they are by. Its text is their document.
#[derive(Debug)]
#[must_use]
pub struct NamedRules {
    document: String,
    parts: Vec<(String, Part)>,
}

/// A limit of [`NamedRules`]: a rate, such as `5/s`, and what a rule of a document may say besides.
#[derive(Clone, Debug)]
#[must_use]
pub struct RateLimit {
    rate: String,
    algorithm: Option<Algorithm>,
    limit: Vec<(&'static str, String)>,
    rule: Vec<(&'static str, String)>,
}

/// The parts of a request that a limit is by; each combination of their values has a limit of its own.
#[derive(Debug)]
pub struct Parts(Vec<Part>);

impl Rules {
    /// Begins rules of a domain as values.
    pub fn named(domain: &str) -> NamedRules {
        NamedRules {
            document: format!("domain: {}\ndescriptors:\n", text(domain)),
            parts: Vec::new(),
        }
    }
}

impl NamedRules {
    /// Adds a limit for each value of a part of the request, or for each combination of values. A request must be within
    /// all limits. The key of a part is the name of its header or cookie, or `client_ip`, `login`, `method` and so on;
    /// the second limit by the same part has `-2` behind it.
    pub fn per(mut self, parts: impl Into<Parts>, limit: impl Into<RateLimit>) -> Self {
        let mut indent = String::new();
        let mut parts = parts.into().0;
        if parts.is_empty() {
            parts.push(Part::Everyone);
        }
        for part in parts {
            if !indent.is_empty() {
                // Writing to a text cannot fail.
                let _ = writeln!(self.document, "{indent}descriptors:");
            }
            let key = self.key(&part);
            let _ = writeln!(self.document, "{indent}- key: {}", text(&key));
            self.parts.push((key, part));
            indent.push_str("  ");
        }
        let limit = limit.into();
        let (rate, algorithm) = (text(&limit.rate), text(&limit.algorithm()));
        let _ = write!(
            self.document,
            "{indent}rate_limit: {{rate: {rate}, algorithm: {algorithm}"
        );
        for (name, value) in &limit.limit {
            let _ = write!(self.document, ", {name}: {value}");
        }
        self.document.push_str("}\n");
        for (name, value) in &limit.rule {
            let _ = writeln!(self.document, "{indent}{name}: {value}");
        }
        self
    }

    /// Returns the rules, and the part of a request for each of their keys.
    ///
    /// # Errors
    ///
    /// The problems, with their lines in the document.
    pub fn load(self) -> Result<(Rules, Vec<(String, Part)>), Problems> {
        let rules = Rules::load(&[("rules", &self.document)])?;
        Ok((rules, self.parts))
    }

    /// Returns the name of the domain.
    pub fn domain(&self) -> String {
        domain_of(&self.document).unwrap_or_default()
    }

    /// Returns a name for a part that no other one has.
    fn key(&self, part: &Part) -> String {
        let name = match part {
            Part::Login => "login",
            Part::Address(_) => "client_ip",
            Part::Header(name) | Part::Cookie(name) => name,
            Part::Path(_) => "path",
            Part::Method => "method",
            Part::Everyone => "everyone",
            Part::Own(_) => "own",
        };
        let names = (2..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(names);
        let is_free = |name: &String| self.parts.iter().all(|(key, _)| key != name);
        names.find(is_free).unwrap_or_default()
    }
}

impl fmt::Display for NamedRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.document)
    }
}

impl RateLimit {
    /// Creates a limit of this rate, in this process alone.
    pub fn new(rate: &str) -> Self {
        Self {
            rate: rate.to_owned(),
            algorithm: None,
            limit: Vec::new(),
            rule: Vec::new(),
        }
    }

    /// Returns the algorithm that is set, or else the one that people mean by the rate.
    fn algorithm(&self) -> Algorithm {
        let is_bucket = self.limit.iter().any(|(name, _)| *name == "burst")
            || self.rule.contains(&("action", text(&Action::Wait)));
        let period = self.rate.parse().ok().map(|rate: Rate| rate.period());
        self.algorithm.unwrap_or(match period {
            Some(nanos) if nanos.get() > SECOND && !is_bucket => Algorithm::SlidingCounter,
            _ => Algorithm::TokenBucket,
        })
    }

    /// Sets the algorithm. Default: a token bucket for a rate per second, with a burst, or where requests wait. A sliding counter for a
    /// longer window, in which the amount may come at any time.
    pub const fn by(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = Some(algorithm);
        self
    }

    /// Sets the largest amount at once, of a token bucket. Default: the amount of one second, rounded up.
    pub fn burst(mut self, burst: u64) -> Self {
        set(&mut self.limit, "burst", burst.to_string());
        self
    }

    /// Sets the use beyond which answers warn.
    pub fn soft_limit(mut self, limit: u64) -> Self {
        set(&mut self.limit, "soft_limit", limit.to_string());
        self
    }

    /// Shares the limit among the processes of the service, by leases. The capacity of their resource is the limit of
    /// all; the rate bounds each process.
    pub fn shared(mut self) -> Self {
        set(&mut self.rule, "scope", text(&Scope::Shared));
        self
    }

    /// Sets the number of processes that share the limit, of which each admits its part before the first lease.
    pub fn processes(mut self, processes: u32) -> Self {
        set(&mut self.rule, "processes", processes.to_string());
        self
    }

    /// Sets the answer while a shared limit has no lease.
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        set(&mut self.rule, "on_failure", text(&on_failure));
        self
    }

    /// Sets the answer above the limit. Default: a refusal.
    pub fn action(mut self, action: Action) -> Self {
        set(&mut self.rule, "action", text(&action));
        self
    }

    /// Sets the longest wait, of [`Action::Wait`] or for a first lease. At most a minute.
    pub fn max_wait(mut self, wait: Duration) -> Self {
        set(
            &mut self.rule,
            "max_wait",
            format!("{}us", wait.as_micros()),
        );
        self
    }

    /// Counts, and never refuses.
    pub fn shadow(mut self) -> Self {
        set(&mut self.rule, "shadow_mode", text(&true));
        self
    }
}

impl From<&str> for RateLimit {
    fn from(rate: &str) -> Self {
        Self::new(rate)
    }
}

impl<P: Into<Part>> From<P> for Parts {
    fn from(part: P) -> Self {
        Self(vec![part.into()])
    }
}

impl<const N: usize> From<[Part; N]> for Parts {
    fn from(parts: [Part; N]) -> Self {
        Self(parts.into())
    }
}

impl From<Address> for Part {
    fn from(address: Address) -> Self {
        Self::Address(address)
    }
}

/// The caller's address: the peer of the connection, unless [`Address::behind`] says otherwise.
pub const fn client_ip() -> Address {
    Address::peer()
}

/// All callers together.
pub const fn everyone() -> Part {
    Part::Everyone
}

/// The first line of a header.
pub fn header(name: &str) -> Part {
    Part::Header(name.to_owned())
}

/// The first cookie of this name.
pub fn cookie(name: &str) -> Part {
    Part::Cookie(name.to_owned())
}

/// The name of the authenticated user.
pub const fn login() -> Part {
    Part::Login
}

/// The method.
pub const fn method() -> Part {
    Part::Method
}

/// The template that the path matches, such as `/users/{id}`. Paths that match none have one limit together.
pub fn path_template<'t>(templates: impl IntoIterator<Item = &'t str>) -> Part {
    Part::Path(templates.into_iter().map(Template::new).collect())
}

impl Address {
    /// Takes the address that so many proxies in front of the service tell, by `X-Forwarded-For`.
    #[must_use]
    pub fn behind(mut self, proxies: usize) -> Self {
        self.from = Forwarding::XForwardedFor;
        self.trusted = Trusted::Hops(proxies);
        self
    }
}

/// Sets a field, in place of its former value.
fn set(fields: &mut Vec<(&'static str, String)>, name: &'static str, value: String) {
    fields.retain(|(it, _)| *it != name);
    fields.push((name, value));
}

/// Writes a value for YAML, which has the scalars of JSON. A text or a name without fields can always be written.
fn text(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
