//! `doorward-sim compare`: two recordings, or two scenarios played with several seeds.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use doorward_pages::terminal::palette::Palette;
use doorward_simulator::recording::Recording;
use doorward_simulator::report::compare::{self, Run, Side};
use doorward_simulator::report::{json, page};
use doorward_simulator::scenario::Scenario;
use doorward_simulator::world::World;

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
            return Err(Failure::Usage(message.to_owned()));
        }
        (true, true) => [read(a)?, read(b)?],
        (false, false) => {
            let (of_a, of_b) = (scenarios(a, flags)?, scenarios(b, flags)?);
            [play(a, &of_a), play(b, &of_b)]
        }
        (is_a, _) => {
            let (recording, scenario) = if is_a { (a, b) } else { (b, a) };
            return Err(Failure::Usage(format!(
                "{recording} is a recording and {scenario} is a scenario; give two of the same kind"
            )));
        }
    };
    let mut out = io::stdout().lock();
    let [(left, first_of_a), (right, first_of_b)] = &sides;
    compare::write(&mut out, left, right, Palette::of_stdout())?;
    if let Some(path) = &flags.out {
        let (first_of_a, first_of_b) = (first_of_a.as_ref(), first_of_b.as_ref());
        let recordings: Vec<_> = [(a, first_of_a), (b, first_of_b)]
            .into_iter()
            .filter_map(|(name, recording)| Some((name, recording?)))
            .collect();
        let written = File::create(path).and_then(|file| {
            let mut file = BufWriter::new(file);
            page::write(&mut file, &recordings)?;
            file.flush()
        });
        let report = |error| Failure::Report(format!("cannot write {}: {error}", path.display()));
        written.map_err(report)?;
        writeln!(out, "  page: {}", path.display())?;
    }
    Ok(())
}

/// A side, and its first recording.
type Compared = (Side, Option<Recording>);

/// Returns true for the folder of a report and for a JSON file.
fn is_recording(name: &str) -> bool {
    let path = Path::new(name);
    path.is_dir()
        || path
            .extension()
            .is_some_and(|it| it.eq_ignore_ascii_case("json"))
}

fn read(name: &str) -> Result<Compared, Failure> {
    let recording = json::read(Path::new(name)).map_err(|error| Failure::usage(&error))?;
    let (name, runs) = (name.to_owned(), vec![Run::of(&recording)]);
    Ok((Side { name, runs }, Some(recording)))
}

/// Returns the scenario once for each seed.
fn scenarios(name: &str, flags: &CompareFlags) -> Result<Vec<Scenario>, Failure> {
    let mut scenario = find(name)?;
    if let Some(duration) = flags.duration {
        shorten(&mut scenario, duration);
    }
    let first = flags.seed.unwrap_or(scenario.seed);
    let with_seed = |more| Scenario {
        seed: first.wrapping_add(u64::from(more)),
        ..scenario.clone()
    };
    Ok((0..flags.seeds.unwrap_or(SEEDS)).map(with_seed).collect())
}

/// Plays scenarios on all cores, and keeps the first recording.
fn play(name: &str, scenarios: &[Scenario]) -> Compared {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let bar = super::bar(scenarios.len() as u64, "{pos} of {len} runs");
    let queue = Mutex::new(scenarios.iter().enumerate());
    let work = || {
        let mut done = Vec::new();
        while let Some((index, scenario)) = queue.lock().ok().and_then(|mut it| it.next()) {
            let recording = World::new(scenario).run(|_| {});
            let run = Run::of(&recording);
            done.push((index, run, (index == 0).then_some(recording)));
            bar.inc(1);
        }
        done
    };
    let mut done: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let done = workers.into_iter().map(|worker| worker.join());
        done.flat_map(|done| done.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    bar.finish_and_clear();
    done.sort_by_key(|(index, ..)| *index);
    let first = done
        .first_mut()
        .and_then(|(_, _, recording)| recording.take());
    let runs = done.into_iter().map(|(_, run, _)| run).collect();
    let name = name.to_owned();
    (Side { name, runs }, first)
}
