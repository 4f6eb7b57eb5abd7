//! `--capacity-factor` and `--lease-length`: play with changed templates.

use anyhow::anyhow;
use doorward_engine::templates::{Template, Templates};
use doorward_simulator::scenario::templates::what_if;

use crate::flags::WhatIfFlags;

impl WhatIfFlags {
    /// Returns whether the flags change nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.capacity_factor == 1.0 && self.lease_length.is_none()
    }

    /// Returns the changed templates.
    pub(crate) fn changed<'a>(
        &self,
        templates: impl Iterator<Item = &'a Template>,
    ) -> anyhow::Result<Templates> {
        let changed = what_if(templates, self.capacity_factor, self.lease_length);
        let message = "--capacity-factor and --lease-length make templates invalid";
        changed.map_err(|problems| anyhow!("{message}\n{problems}"))
    }
}

#[cfg(test)]
mod tests;
