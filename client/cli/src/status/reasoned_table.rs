//! A table whose rows have reasons: in a last column, or on a narrow terminal below the table, where they have room.

use std::io::{self, Write};
use std::ops::Range;

use doorward_pages::terminal::palette::Palette;
use doorward_pages::terminal::table::{Cell, Table, cell};

/// A table of holders, each with the reason for its amounts.
pub(crate) struct ReasonedTable {
    table: Table,
    /// The reasons, if they are below.
    below: Option<Table>,
}

impl ReasonedTable {
    /// A table with these columns and one for reasons. The columns of `numbers` are aligned to the right.
    pub(crate) fn new(columns: &[&str], numbers: Range<usize>, palette: Palette) -> Self {
        let whole = [columns, &["why"]].concat();
        let table = Table::new(whole, numbers.clone(), palette);
        if table.is_narrow() {
            let first = columns.first().copied().unwrap_or_default();
            Self {
                table: Table::new(columns, numbers, palette),
                below: Some(Table::new([first, "why"], 0..0, palette)),
            }
        } else {
            Self { table, below: None }
        }
    }

    /// Adds the row of `holder`.
    pub(crate) fn add(&mut self, holder: Cell, rest: impl IntoIterator<Item = Cell>, why: &str) {
        let mut row = vec![holder.clone()];
        row.extend(rest);
        match &mut self.below {
            Some(below) => below.add([holder, cell(why)]),
            None => row.push(cell(why)),
        }
        self.table.add(row);
    }

    /// Writes all rows, then the reasons if they are below.
    pub(crate) fn write(self, out: &mut impl Write) -> io::Result<()> {
        self.table.write(out)?;
        if let Some(below) = self.below {
            writeln!(out)?;
            below.write(out)?;
        }
        Ok(())
    }
}
