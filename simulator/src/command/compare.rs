//! `doorward-sim compare`: two recordings beside each other.

use std::io::{self, Write};
use std::path::Path;

use doorward_pages::terminal::palette::Palette;
use doorward_simulator::report::compare::{self, Side};
use doorward_simulator::report::json;

use crate::failure::Failure;
use crate::flags::CompareFlags;

/// Compares them.
pub(crate) fn run(flags: &CompareFlags) -> Result<(), Failure> {
    let read = |path: &Path| json::read(path).map_err(|error| Failure::usage(&error));
    let (a, b) = (read(&flags.a)?, read(&flags.b)?);
    let names = [&flags.a, &flags.b].map(|path| path.display().to_string());
    let [a, b] =
        [(&names[0], &a), (&names[1], &b)].map(|(name, recording)| Side { name, recording });
    let mut out = io::stdout().lock();
    compare::write(&mut out, &a, &b, Palette::of_stdout())?;
    if let Some(path) = &flags.out {
        compare::write_page(&a, &b, path).map_err(|error| Failure::report(&error))?;
        writeln!(out, "  page: {}", path.display())?;
    }
    Ok(())
}
