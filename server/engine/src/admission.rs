//! Which newcomers a node accepts, and which it refuses until later.
//!
//! A caller can bring resources, holders, child servers, demand curves, priorities and names. Each of them is counted
//! in bytes ([`weight`]): in all, for its caller, and for the template of its resource. Only **newcomers** are refused:
//! a resource without holders, a holder without a lease, an unused priority, a curve that grows. A holder with a lease
//! keeps and refreshes it, whatever is full. A refresh costs a token of its template; without a token, the refresh is
//! put off only while the lease lasts for long.
//!
//! The bytes of a resource, and of a holder, count for the caller that brought them until they end. A child server asks
//! on behalf of many clients: a leaf brings all of its resources at once when it starts. So the rate of newcomers does
//! not apply to child servers. Their bytes count like those of clients.
//!
//! A bound of 0 means none at all. All state is about leases that are known: it starts empty whenever mastership is won
//! or lost.

mod callers;
pub mod limits;
pub mod weight;

pub use callers::CallerSlot;
pub use limits::{Full, Limit, Rate};

use std::collections::BTreeMap;
use std::time::Duration;

use crate::admission::callers::{CallerAccount, Callers};
use crate::admission::limits::{Bucket, Limits};
use crate::id::{Caller, HolderKind};
use crate::time::Time;
use crate::time::spread;

/// Bounds of the additional retry delay of a refused caller, which spreads their return.
const COME_BACK: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// A caller has this part of the requests of a template.
const PART_OF_CALLER: u64 = 4;

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
    /// By template. [`TemplateSlot::NONE`] has the resources that no template matches. An account begins with the first
    /// entry.
    templates: BTreeMap<TemplateSlot, TemplateAccount>,
    /// Bytes of all resources and their holders.
    bytes: usize,
    refused: [u64; Limit::ALL.len()],
}

impl Admission {
    /// Makes one without bytes or callers.
    pub fn new(seed: u64) -> Self {
        Self {
            callers: Callers::new(seed),
            templates: BTreeMap::new(),
            bytes: 0,
            refused: [0; Limit::ALL.len()],
        }
    }

    /// Forgets everything but the number of refusals. Returns what it knew.
    pub(crate) fn forget(&mut self, seed: u64) -> Self {
        let anew = Self {
            refused: self.refused,
            ..Self::new(seed)
        };
        std::mem::replace(self, anew)
    }

    /// Moves the bytes of a resource to another template.
    pub(crate) fn move_resource(&mut self, from: TemplateSlot, to: TemplateSlot, bytes: usize) {
        if from != to {
            self.template_mut(from).bytes -= bytes;
            self.template_mut(to).bytes += bytes;
        }
    }

    /// Removes the account of a template that is no longer in force and has no resources.
    pub(crate) fn forget_template(&mut self, slot: TemplateSlot) {
        let gone = self.templates.remove(&slot);
        debug_assert!(gone.is_none_or(|account| account.bytes == 0));
    }

    fn template_mut(&mut self, slot: TemplateSlot) -> &mut TemplateAccount {
        self.templates.entry(slot).or_default()
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

    /// The holders of a resource have changed, and their bytes with them.
    pub(crate) fn note_changes(
        &mut self,
        charges: Vec<Charge>,
        before: usize,
        after: usize,
        template: TemplateSlot,
    ) {
        self.replace_bytes(template, before, after);
        for charge in charges {
            self.charge(charge);
        }
    }

    fn charge(&mut self, charge: Charge) {
        if let Some(account) = self.callers.get_mut(charge.caller) {
            account.bytes = account.bytes + charge.after - charge.before;
        }
    }

    fn replace_bytes(&mut self, template: TemplateSlot, before: usize, after: usize) {
        self.bytes = self.bytes + after - before;
        let of_template = &mut self.template_mut(template).bytes;
        *of_template = *of_template + after - before;
    }

    /// Estimated memory of all resources, holders and callers, in bytes. O(1).
    pub fn memory_bytes(&self) -> usize {
        self.bytes + self.callers.count() * size_of::<CallerAccount>()
    }

    /// Number of refusals by each limit since the node came to be.
    pub fn refused(&self) -> &[u64; Limit::ALL.len()] {
        &self.refused
    }

    /// Number of refusals by all limits.
    pub fn refusals(&self) -> u64 {
        self.refused.iter().sum()
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
                let account = self.callers.get(*caller).map(|account| account.bytes);
                assert_eq!(account, Some(*bytes), "bytes of {caller:?}");
                of_callers += bytes;
            }
        }
        let all: usize = self.callers.iter().map(|account| account.bytes).sum();
        assert_eq!(all, of_callers, "bytes of all callers");
        let mut of_templates = 0;
        for (template, account) in &self.templates {
            let bytes = by_template.get(template).copied().unwrap_or(0);
            assert_eq!(account.bytes, bytes, "bytes of {template:?}");
            of_templates += bytes;
        }
        assert_eq!(of_templates, self.bytes, "bytes of templates");
        assert_eq!(
            self.bytes,
            by_template.values().sum::<usize>(),
            "bytes in all"
        );
    }

    /// Refuses, with the time to come back: not before `at_least`, and spread for those who are refused together.
    fn full(&mut self, limit: Limit, max: u64, at_least: Duration) -> Full {
        if let Some(refused) = self.refused.get_mut(limit as usize) {
            *refused += 1;
        }
        Full {
            limit,
            max,
            retry_in: at_least + spread::evenly(self.refusals(), COME_BACK),
        }
    }
}

