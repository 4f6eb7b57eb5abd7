//! Two sides, figure by figure: single recordings, or runs of two scenarios with several seeds.
//!
//! A difference counts if the ranges of the two sides do not overlap: every run of one side is better than every run
//! of the other. With five runs a side, chance alone does that to 1 of 126 figures. With one run a side, any
//! difference of more than a thousandth counts.

use std::collections::BTreeSet;
use std::io::{self, Write};

use crate::recording::Recording;
use crate::report::figures::{FIGURES, Figure, Unit, WAITS, is_shown, values};
use crate::report::terminal::{Terminal, printable};
use crate::report::words::Words;
use doorward_pages::numbers::{measured, percent, points, seconds, several};
use doorward_pages::terminal::palette::{Palette, Tone};
use doorward_pages::terminal::table::{Cell, Table};

/// Values that differ by less than this part of them are equal.
const SAME: f64 = 1e-3;
/// One of the two sides: its name, and at least one run.
#[derive(Clone, Debug)]
pub struct Side {
    /// Path or name that the user gave.
    pub name: String,
    /// Its runs, one for each seed. Only the first one needs samples.
    pub runs: Vec<Recording>,
}

impl Side {
    /// Returns a line about it: a single run's verdict or the number of runs without a violation, and what is violated.
    fn about(&self) -> String {
        let name = printable(&self.name);
        let mut about = match self.runs.as_slice() {
            [run] => format!("{name}: seed {}. {}", run.seed, Words::of(run).headline),
            [first, .., last] => {
                let (first, last, count) = (first.seed, last.seed, self.runs.len());
                let holds = |run: &&Recording| run.verdicts.iter().all(|verdict| verdict.holds);
                let fine = self.runs.iter().filter(holds).count();
                let seeds = format!("{name}: seeds {first} to {last}.");
                format!("{seeds} All limits hold in {fine} of {count} runs.")
            }
            [] => name,
        };
        let verdicts = self.runs.iter().flat_map(|run| &run.verdicts);
        let violated = verdicts.filter(|verdict| !verdict.holds);
        let violated: BTreeSet<&str> = violated.map(|it| it.checker.as_str()).collect();
        if !violated.is_empty() {
            let violated: Vec<&str> = violated.into_iter().collect();
            about += &format!(" Violated: {}.", violated.join(", "));
        }
        about
    }
}

/// Median and range of a figure over runs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    least: f64,
    median: f64,
    most: f64,
}

impl Spread {
    /// Takes the finite values. Without any, all three are no number.
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let at = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
        let (middle, last) = (values.len() / 2, values.len().wrapping_sub(1));
        Self {
            least: at(0),
            median: f64::midpoint(at(last / 2), at(middle)),
            most: at(last),
        }
    }

    /// Returns true if all its values are below all of the other's.
    fn is_below(self, other: Self) -> bool {
        self.most < other.least && !is_same(self.most, other.least)
    }

    fn show_range(self, unit: Unit) -> String {
        let (least, most) = (unit.show(self.least), unit.show(self.most));
        match least == most {
            true => least,
            false => format!("{least} to {most}"),
        }
    }
}

/// A figure of both sides.
struct ComparedFigure {
    figure: &'static Figure,
    /// A and B.
    sides: [Spread; 2],
    /// The better side, if the difference counts.
    better: &'static str,
}

impl ComparedFigure {
    fn of(figure: &'static Figure, resource: &str, sides: [&Side; 2]) -> Self {
        let values = sides.map(|side| {
            let all = side.runs.iter().flat_map(|run| &run.resources);
            let all = all.filter(|it| it.resource == resource);
            all.map(|it| figure.of(&values(it))).collect::<Vec<_>>()
        });
        let cost = |values: &Vec<f64>| Spread::of(values.iter().filter_map(|it| figure.cost(*it)));
        let better = match values.each_ref().map(cost) {
            [a, b] if a.is_below(b) => "A",
            [a, b] if b.is_below(a) => "B",
            _ => "",
        };
        let sides = values.map(|values| Spread::of(values.into_iter()));
        Self {
            figure,
            sides,
            better,
        }
    }
}

/// A table: its title, and its rows.
type Rows = (String, Vec<ComparedFigure>);

