//! How much of each limit is in use, for whoever looks.
//!
//! What is in use in all is known at any time. Of a limit for each caller or template, the most that one of them uses is
//! looked for, and there may be tens of thousands of them: so a look is at as many as the caller says.

use crate::admission::Admission;
use crate::admission::callers::CallerBook;

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
    /// How much is in use, as far as up to `max` callers and templates tell, from that number on; and where to go on
    /// if there are more.
    pub fn load_from(&self, from: usize, max: usize) -> (Load, Option<usize>) {
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
        let mut looked = 0;
        for CallerBook { brought, .. } in self.callers.iter().skip(from).take(max) {
            looked += 1;
            load.include(&Load {
                resources_per_caller: brought.resources,
                leases_per_caller: brought.leases,
                child_servers_per_caller: brought.children,
                curves_per_caller: brought.curves,
                curve_points_per_caller: brought.points,
                ..Load::default()
            });
        }
        // Templates are numbered after all callers.
        let callers = self.callers.iter().len();
        let templates = self.templates.iter();
        let skipped = (from + looked).saturating_sub(callers);
        for book in templates.skip(skipped).take(max - looked) {
            looked += 1;
            load.include(&Load {
                resources_per_template: book.resources,
                leases_per_template: book.leases,
                ..Load::default()
            });
        }
        let next = from + looked;
        let all = callers + self.templates.len();
        (load, Some(next).filter(|next| *next < all))
    }
}