/// The account of a template, by number. A template keeps its number for as long as one with its glob is in force
/// ([`ActiveTemplates`](crate::node::reload::ActiveTemplates)). So other templates change no account: each resource
/// moves from one to the other when it applies them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemplateSlot(u32);

impl TemplateSlot {
    /// Slot of resources that no template matches. No limit of a template applies to them.
    pub(crate) const NONE: Self = Self(0);

    /// The first slot of a template.
    pub(crate) const FIRST: Self = Self(1);

    /// The next slot.
    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The account of a template.
#[derive(Clone, Debug, Default)]
struct TemplateAccount {
    /// Bytes of its resources and their holders.
    bytes: usize,
    requests: Bucket,
}

/// The use of each limit. Of a limit for each caller or template: the highest use by one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Estimated memory of all resources, holders and callers, in bytes.
    pub memory_bytes: usize,
    /// Bytes that one caller brought.
    pub memory_per_caller: usize,
    /// Bytes of one template.
    pub memory_per_template: usize,
    /// Callers with an account.
    pub callers: usize,
}

impl Admission {
    /// Returns the use of each limit. O(callers + templates), of which there are at most some ten thousand.
    pub(crate) fn load(&self) -> Load {
        let callers = self.callers.iter();
        let templates = self.templates.range(TemplateSlot::FIRST..);
        Load {
            memory_bytes: self.memory_bytes(),
            memory_per_caller: callers.map(|account| account.bytes).max().unwrap_or(0),
            memory_per_template: templates
                .map(|(_, account)| account.bytes)
                .max()
                .unwrap_or(0),
            callers: self.callers.count(),
        }
    }
}

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

    /// Takes a token for a client's request. A resource without a template is bounded by none. One caller has a quarter of
    /// the rate, so that it leaves some to others.
    ///
    /// # Errors
    ///
    /// If there is none: how long until there is.
    pub(crate) fn take_request(&mut self, now: Time) -> Result<(), Duration> {
        if self.template == TemplateSlot::NONE {
            return Ok(());
        }
        let rate = self.limits.requests_per_template;
        let caller = self.enter(now);
        if let Some(account) = self.admission.callers.get_mut(caller) {
            account.requests.take_part(rate, PART_OF_CALLER, now)?;
        }
        let account = self.admission.template_mut(self.template);
        account.requests.take(rate, now)
    }

    /// Returns the refusal of a request without a token.
    pub(crate) fn too_many_requests(&mut self, wait: Duration) -> Full {
        self.full(Limit::RequestsPerTemplate, wait)
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
        let caller = self.admit_newcomer(kind, bytes, now)?;
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
        self.check(Limit::LeasesPerResource, holders, 1)?;
        self.admit_newcomer(kind, bytes, now)
    }

    /// Whether the clients of each caller at a resource are bounded.
    pub(crate) const fn counts_clients(&self) -> bool {
        self.limits.leases_per_caller_max < self.limits.leases_per_resource_max
    }

    /// Checks that a caller with `has` clients of a resource may bring one more.
    ///
    /// # Errors
    ///
    /// The limit is reached.
    pub(crate) fn admit_client(&mut self, has: usize) -> Result<(), Full> {
        self.check(Limit::LeasesPerCaller, has, 1)
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
        self.check(Limit::Memory, self.admission.memory_bytes(), more)?;
        if self.template == TemplateSlot::NONE {
            return Ok(());
        }
        let has = self.admission.template_mut(self.template).bytes;
        self.check(Limit::MemoryPerTemplate, has, more)
    }

    fn admit_bytes_of(&mut self, caller: CallerSlot, more: usize) -> Result<(), Full> {
        if caller == CallerSlot::NOBODY {
            return Ok(());
        }
        let account = self.admission.callers.get(caller);
        let has = account.map_or(0, |account| account.bytes);
        self.check(Limit::MemoryPerCaller, has, more)
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
        self.check_within(Limit::Priorities, has, more, max as u64)
    }

    fn admit_newcomer(
        &mut self,
        kind: HolderKind,
        bytes: usize,
        now: Time,
    ) -> Result<CallerSlot, Full> {
        self.admit_bytes_in_all(bytes)?;
        let caller = self.enter(now);
        self.admit_bytes_of(caller, bytes)?;
        let rate = self.limits.newcomers_per_caller;
        let account = self.admission.callers.get_mut(caller);
        if let Some(account) = account.filter(|_| kind == HolderKind::Client)
            && let Err(wait) = account.newcomers.take(rate, now)
        {
            return Err(self.full(Limit::NewcomersPerCaller, wait));
        }
        Ok(caller)
    }

    /// Checks that there is room for so much more.
    fn check(&mut self, limit: Limit, has: usize, more: usize) -> Result<(), Full> {
        self.check_within(limit, has, more, self.limits.max_of(limit))
    }

    fn check_within(
        &mut self,
        limit: Limit,
        has: usize,
        more: usize,
        max: u64,
    ) -> Result<(), Full> {
        if more == 0 || has.saturating_add(more) as u64 <= max {
            return Ok(());
        }
        Err(self.admission.full(limit, max, Duration::ZERO))
    }

    fn full(&mut self, limit: Limit, wait: Duration) -> Full {
        self.admission.full(limit, self.limits.max_of(limit), wait)
    }
}
