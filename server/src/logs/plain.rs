//! Lines in which everything can be seen.
//!
//! Whatever is logged may be words of others: names of clients, errors of a parent, paths. So the whole line
//! is looked at on its way out, whichever field it comes from: what cannot be seen stands there as its number,
//! `\u{202e}`, or `\u202e` within JSON, and what goes on in another line is indented, so that nobody takes it
//! for a line of the log. Colours are the formatter's own, which
//! lets none of a field through; they are kept on a terminal only.

use std::io::{self, Write};

use doorward_session::visible::{self, Looker};
use tracing_subscriber::fmt::MakeWriter;

/// What is kept besides what can be seen, and how all else is written.
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

/// How a line goes on: no line of the log begins like that.
const CONTINUED: &str = "\n    ";

/// Makes writers of plain lines from writers of lines.
#[derive(Clone, Copy, Debug)]
pub struct Plain<M> {
    style: Style,
    inner: M,
}

impl<M> Plain<M> {
    /// Writes to what `inner` makes.
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

/// Writes plain lines. A call of `write` is a line, as `tracing_subscriber` has it.
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

/// The line as it is written.
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

/// The sequence that a text begins with, if it is one that only colours.
fn colour_at(text: &str) -> Option<&str> {
    let codes = text.strip_prefix("\u{1b}[")?;
    let end = codes.find(|c: char| !matches!(c, '0'..='9' | ';'))?;
    codes.get(end..)?.starts_with('m').then_some(())?;
    text.get(.."\u{1b}[".len() + end + 1)
}

#[cfg(test)]
mod tests;
