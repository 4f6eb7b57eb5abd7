//! A course that runs twice: a tree, clients, and changes of their wants, all drawn from one seed.
//!
//! It is written as files for `doorward-sim run`, too: a scenario, its trace of demand, and the templates, which the
//! real root also reads. Wants have four phases of equal length: about the capacity, far more, half of it, and more
//! again. So both kinds of utilisation are measured, with wants that come and go and wants that are cut. Before that,
//! all clients have the same wants while new servers are in learning mode.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use doorward_simulator::chance::Chance;

/// Length of leases, and so of a new root's learning mode.
const LEASE_LENGTH_S: u64 = 20;
/// Time from which demand changes and averages are taken, after learning mode.
pub(crate) const SETTLED_S: u64 = LEASE_LENGTH_S + 10;
/// Average wants of one client, where the sum is about the capacity.
const MEAN: f64 = 100.0;
/// Wants of a client in each quarter of the time, relative to that.
const WAVES: [f64; 4] = [1.0, 1.6, 0.5, 1.3];
/// Probability that a client wants nothing.
const IDLE: f64 = 0.25;

/// Settings from the flags.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outline {
    pub(crate) clients: usize,
    pub(crate) changes: u32,
    pub(crate) seconds: u64,
    pub(crate) seed: u64,
}

/// A course, for a real run and a simulation.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    /// Name for people.
    pub(crate) name: String,
    /// Time at which the root is killed, and time until it starts again.
    pub(crate) away: Option<(Duration, Duration)>,
    /// The scenario file.
    pub(crate) scenario: PathBuf,
    /// The template file.
    pub(crate) templates: PathBuf,
}

impl Course {
    /// Writes the files of a course, with the same demand for every course of an outline. `away` is the time for which
    /// the root is away.
    pub(crate) fn write(
        outline: Outline,
        away: Option<Duration>,
        folder: &Path,
    ) -> io::Result<Self> {
        let away = away.map(|lasts| {
            let quarter = Duration::from_millis(outline.seconds * 250);
            (Duration::from_secs(SETTLED_S) + quarter, lasts)
        });
        let (name, file) = match away {
            None => ("quiet".to_owned(), "quiet.yaml"),
            Some((_, lasts)) => (
                format!("root killed for {} s", lasts.as_secs()),
                "root-killed.yaml",
            ),
        };
        let course = Self {
            name,
            away,
            scenario: folder.join(file),
            templates: folder.join("templates.yaml"),
        };
        fs::write(&course.templates, templates(outline.clients))?;
        fs::write(folder.join("demand.csv"), demand(outline))?;
        fs::write(&course.scenario, course.text(outline))?;
        Ok(course)
    }

    fn text(&self, outline: Outline) -> String {
        let (end, seed) = (SETTLED_S + outline.seconds, outline.seed);
        let faults = self.away.map_or_else(String::new, |(at, lasts)| {
            let (at, lasts) = (at.as_millis(), lasts.as_millis());
            format!("faults: [{{at: {at}ms, kill: root, for: {lasts}ms}}]\n")
        });
        format!(
            "description: What a real run beside this one is compared with.\n\
             seed: {seed}\n\
             duration: {end}s\n\
             settled_after: {SETTLED_S}s\n\
             sample_every: 50ms\n\
             templates: templates.yaml\n\
             tree: {{root: {{children: [leaf-1, leaf-2]}}}}\n\
             clients: [{{resource: shared, wants: {{trace: demand.csv}}}}]\n\
             # Loopback, with the work that a message makes at both ends.\n\
             network: {{latency: {{least: 200us, mean: 100us}}}}\n\
             {faults}"
        )
    }
}

fn templates(clients: usize) -> String {
    let capacity = clients as f64 * MEAN * (1.0 - IDLE);
    format!(
        "resources:\n\
         - identifier_glob: shared\n  \
           capacity: {capacity}\n  \
           algorithm: {{kind: FAIR_SHARE, lease_length: {LEASE_LENGTH_S}s, refresh_interval: 5s}}\n"
    )
}

/// Returns the trace: clients with their wants over time. Changes are spread over the time, each at a random place in
/// its own part.
fn demand(outline: Outline) -> String {
    let mut chance = Chance::new(outline.seed);
    let mut rows = "time_s,client,wants\n".to_owned();
    // Writing to a text does not fail.
    for client in 0..outline.clients {
        let _ = writeln!(rows, "0,client-{client:02},{MEAN}");
    }
    for change in 0..outline.changes {
        let part = (f64::from(change) + chance.uniform()) / f64::from(outline.changes);
        let at = SETTLED_S as f64 + part * outline.seconds as f64;
        let client = chance.below(outline.clients);
        let wants = if chance.happens(IDLE) {
            0.0
        } else {
            let wave = WAVES.get((part * 4.0) as usize).copied().unwrap_or(1.0);
            chance.exponential(MEAN * wave)
        };
        let _ = writeln!(rows, "{at:.3},client-{client:02},{wants:.1}");
    }
    rows
}
