//! `doorward-sim list` and `show`: the built-in scenarios.

use std::io::{self, Write};

use anyhow::anyhow;
use doorward_simulator::library::{LIBRARY, LibraryEntry};
use doorward_simulator::report::{WIDTH, wrapped};

use crate::failure::Failure;

/// Prints their names, with a sentence on each.
pub(crate) fn list() -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let names = LIBRARY.iter().map(|entry| entry.name.len());
    let width = names.max().unwrap_or_default();
    for entry in LIBRARY {
        let scenario = entry.read().map_err(anyhow::Error::from)?;
        let sentence = first_sentence(&scenario.description);
        let room = WIDTH.saturating_sub(width + 2);
        for (number, line) in wrapped(sentence, room).iter().enumerate() {
            let name = if number == 0 { entry.name } else { "" };
            writeln!(out, "{name:width$}  {line}")?;
        }
    }
    Ok(())
}

/// Prints the file of one.
pub(crate) fn show(name: &str) -> Result<(), Failure> {
    let Some(entry) = LibraryEntry::find(name) else {
        let hint = LibraryEntry::hint(name);
        return Err(anyhow!(
            "{name:?} is no built-in scenario; `doorward-sim list` shows them{hint}"
        )
        .into());
    };
    Ok(io::stdout().write_all(entry.text.as_bytes())?)
}

fn first_sentence(text: &str) -> &str {
    match text.split_once(". ") {
        Some((first, _)) => first,
        None => text.trim_end_matches('.'),
    }
}
