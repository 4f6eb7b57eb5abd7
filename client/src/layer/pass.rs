//! The way of a request through all limiters of a layer.
//!
//! It passes all or none: if a later one refuses it, or its caller goes away, the earlier ones get back what it took. One
//! exception: a request that is dropped during the delay of a rule has used its turn.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use tokio::sync::Semaphore;

use crate::Refusal;
use crate::layer::leases::{Held, LeasesOfWork, Waiting};
use crate::layer::limits::{Inner, Limits};
use crate::layer::overload::{Cost, InFlight, Overload};
use crate::layer::refusal;
#[cfg(feature = "tonic")]
use crate::layer::request::is_grpc;
use crate::layer::request::{Decided, degrade, with_request};
use crate::overload::{Ask, Criticality};
use crate::rules::{Advice, Decision};

/// Largest number of requests that wait for leases, unless the program says otherwise.
const WAITING_MAX: usize = 1_000;

/// Limiters of a layer.
#[derive(Clone)]
pub(crate) struct Limiters {
    pub(crate) rules: Vec<Limits>,
    pub(crate) overload: Option<Overload>,
    pub(crate) leases: LeasesOfWork,
    /// Longest wait for leases.
    pub(crate) max_wait: Duration,
    /// Places for requests that wait for leases, of all clones.
    pub(crate) places: Arc<Semaphore>,
}

/// A request that has passed.
pub(crate) struct Served {
    /// Headers of its answer.
    pub(crate) headers: HeaderMap,
    pub(crate) in_flight: InFlight,
    /// With overload control only.
    pub(crate) criticality: Option<Criticality>,
}

/// Count of a request by rules. It is undone if the request is not served.
struct Ruled<'a> {
    limits: &'a Inner,
    request: &'a Request<()>,
    decision: Decision,
    is_served: bool,
}

impl Default for Limiters {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            overload: None,
            leases: LeasesOfWork::default(),
            max_wait: Duration::ZERO,
            places: Arc::new(Semaphore::new(WAITING_MAX)),
        }
    }
}

impl Limiters {
    /// Adds those of another layer.
    pub(crate) fn add(&mut self, other: Self) {
        self.rules.extend(other.rules);
        if self.overload.is_some() && other.overload.is_some() {
            tracing::warn!("a layer has two overload controls: the second decides nothing");
        }
        self.overload = self.overload.take().or(other.overload);
        self.leases.add(other.leases);
        self.max_wait = self.max_wait.max(other.max_wait);
    }

    /// Returns the rules, if they alone decide.
    #[inline]
    pub(crate) fn rules_alone(&self) -> Option<&Limits> {
        match &self.rules[..] {
            [limits] if self.overload.is_none() && self.leases.is_empty() => Some(limits),
            _ => None,
        }
    }

    /// Lets a request pass all of them. `decision`: that of rules alone. If rules decide alone, the request has their mark
    /// already, and its address was looked for.
    pub(crate) async fn pass(
        &self,
        request: &mut Request<()>,
        mut decision: Option<Decision>,
    ) -> Result<Served, Box<Response<Bytes>>> {
        let ask = self.overload.as_ref().map(|it| it.read(request));
        let is_alone = self.rules_alone().is_some();
        let all = self.rules.iter().map(|limits| &*limits.inner);
        let extensions = request.extensions_mut();
        let due = all.filter(|it| is_alone || !Decided::is_marked(extensions, it.number));
        let due: Vec<&Inner> = due.collect();
        let mut headers = HeaderMap::new();
        let mut ruled = Vec::new();
        for limits in due {
            let missing = (!is_alone).then(|| limits.without_address(request));
            if let Some(response) = missing.flatten() {
                return Err(response);
            }
            let decision = match decision.take() {
                Some(decision) => decision,
                None => decide_by_new_leases(limits, request).await,
            };
            if let Advice::ProceedAfter(delay) = decision.advice {
                tokio::time::sleep(delay).await;
            }
            // Limits after each other have a line each.
            for (name, value) in &admit(limits, request.headers(), &decision)? {
                headers.append(name, value.clone());
            }
            ruled.push(Ruled {
                limits,
                request: &*request,
                decision,
                is_served: false,
            });
        }
        let cost = Cost::new();
        let in_flight = self.take(ask.as_ref(), &cost, request.headers()).await?;
        let all: Vec<Advice> = ruled.into_iter().map(Ruled::keep).collect();
        let extensions = request.extensions_mut();
        all.into_iter().for_each(|it| degrade(it, extensions));
        extensions.insert(in_flight.clone());
        let criticality = ask.map(|it| it.criticality);
        if let Some(criticality) = criticality {
            extensions.insert(cost);
            extensions.insert(criticality);
        }
        Ok(Served {
            headers,
            in_flight,
            criticality,
        })
    }

