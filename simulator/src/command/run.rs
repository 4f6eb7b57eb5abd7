//! `doorward-sim run`: plays a scenario.

use std::path::Path;
use std::time::Duration;

use doorward_simulator::library::LibraryEntry;
use doorward_simulator::report::command_line;
use doorward_simulator::scenario::Scenario;
use doorward_simulator::scenario::fault::Event;

use crate::command::SETTLES_FOR;
use crate::command::what_if::typed;
use crate::failure::Failure;
use crate::flags::RunFlags;

/// Plays it.
pub(crate) fn run(flags: &RunFlags) -> Result<(), Failure> {
    let mut scenario = find(&flags.scenario)?;
    if let Some(seed) = flags.seed {
        scenario.seed = seed;
    }
    let seed = scenario.seed.to_string();
    let mut words = vec!["run", &flags.scenario, "--seed", &seed];
    let duration = flags.duration.map(typed);
    if let (Some(asked), Some(text)) = (flags.duration, &duration) {
        words.extend(["--duration", text]);
        shorten(&mut scenario, asked);
    }
    change(&mut scenario, flags)?;
    let what_if: Vec<String> = flags.what_if.words().collect();
    words.extend(what_if.iter().map(String::as_str));
    super::play(&scenario, command_line(words), &flags.output)
}

/// Plays a scenario for another duration.
pub(crate) fn shorten(scenario: &mut Scenario, duration: Duration) {
    scenario.duration = duration;
    scenario.sample_every = scenario.sample_every.min(duration);
    // Averages need some time.
    if scenario.settled_after >= duration {
        scenario.settled_after = duration / 2;
    }
}

/// Changes the templates as the flags say: those at the start, and those that are written later.
fn change(scenario: &mut Scenario, flags: &RunFlags) -> Result<(), Failure> {
    if flags.what_if.is_empty() {
        return Ok(());
    }
    scenario.templates = flags.what_if.changed(&scenario.templates)?;
    let faults = scenario.faults.iter_mut();
    for (_, event) in faults.flat_map(|fault| &mut fault.choices) {
        if let Event::Edit { templates } = event {
            *templates = flags.what_if.changed(templates)?;
        }
    }
    // The first learning mode may be longer now.
    let learning = scenario.templates.iter();
    let learning = learning.map(|template| template.algorithm.learning_mode_duration);
    let settled = learning.max().unwrap_or_default() + SETTLES_FOR;
    if settled > scenario.settled_after {
        scenario.settled_after = settled
            .min(scenario.duration / 2)
            .max(scenario.settled_after);
    }
    Ok(())
}

/// Finds the file or the scenario of the library with that name.
pub(crate) fn find(name: &str) -> Result<Scenario, Failure> {
    let path = Path::new(name);
    let found = match LibraryEntry::find(name) {
        Some(entry) if !path.is_file() => entry.read(),
        None if !path.exists() && path.extension().is_none() => {
            let message = format!(
                "{name:?} is neither a file nor a scenario of the library; \
                 `doorward-sim list` names those{}",
                LibraryEntry::hint(name)
            );
            return Err(Failure::Usage(message));
        }
        _ => Scenario::read(path),
    };
    // The error begins with the file, as errors of compilers do.
    found.map_err(|error| Failure::Usage(format!("the scenario is invalid\n{error}")))
}
