//! Commands, one file each, and the code that several of them share.

pub(crate) mod compare;
pub(crate) mod fuzz;
pub(crate) mod list;
mod parallel;
pub(crate) mod replay;
pub(crate) mod run;

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use doorward_pages::terminal::palette::Palette;
use doorward_simulator::recording::Recording;
use doorward_simulator::report::{claim, command_line, summary, write_all};
use doorward_simulator::scenario::Scenario;
use doorward_simulator::world::World;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;

use crate::failure::Failure;

/// Plays a scenario and reports its outcome. `command` plays the same again.
fn play(scenario: &Scenario, command: String, folder: Option<&Path>) -> Result<(), Failure> {
    // A problem of the folder is reported before the run, which may take long.
    if let Some(folder) = folder {
        claim(folder).map_err(anyhow::Error::from)?;
    }
    let text = "{percent:>3} % of the time played";
    let bar = bar(millis(scenario.duration.0), text);
    let mut recording = World::new(scenario).run(|at| bar.set_position(millis(at)));
    bar.finish_and_clear();
    recording.command = command;
    show_outcome(&recording, folder)?;
    match recording.verdicts.iter().all(|verdict| verdict.holds) {
        true => Ok(()),
        false => Err(Failure::Reported),
    }
}

/// Prints the scenario file that plays the same as this command.
fn print_scenario(mut file: Value) -> Result<(), Failure> {
    tidy(&mut file);
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let text = serde_saphyr::to_string_with_options(&file, options);
    let text = text.map_err(anyhow::Error::from)?;
    let mut out = io::stdout().lock();
    writeln!(out, "# Plays the same as: {}", repeated())?;
    let files = "# Paths are relative to the folder of this file.";
    writeln!(out, "{files} docs/schemas/scenario.json lists all keys.")?;
    out.write_all(text.as_bytes())?;
    Ok(())
}

/// Removes keys without a value.
fn tidy(file: &mut Value) {
    match file {
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(tidy);
        }
        _ => {}
    }
}

/// Prints the summary, and writes a report into the folder, if there is one.
fn show_outcome(recording: &Recording, folder: Option<&Path>) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    summary::write(&mut out, recording, Palette::of_stdout())?;
    out.flush()?;
    if let Some(folder) = folder {
        let page = write_all(recording, folder).map_err(|error| Failure::Report(error.into()))?;
        writeln!(out, "  report: {}", page.display())?;
    }
    Ok(out.flush()?)
}

/// Returns the command line of this process without its flags for output.
fn repeated() -> String {
    let mut words = Vec::new();
    let mut arguments = std::env::args_os().skip(1);
    while let Some(word) = arguments.next() {
        match word.to_string_lossy() {
            word if word == "--out" => drop(arguments.next()),
            word if word.starts_with("--out=") || word == "--print-scenario" => {}
            word => words.push(word.into_owned()),
        }
    }
    command_line(words.iter().map(String::as_str))
}

/// Creates a progress bar on standard error, which is hidden unless that is a terminal.
fn bar(length: u64, text: &str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    let style = ProgressStyle::with_template(&format!("{{bar:40}} {text}, {{elapsed}}"));
    // The template is a literal; if it were invalid, the default style would do.
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