/// Returns the tables of each resource that both sides have.
fn tables(a: &Side, b: &Side) -> Vec<Rows> {
    let ids = |side: &Side| -> Vec<String> {
        let first = side.runs.iter().take(1).flat_map(|run| &run.resources);
        first.map(|it| it.resource.clone()).collect()
    };
    let others = ids(b);
    let both = ids(a).into_iter().filter(|id| others.contains(id));
    let tables = both.flat_map(|id| {
        let figures = FIGURES.iter().map(|it| ComparedFigure::of(it, &id, [a, b]));
        let waits = WAITS.iter().map(|it| ComparedFigure::of(it, &id, [a, b]));
        let waits = waits.filter(|row| row.sides.iter().any(|side| is_shown(side.most)));
        let lost_to = ("points lost to".to_owned(), waits.collect::<Vec<_>>());
        [(printable(&id), figures.collect()), lost_to]
    });
    tables.filter(|(_, rows)| !rows.is_empty()).collect()
}

/// Writes the differences of the conditions, then the tables.
pub fn write(out: &mut impl Write, a: &Side, b: &Side, palette: Palette) -> io::Result<()> {
    let mut terminal = Terminal { out, palette };
    for (letter, side) in [("A", a), ("B", b)] {
        terminal.item(letter, &side.about())?;
    }
    let differences = differences(a, b);
    if !differences.is_empty() {
        terminal.title(Tone::Plain, "Different conditions:")?;
        for line in &differences {
            terminal.item("-", line)?;
        }
    }
    let tables = tables(a, b);
    let runs = a.runs.len().max(b.runs.len());
    terminal.title(Tone::Strong, &title(&tables, runs))?;
    for rows in &tables {
        write_figures(&mut terminal, rows, runs > 1)?;
    }
    Ok(())
}

/// Returns the conditions that differ between the first runs of both, a line each.
fn differences(a: &Side, b: &Side) -> Vec<String> {
    let (Some(a), Some(b)) = (a.runs.first(), b.runs.first()) else {
        return Vec::new();
    };
    let of_both = [a, b].map(|run| Words::of(run).conditions);
    let value = |conditions: &[(String, String)], name: &str| {
        let found = conditions.iter().find(|(other, _)| other == name);
        found.map_or_else(|| "none".to_owned(), |(_, value)| value.clone())
    };
    let mut lines: Vec<String> = Vec::new();
    for (name, _) in of_both.iter().flatten() {
        let [left, right] = of_both.each_ref().map(|it| value(it, name));
        let line = format!("{name}: A {left}, B {right}");
        if left != right && !lines.contains(&line) {
            lines.push(line);
        }
    }
    if a.trace_hash == b.trace_hash && !a.trace_hash.is_empty() {
        lines.push("none: A and B have the same trace, so they are the same run".to_owned());
    }
    lines
}

fn title(tables: &[Rows], runs: usize) -> String {
    if tables.is_empty() {
        return "A and B have no resource in common.".to_owned();
    }
    let won = |side: &str| {
        let rows = tables.iter().flat_map(|(_, rows)| rows);
        let count = rows.filter(|row| row.better == side).count();
        several(count, "figure", "figures")
    };
    let beyond = match runs {
        1 => "",
        _ => ", by more than the spread of the runs",
    };
    format!("A is better in {}, B in {}{beyond}.", won("A"), won("B"))
}

fn write_figures(to: &mut Terminal<'_>, rows: &Rows, is_many: bool) -> io::Result<()> {
    let ((title, rows), palette) = (rows, to.palette);
    let (header, numbers) = match is_many {
        false => ("A,B,B - A,better", 1..4),
        true => ("A,range,B,range,B - A,> spread,better", 1..6),
    };
    let header = [title.as_str()].into_iter().chain(header.split(','));
    let mut table = Table::new(header, numbers, palette).in_lines(2);
    for row in rows {
        let unit = row.figure.unit;
        let tone = |side| match row.better {
            better if better == side => Tone::Good,
            _ => Tone::Plain,
        };
        let mut cells = vec![palette.cell(Tone::Quiet, row.figure.name)];
        for (side, spread) in ["A", "B"].into_iter().zip(row.sides) {
            cells.push(palette.cell(tone(side), unit.show(spread.median)));
            if is_many {
                cells.push(palette.cell(Tone::Quiet, spread.show_range(unit)));
            }
        }
        let [a, b] = row.sides;
        let difference = difference(unit, a.median, b.median);
        let is_beyond = a.is_below(b) || b.is_below(a);
        let is_beyond = is_beyond && difference != "=";
        cells.push(Cell::new(difference));
        if is_many {
            cells.push(Cell::new(if is_beyond { "yes" } else { "no" }));
        }
        cells.push(palette.cell(Tone::Strong, row.better));
        table.add(cells);
    }
    to.table(table)
}

