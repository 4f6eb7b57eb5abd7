//! `doorward-sim fuzz`: plays random scenarios on all cores, and reports failures in order of seed.
//!
//! It plays the first few seeds twice: if the two runs differ, no failure can be reproduced.

use std::io::{self, Write};

use doorward_simulator::fuzz::{self, Part, SmallerScenario, play, scenario, smaller};
use doorward_simulator::recording::Recording;
use doorward_simulator::report::command_line;
use doorward_simulator::scenario::Scenario;

use crate::command::parallel::in_order;
use crate::failure::Failure;
use crate::flags::FuzzFlags;

/// Number of seeds that are played twice.
const TWICE: u64 = 5;

/// Failure of a seed.
struct SeedFailure {
    seed: u64,
    text: String,
    /// Smaller scenario that still fails, if the user wants one.
    smaller: Option<Smaller>,
}

/// Smaller scenario that still fails.
struct Smaller {
    kept: SmallerScenario,
    /// Faults and clients of the whole scenario.
    whole: (usize, usize),
    recording: Recording,
}

/// Plays the seeds that the flags choose.
pub(crate) fn run(flags: &FuzzFlags) -> Result<(), Failure> {
    match flags.seed {
        Some(seed) if flags.print_scenario => print(seed, flags),
        Some(seed) => one(seed, flags),
        None => many(flags),
    }
}

/// Returns the command that plays a seed, with more words at its end.
fn command(seed: u64, focus: Option<Part>, more: &[&str]) -> String {
    let seed = seed.to_string();
    let mut words = vec!["fuzz", "--seed", &seed];
    if let Some(focus) = focus {
        words.extend(["--focus", focus.as_str()]);
    }
    words.extend(more);
    command_line(words)
}

/// Plays one seed and shows its summary.
fn one(seed: u64, flags: &FuzzFlags) -> Result<(), Failure> {
    let whole = scenario(seed, flags.focus);
    let (mut recording, failure) = play(&whole);
    let mut more: &[&str] = &[];
    if let Some(failure) = &failure {
        let mut out = io::stdout().lock();
        writeln!(out, "seed {seed} fails: {failure}")?;
        if flags.shrink {
            let smaller = shrunk(&whole, failure);
            write_smaller(&mut out, &smaller)?;
            let (faults, clients) = (smaller.kept.faults.len(), smaller.kept.clients);
            recording = smaller.recording;
            recording.description =
                format!("Shrunk scenario of the seed {seed}: {faults} faults, {clients} clients.");
            more = &["--shrink"];
        }
        writeln!(out)?;
    }
    recording.command = command(seed, flags.focus, more);
    super::show_outcome(&recording, &flags.output)?;
    match failure {
        None => Ok(()),
        Some(_) => Err(Failure::Reported(1)),
    }
}

/// Prints the scenario file of a seed, or of the smaller scenario that still fails.
fn print(seed: u64, flags: &FuzzFlags) -> Result<(), Failure> {
    let mut whole = scenario(seed, flags.focus);
    let mut more: &[&str] = &[];
    if flags.shrink {
        more = &["--shrink"];
        if let (_, Some(failure)) = play(&whole) {
            let kept = fuzz::shrink(&whole, &failure, |_| {});
            whole = smaller(&whole, &kept);
        }
    }
    super::print_scenario(&whole, &command(seed, flags.focus, more))
}

fn many(flags: &FuzzFlags) -> Result<(), Failure> {
    let (from, count) = (flags.from, flags.seeds.unwrap_or_default());
    let end = from.saturating_add(count);
    let bar = super::bar(end - from, "{pos} of {len} seeds");
    let mut failed = 0_u64;
    let work = |seed| failure_of(seed, flags);
    in_order(from..end, &bar, work, |failure| match failure {
        None => Ok(()),
        Some(failure) => {
            failed += 1;
            bar.suspend(|| write_failure(&failure, flags.focus))
        }
    })?;
    let mut out = io::stdout().lock();
    let twice = TWICE.min(end - from);
    if failed == 0 {
        writeln!(
            out,
            "{count} seeds from {from} hold; {twice} of them were played twice with the same result"
        )?;
        return Ok(());
    }
    writeln!(out, "{failed} of {count} seeds from {from} fail")?;
    Err(Failure::Reported(1))
}

/// Plays a seed; `None` if all promises hold.
fn failure_of(seed: u64, flags: &FuzzFlags) -> Option<SeedFailure> {
    let whole = scenario(seed, flags.focus);
    let (recording, failure) = play(&whole);
    if seed - flags.from < TWICE {
        let (again, _) = play(&whole);
        let (one, other) = (recording.trace_hash, again.trace_hash);
        if one != other {
            return Some(SeedFailure {
                seed,
                text: format!("two runs have different trace hashes: {one} and {other}"),
                smaller: None,
            });
        }
    }
    let failure = failure?;
    Some(SeedFailure {
        seed,
        text: failure.to_string(),
        smaller: flags.shrink.then(|| shrunk(&whole, &failure)),
    })
}

fn shrunk(whole: &Scenario, failure: &fuzz::FoundFailure) -> Smaller {
    let kept = fuzz::shrink(whole, failure, |_| {});
    let (recording, _) = play(&smaller(whole, &kept));
    Smaller {
        whole: (whole.faults.len(), whole.clients.len()),
        recording,
        kept,
    }
}

fn write_failure(failure: &SeedFailure, focus: Option<Part>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "seed {} fails: {}", failure.seed, failure.text)?;
    if let Some(smaller) = &failure.smaller {
        write_smaller(&mut out, smaller)?;
    }
    let again = command(failure.seed, focus, &["--shrink", "--out", "report"]);
    writeln!(out, "  reproduce with a report: {again}")?;
    out.flush()
}

/// Writes a smaller scenario: its size, and the events in it.
fn write_smaller(out: &mut impl Write, smaller: &Smaller) -> io::Result<()> {
    let Smaller { kept, whole, .. } = smaller;
    let (faults, clients) = (kept.faults.len(), kept.clients);
    writeln!(
        out,
        "  fails with {faults} of {} faults and {clients} of {} clients:",
        whole.0, whole.1
    )?;
    for mark in &smaller.recording.marks {
        let until = mark.until_s.map(|until| format!(", until {until:.3} s"));
        let until = until.unwrap_or_default();
        writeln!(out, "    {:8.3} s  {}{until}", mark.at_s, mark.text)?;
    }
    Ok(())
}
