//! Bounds of a template for a single holder: the amount that one client can have, and the number of clients that one
//! child server can stand for.
//!
//! Both are absent unless an operator sets them. They bound the *statements* of holders: a wrong number in one program,
//! or a lie, counts for no more than a client can be.

use crate::amount::Amount;
use crate::claims::Subclients;
use crate::templates::check::Check;
use crate::templates::{Field, TemplateSpec};

/// Bounds for the statements of a single holder.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HolderBounds {
    /// Largest amount that one client can have, above 0. Wants beyond it do not count, and learning mode confirms no
    /// more to any client. Absent: the template does not set it.
    pub wants_max: Option<Amount>,
    /// Largest number of clients that one child server can stand for. Absent: the template does not set it. Then the
    /// limit is the number of leases that one resource may have.
    pub subclients_max: Option<Subclients>,
}

impl HolderBounds {
    /// No bounds.
    pub const NONE: Self = Self {
        wants_max: None,
        subclients_max: None,
    };
}

impl Check<'_> {
    pub(super) fn holder_bounds(&mut self, spec: &TemplateSpec) -> HolderBounds {
        HolderBounds {
            wants_max: spec.wants_max.and_then(|given| self.wants_max(given)),
            subclients_max: spec
                .subclients_max
                .and_then(|given| self.subclients_max(given)),
        }
    }

    fn wants_max(&mut self, given: f64) -> Option<Amount> {
        match Amount::new(given) {
            Ok(amount) if !amount.is_zero() => return Some(amount),
            Ok(_) => self.problem(
                Field::WantsMax,
                "is 0, so nobody could have anything; give what one client can have at most, or remove it",
            ),
            Err(error) => self.problem(Field::WantsMax, error.to_string()),
        }
        None
    }

    fn subclients_max(&mut self, given: f64) -> Option<Subclients> {
        let whole = Some(given).filter(|given| *given >= 1.0 && given.fract() == 0.0);
        let most = whole.and_then(|given| Subclients::new(given).ok());
        if most.is_none() {
            let message = format!(
                "is {given}; give a whole number of clients from 1 to {}",
                Subclients::MAX.get()
            );
            self.problem(Field::SubclientsMax, message);
        }
        most
    }
}
