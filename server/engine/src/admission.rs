//! Which newcomers a node accepts, and which it refuses until later.
//!
//! A caller can bring resources, holders, child servers, demand curves, priorities and names. Each of them is counted in
//! bytes ([`weight`]): in all, for its caller, and for the template of its resource. Only **newcomers** are refused: a
//! resource without holders, a holder without a lease, an unused priority, a curve that grows. A holder with a lease keeps
//! and refreshes it, whatever is full. A refresh costs a token of its template; without a token, the refresh is put off
//! only while the lease lasts for long.
//!
//! The bytes of a resource, and of a holder, count for the caller that brought them until they end. A child server asks
//! on behalf of many clients: a leaf brings all of its resources at once when it starts. So the rate of newcomers does not
//! apply to child servers. Their bytes count like those of clients.
//!
//! A bound of 0 means none at all. All state is about leases that are known: it starts empty whenever mastership is won or
//! lost.

pub(crate) mod bucket;
mod callers;
mod gate;
mod limit;
pub mod limits;
pub use limit::*;
mod load;
mod template_books;
pub mod weight;

use std::collections::BTreeMap;
use std::time::Duration;

pub use bucket::Rate;
pub use callers::CallerSlot;
pub(crate) use gate::AdmissionGate;
pub use load::Load;
pub use template_books::TemplateSlot;

use crate::admission::callers::{CallerBook, Callers};
use crate::admission::template_books::TemplateBooks;
use crate::admission::weight::Weight;
use crate::id::Caller;
use doorward_time::spread;

/// Bounds of the additional retry delay of a refused caller, which spreads their return.
const COME_BACK: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// Change of the bytes that a caller has brought to one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The caller.
    pub caller: CallerSlot,
    /// Bytes of the holder before; 0: it is new.
    pub before: usize,
    /// Bytes of the holder now; 0: it is gone.
    pub after: usize,
}

/// The bytes in use, by caller, by template and in all.
#[derive(Debug)]
pub struct Admission {
    callers: Callers,
    templates: TemplateBooks,
    /// Bytes of all resources and their holders.
    bytes: usize,
    refused: [u64; Limit::ALL.len()],
    refusals: u64,
}

impl Admission {
    /// Makes one without bytes or callers.
    pub fn new(seed: u64) -> Self {
        Self {
            callers: Callers::new(seed),
            templates: TemplateBooks::default(),
            bytes: 0,
            refused: [0; Limit::ALL.len()],
            refusals: 0,
        }
    }

    /// Forgets everything but the number of refusals. Returns what it knew.
    pub(crate) fn forget(&mut self, seed: u64) -> Self {
        let anew = Self {
            refused: self.refused,
            refusals: self.refusals,
            ..Self::new(seed)
        };
        std::mem::replace(self, anew)
    }

    /// Moves the bytes of a resource to another template.
    pub(crate) fn move_resource(&mut self, from: TemplateSlot, to: TemplateSlot, bytes: usize) {
        if from != to {
            self.templates.get_mut(from).bytes -= bytes;
            self.templates.get_mut(to).bytes += bytes;
        }
    }

    /// Removes the book of a template that is no longer in force and has no resources.
    pub(crate) fn forget_template(&mut self, slot: TemplateSlot) {
        self.templates.forget(slot);
    }

    /// A resource is gone; its holders have left before.
    pub(crate) fn note_resource_gone(
        &mut self,
        caller: CallerSlot,
        template: TemplateSlot,
        bytes: usize,
    ) {
        self.replace_bytes(template, bytes, 0);
        self.charge(Charge {
            caller,
            before: bytes,
            after: 0,
        });
    }

    /// The holders of a resource have changed, and its weight with them.
    pub(crate) fn note_changes(
        &mut self,
        charges: Vec<Charge>,
        before: Weight,
        after: Weight,
        template: TemplateSlot,
    ) {
        self.replace_bytes(template, before.bytes(), after.bytes());
        for charge in charges {
            self.charge(charge);
        }
    }

    fn charge(&mut self, charge: Charge) {
        if let Some(book) = self.callers.get_mut(charge.caller) {
            book.bytes = book.bytes + charge.after - charge.before;
        }
    }

    fn replace_bytes(&mut self, template: TemplateSlot, before: usize, after: usize) {
        self.bytes = self.bytes + after - before;
        let of_template = &mut self.templates.get_mut(template).bytes;
        *of_template = *of_template + after - before;
    }

    /// Estimated memory of all resources, holders and callers, in bytes. O(1).
    pub fn memory_bytes(&self) -> usize {
        self.bytes + self.callers.count() * size_of::<CallerBook>()
    }

    /// Number of refusals by each limit since the node came to be.
    pub fn refused(&self) -> &[u64; Limit::ALL.len()] {
        &self.refused
    }

    /// Number of refusals by all limits.
    pub fn refusals(&self) -> u64 {
        self.refusals
    }

    /// Finds a caller that has come before.
    pub(crate) fn find_caller(&self, caller: Option<Caller>) -> Option<CallerSlot> {
        self.callers.find(caller)
    }

    /// Asserts that the bytes are those of the resources that are there. For tests.
    ///
    /// # Panics
    ///
    /// If they are not.
    pub(crate) fn assert_counts(
        &self,
        by_caller: &BTreeMap<CallerSlot, usize>,
        by_template: &BTreeMap<TemplateSlot, usize>,
    ) {
        let mut of_callers = 0;
        for (caller, bytes) in by_caller {
            if *caller != CallerSlot::NOBODY {
                let book = self.callers.get(*caller).map(|book| book.bytes);
                assert_eq!(book, Some(*bytes), "bytes of {caller:?}");
                of_callers += bytes;
            }
        }
        let all: usize = self.callers.iter().map(|book| book.bytes).sum();
        assert_eq!(all, of_callers, "bytes of all callers");
        for (template, bytes) in by_template {
            let book = self.templates.bytes(*template);
            assert_eq!(book, *bytes, "bytes of {template:?}");
        }
        assert_eq!(
            self.bytes,
            by_template.values().sum::<usize>(),
            "bytes in all"
        );
        assert_eq!(self.templates.all_bytes(), self.bytes, "bytes of templates");
    }

    /// Checks that there is room for so much more.
    fn check(&mut self, limit: Limit, has: usize, more: usize, max: usize) -> Result<(), Full> {
        if has.saturating_add(more) <= max {
            return Ok(());
        }
        Err(self.full(limit, max, Duration::ZERO))
    }

    /// Refuses, with the time to come back: not before `at_least`, and spread for those who are refused together.
    fn full(&mut self, limit: Limit, max: usize, at_least: Duration) -> Full {
        if let Some(refused) = self.refused.get_mut(limit as usize) {
            *refused += 1;
        }
        self.refusals += 1;
        Full {
            limit,
            max: u64::try_from(max).unwrap_or(u64::MAX),
            retry_in: at_least + spread::evenly(self.refusals, COME_BACK),
        }
    }
}
