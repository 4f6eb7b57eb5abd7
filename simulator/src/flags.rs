//! Commands and flags with their help texts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use doorward_documents::parse_duration_within;
use doorward_engine::id::ResourceId;
use doorward_simulator::fuzz::Part;
use doorward_simulator::scenario::{DURATION_MAX, Node};

use crate::tree_flag::tree;

const EXAMPLES: &str = "\
Examples:
  doorward-sim run bad-network --out report
      Play a built-in scenario and write a report: open report/report.html.
  doorward-sim show minimal > mine.yaml && doorward-sim run mine.yaml --seed 7
      Edit and play a scenario of your own.
  doorward-sim replay --trace demand.csv --templates templates.yaml --tree 3x3 --out now
      Play measured demand. Add --capacity-factor 0.5 to see whether half of the capacity is enough,
      or --print-scenario to turn it into a scenario, and add faults to it.
  doorward-sim compare mine.yaml other.yaml --seeds 10
      Does a change of a scenario matter, or is the difference chance?

Exit codes: 0 success, all limits hold; 1 a limit is violated, a seed fails, or output cannot be
written; 2 wrong usage or an invalid file.";

/// Command line.
#[derive(Debug, Parser)]
#[command(
    name = "doorward-sim",
    version,
    about = "Simulates Doorward's servers and clients, with their real code, on a virtual clock and network.",
    after_help = EXAMPLES,
    max_term_width = 100,
)]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Play a scenario.
    Run(RunFlags),
    /// Play a trace of demand against templates and a tree.
    ///
    /// The clients of the trace are spread over the leaves of the tree. The run takes as long as the
    /// trace.
    Replay(ReplayFlags),
    /// Play random scenarios, and report those that fail.
    ///
    /// For some simulated minutes there are faults of all kinds, and clients must never exceed the
    /// capacity. Then the faults end, and soon all clients must have their ideal share.
    Fuzz(FuzzFlags),
    /// List the built-in scenarios.
    List,
    /// Print the file of a built-in scenario.
    Show {
        /// Name of the scenario.
        name: String,
    },
    /// Compare two recordings, or two scenarios over several seeds.
    ///
    /// A and B are two recordings (a recording.json or the folder of a report), or two scenarios (a file or the name
    /// of a built-in scenario). Scenarios are played once for each seed; the table has the median
    /// and the range of each figure. A difference is larger than the spread if the two ranges do not overlap: every
    /// run of one side is better than every run of the other. With 5 seeds, chance alone does that to 1 of 126
    /// figures; with 3 seeds, to 1 of 10.
    Compare(CompareFlags),
}

/// Flags that change the templates.
#[derive(Clone, Debug, Args)]
pub(crate) struct WhatIfFlags {
    /// Multiply the capacity of all templates.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(crate) capacity_factor: f64,

    /// Set the lease length [default: that of the templates]. A learning mode of the old length
    /// changes with it.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) lease_length: Option<Duration>,
}

/// Flags of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunFlags {
    /// File, or name of a built-in scenario.
    pub(crate) scenario: String,

    /// Seed of all random numbers [default: that of the scenario].
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// Simulated duration [default: that of the scenario].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) duration: Option<Duration>,

    #[command(flatten)]
    pub(crate) what_if: WhatIfFlags,

    /// Write a report into this folder, which must be new, empty, or hold an earlier report.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
}

/// Flags of `replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayFlags {
    /// Trace of demand: CSV with the header time_s,client,wants.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: PathBuf,

    /// File of templates, in the format of the server.
    #[arg(long, value_name = "FILE")]
    pub(crate) templates: PathBuf,

    /// Children of each node, level by level: 3x3 is three regions with three leaves each. Or a
    /// scenario file with a tree [default: a root alone].
    #[arg(long, value_name = "SHAPE|FILE", value_parser = tree)]
    pub(crate) tree: Option<Arc<[Node]>>,

    /// Resource that clients ask for [default: that of the only template for a single resource].
    #[arg(long, value_name = "ID", value_parser = |id: &str| ResourceId::new(id))]
    pub(crate) resource: Option<ResourceId>,

    /// Play the trace faster by this factor.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(crate) speed: f64,

    /// Multiply all amounts of the trace.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    pub(crate) scale: f64,

    #[command(flatten)]
    pub(crate) what_if: WhatIfFlags,

    /// Print the scenario file of the replay instead of playing it; edit it and run it.
    #[arg(long, conflicts_with = "out")]
    pub(crate) print_scenario: bool,

    /// Seed of all random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Write a report into this folder, which must be new, empty, or hold an earlier report.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
}

/// Flags of `fuzz`.
#[derive(Debug, Args)]
pub(crate) struct FuzzFlags {
    /// Number of seeds to play.
    #[arg(long, value_name = "N", required_unless_present = "seed", conflicts_with_all = ["seed", "out"], value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seeds: Option<u64>,

    /// First seed.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "seed")]
    pub(crate) from: u64,

    /// Play only this seed, and print a summary.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// Draw this part of every scenario for certain, and strongly; the others stay random.
    #[arg(long, value_name = "PART", value_enum)]
    pub(crate) focus: Option<Part>,

    /// Shrink a scenario that fails, for as long as it fails in the same way, and show the rest.
    #[arg(long)]
    pub(crate) shrink: bool,

    /// Print the scenario file of this seed instead of a summary; it plays the same in later
    /// releases. With --shrink, print the shrunk scenario if it fails.
    #[arg(long, conflicts_with_all = ["seeds", "out"])]
    pub(crate) print_scenario: bool,

    /// Write a report into this folder, which must be new, empty, or hold an earlier report.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
}

/// Flags of `compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareFlags {
    /// A recording.json, the folder of a report, or a scenario.
    pub(crate) a: String,

    /// The other one, of the same kind.
    pub(crate) b: String,

    /// Number of seeds for scenarios [default: 5].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub(crate) seeds: Option<u32>,

    /// First seed for scenarios [default: the scenario's].
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// Duration of scenarios [default: the scenario's].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
}

fn duration(text: &str) -> Result<Duration, String> {
    let range = Duration::from_secs(1)..=DURATION_MAX;
    parse_duration_within(text, range, "give a duration from 1s to 365d")
}

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok();
    let factor = factor.filter(|factor| (1e-6..=1e6).contains(factor));
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
    fn nonsensical_flags_are_refused() {
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
            "compare one two --seeds 1",
        ] {
            let words = std::iter::once("doorward-sim").chain(wrong.split(' '));
            assert!(Flags::try_parse_from(words).is_err(), "{wrong}");
        }
    }
}
