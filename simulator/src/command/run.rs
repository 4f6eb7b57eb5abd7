//! `doorward-sim run`: plays a scenario.

use std::path::Path;

use doorward_simulator::library::Entry;
use doorward_simulator::report::command_line;
use doorward_simulator::scenario::Scenario;

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
    let duration = flags.duration.map(humantime::format_duration);
    let duration = duration.map(|duration| duration.to_string().replace(' ', ""));
    if let (Some(asked), Some(text)) = (flags.duration, &duration) {
        words.extend(["--duration", text]);
        scenario.duration = asked;
        scenario.sample_every = scenario.sample_every.min(asked);
        // Something is left to be judged.
        if scenario.settled_after >= asked {
            scenario.settled_after = asked / 2;
        }
    }
    super::play(&scenario, command_line(words), &flags.output)
}

/// A file of that name, or what is called so in the library.
fn find(name: &str) -> Result<Scenario, Failure> {
    let path = Path::new(name);
    let found = match Entry::find(name) {
        Some(entry) if !path.is_file() => entry.read(),
        None if !path.exists() && path.extension().is_none() => {
            let message = format!(
                "{name:?} is neither a file nor a scenario of the library; \
                 `doorward-sim list` names those"
            );
            return Err(Failure::Usage(message));
        }
        _ => Scenario::read(path),
    };
    // What is wrong begins with the file, as compilers have it.
    found.map_err(|error| Failure::Usage(format!("the scenario is not in order\n{error}")))
}
