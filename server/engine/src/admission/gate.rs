//! The checks of a request: a newcomer is accepted, or refused with the limit that is reached.

use std::time::Duration;

use crate::admission::limits::Limits;
use crate::admission::{Admission, CallerSlot, Charge, Full, Limit, Rate, TemplateSlot};
use crate::id::{Caller, HolderKind};
use crate::time::Time;

/// The checks of one request for one resource.
#[derive(Debug)]
pub(crate) struct AdmissionGate<'a> {
    /// The bytes in use.
    pub admission: &'a mut Admission,
    /// The bounds.
    pub limits: &'a Limits,
    /// The caller of the request.
    pub caller: Option<Caller>,
    /// The template of the resource.
    pub template: TemplateSlot,
}

impl AdmissionGate<'_> {
    /// Finds or adds the caller.
    pub(crate) fn enter(&mut self, now: Time) -> CallerSlot {
        self.admission.callers.enter(self.caller, now)
    }

    /// Takes a token for a client's request. A resource without a template is bounded by none.
    ///
    /// # Errors
    ///
    /// If there is none: how long until there is.
    pub(crate) fn take_request(&mut self, now: Time) -> Result<(), Duration> {
        if self.template == TemplateSlot::NONE {
            return Ok(());
        }
        let rate = self.limits.requests_per_template;
        let book = self.admission.templates.get_mut(self.template);
        book.requests.take(rate, now)
    }

    /// Returns the refusal of a request without a token.
    pub(crate) fn too_many_requests(&mut self, wait: Duration) -> Full {
        self.too_fast(
            Limit::RequestsPerTemplate,
            self.limits.requests_per_template,
            wait,
        )
    }

    /// Accepts a new resource, and counts its bytes. Returns the caller that brings it.
    ///
    /// # Errors
    ///
    /// The limit that is reached.
    pub(crate) fn admit_resource(
        &mut self,
        kind: HolderKind,
        bytes: usize,
        now: Time,
    ) -> Result<CallerSlot, Full> {
        self.admit_bytes_in_all(bytes)?;
        let caller = self.enter(now);
        self.admit_bytes_of(caller, bytes)?;
        self.admit_newcomer(kind, caller, now)?;
        self.admission.replace_bytes(self.template, 0, bytes);
        self.admission.charge(Charge {
            caller,
            before: 0,
            after: bytes,
        });
        Ok(caller)
    }

    /// Accepts a new holder of a resource that has `holders` already. Returns the caller that brings it.
    ///
    /// # Errors
    ///
    /// The limit that is reached.
    pub(crate) fn admit_holder(
        &mut self,
        kind: HolderKind,
        bytes: usize,
        holders: usize,
        now: Time,
    ) -> Result<CallerSlot, Full> {
        let max = self.limits.leases_per_resource_max;
        self.admission
            .check(Limit::LeasesPerResource, holders, 1, max)?;
        self.admit_bytes_in_all(bytes)?;
        let caller = self.enter(now);
        self.admit_bytes_of(caller, bytes)?;
        self.admit_newcomer(kind, caller, now)?;
        Ok(caller)
    }

    /// Checks that a caller may bring `more` bytes.
    ///
    /// # Errors
    ///
    /// The limit that is reached.
    pub(crate) fn admit_bytes(&mut self, caller: CallerSlot, more: usize) -> Result<(), Full> {
        self.admit_bytes_in_all(more)?;
        self.admit_bytes_of(caller, more)
    }

    fn admit_bytes_in_all(&mut self, more: usize) -> Result<(), Full> {
        let (admission, limits) = (&mut *self.admission, self.limits);
        let has = admission.memory_bytes();
        admission.check(Limit::Memory, has, more, limits.memory_max)?;
        if self.template == TemplateSlot::NONE {
            return Ok(());
        }
        let has = admission.templates.bytes(self.template);
        let max = limits.memory_per_template_max;
        admission.check(Limit::MemoryPerTemplate, has, more, max)
    }

    fn admit_bytes_of(&mut self, caller: CallerSlot, more: usize) -> Result<(), Full> {
        if caller == CallerSlot::NOBODY {
            return Ok(());
        }
        let book = self.admission.callers.get(caller);
        let has = book.map_or(0, |book| book.bytes);
        let max = self.limits.memory_per_caller_max;
        self.admission.check(Limit::MemoryPerCaller, has, more, max)
    }

    /// Checks that a resource with `has` priorities may get `more` new ones.
    ///
    /// # Errors
    ///
    /// The limit is reached.
    pub(crate) fn admit_priorities(
        &mut self,
        has: usize,
        more: usize,
        max: usize,
    ) -> Result<(), Full> {
        self.admission.check(Limit::Priorities, has, more, max)
    }

    fn admit_newcomer(
        &mut self,
        kind: HolderKind,
        caller: CallerSlot,
        now: Time,
    ) -> Result<(), Full> {
        let rate = self.limits.newcomers_per_caller;
        let book = self.admission.callers.get_mut(caller);
        let Some(book) = book.filter(|_| kind == HolderKind::Client) else {
            return Ok(());
        };
        match book.newcomers.take(rate, now) {
            Ok(()) => Ok(()),
            Err(wait) => Err(self.too_fast(Limit::NewcomersPerCaller, rate, wait)),
        }
    }

    fn too_fast(&mut self, limit: Limit, rate: Rate, wait: Duration) -> Full {
        let max = rate.per_second.get() as usize;
        self.admission.full(limit, max, wait)
    }
}
