//! The way of a request through all limiters of a layer.
//!
//! It passes all or none: if a later one refuses it, or its caller goes away, the earlier ones get back what it took. Only
//! the turn of a request that is dropped while it waits for it goes to no other one.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use tokio::time::{Instant, timeout_at};

use crate::Refusal;
use crate::layer::leases::LeaseOfWork;
use crate::layer::limits::{Inner, Limits};
use crate::layer::overload::{Cost, Head, InFlight, Overload, with_criticality};
use crate::layer::refusal;
#[cfg(feature = "tonic")]
use crate::layer::request::is_grpc;
use crate::layer::request::{Decided, degrade, with_request};
use crate::overload::Criticality;
use crate::rules::{Advice, Decision};

/// Limiters of a layer.
#[derive(Clone, Default)]
pub(crate) struct Limiters {
    pub(crate) rules: Vec<Limits>,
    pub(crate) overload: Option<Overload>,
    #[cfg(feature = "leases")]
    pub(crate) places: Vec<crate::ConcurrencyLimiter>,
    pub(crate) rates: Vec<Arc<dyn LeaseOfWork>>,
    /// Longest wait for leases.
    pub(crate) max_wait: Duration,
}

/// A request that has passed.
pub(crate) struct Served {
    /// Headers of its answer.
    pub(crate) headers: HeaderMap,
    pub(crate) work: Work,
}

/// The part of limiters that a request holds until its answer.
#[derive(Default)]
pub(crate) struct Work {
    admitted: Option<(InFlight, Criticality)>,
    #[cfg(feature = "leases")]
    places: Vec<crate::Permit>,
}

/// Count of a request by rules. It is undone if the request is not served.
struct Ruled<'a> {
    limits: &'a Inner,
    request: &'a Request<()>,
    decision: Decision,
    is_served: bool,
}

/// Amounts that leases have paid. They go back if the request is not served.
#[derive(Default)]
struct Paid(Vec<(Arc<dyn LeaseOfWork>, f64)>);

impl Limiters {
    /// Adds those of another layer.
    pub(crate) fn add(&mut self, other: Self) {
        self.rules.extend(other.rules);
        self.overload = self.overload.take().or(other.overload);
        #[cfg(feature = "leases")]
        self.places.extend(other.places);
        self.rates.extend(other.rates);
        self.max_wait = self.max_wait.max(other.max_wait);
    }

