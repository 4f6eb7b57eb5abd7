//! The use of each limit.
//!
//! The use in all is known at any time. Of a limit for each caller or template, the highest use by one of them is looked
//! for, and there may be tens of thousands of them: one look is at a given number of them.

use crate::admission::Admission;
use crate::admission::template_books::TemplateSlot;

/// The use of each limit. Of a limit for each caller, template or resource: the highest use by one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Estimated memory of all resources, holders and callers, in bytes.
    pub memory_bytes: usize,
    /// Bytes that one caller brought.
    pub memory_per_caller: usize,
    /// Bytes of one template.
    pub memory_per_template: usize,
    /// Holders of one resource.
    pub leases_per_resource: usize,
    /// Known callers.
    pub callers: usize,
}

/// Position from which a look at callers and templates continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadFrom {
    /// The place of the next caller.
    Caller(usize),
    /// The last template that was looked at, after all callers.
    TemplateAfter(TemplateSlot),
}

impl LoadFrom {
    /// The start of a look.
    pub const START: Self = Self::Caller(0);
}

impl Load {
    /// Takes the larger one of each use by one caller, template or resource.
    pub fn include(&mut self, other: &Self) {
        for (most, more) in [
            (&mut self.memory_per_caller, other.memory_per_caller),
            (&mut self.memory_per_template, other.memory_per_template),
            (&mut self.leases_per_resource, other.leases_per_resource),
        ] {
            *most = (*most).max(more);
        }
    }
}

impl Admission {
    /// Returns the load, counted over up to `max` callers or templates from `from` on, and where to continue if there
    /// are more. O(max + log templates).
    pub fn load_from(&self, from: LoadFrom, max: usize) -> (Load, Option<LoadFrom>) {
        let mut load = Load {
            memory_bytes: self.memory_bytes(),
            callers: self.callers.count(),
            ..Load::default()
        };
        let (after, left) = match from {
            LoadFrom::Caller(from) => {
                let all = self.callers.places();
                let end = from.saturating_add(max).min(all);
                let callers = self.callers.in_places(from..end);
                load.memory_per_caller = callers.map(|book| book.bytes).max().unwrap_or(0);
                if end < all {
                    return (load, Some(LoadFrom::Caller(end)));
                }
                (
                    TemplateSlot::NONE,
                    max.saturating_sub(end.saturating_sub(from)),
                )
            }
            LoadFrom::TemplateAfter(slot) => (slot, max),
        };
        let mut last = after;
        let mut books = self.templates.after(after);
        for (slot, book) in books.by_ref().take(left) {
            last = slot;
            load.memory_per_template = load.memory_per_template.max(book.bytes);
        }
        let next = books.next().map(|_| LoadFrom::TemplateAfter(last));
        (load, next)
    }
}
