//! The limits of a service: its rules, the part of a request for each key, and the form of its answers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::HeaderValue;
use thiserror::Error;

use crate::layer::clock;
use crate::layer::leases::LeasesOfKeys;
use crate::layer::meters;
use crate::layer::request::with_request;
use crate::rules::source::{Retriever, Status};
use crate::rules::{
    Decision, Leases, Limiter, NamedRules, Part, Problems, Request, Rules, Scope, Service,
};

debug_by_text!(BuildError);

/// Largest number of keys of one rule, unless the program says otherwise.
const KEYS_MAX: usize = 100_000;

/// Longest random addition to the wait of a refused caller.
pub(crate) const JITTER_MAX: Duration = Duration::from_secs(1);

/// Limits of a service. Cheap to clone; clones share all counters.
#[derive(Clone)]
pub struct Limits {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    /// Source of the rules, if they are followed.
    retriever: OnceLock<Retriever>,
    pub(crate) service: Service,
    pub(crate) leases: Option<Box<dyn LeasesOfKeys>>,
    pub(crate) answers: Answers,
    /// Whether it was told that callers have no address.
    pub(crate) has_told: AtomicBool,
    /// Number of these limits in this process, by which a request knows that they have decided.
    pub(crate) number: u64,
}

/// Form of answers.
#[derive(Clone, Default)]
pub(crate) struct Answers {
    /// Whether allowed requests get the headers too.
    pub(crate) on_all: bool,
    /// Target of `action: redirect`.
    pub(crate) redirect_to: Option<HeaderValue>,
}

/// Settings of limits.
#[must_use = "nothing is limited until `build`"]
pub struct LimitsBuilder {
    domain: String,
    values: Option<NamedRules>,
    parts: Vec<(String, Part)>,
    keys_max: usize,
    leases: Option<Box<dyn LeasesOfKeys>>,
    answers: Answers,
}

/// An error of building limits.
#[derive(Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A value is invalid.
    #[error("{0}")]
    Invalid(Problems),
    /// The rules have no such domain.
    #[error("the rules have no domain {domain:?}; they have {known}")]
    NoDomain {
        /// Name of the domain.
        domain: String,
        /// Names of the domains that exist.
        known: String,
    },
    /// Keys of the rules have no part of a request.
    #[error("the rules of {domain} use {keys}; name the part of a request for each with `part`")]
    UnknownKeys {
        /// Name of the domain.
        domain: String,
        /// The keys.
        keys: String,
    },
    /// Rules take from budgets, which the layer does not.
    #[error(
        "rules of {domain} have scope budget, which is for agents; take from a budget with `Client::budget`"
    )]
    Budgets {
        /// Name of the domain.
        domain: String,
    },
    /// Rules are shared, and no leases are given.
    #[error("rules of {domain} have scope shared; give the leases of a client with `leases`")]
    NoLeases {
        /// Name of the domain.
        domain: String,
    },
}

debug_by_name!(Limits, LimitsBuilder);

impl Limits {
    /// Puts rules that are values in force. [`Limits::of`] is the same with other settings.
    ///
    /// # Errors
    ///
    /// As [`LimitsBuilder::build`].
    pub fn new(rules: NamedRules) -> Result<Self, BuildError> {
        Self::of(rules).build()
    }

    /// Creates a builder for limits by rules that are values.
    pub fn of(rules: NamedRules) -> LimitsBuilder {
        let builder = Self::builder(rules.domain());
        LimitsBuilder {
            values: Some(rules),
            ..builder
        }
    }

    /// Creates a builder for limits by the rules of a domain in documents: [`LimitsBuilder::load`] or
    /// [`LimitsBuilder::follow`] ends it.
    pub fn builder(domain: impl Into<String>) -> LimitsBuilder {
        LimitsBuilder {
            domain: domain.into(),
            values: None,
            parts: Vec::new(),
            keys_max: KEYS_MAX,
            leases: None,
            answers: Answers::default(),
        }
    }

    /// Puts other rules in force, while requests come. Counters of rules that stay keep their ratio.
    ///
    /// # Errors
    ///
    /// As [`LimitsBuilder::load`]; then the former rules stay in force.
    pub fn replace(&self, rules: Rules) -> Result<(), BuildError> {
        self.inner.check(&rules)?;
        let limiter = self.inner.service.limiter();
        limiter.replace(rules, clock::moment());
        Ok(())
    }

    /// Returns the versions in force, and the problem with newer ones. `None`: the rules follow no retriever.
    pub fn status(&self) -> Option<Status> {
        self.inner.retriever.get().map(Retriever::status)
    }

    /// Decides a request without waiting, and counts it if it passes.
    pub fn decide(&self, request: &Request<'_>) -> Decision {
        self.inner.decide(request, true)
    }
}

impl LimitsBuilder {
    /// Names the part of a request that a key of the rules stands for.
    pub fn part(mut self, key: impl Into<String>, part: impl Into<Part>) -> Self {
        self.parts.push((key.into(), part.into()));
        self
    }

