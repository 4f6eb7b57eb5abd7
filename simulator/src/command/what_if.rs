//! `--capacity-factor` and `--lease-length`: play with changed templates.

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::claim::Subclients;
use doorward_engine::template::{SafeCapacity, Shrink, Template, TemplateSpec, Templates};

use crate::failure::Failure;
use crate::flags::WhatIfFlags;

impl WhatIfFlags {
    /// Flags that change nothing.
    pub(crate) const NOTHING: Self = Self {
        capacity_factor: 1.0,
        lease_length: None,
    };

    /// Returns whether the flags change nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.capacity_factor == 1.0 && self.lease_length.is_none()
    }

    /// Returns the changed templates.
    pub(crate) fn changed(&self, templates: &Templates) -> Result<Templates, Failure> {
        let specs: Vec<TemplateSpec> = templates.iter().map(|it| self.spec_of(it)).collect();
        Templates::parse(&specs).map_err(|problems| {
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            let flags: Vec<String> = self.words().collect();
            let message = format!("with {}, {}", flags.join(" "), problems.join("; "));
            Failure::Usage(message)
        })
    }

    /// Returns a template as one would write it.
    pub(crate) fn spec_of(&self, template: &Template) -> TemplateSpec {
        let algorithm = &template.algorithm;
        let mut parameters = vec![(
            "decay_factor".to_owned(),
            Some(algorithm.decay_factor.to_string()),
        )];
        if algorithm.shrink == Shrink::Immediate {
            parameters.push(("shrink".to_owned(), Some("immediate".to_owned())));
        }
        for (priority, share) in &algorithm.min_shares {
            parameters.push((format!("min_share.{priority}"), Some(share.to_string())));
        }
        let lease_length = self.lease_length.unwrap_or(algorithm.lease_length);
        // A learning mode as long as the leases, which is the default, stays as long as the leases.
        let learning = match algorithm.learning_mode_duration {
            learning if learning == algorithm.lease_length => lease_length,
            learning => learning,
        };
        TemplateSpec {
            identifier_glob: Some(template.identifier_glob.clone()),
            capacity: Some(template.capacity.get() * self.capacity_factor),
            safe_capacity: template.safe_capacity.map(|safe| match safe {
                SafeCapacity::Unlimited => -1.0,
                SafeCapacity::Limited(amount) => amount.get(),
            }),
            wants_max: template.holder_bounds.wants_max.map(Amount::get),
            subclients_max: template.holder_bounds.subclients_max.map(Subclients::get),
            description: Some(template.description.clone()),
            kind: Some(algorithm.kind),
            lease_length: Some(lease_length),
            refresh_interval: Some(algorithm.refresh_interval),
            learning_mode_duration: Some(learning),
            parameters,
        }
    }

    /// Returns the flags as they are typed.
    pub(crate) fn words(&self) -> impl Iterator<Item = String> {
        let factor = (self.capacity_factor != 1.0).then(|| self.capacity_factor.to_string());
        let factor = factor.map(|factor| ["--capacity-factor".to_owned(), factor]);
        let length = self.lease_length.map(typed);
        let length = length.map(|length| ["--lease-length".to_owned(), length]);
        factor.into_iter().chain(length).flatten()
    }
}

/// Formats a duration as it is typed: `1m30s`.
pub(crate) fn typed(duration: Duration) -> String {
    humantime::format_duration(duration)
        .to_string()
        .replace(' ', "")
}

#[cfg(test)]
mod tests;
