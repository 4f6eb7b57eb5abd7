//! Which newcomers a node accepts, and which it refuses until later.
//!
//! Everything that one caller can cause is limited: per caller, per template, and in all. Only **newcomers** are refused: a
//! resource without holders, a holder without a lease, an unused priority, a curve that grows. A holder with a lease keeps
//! and refreshes it, whatever is full. So a refresh costs only a token of its template, and if there is none, the refresh
//! is put off only while the lease lasts for long.
//!
//! Everything counts for the caller that brought it until it ends. A child server asks on behalf of many:
//! its resources and leases are not counted as those of a caller, nor its newcomers each second, for a leaf
//! that was started brings all of them at once. It is bounded by how many child servers there are, and by
//! their leases and the points of their curves.
//!
//! A bound of 0 means none at all, except where [`Option`] says otherwise. All state is about leases that are
//! known: when mastership is won or lost, it begins anew.

pub(crate) mod bucket;
mod callers;
mod gate;
pub mod limits;
mod load;
mod template_books;
pub mod weight;

use std::collections::BTreeMap;
use std::time::Duration;

pub use bucket::Rate;
pub use callers::CallerSlot;
pub(crate) use gate::{AdmissionGate, From, points_of};
pub use load::{Load, LoadFrom};
pub use template_books::TemplateSlot;

use crate::admission::callers::{CallerBook, Callers};
use crate::admission::limits::Limits;
use crate::admission::template_books::{TemplateBook, TemplateBooks};
use crate::admission::weight::{RESOURCE_BYTES, TotalWeight, Weight};
use crate::id::{Caller, HolderName};
use crate::limit::{Full, Limit};
use crate::request::RefusalReason;
use crate::time::Time;
use doorward_time::spread;

/// Who is refused comes back after so long, and not all at once.
const COME_BACK: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// A child server.
#[derive(Clone, Debug)]
struct ChildBook {
    leases: usize,
    caller: CallerSlot,
}

/// What came or went of a resource's holders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HolderChange {
    /// A client has its first lease.
    ClientCame(CallerSlot),
    /// A client's last lease is over.
    ClientGone(CallerSlot),
    /// A child server has its first lease of the resource, with so many points.
    ChildCame(HolderName, CallerSlot, usize),
    /// A child server's last lease of the resource is over.
    ChildGone(HolderName, CallerSlot, usize),
    /// A child server's curve had so many points, and has so many now.
    Points(CallerSlot, usize, usize),
}

/// The books of what is there, by caller, by template and in all.
#[derive(Debug)]
pub struct Admission {
    callers: Callers,
    templates: TemplateBooks,
    children: BTreeMap<HolderName, ChildBook>,
    resources: usize,
    weight: TotalWeight,
    /// Names of resources that are not kept in place.
    name_bytes: usize,
    refused: [u64; Limit::ALL.len()],
    refusals: u64,
}

impl Admission {
    /// Nothing is there yet.
    pub fn new(seed: u64) -> Self {
        Self {
            callers: Callers::new(seed),
            templates: TemplateBooks::default(),
            children: BTreeMap::new(),
            resources: 0,
            weight: TotalWeight::default(),
            name_bytes: 0,
            refused: [0; Limit::ALL.len()],
            refusals: 0,
        }
    }

    /// All that was there is forgotten, but not what was refused. Returns the former books.
    pub(crate) fn forget(&mut self, seed: u64) -> Self {
        let anew = Self {
            refused: self.refused,
            refusals: self.refusals,
            ..Self::new(seed)
        };
        std::mem::replace(self, anew)
    }

    /// A resource with so many leases belongs to another template now.
    pub(crate) fn move_resource(&mut self, from: TemplateSlot, to: TemplateSlot, leases: usize) {
        if from != to {
            self.templates.move_resource(from, to, leases);
        }
    }

    /// That template is in force no more, and no resource belongs to it.
    pub(crate) fn forget_template(&mut self, slot: TemplateSlot) {
        self.templates.forget(slot);
    }

