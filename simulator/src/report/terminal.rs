//! Terminal of eighty columns, with or without colours.

use std::io::{self, Write};

use doorward_pages::terminal::palette::{Palette, Tone};
use doorward_pages::terminal::table::Table;

use crate::report::text::{WIDTH, wrapped};

pub(super) struct Terminal<'a> {
    pub(super) out: &'a mut dyn Write,
    pub(super) palette: Palette,
}

impl Terminal<'_> {
    /// Writes an empty line and a text.
    pub(super) fn title(&mut self, tone: Tone, text: &str) -> io::Result<()> {
        writeln!(self.out)?;
        for line in wrapped(text, WIDTH) {
            writeln!(self.out, "{}", self.palette.paint(tone, &line))?;
        }
        Ok(())
    }

    /// Writes a text in lines that are indented by two.
    pub(super) fn text(&mut self, tone: Tone, text: &str) -> io::Result<()> {
        for line in wrapped(text, WIDTH - 2) {
            writeln!(self.out, "  {}", self.palette.paint(tone, &line))?;
        }
        Ok(())
    }

    /// Writes a text beside a mark.
    pub(super) fn item(&mut self, mark: &str, text: &str) -> io::Result<()> {
        for (index, line) in wrapped(text, WIDTH - 5).into_iter().enumerate() {
            let mark = if index == 0 { mark } else { " " };
            let mark = self.palette.paint(Tone::Strong, mark);
            writeln!(self.out, "  {mark}  {line}")?;
        }
        Ok(())
    }

    /// Writes an empty line and a table.
    pub(super) fn table(&mut self, table: Table) -> io::Result<()> {
        writeln!(self.out)?;
        table.write(&mut self.out)
    }
}
