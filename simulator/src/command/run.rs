//! `doorward-sim run`: plays a scenario.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use doorward_engine::templates::{Template, Templates};
use doorward_simulator::library::LibraryEntry;
use doorward_simulator::scenario::Scenario;
use doorward_simulator::scenario::fault::Event;
use doorward_simulator::scenario::templates::what_if;

use crate::failure::Failure;
use crate::flags::{RunFlags, WhatIfFlags};

/// Plays it.
pub(crate) fn run(flags: &RunFlags) -> std::result::Result<(), Failure> {
    let mut scenario = chosen(&flags.scenario, flags.seed, flags.duration)?;
    if !flags.what_if.is_empty() {
        change(&mut scenario, &flags.what_if)?;
    }
    let mut command = super::repeated();
    if flags.seed.is_none() {
        command += &format!(" --seed {}", scenario.seed);
    }
    super::play(&scenario, command, flags.out.as_deref())
}

/// Finds a scenario, and changes its seed and its duration.
pub(crate) fn chosen(name: &str, seed: Option<u64>, length: Option<Duration>) -> Result<Scenario> {
    let mut scenario = find(name)?;
    scenario.seed = seed.unwrap_or(scenario.seed);
    scenario.duration.0 = length.unwrap_or(scenario.duration.0);
    scenario.sample_every = scenario.sample_every.min(scenario.duration);
    // Averages need some time.
    if scenario.settled_after.0 >= scenario.duration.0 {
        scenario.settled_after.0 = scenario.duration.0 / 2;
    }
    Ok(scenario)
}

/// Changes the templates as the flags say: those at the start, and those that are written later.
fn change(scenario: &mut Scenario, flags: &WhatIfFlags) -> Result<()> {
    let changed = |templates: &Templates| flags.changed(templates.iter().map(AsRef::as_ref));
    scenario.templates = changed(&scenario.templates)?;
    let faults = scenario.faults.iter_mut();
    for (_, event) in faults.flat_map(|fault| &mut fault.choices) {
        if let Event::Edit { templates, .. } = event {
            *templates = changed(templates)?;
        }
    }
    // The first learning mode may be longer now.
    scenario.settled_after.0 = scenario.settled_after.0.max(scenario.settled_by_default());
    Ok(())
}

impl WhatIfFlags {
    /// Returns whether the flags change nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.capacity_factor == 1.0 && self.lease_length.is_none()
    }

    /// Returns templates as the flags change them.
    pub(crate) fn changed<'a>(&self, of: impl Iterator<Item = &'a Template>) -> Result<Templates> {
        let changed = what_if(of, self.capacity_factor, self.lease_length);
        let message = "--capacity-factor and --lease-length make templates invalid";
        changed.map_err(|problems| anyhow!("{message}\n{problems}"))
    }
}

/// Finds the file or the scenario of the library with that name.
pub(crate) fn find(name: &str) -> Result<Scenario> {
    let path = Path::new(name);
    let found = match LibraryEntry::find(name) {
        Some(entry) if !path.is_file() => entry.read(),
        None if !path.exists() && path.extension().is_none() => {
            let hint = LibraryEntry::hint(name);
            bail!(
                "{name:?} is neither a file nor a scenario of the library; \
                 `doorward-sim list` names those{hint}"
            );
        }
        _ => Scenario::read(path),
    };
    // The error begins with the file, as errors of compilers do.
    found.map_err(|error| anyhow!("the scenario is invalid\n{error}"))
}

#[cfg(test)]
mod tests;
