//! `doorward-sim list` and `show`: the built-in scenarios.

use std::io::{self, Write};

use anyhow::anyhow;
use doorward_pages::terminal::palette::Palette;
use doorward_pages::terminal::table::Table;
use doorward_simulator::library::{LIBRARY, LibraryEntry};

use crate::failure::Failure;

/// Prints their names, with a sentence on each.
pub(crate) fn list() -> Result<(), Failure> {
    let mut table = Table::headless(0..0, Palette::of_stdout());
    for entry in LIBRARY {
        let scenario = entry.read().map_err(anyhow::Error::from)?;
        let first_sentence = scenario.description.split(". ").next();
        let first_sentence = first_sentence.unwrap_or_default().trim_end_matches('.');
        table.add([entry.name, first_sentence]);
    }
    Ok(table.write(&mut io::stdout())?)
}

/// Prints the file of one.
pub(crate) fn show(name: &str) -> Result<(), Failure> {
    let Some(entry) = LibraryEntry::find(name) else {
        let hint = LibraryEntry::hint(name);
        let problem = format!("{name:?} is no built-in scenario");
        return Err(anyhow!("{problem}; `doorward-sim list` shows them{hint}").into());
    };
    Ok(io::stdout().write_all(entry.text.as_bytes())?)
}
