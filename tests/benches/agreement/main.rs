//! A real run compared with its simulation: the same tree, clients and changes of demand, with real processes and in
//! the simulator, measured by the same checkers. One run is undisturbed, and in one the root is killed for a while.
//!
//! `cargo bench -p doorward-tests --bench agreement` takes two minutes; `-- --help` lists the options.

mod books;
mod course;
mod real;
mod table;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use doorward_simulator::recording::Figures;
use doorward_simulator::scenario::Scenario;
use doorward_simulator::world::World;

use crate::course::{Course, Outline, SETTLED_S};

const EXAMPLES: &str = "\
A real run takes 30 s longer than it says, in which fresh servers learn. It is measured every 5 ms by the checkers of
the simulator, as its simulation is. To see everything of a simulation, keep its scenario:
  cargo bench -p doorward-tests --bench agreement -- --keep /tmp/agreement
  cargo run --release --bin doorward-sim -- run /tmp/agreement/root-killed.yaml --out report

Exit codes: 0 they agree; 1 utilisation or distance from the ideal differ by more than two points, or more was granted
than there is; 2 wrong usage.";

/// Number of clients, half of them at each leaf.
const CLIENTS: usize = 20;

/// Time for which the root is away.
const AWAY: Duration = Duration::from_secs(8);

/// Runs real servers and clients and their simulation, and prints both results.
#[derive(Clone, Debug, Parser)]
#[command(name = "agreement", bin_name = "cargo bench -p doorward-tests --bench agreement --", after_help = EXAMPLES, max_term_width = 100)]
struct Flags {
    /// Time during which demand changes, in seconds.
    #[arg(long, default_value_t = 90, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(4..=3600))]
    seconds: u64,

    /// Number of changes of a client's wants in that time.
    #[arg(long, default_value_t = 140)]
    changes: u32,

    /// Seed of all random choices: the wants, and the simulated network.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Writes the scenario files there, and keeps them.
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,

    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Result of a course.
struct Outcome {
    name: String,
    real: Figures,
    simulated: Figures,
}

fn simulated(scenario: &Scenario) -> Figures {
    let mut recording = World::new(scenario).run(|_| ());
    recording.resources.remove(0).figures
}

async fn run(courses: [Course; 2]) -> Vec<Outcome> {
    let begin = |course: Course| {
        let scenario = Scenario::read(&course.scenario).unwrap();
        let simulated = simulated(&scenario);
        let real = tokio::spawn(real::run(course.clone(), scenario));
        (course.name, simulated, real)
    };
    let running: Vec<_> = courses.into_iter().map(begin).collect();
    let mut outcomes = Vec::new();
    for (name, simulated, real) in running {
        outcomes.push(Outcome {
            name,
            real: real.await.unwrap(),
            simulated,
        });
    }
    outcomes
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let outline = Outline {
        clients: CLIENTS,
        changes: flags.changes,
        seconds: flags.seconds,
        seed: flags.seed,
    };
    let temporary = tempfile::tempdir().unwrap();
    let folder = flags.keep.as_deref().unwrap_or(temporary.path());
    fs::create_dir_all(folder).unwrap();
    let courses = [None, Some(AWAY)].map(|away| Course::write(outline, away, folder).unwrap());
    println!(
        "{CLIENTS} clients at two leaves below a root, {} changes of demand in {} s, seed {}; {} s of real time",
        flags.changes,
        flags.seconds,
        flags.seed,
        SETTLED_S + flags.seconds
    );
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let outcomes = runtime.block_on(run(courses));
    runtime.shutdown_background();
    if table::print(&outcomes) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
