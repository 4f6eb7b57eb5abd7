//! The live view of the demonstration on a terminal: the whole, and the tree of servers and clients
//! with what each wants, has and uses.
//!
//! It fits 80 by 24. A wider terminal shows the ports of the servers' status pages; a lower one has no room for the last
//! lines.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table};

use crate::demo::closing_summary::{of_capacity, title};
use crate::demo::demo_figures::{Amounts, DemoFigures};
use crate::demo::outline::{OutlineEntry, SERVERS};

/// Content of the view.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'a> {
    pub(super) figures: &'a DemoFigures,
    /// Where the status pages of the servers are.
    pub(super) pages: &'a [SocketAddr],
    pub(super) trace_time: Duration,
    /// Server that is down.
    pub(super) killed: Option<usize>,
}

/// Wish of the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Quit,
    Kill,
}

/// The terminal, as it was once this is dropped.
pub(super) struct Screen {
    terminal: DefaultTerminal,
}

/// Parts of a bar: leased and used, leased and idle, wanted and not leased.
const USED: (char, Color) = ('█', Color::Green);
const LEASED: (char, Color) = ('▓', Color::Blue);
const WANTED: (char, Color) = ('░', Color::Yellow);

/// Width of the longest label, and of a space before it.
const LABEL: u16 = 13;
/// From this width on there is room for ports.
const WIDE: u16 = 100;

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self {
            terminal: ratatui::try_init()?,
        })
    }

    pub(super) fn draw(&mut self, scene: &Scene<'_>) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame, scene))?;
        Ok(())
    }

    /// Returns the next wish of the user.
    pub(super) fn key(&self) -> io::Result<Option<Key>> {
        while event::poll(Duration::ZERO)? {
            let Event::Key(key) = event::read()? else {
                continue;
            };
            let interrupt =
                key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            let quit = matches!(key.code, KeyCode::Char('q') | KeyCode::Esc);
            let wish = match key.code {
                _ if interrupt || quit => Key::Quit,
                KeyCode::Char('k') => Key::Kill,
                _ => continue,
            };
            if key.kind == KeyEventKind::Press {
                return Ok(Some(wish));
            }
        }
        Ok(None)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

fn draw(frame: &mut Frame<'_>, scene: &Scene<'_>) {
    let figures = scene.figures;
    // The tree with its header.
    let lines = figures.servers.len() + figures.clients.len() + 1;
    let lines_max = u16::try_from(lines).unwrap_or(u16::MAX);
    let [head, whole, tree, foot, _] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(2),
        Constraint::Max(lines_max),
        Constraint::Length(1),
        Constraint::Fill(1),
    ])
    .areas(frame.area());
    draw_head(frame, head, scene);
    draw_whole(frame, whole, scene);
    draw_tree(frame, tree, scene);
    let key = |(c, color): (char, Color), what: &'static str| {
        [
            Span::styled(format!(" {c}{c} "), Style::new().fg(color)),
            Span::from(what),
        ]
    };
    let mut legend: Vec<Span<'_>> = Vec::new();
    legend.extend(key(USED, "used"));
    legend.extend(key(LEASED, "leased, not used"));
    legend.extend(key(WANTED, "wanted, not leased"));
    legend.push(Span::from("   k: kill a server   q: end").dim());
    frame.render_widget(Line::from(legend), foot);
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
    let title = Line::from(vec![
        Span::from(" Doorward ").bold().reversed(),
        Span::from(format!("  {} and never more", title(scene.figures))),
    ]);
    let page = scene.pages.first().map(|page| format!("http://{page}/"));
    let (page, at) = (page.unwrap_or_default(), scene.trace_time.as_secs_f64());
    let place = Line::from(format!(
        " status page of the root {page}   trace at {at:.0} s"
    ));
    frame.render_widget(Paragraph::new(vec![title, place.dim()]), area);
}

