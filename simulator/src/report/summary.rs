//! The summary on a terminal: what was run, how it was judged, the figures, what went wrong, and
//! how much was done. Eighty columns are enough for it.

use std::io::{self, Write};

use crate::recording::{CLIENT_FIGURES_MAX, Recording, ResourceRecording};
use crate::report::figures::FIGURES;
use crate::report::mark_kinds;
use crate::report::shortage_rows;
use crate::report::text::{WIDTH, printable, shortened, width, wrapped};
use crate::report::verdicts::{self, Headline, RunOutcome};
use crate::report::wait_rows;
use doorward_pages::numbers::{clock, count, percent, seconds, several};
use doorward_pages::terminal::palette::{Palette, Tone};
use doorward_pages::terminal::table::{Cell, Table};

/// How many resources have figures here; a report has them all.
const RESOURCES_MAX: usize = 12;
/// How many verdicts stand here. What is violated comes first.
const VERDICTS_MAX: usize = 40;
/// For how many resources it is shown who goes short, and how many clients of each.
const SHORTAGES_MAX: usize = 3;
const CLIENTS_MAX: usize = 5;
/// How wide a name of a resource may be.
const NAME_MAX: usize = 22;

/// Writes it.
pub fn write(out: &mut impl Write, recording: &Recording, palette: Palette) -> io::Result<()> {
    write_what(out, recording, palette)?;
    write_headline(out, recording, palette)?;
    write_verdicts(out, recording, palette)?;
    write_figures(out, &recording.resources, palette)?;
    for resource in recording.resources.iter().take(SHORTAGES_MAX) {
        write_waits(out, resource, palette)?;
        write_shortages(out, resource, palette)?;
    }
    write_rest(out, recording)
}

/// The tree, the clients and the time, in a few words each.
pub(super) fn what(recording: &Recording) -> Vec<String> {
    let levels = recording.nodes.iter().map(|node| node.level + 1).max();
    let mut nodes = several(recording.nodes.len(), "node", "nodes");
    if let Some(levels) = levels.filter(|levels| *levels > 1) {
        nodes += &format!(" in {levels} levels");
    }
    let resources = recording.resources.len();
    vec![
        nodes,
        several(recording.clients, "client", "clients"),
        several(resources, "resource", "resources"),
        seconds(recording.duration_s),
        format!("seed {}", recording.seed),
    ]
}

fn write_what(out: &mut impl Write, recording: &Recording, palette: Palette) -> io::Result<()> {
    let name = printable(&recording.scenario);
    writeln!(out, "{}", palette.paint(Tone::Strong, &name))?;
    write_wrapped(
        out,
        Tone::Plain,
        &printable(&recording.description),
        palette,
    )?;
    write_wrapped(out, Tone::Quiet, &what(recording).join(", "), palette)?;
    let trace = format!("trace {}", printable(&recording.trace_hash));
    write_wrapped(out, Tone::Quiet, &trace, palette)
}

fn write_headline(out: &mut impl Write, recording: &Recording, palette: Palette) -> io::Result<()> {
    let headline = Headline::of(recording);
    let tone = match headline.outcome {
        RunOutcome::Fine => Tone::Good,
        RunOutcome::Violated => Tone::Bad,
        RunOutcome::NotJudged => Tone::Strong,
    };
    writeln!(out)?;
    writeln!(out, "{}", palette.paint(tone, &headline.title))?;
    for note in &headline.notes {
        write_wrapped(out, Tone::Plain, note, palette)?;
    }
    Ok(())
}

fn write_verdicts(out: &mut impl Write, recording: &Recording, palette: Palette) -> io::Result<()> {
    if recording.verdicts.is_empty() {
        return Ok(());
    }
    let mut sorted: Vec<_> = recording.verdicts.iter().collect();
    sorted.sort_by_key(|verdict| (!verdict.is_broken(), verdict.limit.is_none()));
    let left_out = sorted.len().saturating_sub(VERDICTS_MAX);
    sorted.truncate(VERDICTS_MAX);
    let header = ["checked", "resource", "found", "limit", ""];
    let mut table = Table::new(header, 2..3, palette).in_lines(2);
    for verdict in &sorted {
        let (tone, at) = match verdict.limit {
            None => (Tone::Quiet, String::new()),
            Some(_) if verdict.holds => (Tone::Good, String::new()),
            Some(_) => (Tone::Bad, verdicts::when(verdict)),
        };
        let mut judgement = verdicts::judgement(verdict).to_owned();
        if !at.is_empty() {
            judgement += &format!(" at {at}");
        }
        table.add([
            Cell::new(verdict.checker.as_str()),
            Cell::new(name(&verdict.resource)),
            Cell::new(verdicts::found(verdict)),
            palette.cell(Tone::Quiet, verdicts::limit(verdict)),
            palette.cell(tone, judgement),
        ]);
    }
    writeln!(out)?;
    table.write(out)?;
    if left_out > 0 {
        write_wrapped(out, Tone::Quiet, &format!("and {left_out} more"), palette)?;
    }
    for verdict in sorted.iter().filter(|v| v.is_broken()) {
        if !verdict.detail.is_empty() {
            let detail = format!(
                "{} of {}: {}",
                verdict.checker.as_str(),
                verdict.resource,
                verdict.detail
            );
            writeln!(out)?;
            write_wrapped(out, Tone::Plain, &printable(&detail), palette)?;
        }
    }
    Ok(())
}

