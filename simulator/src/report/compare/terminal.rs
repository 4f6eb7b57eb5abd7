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
mod tests {
    use super::*;
    use crate::report::plausible;

    #[test]
    fn every_figure_says_which_is_better() {
        let (one, mut other) = (plausible::small(), plausible::small());
        other.seed = 8;
        other.scenario = "simpler".to_owned();
        other.resources[0].figures.unfairness = 0.05;
        other.resources[0].figures.convergence_max_s = 70.0;
        other.resources[0].figures.demand_met = 0.7042;
        other.resources[0].client_figures[0].got = 3.5;
        other.resources[0].figures.waits.gap = 0.0025;
        other.verdicts[1].value = 0.05;
        other.verdicts[1].holds = true;
        let (a, b) = (
            Side {
                name: "before",
                recording: &one,
            },
            Side {
                name: "after",
                recording: &other,
            },
        );
        let mut out = Vec::new();
        write(&mut out, &a, &b, Palette { on: false }).unwrap();
        let expected = "  A  before: small & <simple>, seed 7. 1 of 3 limits is violated.
  B  after: simpler, seed 8. All 3 limits hold.

What differs from the start:
  -  scenario: A small & <simple>, B simpler
  -  seed: A 7, B 8

B holds 1 limit that A violates. Clients get 79.2 % of what they want in A,
70.4 % in B. A is better in 2 figures, B in 1.

  requests                       A           B         B - A  better
  utilisation               95.5 %      95.5 %             =
  demand met                79.2 %      70.4 %  -8.75 points  A
  clients short               75 %        75 %             =
  demand above capacity      100 %       100 %             =
  granted of capacity       95.5 %      95.5 %             =
  peak of capacity           100 %       100 %             =
  peak with fallback         120 %       120 %             =
  peak in safe mode           20 %        20 %             =
  overshoot for                0 s         0 s             =
  unfairness                12.5 %         5 %  -7.50 points  B
  not at rest                 25 %        25 %             =
  convergence, longest         8 s  1 min 10 s    +1 min 2 s  A
  convergence, mean            8 s         8 s             =
  demand changes                 1           1             =
  starvation, longest        1.5 s       1.5 s             =
  oscillation            0.25 /min   0.25 /min             =
  comeback, longest          2.5 s       2.5 s             =
  comeback, median           1.2 s       1.2 s             =
  not back                       0           0             =

  points lost to         A       B         B - A
  client's gap        0.50    0.25  -0.25 points
  answer under way  < 0.01  < 0.01             =
  others to shrink    1.50    1.50             =
  no server           2.50    2.50             =

  limits                      A              B          limit  better
  overshoot          0 %, holds     0 %, holds    at most 0 %
  fairness     12.5 %, VIOLATED     5 %, holds   at most 10 %  B
  utilisation     95.5 %, holds  95.5 %, holds  at least 90 %

  clients get  of wanted     A     B       B - A
  b'\"                  7  65 %  50 %  -15 points
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
