//! The checks of a request: a newcomer is accepted, or refused with the limit that is reached.

use std::time::Duration;

use crate::admission::limits::Limits;
use crate::admission::weight::{self, BAND_BYTES, CURVE_BYTES, LEASE_BYTES, POINT_BYTES};
use crate::admission::{Admission, CallerSlot, TemplateSlot};
use crate::demand::Demand;
use crate::id::{Caller, HolderId, HolderKind, HolderName};
use crate::limit::Limit;
use crate::request::RefusalReason;
use crate::time::Time;

/// Whose newcomer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// A client's of that caller.
    Client(Option<Caller>),
    /// A child server's.
    Child,
}

/// What one request passes on its way into a resource.
#[derive(Debug)]
pub(crate) struct AdmissionGate<'a> {
    /// The books.
    pub admission: &'a mut Admission,
    /// The bounds.
    pub limits: &'a Limits,
    /// Whose request it is.
    pub caller: Option<Caller>,
    /// What the resource belongs to.
    pub template: TemplateSlot,
}

impl AdmissionGate<'_> {
    /// Where the caller is in the books.
    pub(crate) fn enter(&mut self, now: Time) -> CallerSlot {
        self.admission.callers.enter(self.caller, now)
    }

    /// Takes a token for a client's request.
    ///
    /// # Errors
    ///
    /// If there is none: how long until there is.
    pub(crate) fn take_request(&mut self, now: Time) -> Result<(), Duration> {
        let rate = self.limits.requests_per_template;
        match self.admission.bounding(self.template) {
            Some(book) => book.requests.take(rate, now),
            None => Ok(()),
        }
    }

    /// What is said to who is refused for want of such a token.
    pub(crate) fn too_many_requests(&mut self, wait: Duration) -> RefusalReason {
        let rate = self.limits.requests_per_template;
        self.admission
            .too_fast(Limit::RequestsPerTemplate, rate, wait)
    }

    /// Whether a resource with so many holders gets one more. Returns who brings it.
    ///
    /// # Errors
    ///
    /// What is full, and when to come back.
    pub(crate) fn admit_lease(
        &mut self,
        holder: &HolderId,
        demand: &Demand,
        holders: usize,
        now: Time,
    ) -> Result<CallerSlot, RefusalReason> {
        let (admission, limits) = (&mut *self.admission, self.limits);
        let leases = admission.weight.holders();
        admission.check(Limit::Leases, leases, limits.leases_max)?;
        let max = limits.leases_per_resource_max;
        admission.check(Limit::LeasesPerResource, holders, max)?;
        if let Some((_, of)) = admission.templates.counts(self.template) {
            let max = limits.leases_per_template_max;
            admission.check(Limit::LeasesPerTemplate, of, max)?;
        }
        let name = weight::name_bytes(holder.name.as_str());
        match holder.kind {
            HolderKind::Client => {
                admission.check_memory(LEASE_BYTES + name, limits)?;
                let caller = admission.callers.enter(self.caller, now);
                self.admit_new_lease(caller, now)?;
                Ok(caller)
            }
            HolderKind::Server => {
                let points = points_of(demand);
                let more = CURVE_BYTES + points * POINT_BYTES + name;
                admission.check_memory(more, limits)?;
                let caller = admission.callers.enter(self.caller, now);
                self.admit_curve(&holder.name, caller, points)?;
                Ok(caller)
            }
        }
    }

    fn admit_new_lease(&mut self, caller: CallerSlot, now: Time) -> Result<(), RefusalReason> {
        let (admission, limits) = (&mut *self.admission, self.limits);
        if let Some(has) = admission.of_caller(caller).map(|it| it.brought.leases) {
            let max = limits.leases_per_caller_max;
            admission.check(Limit::LeasesPerCaller, has, max)?;
        }
        let rate = limits.new_leases_per_caller;
        if let Some(book) = admission.callers.get_mut(caller)
            && let Err(wait) = book.new_leases.take(rate, now)
        {
            return Err(admission.too_fast(Limit::NewLeasesPerCaller, rate, wait));
        }
        let rate = limits.new_leases_per_template;
        if let Some(book) = admission.bounding(self.template)
            && let Err(wait) = book.new_leases.take(rate, now)
        {
            return Err(admission.too_fast(Limit::NewLeasesPerTemplate, rate, wait));
        }
        Ok(())
    }

    /// Whether a child server gets a lease more.
    fn admit_curve(
        &mut self,
        child: &HolderName,
        caller: CallerSlot,
        points: usize,
    ) -> Result<(), RefusalReason> {
        let (admission, limits) = (&mut *self.admission, self.limits);
        let of_caller = admission.of_caller(caller).map(|book| book.brought);
        if !admission.children.contains_key(child) {
            let (has, max) = (admission.children.len(), limits.child_servers_max);
            admission.check(Limit::ChildServers, has, max)?;
            if let Some(brought) = of_caller {
                let max = limits.child_servers_per_caller_max;
                admission.check(Limit::ChildServersPerCaller, brought.children, max)?;
            }
        }
        let (has, max) = (admission.weight.curves, limits.curves_max);
        admission.check(Limit::Curves, has, max)?;
        if let Some(brought) = of_caller {
            let max = limits.curves_per_caller_max;
            admission.check(Limit::CurvesPerCaller, brought.curves, max)?;
        }
        self.admit_points(caller, points)
    }

    fn admit_points(&mut self, caller: CallerSlot, more: usize) -> Result<(), RefusalReason> {
        let (admission, limits) = (&mut *self.admission, self.limits);
        let (has, max) = (admission.weight.points, limits.curve_points_max);
        admission.check_more(Limit::CurvePoints, has, more, max)?;
        if let Some(has) = admission.of_caller(caller).map(|it| it.brought.points) {
            let max = limits.curve_points_per_caller_max;
            admission.check_more(Limit::CurvePointsPerCaller, has, more, max)?;
        }
        Ok(())
    }

    /// Whether the curve of a child server that has a lease may grow by so many points.
    ///
    /// # Errors
    ///
    /// What is full.
    pub(crate) fn admit_growth(
        &mut self,
        caller: CallerSlot,
        more: usize,
    ) -> Result<(), RefusalReason> {
        self.admission
            .check_memory(more * POINT_BYTES, self.limits)?;
        self.admit_points(caller, more)
    }

    /// Whether there is memory for so many more priorities.
    ///
    /// # Errors
    ///
    /// There is none left.
    pub(crate) fn admit_bands(&mut self, more: usize) -> Result<(), RefusalReason> {
        self.admission.check_memory(more * BAND_BYTES, self.limits)
    }

    /// Whether a resource that has so many priorities of its kind gets so many more.
    ///
    /// # Errors
    ///
    /// What is full.
    pub(crate) fn admit_priorities(
        &mut self,
        limit: Limit,
        has: usize,
        more: usize,
        max: usize,
    ) -> Result<(), RefusalReason> {
        self.admission.check_more(limit, has, more, max)
    }
}

/// Points of the curves of a demand.
pub(crate) fn points_of(demand: &Demand) -> usize {
    match demand {
        Demand::Client { .. } => 0,
        Demand::Server(demand) => demand.points(),
    }
}
