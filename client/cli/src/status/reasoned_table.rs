//! A table whose rows have reasons: in a last column, or on a narrow terminal below the table, where they have room.

use std::io::{self, Write};
use std::ops::Range;

use doorward_pages::terminal::{Column, Table};

use crate::output::Out;

/// Writes rows with these columns and `why`, the column of reasons. The columns of `numbers` are aligned to the right.
pub(crate) fn write<R>(
    out: &mut Out<impl Write>,
    columns: &[Column<R>],
    numbers: Range<usize>,
    why: Column<R>,
    rows: &[R],
) -> io::Result<()> {
    let palette = out.palette;
    let whole = [columns, &[why]].concat();
    let whole = Table::of(&whole, numbers.clone(), rows, palette);
    if !whole.is_narrow() {
        return whole.write(out);
    }
    Table::of(columns, numbers, rows, palette).write(out)?;
    writeln!(out)?;
    let holders = columns.get(..1).unwrap_or_default();
    Table::of(&[holders, &[why]].concat(), 0..0, rows, palette).write(out)
}
