//! The check of a template: a valid template, or all its problems.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::amount::Amount;
use crate::claims::Subclients;
use crate::id::ID_BYTES_MAX;
use crate::rounding::WHOLE;
use crate::templates::budget_terms::{BudgetTerms, PARAMETERS as BUDGET_PARAMETERS};
use crate::templates::glob::Glob;
use crate::templates::{
    Algorithm, AlgorithmKind, DURATION_MAX, DURATION_MIN, Field, HolderBounds, SafeCapacity,
    Shrink, Template, TemplateProblem, TemplateSpec,
};
use doorward_time::budget::AMOUNT_MAX;

/// Checks one template.
pub(super) struct Check<'a> {
    pub(super) index: usize,
    pub(super) problems: &'a mut Vec<TemplateProblem>,
}

impl Check<'_> {
    pub(super) fn problem(&mut self, field: Field, message: impl Into<String>) {
        self.problems.push(TemplateProblem {
            index: self.index,
            field,
            message: message.into(),
        });
    }

    pub(super) fn glob(&mut self, spec: &TemplateSpec) -> Option<Glob> {
        let problem = match spec.identifier_glob.as_deref() {
            None => "is missing; give a resource id or a glob".to_owned(),
            Some("") => "is empty; give a resource id or a glob".to_owned(),
            Some(text) if text.len() > ID_BYTES_MAX => {
                let bytes = text.len();
                format!("is {bytes} bytes long; the longest is {ID_BYTES_MAX}")
            }
            Some(text) => match Glob::parse(text) {
                Ok(glob) => return Some(glob),
                Err(error) => error.to_string(),
            },
        };
        self.problem(Field::IdentifierGlob, problem);
        None
    }

    /// Returns the template if all required fields are valid. Reports all problems.
    pub(super) fn template(&mut self, spec: &TemplateSpec) -> Option<Template> {
        let capacity = self.capacity(spec);
        let safe_capacity = self.safe_capacity(spec);
        let holder_bounds = self.holder_bounds(spec);
        let share_floor = self.above_zero(
            Field::ShareFloor,
            spec.share_floor,
            "is 0, so no share is below it; give what one client needs at least, or remove it",
        );
        if spec.kind.is_none() {
            self.problem(Field::Kind, format!("is missing; give one of {}", kinds()));
        }
        let lease_length = self.duration(Field::LeaseLength, spec.lease_length, DURATION_MIN);
        let refresh_interval =
            self.duration(Field::RefreshInterval, spec.refresh_interval, DURATION_MIN);
        if let (Some(lease), Some(refresh)) = (lease_length, refresh_interval)
            && refresh >= lease
        {
            self.problem(
                Field::RefreshInterval,
                format!(
                    "is {refresh:?}, not shorter than the lease length of {lease:?}: every lease \
                     would expire before it is refreshed",
                ),
            );
        }
        let learning = match spec.learning_mode_duration {
            None => lease_length,
            given => self.duration(Field::LearningModeDuration, given, Duration::ZERO),
        };
        let parameters = self.parameters(spec);
        Some(Template {
            identifier_glob: spec.identifier_glob.clone()?,
            capacity: capacity?,
            safe_capacity,
            holder_bounds,
            share_floor,
            description: spec.description.clone().unwrap_or_default(),
            algorithm: Arc::new(Algorithm {
                kind: spec.kind?,
                lease_length: lease_length?,
                refresh_interval: refresh_interval?,
                learning_mode_duration: learning?,
                ..parameters
            }),
        })
    }

    fn capacity(&mut self, spec: &TemplateSpec) -> Option<Amount> {
        let Some(capacity) = spec.capacity else {
            self.problem(Field::Capacity, "is missing; give what there is to share");
            return None;
        };
        self.amount(Field::Capacity, capacity)
    }

    fn amount(&mut self, field: Field, given: f64) -> Option<Amount> {
        let amount = Amount::new(given).map_err(|error| self.problem(field, error.to_string()));
        amount.ok()
    }

    fn safe_capacity(&mut self, spec: &TemplateSpec) -> Option<SafeCapacity> {
        let given = spec.safe_capacity?;
        // A mark and not a quantity.
        if given == -1.0 {
            return Some(SafeCapacity::Unlimited);
        }
        match Amount::new(given) {
            Ok(amount) => Some(SafeCapacity::Limited(amount)),
            Err(error) => {
                self.problem(Field::SafeCapacity, format!("{error} (-1 means no limit)"));
                None
            }
        }
    }

    fn holder_bounds(&mut self, spec: &TemplateSpec) -> HolderBounds {
        HolderBounds {
            wants_max: self.above_zero(
                Field::WantsMax,
                spec.wants_max,
                "is 0, so nobody could have anything; give what one client can have at most, or remove it",
            ),
            subclients_max: spec
                .subclients_max
                .and_then(|given| self.subclients_max(given)),
        }
    }

    fn above_zero(&mut self, field: Field, given: Option<f64>, if_zero: &str) -> Option<Amount> {
        let amount = self.amount(field, given?)?;
        if amount.is_zero() {
            self.problem(field, if_zero);
        }
        Some(amount).filter(|amount| !amount.is_zero())
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

    fn duration(
        &mut self,
        field: Field,
        given: Option<Duration>,
        min: Duration,
    ) -> Option<Duration> {
        let problem = match given {
            None => "is missing; give seconds, or a duration such as 15s or 2m".to_owned(),
            Some(given) if given < min => format!("is {given:?}; the shortest is {min:?}"),
            Some(given) if given > DURATION_MAX => {
                format!("is {given:?}; the longest is {DURATION_MAX:?}")
            }
            Some(given) => return Some(given),
        };
        self.problem(field, problem);
        None
    }

    /// Returns the default algorithm with the named parameters of a template.
    fn parameters(&mut self, spec: &TemplateSpec) -> Algorithm {
        let mut parameters = Algorithm::default();
        let mut earlier = BTreeSet::new();
        for (index, (name, value)) in spec.parameters.iter().enumerate() {
            let field = Field::Parameter(index);
            if !earlier.insert(name) {
                self.problem(field, format!("{name} is given twice; remove one"));
                continue;
            }
            let value = value.as_deref().unwrap_or_default();
            if let Err(message) = parameters.set_parameter(name, value, spec.kind) {
                self.problem(field, message);
            }
        }
        if spec.kind == Some(AlgorithmKind::Budget) {
            parameters.budget = self.budget(spec);
        }
        let guaranteed: f64 = parameters.min_shares.values().sum();
        if guaranteed > WHOLE {
            let is_share = |(name, _): &(String, _)| name.starts_with(MIN_SHARE);
            let last = spec.parameters.iter().rposition(is_share);
            self.problem(
                Field::Parameter(last.unwrap_or_default()),
                format!("the min_share parameters add up to {guaranteed}; at most 1"),
            );
        }
        parameters
    }
}

