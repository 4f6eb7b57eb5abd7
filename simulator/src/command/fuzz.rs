//! `doorward-sim fuzz`: plays random scenarios on all cores, and reports failures in order of seed.
//!
//! It plays the first few seeds twice: if the two runs differ, no failure can be reproduced.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;

use doorward_simulator::fuzz::{self, Part, SmallerScenario, play, scenario, smaller};
use doorward_simulator::recording::Recording;
use doorward_simulator::report::command_line;
use doorward_simulator::scenario::Scenario;

use crate::failure::Failure;
use crate::flags::FuzzFlags;

/// Number of seeds that are played twice.
const TWICE: u64 = 5;

/// Outcome of a seed.
struct SeedOutcome {
    /// Failure; `None` if all promises hold.
    failure: Option<String>,
    /// Smaller scenario that still fails.
    kept: Option<Smaller>,
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

/// Returns the command that plays a seed.
fn words(seed: u64, focus: Option<Part>) -> Vec<String> {
    let mut words = vec!["fuzz".to_owned(), "--seed".to_owned(), seed.to_string()];
    if let Some(focus) = focus {
        words.extend(["--focus".to_owned(), focus.as_str().to_owned()]);
    }
    words
}

/// Plays one seed and shows its summary.
fn one(seed: u64, flags: &FuzzFlags) -> Result<(), Failure> {
    let whole = scenario(seed, flags.focus);
    let (mut recording, failure) = play(&whole);
    let mut out = io::stdout().lock();
    let mut words = words(seed, flags.focus);
    let mut left = None;
    if let Some(failure) = &failure {
        writeln!(out, "seed {seed} fails: {failure}")?;
        if flags.shrink {
            let smaller = shrunk(&whole, failure);
            write_kept(&mut out, &smaller)?;
            words.push("--shrink".to_owned());
            recording = smaller.recording.clone();
            left = Some(smaller);
        }
        writeln!(out)?;
    }
    drop(out);
    recording.command = command_line(words.iter().map(String::as_str));
    if let Some(Smaller { kept, .. }) = left {
        recording.description = format!(
            "Shrunk scenario of the seed {seed}: {} faults, {} clients.",
            kept.faults.len(),
            kept.clients
        );
    }
    super::show_outcome(&recording, &flags.output)?;
    match failure {
        None => Ok(()),
        Some(_) => Err(Failure::Reported(1)),
    }
}

/// Prints the scenario file of a seed, or of the smaller scenario that still fails.
fn print(seed: u64, flags: &FuzzFlags) -> Result<(), Failure> {
    let mut whole = scenario(seed, flags.focus);
    let mut words = words(seed, flags.focus);
    if flags.shrink {
        words.push("--shrink".to_owned());
        if let (_, Some(failure)) = play(&whole) {
            let kept = fuzz::shrink(&whole, &failure, |_| {});
            whole = smaller(&whole, &kept);
        }
    }
    super::print_scenario(&whole, &command_line(words.iter().map(String::as_str)))
}

fn many(flags: &FuzzFlags) -> Result<(), Failure> {
    let count = flags.seeds.unwrap_or_default();
    let end = flags.from.saturating_add(count);
    let next = AtomicU64::new(flags.from);
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let bar = super::bar(end - flags.from, "{pos} of {len} seeds");
    let mut failed = 0_u64;
    let reported = thread::scope(|scope| {
        let (sender, outcomes) = mpsc::channel();
        for _ in 0..cores {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || work(next, end, flags, &sender));
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut due = flags.from;
        for (seed, outcome) in outcomes {
            bar.inc(1);
            waiting.insert(seed, outcome);
            while let Some(outcome) = waiting.remove(&due) {
                if outcome.failure.is_some() {
                    failed += 1;
                    bar.suspend(|| write_outcome(due, flags.focus, &outcome))?;
                }
                due += 1;
            }
        }
        Ok::<(), io::Error>(())
    });
    bar.finish_and_clear();
    reported?;
    let mut out = io::stdout().lock();
    let twice = TWICE.min(end - flags.from);
    if failed == 0 {
        writeln!(
            out,
            "{count} seeds from {} hold; {twice} of them were played twice with the same result",
            flags.from
        )?;
        return Ok(());
    }
    writeln!(out, "{failed} of {count} seeds from {} fail", flags.from)?;
    Err(Failure::Reported(1))
}

/// Plays seeds until there are none left, or until the receiver has stopped.
fn work(next: &AtomicU64, end: u64, flags: &FuzzFlags, sender: &Sender<(u64, SeedOutcome)>) {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end || sender.send((seed, outcome(seed, flags))).is_err() {
            return;
        }
    }
}

fn outcome(seed: u64, flags: &FuzzFlags) -> SeedOutcome {
    let whole = scenario(seed, flags.focus);
    let (recording, failure) = play(&whole);
    if seed - flags.from < TWICE {
        let (again, _) = play(&whole);
        if again.trace_hash != recording.trace_hash {
            let message = format!(
                "two runs have different trace hashes: {} and {}",
                recording.trace_hash, again.trace_hash
            );
            return SeedOutcome {
                failure: Some(message),
                kept: None,
            };
        }
    }
    SeedOutcome {
        kept: failure
            .as_ref()
            .filter(|_| flags.shrink)
            .map(|failure| shrunk(&whole, failure)),
        failure: failure.map(|failure| failure.to_string()),
    }
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

fn write_outcome(seed: u64, focus: Option<Part>, outcome: &SeedOutcome) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let failure = outcome.failure.as_deref().unwrap_or_default();
    writeln!(out, "seed {seed} fails: {failure}")?;
    if let Some(smaller) = &outcome.kept {
        write_kept(&mut out, smaller)?;
    }
    let mut words = words(seed, focus);
    words.extend(["--shrink", "--out", "report"].map(str::to_owned));
    let again = command_line(words.iter().map(String::as_str));
    writeln!(out, "  reproduce with a report: {again}")?;
    out.flush()
}

/// Writes a smaller scenario: its size, and the events in it.
fn write_kept(out: &mut impl Write, smaller: &Smaller) -> io::Result<()> {
    let Smaller {
        kept,
        whole,
        recording,
    } = smaller;
    writeln!(
        out,
        "  fails with {} of {} faults and {} of {} clients:",
        kept.faults.len(),
        whole.0,
        kept.clients,
        whole.1
    )?;
    for mark in &recording.marks {
        let until = mark.until_s.map(|until| format!(", until {until:.3} s"));
        let until = until.unwrap_or_default();
        writeln!(out, "    {:8.3} s  {}{until}", mark.at_s, mark.text)?;
    }
    Ok(())
}
