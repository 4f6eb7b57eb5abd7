//! `doorward-sim compare`: two recordings, or two scenarios played with several seeds.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use doorward_pages::terminal::palette::Palette;
use doorward_simulator::recording::Recording;
use doorward_simulator::report::compare::{self, Run, Side};
use doorward_simulator::report::json::NAME;
use doorward_simulator::report::write_page;
use doorward_simulator::scenario::Scenario;
use doorward_simulator::world::World;

use crate::command::parallel::in_order;
use crate::command::run::{find, shorten};
use crate::failure::Failure;
use crate::flags::CompareFlags;

/// Seeds of a comparison of scenarios, unless the user says otherwise.
const SEEDS: u32 = 5;

/// Compares them.
pub(crate) fn run(flags: &CompareFlags) -> Result<(), Failure> {
    let (a, b) = (flags.a.as_str(), flags.b.as_str());
    let sides = match (is_recording(a), is_recording(b)) {
        (true, true)
            if flags.seeds.is_some() || flags.seed.is_some() || flags.duration.is_some() =>
        {
            let message =
                "--seeds, --seed and --duration play scenarios, but A and B are recordings";
            return Err(anyhow!(message).into());
        }
        (true, true) => [read(a)?, read(b)?],
        (false, false) => {
            let (of_a, of_b) = (scenario(a, flags)?, scenario(b, flags)?);
            [play(a, &of_a, flags)?, play(b, &of_b, flags)?]
        }
        (is_a, _) => {
            let (recording, scenario) = if is_a { (a, b) } else { (b, a) };
            find(scenario)?;
            return Err(anyhow!(
                "{recording} is a recording and {scenario} is a scenario; give two of the same kind"
            )
            .into());
        }
    };
    let mut out = io::stdout().lock();
    let [(left, _), (right, _)] = &sides;
    compare::write(&mut out, left, right, Palette::of_stdout())?;
    if let Some(path) = &flags.out {
        let recordings = sides
            .iter()
            .map(|(side, first)| (side.name.as_str(), first));
        let recordings: Vec<_> = recordings.collect();
        write_page(path, &recordings).map_err(|error| Failure::Report(error.into()))?;
        writeln!(out, "  page: {}", path.display())?;
    }
    Ok(())
}

/// A side, and its first recording.
type Compared = (Side, Recording);

/// Returns true for the folder of a report and for a JSON file.
fn is_recording(name: &str) -> bool {
    let path = Path::new(name);
    path.is_dir()
        || path
            .extension()
            .is_some_and(|it| it.eq_ignore_ascii_case("json"))
}

fn read(name: &str) -> anyhow::Result<Compared> {
    let mut path = PathBuf::from(name);
    if path.is_dir() {
        path.push(NAME);
    }
    let shown = path.display();
    let advice = || format!("cannot open {shown}; give the folder of a report, or its {NAME}");
    let file = File::open(&path).with_context(advice)?;
    let advice = || format!("{shown} holds no recording; give a {NAME} that this version wrote");
    let recording = serde_json::from_reader(BufReader::new(file)).with_context(advice)?;
    let (name, runs) = (name.to_owned(), vec![Run::of(&recording)]);
    Ok((Side { name, runs }, recording))
}

/// Returns the scenario with the first seed.
fn scenario(name: &str, flags: &CompareFlags) -> anyhow::Result<Scenario> {
    let mut scenario = find(name)?;
    if let Some(duration) = flags.duration {
        shorten(&mut scenario, duration);
    }
    scenario.seed = flags.seed.unwrap_or(scenario.seed);
    Ok(scenario)
}

/// Plays a scenario with all seeds, and keeps the first recording.
fn play(name: &str, scenario: &Scenario, flags: &CompareFlags) -> Result<Compared, Failure> {
    let seeds = flags.seeds.unwrap_or(SEEDS);
    let bar = super::bar(seeds.into(), "{pos} of {len} runs");
    let (mut runs, mut first) = (Vec::new(), None);
    let work = |more: u32| {
        let seed = scenario.seed.wrapping_add(more.into());
        let scenario = Scenario {
            seed,
            ..scenario.clone()
        };
        let recording = World::new(&scenario).run(|_| {});
        (Run::of(&recording), (more == 0).then_some(recording))
    };
    in_order(0..seeds, &bar, work, |(run, recording)| {
        runs.push(run);
        first = first.take().or(recording);
        Ok(())
    })?;
    let name = name.to_owned();
    // There is at least one seed.
    Ok((Side { name, runs }, first.unwrap_or_default()))
}