    /// Waits for overload control, and then takes from leases. So no waiting request holds an amount that a more critical
    /// one needs.
    async fn take(
        &self,
        ask: Option<&Ask>,
        cost: &Cost,
        headers: &HeaderMap,
    ) -> Result<InFlight, Box<Response<Bytes>>> {
        let mut held = Held::default();
        let mut permit = None;
        let taken = if let Some((overload, ask)) = self.overload.as_ref().zip(ask) {
            let admitted = overload.admit(ask).await;
            let admitted = admitted.map_err(|it| refusal::overloaded(&it, headers))?;
            let cost = admitted.predicted_cost();
            let taken = self.leases.take(cost, false, &mut held).await;
            if taken.is_err() {
                overload.count_no_lease(ask.criticality);
            }
            permit = Some(admitted);
            taken
        } else if self.max_wait.is_zero() {
            self.leases.take(1.0, false, &mut held).await
        } else {
            self.wait(&mut held).await
        };
        taken.map_err(|it| refusal::lease_used_up(it, headers))?;
        held.serve();
        Ok(InFlight::new(permit, held, cost.clone()))
    }

    /// Waits for the leases.
    async fn wait(&self, held: &mut Held) -> Result<(), Refusal> {
        let place = self.places.try_acquire();
        let _place = place.map_err(|_| Refusal::over(None))?;
        let waited = tokio::time::timeout(self.max_wait, self.leases.take(1.0, true, held)).await;
        waited.unwrap_or(Err(Refusal::over(None)))
    }
}

impl Ruled<'_> {
    fn keep(mut self) -> Advice {
        self.is_served = true;
        self.decision.advice
    }
}

impl Drop for Ruled<'_> {
    fn drop(&mut self) {
        if !self.is_served {
            self.limits.undo(self.request, &self.decision);
        }
    }
}

/// Waits for the first leases of shared rules, and for an amount that their burst lacks. Each wait is at most that of the
/// rule.
async fn decide_by_new_leases(limits: &Inner, request: &Request<()>) -> Decision {
    let mut longest = Duration::ZERO;
    for (wait, max_wait) in waits(limits, request) {
        wait.await;
        longest = longest.max(max_wait);
    }
    let decision = decide(limits, request);
    match decision.retry_after().filter(|wait| *wait <= longest) {
        Some(wait) if !decision.is_allowed => {
            tokio::time::sleep(wait).await;
            decide(limits, request)
        }
        _ => decision,
    }
}

/// Returns the waits for the first leases of the request's shared rules, each with its longest time.
pub(crate) fn waits<B>(limits: &Inner, request: &Request<B>) -> Vec<(Waiting, Duration)> {
    let Some(leases) = &limits.leases else {
        return Vec::new();
    };
    let shared = with_request(request, |request| limits.service.shared(request));
    let waits = shared.into_iter().filter_map(|(key, max_wait)| {
        let wait = leases.wait_for(&key, max_wait)?;
        Some((wait, max_wait))
    });
    waits.collect()
}

pub(crate) fn decide<B>(limits: &Inner, request: &Request<B>) -> Decision {
    with_request(request, |request| limits.decide(request, true))
}

/// Returns the headers of the answer to a request that the rules allow; otherwise the refusal. `headers`: the request's.
#[cfg_attr(
    not(feature = "tonic"),
    expect(unused_variables, reason = "only gRPC has them")
)]
pub(crate) fn admit(
    limits: &Inner,
    headers: &HeaderMap,
    decision: &Decision,
) -> Result<HeaderMap, Box<Response<Bytes>>> {
    if !decision.is_allowed {
        #[cfg(feature = "tonic")]
        if is_grpc(headers) {
            return Err(Box::new(limits.refuse_grpc(decision).into_http()));
        }
        return Err(Box::new(limits.refuse_http(decision)));
    }
    let mut headers = HeaderMap::new();
    if limits.answers.on_all {
        limits.add_headers(decision, &mut headers);
    }
    Ok(headers)
}