    /// Whether one more resource is taken on. If so, it is counted; who brought it is returned.
    ///
    /// # Errors
    ///
    /// What is full, and when to come back.
    pub(crate) fn admit_resource(
        &mut self,
        name_bytes: usize,
        from: From,
        template: TemplateSlot,
        limits: &Limits,
        now: Time,
    ) -> Result<CallerSlot, RefusalReason> {
        self.check(Limit::Resources, self.resources, limits.resources_max)?;
        let more = RESOURCE_BYTES + name_bytes;
        self.check_memory(more, limits)?;
        if let Some((of, _)) = self.templates.counts(template) {
            let max = limits.resources_per_template_max;
            self.check(Limit::ResourcesPerTemplate, of, max)?;
        }
        let caller = match from {
            From::Client(caller) => {
                let slot = self.callers.enter(caller, now);
                self.admit_new_resource(slot, template, limits, now)?;
                slot
            }
            From::Child => CallerSlot::NOBODY,
        };
        self.resources += 1;
        self.name_bytes += name_bytes;
        if let Some(book) = self.callers.get_mut(caller) {
            book.brought.resources += 1;
        }
        self.templates.get_mut(template).resources += 1;
        Ok(caller)
    }

    /// What is asked of a client's new resource only: whether its caller brings too many, or too fast.
    fn admit_new_resource(
        &mut self,
        caller: CallerSlot,
        template: TemplateSlot,
        limits: &Limits,
        now: Time,
    ) -> Result<(), RefusalReason> {
        if let Some(has) = self.of_caller(caller).map(|book| book.brought.resources) {
            let max = limits.resources_per_caller_max;
            self.check(Limit::ResourcesPerCaller, has, max)?;
        }
        // The caller's first: what it is refused takes nothing from others.
        let rate = limits.new_resources_per_caller;
        if let Some(book) = self.callers.get_mut(caller)
            && let Err(wait) = book.new_resources.take(rate, now)
        {
            return Err(self.too_fast(Limit::NewResourcesPerCaller, rate, wait));
        }
        let rate = limits.new_resources_per_template;
        if let Some(book) = self.bounding(template)
            && let Err(wait) = book.new_resources.take(rate, now)
        {
            return Err(self.too_fast(Limit::NewResourcesPerTemplate, rate, wait));
        }
        Ok(())
    }

    /// A resource is no more; all of its holders are gone before.
    pub(crate) fn note_resource_gone(
        &mut self,
        caller: CallerSlot,
        template: TemplateSlot,
        name_bytes: usize,
    ) {
        self.resources -= 1;
        self.name_bytes -= name_bytes;
        if let Some(book) = self.callers.get_mut(caller) {
            book.brought.resources -= 1;
        }
        self.templates.get_mut(template).resources -= 1;
    }

    /// What came and went of a resource's holders since it was last looked at, and what it weighs.
    pub(crate) fn note_changes(
        &mut self,
        changes: Vec<HolderChange>,
        before: Weight,
        after: Weight,
        template: TemplateSlot,
    ) {
        self.weight.replace(before, after);
        let leases = &mut self.templates.get_mut(template).leases;
        *leases = *leases + after.holders() - before.holders();
        for change in changes {
            self.note(change);
        }
    }

    fn note(&mut self, change: HolderChange) {
        match change {
            HolderChange::ClientCame(caller) => {
                if let Some(book) = self.callers.get_mut(caller) {
                    book.brought.leases += 1;
                }
            }
            HolderChange::ClientGone(caller) => {
                if let Some(book) = self.callers.get_mut(caller) {
                    book.brought.leases -= 1;
                }
            }
            HolderChange::ChildCame(name, caller, points) => {
                if let Some(book) = self.callers.get_mut(caller) {
                    book.brought.curves += 1;
                    book.brought.points += points;
                }
                if let Some(child) = self.children.get_mut(&name) {
                    child.leases += 1;
                    return;
                }
                self.children.insert(name, ChildBook { leases: 1, caller });
                if let Some(book) = self.callers.get_mut(caller) {
                    book.brought.children += 1;
                }
            }
            HolderChange::ChildGone(name, caller, points) => {
                if let Some(book) = self.callers.get_mut(caller) {
                    book.brought.curves -= 1;
                    book.brought.points -= points;
                }
                let Some(child) = self.children.get_mut(&name) else {
                    return;
                };
                child.leases -= 1;
                if child.leases == 0 {
                    let first = child.caller;
                    self.children.remove(&name);
                    if let Some(book) = self.callers.get_mut(first) {
                        book.brought.children -= 1;
                    }
                }
            }
            HolderChange::Points(caller, before, after) => {
                if let Some(book) = self.callers.get_mut(caller) {
                    book.brought.points = book.brought.points + after - before;
                }
            }
        }
    }

