//! The live view of the demonstration on a terminal.

use std::io;
use std::time::Duration;

use ratatui::DefaultTerminal;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};

use crate::demo::figures::Figures;

/// What the person at the terminal wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// To see the summary.
    Quit,
}

/// The terminal, as it was once this is dropped.
pub(super) struct Screen {
    terminal: DefaultTerminal,
}

/// What is granted and used, what is granted and not used, and what is wanted and not granted.
const USED: (char, Color) = ('█', Color::Green);
const GRANTED: (char, Color) = ('▓', Color::Blue);
const WANTED: (char, Color) = ('░', Color::Yellow);

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self {
            terminal: ratatui::try_init()?,
        })
    }

    pub(super) fn draw(
        &mut self,
        figures: &Figures,
        trace_time: Duration,
        speed: f64,
        page: &str,
    ) -> io::Result<()> {
        self.terminal
            .draw(|frame| draw(frame, figures, trace_time, speed, page))?;
        Ok(())
    }

    /// What was typed since the last look, if it means something.
    pub(super) fn wish(&mut self) -> io::Result<Option<Wish>> {
        while event::poll(Duration::ZERO)? {
            let Event::Key(key) = event::read()? else {
                continue;
            };
            let interrupt =
                key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            let quit = matches!(key.code, KeyCode::Char('q') | KeyCode::Esc);
            if key.kind == KeyEventKind::Press && (interrupt || quit) {
                return Ok(Some(Wish::Quit));
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

fn draw(frame: &mut Frame<'_>, figures: &Figures, trace_time: Duration, speed: f64, page: &str) {
    let [head, total, clients, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Length(6),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let title = Line::from(vec![
        Span::from(" Doorward ").bold().reversed(),
        Span::from(format!(
            "  {} clients share {} requests/s, fairly and never more",
            figures.clients.len(),
            figures.capacity
        )),
    ]);
    let place = Line::from(format!(
        " status page {page}   trace at {:.0} s, ×{speed}",
        trace_time.as_secs_f64()
    ));
    frame.render_widget(Paragraph::new(vec![title, place.dim()]), head);
    draw_total(frame, total, figures);
    draw_clients(frame, clients, figures);
    let key = |(c, color): (char, Color), what: &'static str| {
        [
            Span::styled(format!(" {c}{c} "), Style::new().fg(color)),
            Span::from(what),
        ]
    };
    let mut legend: Vec<Span<'_>> = Vec::new();
    legend.extend(key(USED, "used"));
    legend.extend(key(GRANTED, "granted, not used"));
    legend.extend(key(WANTED, "wanted, not granted"));
    legend.push(Span::from("    q: summary and end").dim());
    frame.render_widget(Line::from(legend), foot);
}

fn draw_total(frame: &mut Frame<'_>, area: Rect, figures: &Figures) {
    let (wants, granted, used) = (figures.wants(), figures.granted(), figures.used());
    let most = [figures.capacity, wants, granted, used]
        .into_iter()
        .fold(1.0, f64::max);
    let block = Block::bordered().title(" all together ");
    let inner = block.inner(area);
    let room = usize::from(inner.width).saturating_sub(22);
    let row = |name: &str, amount: f64, color: Color| {
        let cells = scaled(amount, most, room);
        Line::from(vec![
            Span::from(format!(" {name:<9}{amount:>9.1}  ")),
            Span::styled("█".repeat(cells), Style::new().fg(color)),
        ])
    };
    let lines = vec![
        row("capacity", figures.capacity, Color::Gray),
        row("wanted", wants, WANTED.1),
        row("granted", granted, GRANTED.1),
        row("used", used, USED.1),
    ];
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn draw_clients(frame: &mut Frame<'_>, area: Rect, figures: &Figures) {
    let clients = &figures.clients;
    let block = Block::bordered().title(" each client: wanted, granted, used ");
    let inner = block.inner(area);
    let width = clients
        .iter()
        .map(|client| client.name.chars().count())
        .max()
        .unwrap_or(0)
        .min(20);
    let room = usize::from(inner.width).saturating_sub(width + 30);
    let most = clients
        .iter()
        .map(|client| client.wants.max(client.granted))
        .fold(1.0, f64::max);
    let lines: Vec<Line<'_>> = clients
        .iter()
        .map(|client| {
            let name: String = client.name.chars().take(width).collect();
            let used = scaled(client.used, most, room);
            let granted = scaled(client.granted, most, room).max(used);
            let wanted = scaled(client.wants, most, room).max(granted);
            let part = |(c, color): (char, Color), cells: usize| {
                Span::styled(c.to_string().repeat(cells), Style::new().fg(color))
            };
            Line::from(vec![
                Span::from(format!(
                    " {name:<width$} {:>8.1} {:>8.1} {:>8.1} ",
                    client.wants, client.granted, client.used
                )),
                part(USED, used),
                part(GRANTED, granted - used),
                part(WANTED, wanted - granted),
            ])
        })
        .collect();
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// How many of `room` cells an amount takes if `most` takes all.
fn scaled(amount: f64, most: f64, room: usize) -> usize {
    ((amount / most).clamp(0.0, 1.0) * room as f64).round() as usize
}
