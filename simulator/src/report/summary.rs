//! The summary on a terminal: scenario, verdict, figures, faults, and amount of work. It fits into eighty columns.

use std::io::{self, Write};

use crate::recording::{CLIENT_FIGURES_MAX, ClientFigures, MarkKind, Recording, ResourceRecording};
use crate::report::figures::{FIGURES, Values, WAITS, about, bound, is_shown, with_values};
use crate::report::terminal::{Terminal, printable, shortened};
use crate::report::words::{RunOutcome, Words};
use doorward_pages::numbers::{clock, count, measured, percent, several};
use doorward_pages::terminal::palette::{Palette, Tone};
use doorward_pages::terminal::table::{Cell, Table};

/// Largest numbers of resources with shortages, and of clients with a shortage, that are shown.
const SHORTAGES_MAX: usize = 3;
const CLIENTS_MAX: usize = 5;
/// Largest width of a resource's or client's name.
const NAME_MAX: usize = 22;
/// Largest part of its wants that a client may miss without a row.
const NEGLIGIBLE: f64 = 0.005;

/// Writes it.
pub fn write(out: &mut impl Write, recording: &Recording, palette: Palette) -> io::Result<()> {
    let words = Words::of(recording);
    let scenario = printable(&recording.scenario);
    writeln!(out, "{}", palette.paint(Tone::Strong, &scenario))?;
    let mut terminal = Terminal { out, palette };
    write_what(&mut terminal, recording, &words)?;
    write_verdicts(&mut terminal, recording)?;
    for resource in &recording.resources {
        let figures = with_values(FIGURES, resource);
        let resource = name(&resource.resource);
        write_figures(&mut terminal, ["figures", &resource], &figures)?;
    }
    for resource in recording.resources.iter().take(SHORTAGES_MAX) {
        let mut waits = with_values(WAITS, resource);
        waits.retain(|(_, lost)| is_shown(*lost));
        let title = format!("utilisation lost to, {}", name(&resource.resource));
        write_figures(&mut terminal, [&title, "points"], &waits)?;
        write_shortages(&mut terminal, resource)?;
    }
    write_rest(&mut terminal, recording, &words)
}

fn write_what(to: &mut Terminal<'_>, recording: &Recording, words: &Words) -> io::Result<()> {
    to.text(Tone::Plain, &printable(&recording.description))?;
    to.text(Tone::Quiet, &words.facts.join(", "))?;
    let trace = format!("trace {}", printable(&recording.trace_hash));
    to.text(Tone::Quiet, &trace)?;
    let tone = match words.outcome {
        RunOutcome::Fine => Tone::Good,
        RunOutcome::Violated => Tone::Bad,
        RunOutcome::NotJudged => Tone::Strong,
    };
    to.title(tone, &words.headline)?;
    for note in &words.notes {
        to.text(Tone::Plain, note)?;
    }
    Ok(())
}

fn write_verdicts(to: &mut Terminal<'_>, recording: &Recording) -> io::Result<()> {
    let palette = to.palette;
    if recording.verdicts.is_empty() {
        return Ok(());
    }
    let mut sorted: Vec<_> = recording.verdicts.iter().collect();
    sorted.sort_by_key(|verdict| (verdict.holds, verdict.limit.is_none()));
    let header = ["checked", "resource", "found", "limit", ""];
    let mut table = Table::new(header, 2..3, palette).in_lines(2);
    for verdict in &sorted {
        let (unit, _) = about(verdict.checker);
        let limit = verdict.limit.map(|limit| unit.show(limit));
        let limit = limit.map(|limit| format!("{} {limit}", bound(verdict.checker)));
        let (tone, judgement) = match verdict.limit {
            None => (Tone::Quiet, "not judged"),
            Some(_) if verdict.holds => (Tone::Good, "holds"),
            Some(_) => (Tone::Bad, "VIOLATED"),
        };
        let mut judgement = judgement.to_owned();
        if let Some(at) = verdict.at_s.filter(|_| !verdict.holds) {
            judgement += &format!(" at {}", clock(at));
        }
        table.add([
            Cell::new(verdict.checker.as_str()),
            Cell::new(name(&verdict.resource)),
            Cell::new(unit.show(verdict.value)),
            palette.cell(Tone::Quiet, limit.as_deref().unwrap_or("none")),
            palette.cell(tone, judgement),
        ]);
    }
    to.table(table)?;
    for verdict in sorted.iter().filter(|v| !v.holds) {
        let (checker, resource) = (verdict.checker.as_str(), &verdict.resource);
        let (_, about) = about(verdict.checker);
        let detail = format!("{checker} of {resource}: {about}");
        writeln!(to.out)?;
        to.text(Tone::Plain, &printable(&detail))?;
    }
    Ok(())
}