/// The sums, in two lines.
fn draw_whole(frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
    let figures = scene.figures;
    let amount =
        |amount: f64, color| Span::styled(format!(" {amount:.1}"), Style::new().fg(color)).bold();
    let whole = figures.whole.last_second;
    let mut sums = Line::from(vec![
        Span::from(" in the last second: wanted"),
        amount(whole.wants, WANTED.1),
        Span::from(", granted"),
        amount(whole.has, LEASED.1),
        Span::from(", used"),
        amount(whole.used, USED.1),
        Span::from(format!(" of {}", figures.capacity)),
    ]);
    let killed = scene.killed.and_then(|it| SERVERS.get(it));
    if let Some(killed) = killed {
        sums.push_span(Span::from(format!("   {} killed", killed.name)).red());
    }
    let used = figures.most_used;
    let part = of_capacity(used, figures.capacity);
    let mut verdict = format!(" most used in any second {used:.1} ({part})");
    if let Some(utilisation) = figures.utilisation() {
        verdict += &format!("   utilisation {:.1} %", utilisation * 100.0);
    }
    let lines = vec![sums, Line::from(verdict)];
    frame.render_widget(Paragraph::new(lines), area);
}

/// A line for each server and client.
fn draw_tree(frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
    let figures = scene.figures;
    let lines = figures.outline.lines();
    let port = if area.width >= WIDE { 7 } else { 0 };
    let fixed = [LABEL, port, 8, 8, 8, 8, 2];
    let bar = usize::from(area.width.saturating_sub(fixed.iter().sum::<u16>() + 1));
    // One measure for all bars: those of a server's children add up to its own.
    let whole = figures.whole.last_second;
    let most = whole.wants.max(figures.capacity).max(1.0);
    let number = |amount: f64| Line::from(format!("{amount:.1}")).right_aligned();
    let rows = lines.iter().map(|(who, label)| {
        let name = Line::from(format!(" {label}"));
        let (name, page, part) = match *who {
            OutlineEntry::Client(client) => (name, None, figures.clients.get(client)),
            OutlineEntry::Server(server) => {
                let part = figures.servers.get(server);
                (name.bold(), scene.pages.get(server), part)
            }
        };
        let part = part.map(|part| part.last_second).unwrap_or_default();
        let granted = match who {
            OutlineEntry::Server(_) => number(part.granted),
            _ => Line::default(),
        };
        let page = page.map(|page| format!(" :{}", page.port()));
        Row::new([
            name,
            Line::from(page.unwrap_or_default()).dim(),
            number(part.wants),
            number(part.has),
            granted,
            number(part.used),
            Line::default(),
            bar_of(&part, most, bar),
        ])
    });
    let titles = [
        " last second",
        "   page",
        "wants",
        "leased",
        "granted",
        "used",
    ];
    let titles = titles.iter().enumerate().map(|(index, title)| match index {
        0 | 1 => Line::from(*title),
        _ => Line::from(*title).right_aligned(),
    });
    let widths = fixed.map(Constraint::Length).into_iter();
    let table = Table::new(rows, widths.chain([Constraint::Fill(1)]))
        .header(Row::new(titles).dim())
        .column_spacing(0);
    frame.render_widget(table, area);
}

/// Returns a bar of what is used, leased and wanted.
fn bar_of(part: &Amounts, most: f64, room: usize) -> Line<'static> {
    let used = scaled(part.used, most, room);
    let leased = scaled(part.has, most, room).max(used);
    let wanted = scaled(part.wants, most, room).max(leased);
    let parts = [
        (USED, used),
        (LEASED, leased - used),
        (WANTED, wanted - leased),
    ];
    let spans = parts.map(|((c, color), cells)| {
        Span::styled(c.to_string().repeat(cells), Style::new().fg(color))
    });
    Line::from(spans.to_vec())
}

/// Returns the cells of an amount, of `room` cells for `most`.
fn scaled(amount: f64, most: f64, room: usize) -> usize {
    ((amount / most).clamp(0.0, 1.0) * room as f64).round() as usize
}

#[cfg(test)]
mod tests;