impl Check<'_> {
    /// Returns the terms of a budget.
    fn budget(&mut self, spec: &TemplateSpec) -> Option<Box<BudgetTerms>> {
        let is_whole = |capacity: f64| capacity.fract() == 0.0 && capacity <= AMOUNT_MAX as f64;
        if let Some(capacity) = spec.capacity.filter(|it| !is_whole(*it)) {
            let message =
                format!("is {capacity}; a budget is a whole number of at most {AMOUNT_MAX}");
            self.problem(Field::Capacity, message);
        }
        let given = spec
            .parameters
            .iter()
            .map(|(name, value)| (name.clone(), value.clone().unwrap_or_default()));
        let terms = BudgetTerms::parse(given.collect());
        let terms = terms.map_err(|problems| {
            for (name, message) in problems {
                let place = spec.parameters.iter().position(|(given, _)| given == name);
                self.problem(place.map_or(Field::Kind, Field::Parameter), message);
            }
        });
        terms.ok().map(Box::new)
    }
}

/// Prefix of a guarantee's name. The priority follows.
const MIN_SHARE: &str = "min_share.";

impl Algorithm {
    fn set_parameter(
        &mut self,
        name: &str,
        value: &str,
        kind: Option<AlgorithmKind>,
    ) -> Result<(), String> {
        let is_budget = kind == Some(AlgorithmKind::Budget);
        match (is_budget, BUDGET_PARAMETERS.contains(&name)) {
            (true, true) => return Ok(()),
            (true, false) => {
                let known = BUDGET_PARAMETERS.join(", ");
                return Err(format!(
                    "{name:?} is unknown for a BUDGET; known are {known}"
                ));
            }
            (false, true) => return Err(format!("only BUDGET takes {name}; remove it")),
            (false, false) => {}
        }
        match name {
            "shrink" => {
                self.shrink = match value {
                    "acknowledged" => Shrink::Acknowledged,
                    "immediate" => Shrink::Immediate,
                    other => {
                        return Err(format!(
                            "shrink is {other:?}; give acknowledged or immediate"
                        ));
                    }
                };
            }
            "decay_factor" => {
                self.decay_factor = value
                    .parse()
                    .ok()
                    .filter(|factor| (0.01..=100.0).contains(factor))
                    .ok_or_else(|| {
                        format!("decay_factor is {value:?}; give a number from 0.01 to 100")
                    })?;
            }
            _ => {
                let Some(priority) = name.strip_prefix(MIN_SHARE) else {
                    return Err(format!(
                        "{name:?} is unknown; known are shrink, decay_factor and \
                         min_share.<priority>"
                    ));
                };
                if kind.is_some_and(|kind| kind != AlgorithmKind::PriorityBands) {
                    return Err(format!("only PRIORITY_BANDS takes {name}; remove it"));
                }
                let priority: i64 = priority.parse().map_err(|_| {
                    format!("{priority:?} is not a priority; give a whole number of 64 bits")
                })?;
                let share: f64 = value
                    .parse()
                    .ok()
                    .filter(|share| (0.0..=1.0).contains(share))
                    .ok_or_else(|| format!("{name} is {value:?}; give a number from 0 to 1"))?;
                if self.min_shares.insert(priority, share).is_some() {
                    return Err(format!("{name} is given twice; remove one"));
                }
            }
        }
        Ok(())
    }
}

/// Lists the kinds for messages.
fn kinds() -> String {
    AlgorithmKind::ALL.map(AlgorithmKind::as_str).join(", ")
}
