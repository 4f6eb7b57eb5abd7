//! `doorward-sim compare`: two recordings, or two scenarios played with several seeds.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use doorward_pages::terminal::palette::Palette;
use doorward_simulator::report::RECORDING;
use doorward_simulator::report::compare::{self, Side};
use doorward_simulator::scenario::Scenario;
use doorward_simulator::world::World;

use crate::command::parallel::in_order;
use crate::command::run::chosen;
use crate::failure::Failure;
use crate::flags::CompareFlags;

/// Seeds of a comparison of scenarios, unless the user says otherwise.
const SEEDS: u32 = 5;

/// Compares them.
pub(crate) fn run(flags: &CompareFlags) -> Result<(), Failure> {
    let (a, b) = (flags.a.as_str(), flags.b.as_str());
    let plays = flags.seeds.is_some() || flags.seed.is_some() || flags.duration.is_some();
    let sides = match (is_recording(a), is_recording(b)) {
        (true, true) if plays => {
            let flags = "--seeds, --seed and --duration play scenarios";
            return Err(anyhow!("{flags}, but A and B are recordings").into());
        }
        (true, true) => [read(a)?, read(b)?],
        (false, false) => {
            let scenario = |name| chosen(name, flags.seed, flags.duration);
            let (of_a, of_b) = (scenario(a)?, scenario(b)?);
            [play(a, &of_a, flags)?, play(b, &of_b, flags)?]
        }
        _ => return Err(anyhow!("give two recordings or two scenarios").into()),
    };
    let [left, right] = &sides;
    let palette = Palette::of_stdout();
    Ok(compare::write(&mut io::stdout(), left, right, palette)?)
}

/// Returns true for the folder of a report and for a JSON file.
fn is_recording(name: &str) -> bool {
    let path = Path::new(name);
    let ending = path.extension();
    path.is_dir() || ending.is_some_and(|it| it.eq_ignore_ascii_case("json"))
}

fn read(name: &str) -> anyhow::Result<Side> {
    let mut path = PathBuf::from(name);
    if path.is_dir() {
        path.push(RECORDING);
    }
    let shown = path.display();
    let advice = || format!("cannot open {shown}; give the folder of a report, or its {RECORDING}");
    let file = File::open(&path).with_context(advice)?;
    let recording = serde_json::from_reader(BufReader::new(file));
    let advice = || format!("{shown} holds no recording; give a {RECORDING} of this version");
    let (name, runs) = (name.to_owned(), vec![recording.with_context(advice)?]);
    Ok(Side { name, runs })
}

/// Plays a scenario with all seeds. Only the first recording keeps its samples.
fn play(name: &str, scenario: &Scenario, flags: &CompareFlags) -> Result<Side, Failure> {
    let seeds = flags.seeds.unwrap_or(SEEDS);
    let bar = super::bar(seeds.into(), "{pos} of {len} runs");
    let work = |more: u32| {
        let mut scenario = scenario.clone();
        scenario.seed = scenario.seed.wrapping_add(more.into());
        let mut recording = World::new(&scenario).run(|_| {});
        for resource in recording.resources.iter_mut().filter(|_| more > 0) {
            resource.samples.clear();
            resource.clients.clear();
        }
        recording
    };
    let mut runs = Vec::new();
    in_order(0..seeds, &bar, work, |recording| {
        runs.push(recording);
        Ok(())
    })?;
    let name = name.to_owned();
    Ok(Side { name, runs })
}