/// A row a figure, a column a resource; as many resources beside each other as there is room for.
fn write_figures(
    out: &mut impl Write,
    resources: &[ResourceRecording],
    palette: Palette,
) -> io::Result<()> {
    let shown = resources.get(..RESOURCES_MAX).unwrap_or(resources);
    let names = FIGURES.iter().map(|figure| width(figure.name));
    let first = 2 + names.max().unwrap_or(0);
    let mut rest = shown;
    while !rest.is_empty() {
        let mut table_width = first;
        let fits = rest.iter().take_while(|resource| {
            table_width += 2 + width(&name(&resource.resource)).max(10);
            table_width <= WIDTH
        });
        let (now, later) = rest.split_at(fits.count().max(1));
        rest = later;
        let mut table = Table::headless(1..1 + now.len(), palette).in_lines(2);
        let mut row = vec![palette.cell(Tone::Quiet, "figures")];
        row.extend(
            now.iter()
                .map(|r| palette.cell(Tone::Strong, name(&r.resource))),
        );
        table.add(row);
        for figure in &FIGURES {
            let mut row = vec![palette.cell(Tone::Quiet, figure.name)];
            row.extend(now.iter().map(|resource| {
                let alarming = figure.is_alarming((figure.get)(&resource.figures));
                let tone = if alarming { Tone::Bad } else { Tone::Plain };
                palette.cell(tone, figure.show(&resource.figures))
            }));
            table.add(row);
        }
        writeln!(out)?;
        table.write(out)?;
    }
    if shown.len() < resources.len() {
        let more = several(resources.len() - shown.len(), "resource", "resources");
        write_wrapped(out, Tone::Quiet, &format!("and {more} more"), palette)?;
    }
    Ok(())
}

/// Which wait cost what.
fn write_waits(
    out: &mut impl Write,
    resource: &ResourceRecording,
    palette: Palette,
) -> io::Result<()> {
    let mut shown = wait_rows::shown_waits(resource).peekable();
    if shown.peek().is_none() {
        return Ok(());
    }
    let title = format!("utilisation lost to, {}", name(&resource.resource));
    let mut table = Table::new([title.as_str(), "points"], 1..2, palette).in_lines(2);
    for (wait, lost) in shown {
        table.add([
            palette.cell(Tone::Quiet, wait.name),
            Cell::new(wait.unit.show(lost)),
        ]);
    }
    writeln!(out)?;
    table.write(out)
}

/// Those to whom most is missing.
fn write_shortages(
    out: &mut impl Write,
    resource: &ResourceRecording,
    palette: Palette,
) -> io::Result<()> {
    let rows = shortage_rows::rows(resource);
    if rows.is_empty() {
        return Ok(());
    }
    let title = format!("most missing, {}", name(&resource.resource));
    let header = [&title, "wanted", "got", "of it", "ideally", "short for"];
    let mut table = Table::new(header, 1..6, palette).in_lines(2);
    for row in rows.iter().take(CLIENTS_MAX) {
        let client = name(row.client);
        table.add([
            &client,
            &row.wanted,
            &row.got,
            &row.met,
            &row.ideal,
            &row.short,
        ]);
    }
    writeln!(out)?;
    table.write(out)?;
    match rows.len().saturating_sub(CLIENTS_MAX) {
        0 => Ok(()),
        more => {
            // Of more than these it was not recorded.
            let least = match rows.len() == CLIENT_FIGURES_MAX {
                true => "at least ",
                false => "",
            };
            let more = several(more, "more client", "more clients");
            write_wrapped(out, Tone::Quiet, &format!("and {least}{more}"), palette)
        }
    }
}

fn write_rest(out: &mut impl Write, recording: &Recording) -> io::Result<()> {
    let palette = Palette { on: false };
    let kinds = mark_kinds::by_kind(&recording.marks);
    let kinds: Vec<String> = kinds
        .iter()
        .map(|kind| format!("{} {}", count(kind.marks.len()), kind.kind.as_str()))
        .collect();
    let happened = match kinds.as_slice() {
        [] => "nothing from outside".to_owned(),
        _ => kinds.join(", "),
    };
    writeln!(out)?;
    write_wrapped(out, Tone::Plain, &format!("happened: {happened}"), palette)?;
    let done = format!("done: {}", work(recording).join(", "));
    write_wrapped(out, Tone::Plain, &done, palette)
}

/// How much was done.
pub(super) fn work(recording: &Recording) -> Vec<String> {
    let work = &recording.work;
    let mut messages = format!("{} messages", count(work.messages));
    if work.lost > 0 {
        messages += &format!(" ({} lost", count(work.lost));
        if work.messages > 0 {
            #[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
            let part = work.lost as f64 / work.messages as f64;
            messages += &format!(", {}", percent(part));
        }
        messages.push(')');
    }
    let mut done = vec![
        format!("{} refreshes answered", count(work.refreshes)),
        messages,
        format!("{} events", count(work.events)),
    ];
    done.extend(busiest(recording));
    done
}

/// The node that got most requests in one second. None: nobody asked for anything.
fn busiest(recording: &Recording) -> Option<String> {
    // The first of those that got as many.
    let nodes = recording.nodes.iter().rev();
    let node = nodes.max_by_key(|node| node.requests_most)?;
    (node.requests_most > 0).then(|| {
        format!(
            "at most {} requests in a second, at {} at {}",
            count(node.requests_most),
            printable(&node.name),
            clock(node.requests_most_at_s)
        )
    })
}

fn name(resource: &str) -> String {
    shortened(&printable(resource), NAME_MAX)
}

/// Indented by two.
fn write_wrapped(out: &mut impl Write, tone: Tone, text: &str, palette: Palette) -> io::Result<()> {
    for line in wrapped(text, WIDTH - 2) {
        writeln!(out, "  {}", palette.paint(tone, &line))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