fn is_same(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME * a.abs().max(b.abs()) || (a - b).abs() < 1e-9
}

/// Returns B minus A with its unit; parts in percentage points.
fn difference(unit: Unit, a: f64, b: f64) -> String {
    let by = b - a;
    if !by.is_finite() || is_same(a, b) {
        return "=".to_owned();
    }
    let sign = if by > 0.0 { '+' } else { '-' };
    let by = by.abs();
    let text = match unit {
        Unit::Part => percent(by).replace('%', "points"),
        // A difference that rounds to zero is none.
        Unit::Points if by < 5e-5 => return "=".to_owned(),
        Unit::Points => format!("{} points", points(by)),
        Unit::Seconds => seconds(by),
        Unit::Number | Unit::PerMinute => measured(by),
    };
    format!("{sign}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing::{played, violated};

    fn side(name: &str, runs: &[&Recording]) -> Side {
        Side {
            name: name.to_owned(),
            runs: runs.iter().map(|run| (*run).clone()).collect(),
        }
    }

    fn written(a: &Side, b: &Side) -> String {
        let mut out = Vec::new();
        write(&mut out, a, b, Palette { on: false }).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_run_is_as_good_as_itself() {
        let run = side("x", &[&played()]);
        let text = written(&run, &run);
        assert!(text.contains("the same trace"), "{text}");
        assert!(
            text.contains("A is better in 0 figures, B in 0 figures."),
            "{text}"
        );
    }

    #[test]
    fn differences_of_conditions_figures_and_limits_are_shown() {
        let mut other = (*violated()).clone();
        other.seed = 8;
        other.resources[0].lease_length_s = Some(30.0);
        other.resources[0].figures.unfairness = 0.0;
        other.resources[0].figures.peak_of_capacity *= 0.5;
        let text = written(&side("before", &[&played()]), &side("after", &[&other]));
        for expected in [
            "A  before: seed 1. All 2 limits hold.",
            "B  after: seed 8. 1 of 2 limits is violated. Violated: utilisation.",
            "-  seed: A 1, B 8",
            "-  lease length of shared: A 20 s, B 30 s",
            "A is better in 0 figures, B in 1 figure.",
            "points lost to",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn a_difference_counts_only_if_the_ranges_do_not_overlap() {
        let with = |values: [f64; 3]| {
            let runs = values.map(|value| {
                let mut run = (*played()).clone();
                run.resources[0].figures.utilisation = value;
                run
            });
            side("x", &runs.each_ref())
        };
        let row = |a: [f64; 3], b: [f64; 3]| {
            let text = written(&with(a), &with(b));
            let mut lines = text.lines();
            let line = lines.find(|line| line.contains("utilisation ")).unwrap();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            row([0.9, 0.92, 0.91], [0.95, 0.94, 0.93]),
            "utilisation 91 % 90 % to 92 % 94 % 93 % to 95 % +3 points yes B"
        );
        assert_eq!(
            row([0.9, 0.94, 0.91], [0.95, 0.94, 0.93]),
            "utilisation 91 % 90 % to 94 % 94 % 93 % to 95 % +3 points no"
        );
    }

    #[test]
    fn sides_without_a_common_resource_are_named_so() {
        let text = written(
            &side("x", &[&played()]),
            &side("y", &[&Recording::default()]),
        );
        assert!(
            text.contains("A and B have no resource in common."),
            "{text}"
        );
    }

    #[test]
    fn differences_have_a_sign_and_a_unit() {
        for (unit, a, b, expected) in [
            (Unit::Part, 0.5, 0.525, "+2.50 points"),
            (Unit::Seconds, 90.0, 30.0, "-1 min"),
            (Unit::Number, 1.0, 1.0, "="),
            (Unit::PerMinute, 0.0, 0.25, "+0.25"),
            (Unit::Part, f64::NAN, 0.5, "="),
            (Unit::Points, 0.012, 0.01, "-0.20 points"),
            (Unit::Points, 0.000_01, 0.000_02, "="),
        ] {
            assert_eq!(difference(unit, a, b), expected, "{a} {b}");
        }
    }
}
