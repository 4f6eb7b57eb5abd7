//! The commands, a file each; and what several of them do.

pub(crate) mod compare;
pub(crate) mod fuzz;
pub(crate) mod list;
pub(crate) mod replay;
pub(crate) mod run;
pub(crate) mod tree_flag;
pub(crate) mod what_if;

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use doorward_pages::terminal::palette::Palette;
use doorward_simulator::recording::Recording;
use doorward_simulator::report::{claim, json, summary, write_all};
use doorward_simulator::scenario::Scenario;
use doorward_simulator::world::World;
use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;
use crate::flags::OutputFlags;

/// The time after the first learning mode until averages are judged, as scenario files have it.
const SETTLES_FOR: Duration = Duration::from_secs(30);

/// Plays a scenario, and reports what came of it. `command` is what makes the same again.
fn play(scenario: &Scenario, command: String, flags: &OutputFlags) -> Result<(), Failure> {
    // What is wrong with the folder is reported before somebody has waited for the run.
    if let Some(folder) = &flags.out {
        claim(folder).map_err(|error| Failure::usage(&error))?;
    }
    let bar = bar(
        millis(scenario.duration),
        "{percent:>3} % of the time played",
    );
    let mut recording = World::new(scenario).run(|at| bar.set_position(millis(at)));
    bar.finish_and_clear();
    recording.command = command;
    show_outcome(&recording, flags)?;
    if recording.verdicts.iter().all(|verdict| verdict.holds) {
        Ok(())
    } else {
        Err(Failure::Reported(1))
    }
}

/// Prints the scenario file that plays the same as a command does.
fn print_scenario(scenario: &Scenario, command: &str) -> Result<(), Failure> {
    let text = scenario.to_yaml().map_err(|error| Failure::usage(&error))?;
    let mut out = io::stdout().lock();
    writeln!(out, "# What this plays: {command}")?;
    let files = "# Files are looked for from the folder of this one.";
    writeln!(out, "{files} docs/simulator.md has every key.")?;
    out.write_all(text.as_bytes())?;
    Ok(())
}

/// Writes what was asked for: a summary or everything, and a report.
fn show_outcome(recording: &Recording, flags: &OutputFlags) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    if flags.json {
        json::write(&mut out, recording)?;
    } else {
        summary::write(&mut out, recording, Palette::of_stdout())?;
    }
    out.flush()?;
    if let Some(folder) = &flags.out {
        let written = write_all(recording, folder).map_err(|error| Failure::report(&error))?;
        if !flags.json {
            writeln!(out, "  report: {}", written.page.display())?;
            out.flush()?;
        }
    }
    Ok(())
}

/// A bar on standard error; nothing where that is no terminal.
fn bar(length: u64, text: &str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    let style = ProgressStyle::with_template(&format!("{{bar:40}} {text}, {{elapsed}}"));
    // The template is written here: if it were wrong, there is a style all the same.
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
