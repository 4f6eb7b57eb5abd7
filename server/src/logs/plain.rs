//! Log lines in which every character is visible.
//!
//! A log line may contain foreign text: names of clients, errors of a parent, paths. So the writer checks the whole
//! line, whatever field a text is in. An invisible character becomes its number, `\u{202e}`, or `\u202e` within JSON. A
//! continuation line is indented, so that no reader takes it for a log line of its own. Colours are the formatter's
//! own, which lets none of a field through; they stay on a terminal only.

use std::io::{self, Write};

use doorward_session::visible::{self, Looker};
use tracing_subscriber::fmt::MakeWriter;

/// Characters that stay besides visible ones, and the escape of all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// For people.
    Text {
        /// Whether the formatter colours what it writes.
        is_coloured: bool,
    },
    /// For machines.
    Json,
}

/// Beginning of a continuation line. No log line begins like that.
const CONTINUED: &str = "\n    ";

/// Wraps a maker of line writers, so that they write plain lines.
#[derive(Clone, Copy, Debug)]
pub struct Plain<M> {
    style: Style,
    inner: M,
}

impl<M> Plain<M> {
    /// Returns a maker of plain writers around `inner`.
    pub const fn new(style: Style, inner: M) -> Self {
        Self { style, inner }
    }
}

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Plain<M> {
    type Writer = PlainWriter<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        PlainWriter {
            style: self.style,
            inner: self.inner.make_writer(),
        }
    }
}

/// Writes plain lines. `tracing_subscriber` writes one line with each call of `write`.
#[derive(Debug)]
pub struct PlainWriter<W> {
    style: Style,
    inner: W,
}

impl<W: Write> Write for PlainWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let (body, end) = match line.strip_suffix(b"\n") {
            Some(body) => (body, &b"\n"[..]),
            None => (line, &b""[..]),
        };
        if body.iter().all(|byte| matches!(byte, b' '..=b'~')) {
            self.inner.write_all(line)?;
        } else {
            let mut plain = plain(&String::from_utf8_lossy(body), self.style).into_bytes();
            plain.extend_from_slice(end);
            self.inner.write_all(&plain)?;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Returns the line in its written form.
fn plain(line: &str, style: Style) -> String {
    let is_coloured = match style {
        Style::Json => return visible::json(line).into_owned(),
        Style::Text { is_coloured } => is_coloured,
    };
    let mut plain = String::with_capacity(line.len() + 16);
    let mut looker = Looker::default();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let colour = is_coloured.then(|| colour_at(rest)).flatten();
        let taken = colour.map_or(c.len_utf8(), str::len);
        rest = rest.get(taken..).unwrap_or_default();
        match colour {
            Some(colour) => plain.push_str(colour),
            None if looker.sees(c) => plain.push(c),
            None if c == '\n' => plain.push_str(CONTINUED),
            None => plain.extend(c.escape_unicode()),
        }
    }
    plain
}

/// Returns the escape sequence at the beginning of a text, if it only sets colours.
fn colour_at(text: &str) -> Option<&str> {
    let codes = text.strip_prefix("\u{1b}[")?;
    let end = codes.find(|c: char| !matches!(c, '0'..='9' | ';'))?;
    codes.get(end..)?.starts_with('m').then_some(())?;
    text.get(.."\u{1b}[".len() + end + 1)
}

#[cfg(test)]
mod tests;