    /// Returns the rules, if they alone decide.
    #[inline]
    pub(crate) fn rules_alone(&self) -> Option<&Limits> {
        #[cfg(feature = "leases")]
        let has_places = !self.places.is_empty();
        #[cfg(not(feature = "leases"))]
        let has_places = false;
        match &self.rules[..] {
            [limits] if self.overload.is_none() && self.rates.is_empty() && !has_places => {
                Some(limits)
            }
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
        let head = self.overload.as_ref().map(|_| Head::read(request));
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
                None if waits_for_lease(limits, request) => {
                    decide_by_new_leases(limits, request).await
                }
                None => decide(limits, request),
            };
            if let Advice::ProceedAfter(delay) = decision.advice {
                tokio::time::sleep(delay).await;
            }
            headers.extend(admit(limits, request.headers(), &decision)?);
            ruled.push(Ruled {
                limits,
                request: &*request,
                decision,
                is_served: false,
            });
        }
        let cost = Cost::new();
        let work = self.take(head.as_ref(), &cost, request.headers()).await?;
        let all: Vec<Advice> = ruled.into_iter().map(Ruled::keep).collect();
        let extensions = request.extensions_mut();
        all.into_iter().for_each(|it| degrade(it, extensions));
        if let Some((in_flight, criticality)) = &work.admitted {
            extensions.insert(cost);
            extensions.insert(in_flight.clone());
            extensions.insert(*criticality);
        }
        Ok(Served { headers, work })
    }

    /// Waits for overload control, and then takes from leases. So no waiting request holds an amount that a more critical
    /// one needs.
    async fn take(
        &self,
        head: Option<&Head>,
        cost: &Cost,
        headers: &HeaderMap,
    ) -> Result<Work, Box<Response<Bytes>>> {
        let mut work = Work::default();
        let mut permit = None;
        if let Some((overload, head)) = self.overload.as_ref().zip(head) {
            let admitted = overload.acquire(&head.call()).await;
            permit = Some(admitted.map_err(|it| refusal::overloaded(it, headers))?);
        }
        let max_wait = match permit {
            Some(_) => Duration::ZERO,
            None => self.max_wait,
        };
        let until = Instant::now() + max_wait;
        let refused = |refusal: Refusal| {
            if let Some((overload, head)) = self.overload.as_ref().zip(head) {
                overload.count_no_lease(head.criticality);
            }
            refusal::lease_used_up(refusal, headers)
        };
        #[cfg(feature = "leases")]
        for limiter in &self.places {
            let place = match timeout_at(until, limiter.acquire(1)).await {
                Ok(place) => place,
                Err(_) => limiter.try_acquire(1),
            };
            work.places.push(place.map_err(refused)?);
        }
        let mut paid = Paid::default();
        let predicted = permit.as_ref().map_or(1.0, |it| it.predicted_cost());
        for lease in &self.rates {
            // Beside overload control, a lease that is not in debt pays for any request, and later ones wait until it is
            // paid back. Otherwise, a cost above the burst would never be paid, and its prediction never be corrected.
            let first = predicted.min(1.0);
            let taken = match permit {
                Some(_) => lease.take(first),
                None => match timeout_at(until, lease.wait()).await {
                    Ok(taken) => taken,
                    Err(_) => lease.take(first),
                },
            };
            taken.map_err(refused)?;
            if predicted > first {
                lease.settle(first, predicted);
            }
            paid.0.push((Arc::clone(lease), predicted));
        }
        let paid = std::mem::take(&mut paid.0);
        work.admitted = permit
            .zip(head)
            .map(|(permit, head)| (InFlight::new(permit, paid, cost.clone()), head.criticality));
        Ok(work)
    }
}

impl Work {
    /// Serves the request. Calls on its behalf are as critical as it is.
    pub(crate) async fn within<F: Future>(&self, served: F) -> F::Output {
        match &self.admitted {
            Some((_, criticality)) => with_criticality(*criticality, served).await,
            None => served.await,
        }
    }

    /// Takes the answer into account.
    pub(crate) fn answer(&self, is_failure: bool) {
        if let Some((in_flight, _)) = &self.admitted {
            in_flight.answer(is_failure);
        }
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

impl Drop for Paid {
    fn drop(&mut self) {
        for (lease, amount) in &self.0 {
            lease.settle(*amount, 0.0);
        }
    }
}

/// Waits for the first leases of shared rules, and for an amount that their burst lacks. Each wait is at most that of the
/// rule.
async fn decide_by_new_leases(limits: &Inner, request: &Request<()>) -> Decision {
    let mut longest = Duration::ZERO;
    if let Some(leases) = &limits.leases {
        for (key, max_wait) in shared(limits, request) {
            leases.ready(&key, max_wait).await;
            longest = longest.max(max_wait);
        }
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

/// Returns the keys of the request's shared rules, each with the longest wait.
fn shared<B>(limits: &Inner, request: &Request<B>) -> Vec<(String, Duration)> {
    with_request(request, |request| limits.service.shared(request))
}

pub(crate) fn waits_for_lease<B>(limits: &Inner, request: &Request<B>) -> bool {
    let leases = limits.leases.as_ref();
    leases.is_some_and(|leases| {
        let shared = shared(limits, request);
        shared
            .iter()
            .any(|(key, max_wait)| leases.is_new(key, *max_wait))
    })
}

pub(crate) fn decide<B>(limits: &Inner, request: &Request<B>) -> Decision {
    with_request(request, |request| limits.decide(request))
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
