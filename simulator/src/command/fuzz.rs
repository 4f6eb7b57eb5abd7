//! `doorward-sim fuzz`: plays random scenarios on all cores, and reports failures in order of seed.

use std::io::{self, Write};

use doorward_simulator::fuzz::{WorldFile, play, shrink, world};
use doorward_simulator::recording::Recording;
use doorward_simulator::report::command_line;
use serde_json::json;

use crate::command::parallel::in_order;
use crate::failure::Failure;
use crate::flags::FuzzFlags;

/// Outcome of a seed.
struct SeedOutcome {
    seed: u64,
    failure: Option<String>,
    /// World of the recording: that of the seed, or a smaller one that still fails.
    world: WorldFile,
    recording: Recording,
    /// Faults and clients of the whole world, if it was shrunk.
    whole: Option<(usize, usize)>,
}

/// Plays the seeds that the flags choose.
pub(crate) fn run(flags: &FuzzFlags) -> Result<(), Failure> {
    let Some(seed) = flags.seed else {
        return many(flags);
    };
    let mut outcome = outcome(seed, flags);
    if flags.print_scenario {
        return super::print_scenario(json!(outcome.world));
    }
    if outcome.failure.is_some() {
        write_failure(&outcome)?;
        writeln!(io::stdout())?;
    }
    outcome.recording.command = super::repeated();
    super::show_outcome(&outcome.recording, flags.out.as_deref())?;
    match outcome.failure {
        None => Ok(()),
        Some(_) => Err(Failure::Reported),
    }
}

/// Plays a seed, and shrinks its world if it fails and the flags say so.
fn outcome(seed: u64, flags: &FuzzFlags) -> SeedOutcome {
    let mut world = world(seed, flags.focus);
    let (mut recording, failure) = play(&world.read());
    let mut whole = None;
    if let Some(failure) = failure.as_ref().filter(|_| flags.shrink) {
        whole = Some((world.faults.len(), world.clients.len()));
        world = shrink(&world, failure);
        (recording, _) = play(&world.read());
        let (faults, clients) = (world.faults.len(), world.clients.len());
        recording.description =
            format!("Shrunk scenario of the seed {seed}: {faults} faults, {clients} clients.");
    }
    SeedOutcome {
        seed,
        failure: failure.map(|failure| failure.to_string()),
        world,
        recording,
        whole,
    }
}

fn many(flags: &FuzzFlags) -> Result<(), Failure> {
    let (from, count) = (flags.from, flags.seeds.unwrap_or_default());
    let end = from.saturating_add(count);
    let bar = super::bar(end - from, "{pos} of {len} seeds");
    let mut failed = 0_u64;
    let work = |seed| outcome(seed, flags);
    in_order(from..end, &bar, work, |outcome| match outcome.failure {
        None => Ok(()),
        Some(_) => {
            failed += 1;
            bar.suspend(|| {
                write_failure(&outcome)?;
                let seed = outcome.seed.to_string();
                let mut words = vec!["fuzz", "--seed", &seed];
                words.extend(flags.focus.iter().flat_map(|it| ["--focus", it.as_str()]));
                words.extend(["--shrink", "--out", "report"]);
                let again = command_line(words);
                writeln!(io::stdout(), "  reproduce with a report: {again}")
            })
        }
    })?;
    let mut out = io::stdout().lock();
    if failed == 0 {
        writeln!(out, "{count} seeds from {from} hold")?;
        return Ok(());
    }
    writeln!(out, "{failed} of {count} seeds from {from} fail")?;
    Err(Failure::Reported)
}

/// Writes the failure of a seed, and what a shrunk scenario has left: its size, and the events in it.
fn write_failure(outcome: &SeedOutcome) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let failure = outcome.failure.as_deref().unwrap_or_default();
    writeln!(out, "seed {} fails: {failure}", outcome.seed)?;
    let Some((faults, clients)) = outcome.whole else {
        return Ok(());
    };
    let kept = &outcome.world;
    let (some, few) = (kept.faults.len(), kept.clients.len());
    let left = format!("{some} of {faults} faults and {few} of {clients} clients");
    writeln!(out, "  fails with {left}:")?;
    for mark in &outcome.recording.marks {
        let until = mark.until_s.map(|until| format!(", until {until:.3} s"));
        let until = until.unwrap_or_default();
        writeln!(out, "    {:8.3} s  {}{until}", mark.at_s, mark.text)?;
    }
    Ok(())
}