    /// Memory behind all that is there, in bytes, roughly. Costs nothing.
    pub fn memory_bytes(&self) -> usize {
        self.resources * RESOURCE_BYTES
            + self.name_bytes
            + self.weight.bytes()
            + self.callers.count() * size_of::<CallerBook>()
    }

    /// How often each limit refused something since the node came to be.
    pub fn refused(&self) -> &[u64; Limit::ALL.len()] {
        &self.refused
    }

    /// How often any did.
    pub fn refusals(&self) -> u64 {
        self.refusals
    }

    /// Where a caller is in the books, if it has come before.
    pub(crate) fn find_caller(&self, caller: Option<Caller>) -> Option<CallerSlot> {
        self.callers.find(caller)
    }

    /// Asserts that what is counted is there: resources by who brought them, what is out, and how many child
    /// servers. For tests.
    ///
    /// # Panics
    ///
    /// If it is not.
    pub(crate) fn assert_counts(
        &self,
        resources: impl Iterator<Item = CallerSlot>,
        weight: TotalWeight,
        name_bytes: usize,
        children: usize,
    ) {
        let mut by_caller = BTreeMap::new();
        let mut count = 0;
        for caller in resources {
            *by_caller.entry(caller).or_insert(0) += 1;
            count += 1;
        }
        assert_eq!(count, self.resources, "resources");
        for (caller, brought) in by_caller {
            if let Some(book) = self.of_caller(caller) {
                assert_eq!(book.brought.resources, brought, "resources of {caller:?}");
            }
        }
        assert_eq!(weight, self.weight, "what is out");
        assert_eq!(name_bytes, self.name_bytes, "names of resources");
        assert_eq!(children, self.children.len(), "child servers");
        assert_eq!(
            self.templates.leases(),
            weight.holders(),
            "leases of templates"
        );
        let most = self.callers.iter().map(|book| book.brought);
        let (leases, points) = most.fold((0, 0), |(leases, points), brought| {
            (leases + brought.leases, points + brought.points)
        });
        assert!(
            leases <= weight.leases && points <= weight.points,
            "by callers"
        );
    }

    fn of_caller(&self, slot: CallerSlot) -> Option<&CallerBook> {
        let book = self.callers.get(slot);
        book.filter(|_| slot != CallerSlot::NOBODY)
    }

    /// The books of a template that bounds what comes.
    fn bounding(&mut self, slot: TemplateSlot) -> Option<&mut TemplateBook> {
        let is_bounding = slot != TemplateSlot::NONE;
        is_bounding.then(|| self.templates.get_mut(slot))
    }

    /// Whether there is room for one more.
    fn check(&mut self, limit: Limit, has: usize, max: usize) -> Result<(), RefusalReason> {
        self.check_more(limit, has, 1, max)
    }

    fn check_more(
        &mut self,
        limit: Limit,
        has: usize,
        more: usize,
        max: usize,
    ) -> Result<(), RefusalReason> {
        if has.saturating_add(more) <= max {
            return Ok(());
        }
        Err(self.full(limit, max, Duration::ZERO))
    }

    fn check_memory(&mut self, more: usize, limits: &Limits) -> Result<(), RefusalReason> {
        let max = limits.memory_max.unwrap_or(usize::MAX);
        self.check_more(Limit::Memory, self.memory_bytes(), more, max)
    }

    fn too_fast(&mut self, limit: Limit, rate: Rate, wait: Duration) -> RefusalReason {
        self.full(limit, rate.per_second.get() as usize, wait)
    }

    /// Refuses, and says when to come back: not before `at_least`, and others at other times.
    fn full(&mut self, limit: Limit, max: usize, at_least: Duration) -> RefusalReason {
        if let Some(refused) = self.refused.get_mut(limit as usize) {
            *refused += 1;
        }
        self.refusals += 1;
        RefusalReason::Full(Full {
            limit,
            max: u64::try_from(max).unwrap_or(u64::MAX),
            retry_in: at_least + spread::evenly(self.refusals, COME_BACK),
        })
    }
}
