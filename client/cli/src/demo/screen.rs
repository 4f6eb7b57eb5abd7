//! The live view of the demonstration on a terminal: the whole, and the tree of servers and clients
//! with what each wants, has and uses.
//!
//! It fits 80 by 24 with the built-in trace. A wider terminal shows the ports of the servers' status pages; on a lower
//! one, leaves show how many more clients they have.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::demo::closing_summary::of_capacity;
use crate::demo::demo_figures::{Amounts, DemoFigures};
use crate::demo::outline::{LEAVES, OutlineEntry, OutlineLine, SERVERS, label_width};

/// Content of the view.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'a> {
    pub(super) figures: &'a DemoFigures,
    /// Where the status pages of the servers are.
    pub(super) pages: &'a [SocketAddr],
    pub(super) trace_time: Duration,
    pub(super) speed: f64,
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
    let figures = scene.figures;
    let title = Line::from(vec![
        Span::from(" Doorward ").bold().reversed(),
        Span::from(format!(
            "  {} clients at {} leaves share {} requests/s, fairly and never more",
            figures.clients.len(),
            LEAVES.len(),
            figures.capacity
        )),
    ]);
    let page = scene.pages.first().map(|page| format!("http://{page}/"));
    let place = Line::from(format!(
        " status page of the root {}   trace at {:.0} s, ×{}",
        page.unwrap_or_default(),
        scene.trace_time.as_secs_f64(),
        scene.speed
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
    frame.render_widget(Paragraph::new(vec![sums, verdict(figures)]), area);
}

fn verdict(figures: &DemoFigures) -> Line<'static> {
    let mut verdict = format!(
        " most used in any second {:.1} ({})",
        figures.most_used,
        of_capacity(figures.most_used, figures.capacity),
    );
    if let Some(utilisation) = figures.utilisation() {
        verdict += &format!("   utilisation {:.1} %", utilisation * 100.0);
    }
    Line::from(verdict)
}

/// A line for each server and client.
fn draw_tree(frame: &mut Frame<'_>, area: Rect, scene: &Scene<'_>) {
    let figures = scene.figures;
    let lines = figures
        .outline
        .lines(usize::from(area.height).saturating_sub(1));
    let columns = Columns {
        label: label_width(&lines).clamp(12, 24),
        ports: area.width >= WIDE,
        // One measure for all bars: those of a server's children add up to its own.
        most: figures
            .whole
            .last_second
            .wants
            .max(figures.capacity)
            .max(1.0),
        room: usize::from(area.width),
    };
    let mut text = vec![columns.header().dim()];
    text.extend(lines.iter().map(|line| columns.line(line, scene)));
    frame.render_widget(Paragraph::new(text), area);
}

/// How the lines of the tree are set.
struct Columns {
    label: usize,
    /// Whether the ports of status pages are shown.
    ports: bool,
    /// Amount at full length of a bar.
    most: f64,
    room: usize,
}

impl Columns {
    fn header(&self) -> Line<'static> {
        let (width, port) = (self.label, if self.ports { "   page" } else { "" });
        Line::from(format!(
            " {:width$}{port}{:>8}{:>8}{:>8}{:>8}",
            "last second", "wants", "leased", "granted", "used"
        ))
    }

    fn line(&self, line: &OutlineLine, scene: &Scene<'_>) -> Line<'static> {
        let label: String = line.label.chars().take(self.label).collect();
        let label = Span::from(format!(" {label:width$}", width = self.label));
        let none = if self.ports { "       " } else { "" };
        match line.who {
            OutlineEntry::More(_) => Line::from(label.dim()),
            OutlineEntry::Client(client) => {
                let part = scene.figures.clients.get(client);
                let part = part.map(|part| part.last_second).unwrap_or_default();
                self.amounts(vec![label, Span::from(none)], &part, None)
            }
            OutlineEntry::Server(server) => {
                let part = scene.figures.servers.get(server);
                let part = part.map(|part| part.last_second).unwrap_or_default();
                let port = match scene.pages.get(server) {
                    Some(page) if self.ports => format!(" :{:<5}", page.port()),
                    _ => none.to_owned(),
                };
                let start = vec![label.bold(), Span::from(port).dim()];
                self.amounts(start, &part, Some(part.granted))
            }
        }
    }

    /// Numbers, and a bar of what is used, leased and wanted.
    fn amounts(
        &self,
        mut spans: Vec<Span<'static>>,
        part: &Amounts,
        granted: Option<f64>,
    ) -> Line<'static> {
        let granted = granted.map(|granted| format!("{granted:.1}"));
        let numbers = format!(
            "{:>8.1}{:>8.1}{:>8}{:>8.1}  ",
            part.wants,
            part.has,
            granted.unwrap_or_default(),
            part.used
        );
        spans.push(Span::from(numbers));
        let taken: usize = spans.iter().map(Span::width).sum();
        let room = self.room.saturating_sub(taken + 1);
        let used = scaled(part.used, self.most, room);
        let leased = scaled(part.has, self.most, room).max(used);
        let wanted = scaled(part.wants, self.most, room).max(leased);
        for ((c, color), cells) in [
            (USED, used),
            (LEASED, leased - used),
            (WANTED, wanted - leased),
        ] {
            let bar = c.to_string().repeat(cells);
            spans.push(Span::styled(bar, Style::new().fg(color)));
        }
        Line::from(spans)
    }
}

/// Returns the cells of an amount, of `room` cells for `most`.
fn scaled(amount: f64, most: f64, room: usize) -> usize {
    ((amount / most).clamp(0.0, 1.0) * room as f64).round() as usize
}

#[cfg(test)]
mod tests;
