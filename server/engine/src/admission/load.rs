//! How much of each limit is in use, for whoever looks.
//!
//! What is in use in all is known at any time. Of a limit for each caller or template, the most that one of them uses is
//! looked for, and there may be tens of thousands of them: so a look is at as many as the caller says.

use crate::admission::Admission;
use crate::admission::callers::CallerBook;
use crate::admission::template_books::TemplateSlot;

/// How much is in use. Of a limit for each caller, template or resource: the most that one of them uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Resources in all.
    pub resources: usize,
    /// Resources that one caller brought.
    pub resources_per_caller: usize,
    /// Resources of one template.
    pub resources_per_template: usize,
    /// Leases in all, those of child servers included.
    pub leases: usize,
    /// Holders of one resource.
    pub leases_per_resource: usize,
    /// Leases that one caller brought.
    pub leases_per_caller: usize,
    /// Leases of one template.
    pub leases_per_template: usize,
    /// Memory behind all that, in bytes, roughly.
    pub memory_bytes: usize,
    /// Child servers.
    pub child_servers: usize,
    /// Child servers of one caller.
    pub child_servers_per_caller: usize,
    /// Leases of child servers.
    pub curves: usize,
    /// Those of one caller.
    pub curves_per_caller: usize,
    /// Points of all demand curves.
    pub curve_points: usize,
    /// Those of one caller.
    pub curve_points_per_caller: usize,
    /// Callers in the books.
    pub callers: usize,
}

/// Where a look at what is in use goes on: with that caller, or with the template after that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadFrom {
    /// By place.
    Caller(usize),
    /// When all callers have been looked at.
    TemplateAfter(TemplateSlot),
}

impl LoadFrom {
    /// Where a look begins.
    pub const START: Self = Self::Caller(0);
}

impl Load {
    /// The larger one of each number, of what one caller, template or resource uses.
    pub fn include(&mut self, other: &Self) {
        for (most, more) in [
            (&mut self.resources_per_caller, other.resources_per_caller),
            (
                &mut self.resources_per_template,
                other.resources_per_template,
            ),
            (&mut self.leases_per_resource, other.leases_per_resource),
            (&mut self.leases_per_caller, other.leases_per_caller),
            (&mut self.leases_per_template, other.leases_per_template),
            (
                &mut self.child_servers_per_caller,
                other.child_servers_per_caller,
            ),
            (&mut self.curves_per_caller, other.curves_per_caller),
            (
                &mut self.curve_points_per_caller,
                other.curve_points_per_caller,
            ),
        ] {
            *most = (*most).max(more);
        }
    }
}

impl Admission {
    /// How much is in use, as far as up to `max` callers or templates tell, from there on; and where to go on if there
    /// are more. O(max + log templates).
    pub fn load_from(&self, from: LoadFrom, max: usize) -> (Load, Option<LoadFrom>) {
        let mut load = Load {
            resources: self.resources,
            leases: self.weight.holders(),
            memory_bytes: self.memory_bytes(),
            child_servers: self.children.len(),
            curves: self.weight.curves,
            curve_points: self.weight.points,
            callers: self.callers.count(),
            ..Load::default()
        };
        let next = match from {
            LoadFrom::Caller(place) => self.load_of_callers(place, max, &mut load),
            LoadFrom::TemplateAfter(slot) => self.load_of_templates(slot, max, &mut load),
        };
        (load, next)
    }

    fn load_of_callers(&self, from: usize, max: usize, load: &mut Load) -> Option<LoadFrom> {
        let all = self.callers.places();
        let end = from.saturating_add(max).min(all);
        for CallerBook { brought, .. } in self.callers.in_places(from..end) {
            load.include(&Load {
                resources_per_caller: brought.resources,
                leases_per_caller: brought.leases,
                child_servers_per_caller: brought.children,
                curves_per_caller: brought.curves,
                curve_points_per_caller: brought.points,
                ..Load::default()
            });
        }
        if end < all {
            return Some(LoadFrom::Caller(end));
        }
        self.load_of_templates(
            TemplateSlot::NONE,
            max.saturating_sub(end.saturating_sub(from)),
            load,
        )
    }

    fn load_of_templates(
        &self,
        after: TemplateSlot,
        max: usize,
        load: &mut Load,
    ) -> Option<LoadFrom> {
        let mut last = after;
        let mut books = self.templates.after(after);
        for (slot, book) in books.by_ref().take(max) {
            last = slot;
            load.include(&Load {
                resources_per_template: book.resources,
                leases_per_template: book.leases,
                ..Load::default()
            });
        }
        books.next().map(|_| LoadFrom::TemplateAfter(last))
    }
}
