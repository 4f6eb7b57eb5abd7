//! Tables as all programs print them: two spaces between columns, numbers to the right, no frame. Lines end without
//! spaces, so that `cut`, `grep` and diffs work well.
//!
//! On a terminal a table is as wide as the terminal, and a text that does not fit is wrapped within its column.
//! Elsewhere a row is one line of any length.

use std::io::{self, Write};
use std::ops::Range;

pub use comfy_table::{Cell, Row};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table as Grid, presets};

pub use crate::terminal::palette::cell;
use crate::terminal::palette::{Palette, Tone};

/// A column of a table of `R`s: its title, and the cell of a row.
pub type Column<R> = (&'static str, fn(&R, Palette) -> Cell);

/// Spaces between columns.
const GAP: u16 = 2;

/// Rows under a header, or without one.
#[derive(Debug)]
pub struct Table {
    grid: Grid,
    /// Columns that hold numbers.
    numbers: Range<usize>,
    /// The column whose text is not wrapped.
    whole: Option<usize>,
    /// Spaces before the first column.
    indent: u16,
}

/// Width of the narrowest terminal with room for a column that is not wrapped.
const WHOLE_FROM: u16 = 100;

impl Table {
    /// Returns a table with a header. The columns of `numbers` are aligned to the right.
    pub fn new<T: ToString>(
        header: impl IntoIterator<Item = T>,
        numbers: Range<usize>,
        palette: Palette,
    ) -> Self {
        let mut table = Self::headless(numbers, palette);
        let header = header.into_iter();
        let header: Vec<Cell> = header
            .map(|title| palette.cell(Tone::Quiet, title))
            .collect();
        table.grid.set_header(header);
        table
    }

    /// Returns a table with a row for each of `rows`. The columns of `numbers` are aligned to the right.
    pub fn of<'a, R: 'a>(
        columns: &[Column<R>],
        numbers: Range<usize>,
        rows: impl IntoIterator<Item = &'a R>,
        palette: Palette,
    ) -> Self {
        let mut table = Self::new(columns.iter().map(|it| it.0), numbers, palette);
        for row in rows {
            table.add_of(columns, row, palette);
        }
        table
    }

    /// Returns a table without a header. The columns of `numbers` are aligned to the right.
    pub fn headless(numbers: Range<usize>, palette: Palette) -> Self {
        let mut grid = Grid::new();
        grid.load_style(presets::NOTHING);
        grid.set_content_arrangement(ContentArrangement::Dynamic);
        grid.style_text_only();
        if palette.on {
            grid.enforce_styling();
        }
        Self {
            grid,
            numbers,
            whole: None,
            indent: 0,
        }
    }

    /// Prints each row as one line after `indent` spaces, whatever the width of the terminal. Such a table may also go
    /// into a file.
    #[must_use]
    pub fn in_lines(mut self, indent: u16) -> Self {
        self.grid
            .set_content_arrangement(ContentArrangement::Disabled);
        self.indent = indent;
        self
    }

    /// Keeps the texts of a column unwrapped, so that a reader can copy them. On a narrow terminal they are wrapped.
    pub fn keep_whole(&mut self, column: usize) {
        self.whole = Some(column).filter(|_| !self.is_narrow());
    }

    /// Returns whether the terminal is so narrow that a long text in a column would be wrapped too often.
    pub fn is_narrow(&self) -> bool {
        self.grid.width().is_some_and(|width| width < WHOLE_FROM)
    }

    /// Adds a row after the others.
    pub fn add(&mut self, row: impl Into<Row>) {
        self.grid.add_row(row);
    }

    /// Adds a row by its columns after the others.
    pub fn add_of<R>(&mut self, columns: &[Column<R>], row: &R, palette: Palette) {
        self.add(columns.iter().map(|(_, cell)| cell(row, palette)));
    }

    /// Writes all rows.
    ///
    /// # Errors
    ///
    /// Returns an error if a write to `out` fails.
    pub fn write(mut self, out: &mut impl Write) -> io::Result<()> {
        for (index, column) in self.grid.column_iter_mut().enumerate() {
            column.set_padding((0, GAP));
            if self.numbers.contains(&index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
            if self.whole == Some(index) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        for line in self.grid.lines() {
            let line = format!("{:indent$}{line}", "", indent = usize::from(self.indent));
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
