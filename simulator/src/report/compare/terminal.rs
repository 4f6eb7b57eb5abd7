//! The comparison on a terminal.

use std::io::{self, Write};

use crate::report::compare::{ComparedRow, Comparison, Side, Winner, difference};
use crate::report::figures::Unit;
use crate::report::shortage_rows::Shift;
use crate::report::text::{WIDTH, printable, shortened, wrapped};
use crate::report::verdicts::Headline;
use doorward_pages::numbers::{percent, several};
use doorward_pages::terminal::palette::{Palette, Tone};
use doorward_pages::terminal::table::{Cell, Table};

/// Clients that are listed, and how wide their names may be.
const SHIFTS_MAX: usize = 5;
const NAME_MAX: usize = 30;

/// Writes what differs, then a table for each resource that both have.
pub fn write(out: &mut impl Write, a: &Side<'_>, b: &Side<'_>, palette: Palette) -> io::Result<()> {
    let comparison = Comparison::of(a, b);
    for (letter, side) in [("A", a), ("B", b)] {
        let about = format!(
            "{}: {}, seed {}. {}",
            printable(side.name),
            printable(&side.recording.scenario),
            side.recording.seed,
            Headline::of(side.recording).title,
        );
        write_item(out, letter, &about, palette)?;
    }
    if !comparison.shape.is_empty() {
        writeln!(out)?;
        writeln!(out, "What differs from the start:")?;
        for line in &comparison.shape {
            write_item(out, "-", line, palette)?;
        }
    }
    writeln!(out)?;
    for line in wrapped(&comparison.title(), WIDTH) {
        writeln!(out, "{}", palette.paint(Tone::Strong, &line))?;
    }
    for resource in &comparison.resources {
        writeln!(out)?;
        let id = printable(resource.id);
        let header = ["", "A", "B", "B - A", "better"];
        write_table(out, &id, header, &resource.figures, palette)?;
        if !resource.waits.is_empty() {
            writeln!(out)?;
            let header = ["", "A", "B", "B - A", ""];
            write_table(out, "points lost to", header, &resource.waits, palette)?;
        }
        if !resource.limits.is_empty() {
            writeln!(out)?;
            let header = ["", "A", "B", "limit", "better"];
            write_table(out, "limits", header, &resource.limits, palette)?;
        }
        write_shifts(out, &resource.shifts, palette)?;
    }
    Ok(())
}

fn write_shifts(out: &mut impl Write, shifts: &[Shift], palette: Palette) -> io::Result<()> {
    if shifts.is_empty() {
        return Ok(());
    }
    let header = ["clients get", "of wanted", "A", "B", "B - A"];
    let mut table = Table::new(header, 1..5, palette).in_lines(2);
    for shift in shifts.iter().take(SHIFTS_MAX) {
        let cells = [
            shortened(&shift.client, NAME_MAX),
            shift.wanted.clone(),
            percent(shift.a),
            percent(shift.b),
            difference(Unit::Part, shift.a, shift.b),
        ];
        table.add(cells);
    }
    writeln!(out)?;
    table.write(out)?;
    match shifts.len().saturating_sub(SHIFTS_MAX) {
        0 => Ok(()),
        more => {
            let more = format!("  and {}", several(more, "more client", "more clients"));
            writeln!(out, "{}", palette.paint(Tone::Quiet, &more))
        }
    }
}

fn write_item(out: &mut impl Write, mark: &str, text: &str, palette: Palette) -> io::Result<()> {
    for (index, line) in wrapped(text, WIDTH - 5).into_iter().enumerate() {
        let mark = if index == 0 { mark } else { " " };
        writeln!(out, "  {}  {line}", palette.paint(Tone::Strong, mark))?;
    }
    Ok(())
}

fn write_table(
    out: &mut impl Write,
    title: &str,
    [_, a, b, difference, better]: [&str; 5],
    rows: &[ComparedRow],
    palette: Palette,
) -> io::Result<()> {
    let header = [title, a, b, difference, better];
    let mut table = Table::new(header, 1..4, palette).in_lines(2);
    for row in rows {
        let tone = |side| match row.winner {
            Winner::None => Tone::Plain,
            winner if winner == side => Tone::Good,
            _ if row.turns => Tone::Bad,
            _ => Tone::Plain,
        };
        table.add([
            palette.cell(Tone::Quiet, &row.name),
            palette.cell(tone(Winner::A), &row.a),
            palette.cell(tone(Winner::B), &row.b),
            Cell::new(&row.difference),
            palette.cell(Tone::Strong, row.winner.name()),
        ]);
    }
    table.write(out)
}

#[cfg(test)]
mod tests;
