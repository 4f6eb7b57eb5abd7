//! Commands and flags, and what `--help` teaches.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use doorward_engine::id::ResourceId;
use doorward_simulator::fuzz::Part;

use crate::command::tree_flag::TreeFlag;

const EXAMPLES: &str = "\
Examples:
  doorward-sim list
      The scenarios that come with the program.
  doorward-sim run minimal
      Plays one of them, and sums up what came of it.
  doorward-sim run bad-network --out report
      The same with a report: open report/index.html.
  doorward-sim show minimal > mine.yaml && doorward-sim run mine.yaml --seed 7
      A scenario of your own.
  doorward-sim replay --trace demand.csv --templates templates.yaml --tree 3x3 --out now
  doorward-sim replay --trace demand.csv --templates templates.yaml --tree 3x3 \\
      --capacity-factor 0.5 --out half
  doorward-sim compare now half --out compared.html
      Would half of the capacity do?
  doorward-sim replay --trace demand.csv --templates templates.yaml --print-scenario > bad.yaml
      The replay as a scenario, to add faults to. Then:
  doorward-sim run bad.yaml --lease-length 20s --out short
      What would be if leases were shorter?
  doorward-sim fuzz --seeds 1000
      Everything by chance, on all cores: is there a seed for which a promise does not hold?

Exit codes: 0 done, and all limits hold; 1 a limit is violated, a seed fails, or output cannot be
written; 2 wrong usage, or an invalid file.";

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "doorward-sim",
    version,
    about = "Plays Doorward on a virtual clock and network: what is decided is decided by what ships.",
    after_help = EXAMPLES,
    max_term_width = 100,
)]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Play a scenario.
    Run(RunFlags),
    /// Play a trace of demand against templates and a tree.
    ///
    /// The clients of the trace are spread over the leaves of the tree, and it takes as long as the
    /// trace does.
    Replay(ReplayFlags),
    /// Play scenarios that are made by chance, and show which fail.
    ///
    /// For some minutes everything goes wrong, and nobody may ever have too much; then nothing does
    /// any more, and in the end everybody must have what is right.
    Fuzz(FuzzFlags),
    /// Name the scenarios that come with the program.
    List,
    /// Print the file of one of them.
    Show {
        /// Its name.
        name: String,
    },
    /// Compare two recordings.
    Compare(CompareFlags),
    /// Print a completion script for a shell.
    Completions {
        /// For which shell.
        shell: Shell,
    },
}

/// What comes out.
#[derive(Clone, Debug, Args)]
pub(crate) struct OutputFlags {
    /// Write a report into this folder, which is new, empty, or holds a former report.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,

    /// Print everything that was recorded as JSON, instead of a summary.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What would be if the templates were others.
#[derive(Clone, Debug, Args)]
pub(crate) struct WhatIfFlags {
    /// Multiply the capacity that templates give.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(crate) capacity_factor: f64,

    /// Lease for so long [default: what templates say]. Learning mode follows if it is as long.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) lease_length: Option<Duration>,
}

/// What to play.
#[derive(Debug, Args)]
pub(crate) struct RunFlags {
    /// A file, or the name of a scenario that comes with the program.
    pub(crate) scenario: String,

    /// All chance comes from it [default: the scenario's].
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// How long to play [default: the scenario's].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) duration: Option<Duration>,

    #[command(flatten)]
    pub(crate) what_if: WhatIfFlags,

    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

/// What to replay.
#[derive(Debug, Args)]
pub(crate) struct ReplayFlags {
    /// Who wanted how much from when on: CSV with the header time_s,client,wants.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: PathBuf,

    /// Templates, as servers read them.
    #[arg(long, value_name = "FILE")]
    pub(crate) templates: PathBuf,

    /// Children of each node, level by level, as in 3x3: three regions of three leaves each. Or a
    /// scenario file that has a tree [default: a root alone].
    #[arg(long, value_name = "SHAPE|FILE")]
    pub(crate) tree: Option<TreeFlag>,

    /// What is asked for [default: that of the only template that is for one resource].
    #[arg(long, value_name = "ID", value_parser = |id: &str| ResourceId::new(id))]
    pub(crate) resource: Option<ResourceId>,

    /// Play it so many times as fast.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(crate) speed: f64,

    /// Multiply all amounts of the trace.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(crate) scale: f64,

    /// Play it so often, one after the other.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,

    #[command(flatten)]
    pub(crate) what_if: WhatIfFlags,

    /// Do not play it: print the scenario file that would, to be added to and run.
    #[arg(long, conflicts_with_all = ["out", "json"])]
    pub(crate) print_scenario: bool,

    /// All chance comes from it.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

/// Which seeds to play.
#[derive(Debug, Args)]
pub(crate) struct FuzzFlags {
    /// How many.
    #[arg(long, value_name = "N", required_unless_present = "seed", conflicts_with_all = ["seed", "out", "json"], value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: Option<u64>,

    /// The first of them.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "seed")]
    pub(crate) from: u64,

    /// Only this one, with a summary.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// Draw this part of every world for sure, and strongly; the others as chance decides.
    #[arg(long, value_name = "PART", value_parser = part)]
    pub(crate) focus: Option<Part>,

    /// Make what fails smaller, as far as it still fails in the same way, and show what is left.
    #[arg(long)]
    pub(crate) shrink: bool,

    /// Do not show how it went: print the scenario file that plays the same as this seed, whatever
    /// later releases draw. With --shrink, what is left if it fails.
    #[arg(long, conflicts_with_all = ["seeds", "out", "json"])]
    pub(crate) print_scenario: bool,

    #[command(flatten)]
    pub(crate) output: OutputFlags,
}

/// What to compare.
#[derive(Debug, Args)]
pub(crate) struct CompareFlags {
    /// The folder of a report, or a recording.json.
    pub(crate) a: PathBuf,

    /// The other one.
    pub(crate) b: PathBuf,

    /// Write a page with the charts of both.
    #[arg(long, value_name = "FILE.html")]
    pub(crate) out: Option<PathBuf>,
}

fn part(text: &str) -> Result<Part, String> {
    let found = Part::ALL.into_iter().find(|part| part.as_str() == text);
    found.ok_or_else(|| format!("give one of {}", Part::ALL.map(Part::as_str).join(", ")))
}

fn duration(text: &str) -> Result<Duration, String> {
    let duration = doorward_documents::parse_duration(text).map_err(|error| error.to_string())?;
    let range = Duration::from_secs(1)..=Duration::from_secs(365 * 24 * 3600);
    if range.contains(&duration) {
        Ok(duration)
    } else {
        Err("give a duration from 1s to 365d".to_owned())
    }
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text
        .parse()
        .ok()
        .filter(|factor| (1e-6..=1e6).contains(factor));
    factor.ok_or_else(|| "give a number from 0.000001 to 1000000".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        Flags::command().debug_assert();
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for wrong in [
            "run",
            "run minimal --duration soon",
            "run minimal --duration 0s",
            "run minimal --seed -1",
            "replay --trace t.csv",
            "replay --trace t.csv --templates t.yaml --speed 0",
            "replay --trace t.csv --templates t.yaml --tree 3x",
            "replay --trace t.csv --templates t.yaml --repeat 0",
            "fuzz",
            "fuzz --seeds 0",
            "fuzz --seeds 3 --seed 1",
            "fuzz --seeds 3 --out report",
            "fuzz --seeds 3 --print-scenario",
            "compare one",
        ] {
            let words = std::iter::once("doorward-sim").chain(wrong.split(' '));
            assert!(Flags::try_parse_from(words).is_err(), "{wrong}");
        }
    }
}