/// Writes a table of figures, unless there are none.
fn write_figures(to: &mut Terminal<'_>, header: [&str; 2], figures: &Values) -> io::Result<()> {
    let palette = to.palette;
    if figures.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(header, 1..2, palette).in_lines(2);
    for (figure, value) in figures {
        let tone = match figure.is_alarming(*value) {
            true => Tone::Bad,
            false => Tone::Plain,
        };
        let value = palette.cell(tone, figure.unit.show(*value));
        table.add([palette.cell(Tone::Quiet, figure.name), value]);
    }
    to.table(table)
}

/// Writes the clients with the largest shortages.
fn write_shortages(to: &mut Terminal<'_>, resource: &ResourceRecording) -> io::Result<()> {
    let is_short = |it: &&ClientFigures| it.wanted - it.got > it.wanted * NEGLIGIBLE;
    let short: Vec<_> = resource.client_figures.iter().filter(is_short).collect();
    if short.is_empty() {
        return Ok(());
    }
    let title = format!("short, {}", name(&resource.resource));
    let header = [&title, "wanted", "got", "met", "ideal"];
    let mut table = Table::new(header, 1..5, to.palette).in_lines(2);
    for it in short.iter().take(CLIENTS_MAX) {
        table.add([
            name(&it.client),
            measured(it.wanted),
            measured(it.got),
            percent(it.got / it.wanted),
            percent(it.ideal / it.wanted),
        ]);
    }
    to.table(table)?;
    // Further clients were not recorded by name.
    let least = match short.len() {
        CLIENT_FIGURES_MAX => "at least ",
        _ => "",
    };
    match short.len().saturating_sub(CLIENTS_MAX) {
        0 => Ok(()),
        more => {
            let more = several(more, "more client", "more clients");
            to.text(Tone::Quiet, &format!("and {least}{more}"))
        }
    }
}

fn write_rest(to: &mut Terminal<'_>, recording: &Recording, words: &Words) -> io::Result<()> {
    let kinds = MarkKind::ALL.into_iter().filter_map(|kind| {
        let marks = recording.marks.iter().filter(|it| it.kind == kind);
        let marks = Some(marks.count()).filter(|marks| *marks > 0)?;
        Some(format!("{} {}", count(marks), kind.as_str()))
    });
    let kinds: Vec<String> = kinds.collect();
    let events = match kinds.as_slice() {
        [] => "none".to_owned(),
        _ => kinds.join(", "),
    };
    writeln!(to.out)?;
    to.text(Tone::Plain, &format!("events from outside: {events}"))?;
    to.text(Tone::Plain, &format!("done: {}", words.done.join(", ")))
}

fn name(resource: &str) -> String {
    shortened(&printable(resource), NAME_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::terminal::{WIDTH, width};
    use crate::report::testing::{hostile, played, violated};

    fn written(recording: &Recording, on: bool) -> String {
        let mut out = Vec::new();
        write(&mut out, recording, Palette { on }).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_summary_says_verdict_figures_shortages_and_events() {
        let run = violated();
        let text = written(&run, false);
        assert!(
            text.starts_with("small\n  A leaf dies for a while;"),
            "{text}"
        );
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let utilisation = percent(run.resources[0].figures.utilisation);
        for expected in [
            "3 nodes in 2 levels, 6 clients, 1 resource, 3 min, seed 1",
            "1 of 2 limits is violated.",
            "Jain's index",
            "utilisation lost to, shared",
            "short, shared",
            "events from outside: 1 kill",
            &format!("utilisation shared {utilisation} at least 100 % VIOLATED"),
        ] {
            assert!(words.contains(expected), "{expected}: {text}");
        }
    }

    #[test]
    fn eighty_columns_are_enough_and_nothing_moves_the_cursor() {
        for run in [&*played(), &hostile()] {
            let text = written(run, false);
            for line in text.lines() {
                assert!(width(line) <= WIDTH, "{line}");
                assert_eq!(line, line.trim_end());
            }
            assert!(!text.contains('\u{1b}'));
        }
        assert!(written(&played(), true).contains('\u{1b}'));
    }

    #[test]
    fn an_empty_recording_has_a_summary() {
        let text = written(&Recording::default(), false);
        assert!(text.contains("The scenario sets no limits."), "{text}");
        assert!(text.contains("The recording has no samples."), "{text}");
        assert!(
            text.contains("0 nodes, 0 clients, 0 resources, 0 s"),
            "{text}"
        );
    }
}