    /// Sets the largest number of keys of one rule; beyond it, new keys share one limit. Default: 100,000.
    pub fn keys_max(mut self, keys_max: usize) -> Self {
        self.keys_max = keys_max;
        self
    }

    /// Sets the leases of shared rules: those of `client.keyed("shared/DOMAIN/{}")`, where a key is the text of a
    /// descriptor, such as `tenant=acme`.
    #[cfg(feature = "leases")]
    pub fn leases(mut self, leases: crate::Keyed) -> Self {
        self.leases = Some(Box::new(leases));
        self
    }

    /// Sends `RateLimit` and `RateLimit-Policy` with all answers, and not only with refusals.
    pub fn headers_on_all_answers(mut self) -> Self {
        self.answers.on_all = true;
        self
    }

    /// Sets the target of rules with `action: redirect`. Without it, they answer as `reject`.
    pub fn redirect_to(mut self, location: HeaderValue) -> Self {
        self.answers.redirect_to = Some(location);
        self
    }

    /// Puts the rules of a retriever in force, now and whenever they change. Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// As [`LimitsBuilder::load`]. If later rules have such an error, the former ones stay in force. The retriever
    /// tells the problem to its server, and [`Limits::status`] to the program.
    pub fn follow(self, mut retriever: Retriever) -> Result<Limits, BuildError> {
        let mut rules = retriever.rules();
        let limits = self.load(rules.borrow_and_update().clone())?;
        let accepting = Arc::downgrade(&limits.inner);
        let following = accepting.clone();
        retriever.accept(move |rules| match accepting.upgrade() {
            Some(inner) => inner.check(rules).map_err(|it| it.to_string()),
            None => Ok(()),
        });
        retriever.keep_up(rules, move |rules| {
            let limits = following.upgrade().map(|inner| Limits { inner });
            if let Some(Err(error)) = limits.map(|limits| limits.replace(rules)) {
                tracing::error!(%error, "the former rules stay in force");
            }
        });
        // The retriever ends with the limits, and ends its tasks.
        limits.inner.retriever.get_or_init(|| retriever);
        Ok(limits)
    }

    /// Puts the rules of [`Limits::of`] in force.
    ///
    /// # Errors
    ///
    /// If a value is invalid. Otherwise as [`LimitsBuilder::load`].
    pub fn build(mut self) -> Result<Limits, BuildError> {
        let mut rules = Rules::default();
        if let Some(values) = self.values.take() {
            let (loaded, parts) = values.load().map_err(BuildError::Invalid)?;
            rules = loaded;
            self.parts.extend(parts);
        }
        self.load(rules)
    }

    /// Puts rules in force.
    ///
    /// # Errors
    ///
    /// If the rules lack the domain, or one of their keys has no part of a request, or a shared rule has no leases.
    pub fn load(self, rules: Rules) -> Result<Limits, BuildError> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let seed = [clock::random(), clock::random()];
        let limiter = Limiter::new(Rules::default(), self.keys_max, seed);
        let limiter = limiter.telling(meters::counters);
        let inner = Arc::new(Inner {
            service: Service::new(limiter, &self.domain, self.parts),
            retriever: OnceLock::new(),
            leases: self.leases,
            answers: self.answers,
            has_told: AtomicBool::new(false),
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
        });
        let limits = Limits { inner };
        limits.replace(rules)?;
        Ok(limits)
    }
}

impl Inner {
    /// Checks that these limits can use rules.
    fn check(&self, rules: &Rules) -> Result<(), BuildError> {
        let domain = self.service.domain().to_owned();
        if !rules.domains().contains(&domain.as_str()) {
            let known = rules.domains().join(", ");
            return Err(BuildError::NoDomain { domain, known });
        }
        if rules.has(Scope::Budget, &domain) {
            return Err(BuildError::Budgets { domain });
        }
        if rules.has(Scope::Shared, &domain) && self.leases.is_none() {
            return Err(BuildError::NoLeases { domain });
        }
        let unknown = self.service.unknown_keys_of(rules);
        if unknown.is_empty() {
            return Ok(());
        }
        let keys = unknown.join(", ");
        Err(BuildError::UnknownKeys { domain, keys })
    }

    pub(crate) fn decide(&self, request: &Request<'_>, may_wait: bool) -> Decision {
        let (leases, now) = (self.leases(), clock::moment());
        let decision = self.service.decide_with(request, leases, may_wait, now);
        if !decision.is_allowed {
            let rule = decision.rule().map(|rule| rule.path.as_str());
            let retry_after = decision.retry_after();
            tracing::debug!(rule, why = %decision.why, ?retry_after, "a request is refused");
        }
        decision
    }

    fn leases(&self) -> Option<&dyn Leases> {
        self.leases.as_deref().map(|leases| leases as &dyn Leases)
    }

    /// Gives back what a request took that passed, and that is not served.
    pub(crate) fn undo<B>(&self, request: &http::Request<B>, decision: &Decision) {
        with_request(request, |request| {
            self.service
                .undo(request, decision, self.leases(), clock::moment());
        });
    }
}
