//! The live view of the demonstration on a terminal: the whole, and the tree of servers and clients
//! with what each wants, has and uses.
//!
//! It fits 80 by 24. A wider terminal shows the ports of the servers' status pages; a lower one has no room for the last
//! lines.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::style::{Color, Print, Stylize};
use crossterm::terminal::{self, Clear, ClearType};
use crossterm::{execute, queue};

use crate::demo::closing_summary::{of_capacity, title};
use crate::demo::demo_figures::{Amounts, DemoFigures};
use crate::demo::outline::SERVERS;

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
pub(super) struct Screen;

/// Parts of a bar: leased and used, leased and idle, wanted and not leased.
const USED: (char, Color) = ('█', Color::DarkGreen);
const LEASED: (char, Color) = ('▓', Color::DarkBlue);
const WANTED: (char, Color) = ('░', Color::DarkYellow);

/// Width of the longest label, and of a space before it.
const LABEL: usize = 13;
/// Width of an amount.
const AMOUNT: usize = 8;
/// Lines that are not of the tree.
const OTHER_LINES: usize = 6;
/// From this width on there is room for ports.
const WIDE: usize = 100;

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        // It restores the terminal, also if the next step fails.
        let screen = Self;
        let (alternate, whole_lines) = (terminal::EnterAlternateScreen, terminal::DisableLineWrap);
        execute!(io::stdout(), alternate, whole_lines, Hide)?;
        Ok(screen)
    }

    pub(super) fn draw(&self, scene: &Scene<'_>) -> io::Result<()> {
        let (width, height) = terminal::size()?;
        let mut drawn = Vec::new();
        for (row, line) in (0..height).zip(lines(scene, width.into(), height.into())) {
            let clear = Clear(ClearType::CurrentLine);
            queue!(drawn, MoveTo(0, row), clear, Print(line))?;
        }
        io::stdout().write_all(&drawn)?;
        io::stdout().flush()
    }

    /// Returns the next wish of the user.
    pub(super) fn key(&self) -> io::Result<Option<Key>> {
        while event::poll(Duration::ZERO)? {
            let Event::Key(key) = event::read()? else {
                continue;
            };
            let has_control = key.modifiers.contains(KeyModifiers::CONTROL);
            match key.code {
                _ if key.kind != KeyEventKind::Press => {}
                KeyCode::Char('q') | KeyCode::Esc => return Ok(Some(Key::Quit)),
                KeyCode::Char('c') if has_control => return Ok(Some(Key::Quit)),
                KeyCode::Char('k') => return Ok(Some(Key::Kill)),
                _ => {}
            }
        }
        Ok(None)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that cannot be restored is gone.
        let (main, wrapped) = (terminal::LeaveAlternateScreen, terminal::EnableLineWrap);
        let _ = execute!(io::stdout(), Show, wrapped, main);
        let _ = terminal::disable_raw_mode();
    }
}

/// Returns the lines for a terminal of that size. The terminal clips a longer line.
fn lines(scene: &Scene<'_>, width: usize, height: usize) -> Vec<String> {
    let figures = scene.figures;
    let page = scene.pages.first().map(|page| format!("http://{page}/"));
    let (page, at) = (page.unwrap_or_default(), scene.trace_time.as_secs_f64());
    let place = format!(" status page of the root {page}   trace at {at:.0} s");
    let amount = |amount: f64, (_, color)| format!("{amount:.1}").with(color).bold();
    let whole = figures.whole.last_second;
    let wants = amount(whole.wants, WANTED);
    let (has, used) = (amount(whole.has, LEASED), amount(whole.used, USED));
    let of = figures.capacity;
    let mut sums =
        format!(" in the last second: wanted {wants}, granted {has}, used {used} of {of}");
    if let Some(killed) = scene.killed.and_then(|it| SERVERS.get(it)) {
        sums += &format!("   {} killed", killed.name).dark_red().to_string();
    }
    let used = figures.most_used;
    let part = of_capacity(used, figures.capacity);
    let mut verdict = format!(" most used in any second {used:.1} ({part})");
    if let Some(utilisation) = figures.utilisation() {
        verdict += &format!("   utilisation {:.1} %", utilisation * 100.0);
    }
    let name = " Doorward ".bold().reverse();
    let mut lines = vec![
        format!("{name}  {} and never more", title(figures)),
        place.dim().to_string(),
        sums,
        verdict,
    ];
    let of_tree = height.saturating_sub(OTHER_LINES);
    lines.extend(tree(scene, width).into_iter().take(of_tree + 1));
    let key =
        |(c, color): (char, Color), what| format!(" {} {what}", format!("{c}{c}").with(color));
    let (used, leased) = (key(USED, "used"), key(LEASED, "leased, not used"));
    let (wanted, keys) = (
        key(WANTED, "wanted, not leased"),
        "   k: kill a server   q: end",
    );
    lines.push(format!("{used}{leased}{wanted}{}", keys.dim()));
    // Nothing of a larger picture stays.
    lines.resize(lines.len().max(height), String::new());
    lines
}

/// Returns a line for each server and client, under a header.
fn tree(scene: &Scene<'_>, width: usize) -> Vec<String> {
    let figures = scene.figures;
    let port = if width >= WIDE { 7 } else { 0 };
    let room = width.saturating_sub(LABEL + port + 4 * AMOUNT + 3);
    let whole = figures.whole.last_second;
    let most = whole.wants.max(figures.capacity).max(1.0);
    let page = if width >= WIDE { "   page" } else { "" };
    let titles = ["wants", "leased", "granted", "used"].map(|title| format!("{title:>AMOUNT$}"));
    let header = format!("{:LABEL$}{page:port$}{}", " last second", titles.concat());
    let row = |(who, label): (usize, String)| {
        let name = format!("{:LABEL$}", format!(" {label}"));
        let part = figures.parts.get(who);
        let part = part.map(|part| part.last_second).unwrap_or_default();
        let (name, granted) = match who < SERVERS.len() {
            true => (name.bold().to_string(), format!("{:.1}", part.granted)),
            false => (name, String::new()),
        };
        let page = scene.pages.get(who).filter(|_| port > 0);
        let page = page.map(|page| format!(" :{}", page.port()));
        let page = format!("{:port$}", page.unwrap_or_default()).dim();
        let amount = |amount| format!("{amount:AMOUNT$.1}");
        let [wants, has, used] = [part.wants, part.has, part.used].map(amount);
        let bar = bar_of(&part, most, room);
        format!("{name}{page}{wants}{has}{granted:>AMOUNT$}{used}  {bar}")
    };
    let rows = figures.outline.lines().into_iter().map(row);
    let header = std::iter::once(header.dim().to_string());
    header.chain(rows).collect()
}

/// Returns the bar of a part, `room` cells long for `most`.
fn bar_of(part: &Amounts, most: f64, room: usize) -> String {
    let used = scaled(part.used, most, room);
    let leased = scaled(part.has, most, room).max(used);
    let wanted = scaled(part.wants, most, room).max(leased);
    let parts = [
        (USED, used),
        (LEASED, leased - used),
        (WANTED, wanted - leased),
    ];
    let painted = |((c, color), cells): ((char, Color), usize)| {
        let cells = c.to_string().repeat(cells);
        cells.with(color).to_string()
    };
    parts.map(painted).concat()
}

/// Returns the cells of an amount, of `room` cells for `most`.
fn scaled(amount: f64, most: f64, room: usize) -> usize {
    ((amount / most).clamp(0.0, 1.0) * room as f64).round() as usize
}

#[cfg(test)]
mod tests;
