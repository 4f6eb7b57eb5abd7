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
mod tests {
    use super::*;

    const COLOURED: Style = Style::Text { is_coloured: true };
    const TEXT: Style = Style::Text { is_coloured: false };

    #[track_caller]
    fn check(style: Style, line: &str, expected: &str) {
        let mut writer = PlainWriter {
            style,
            inner: Vec::new(),
        };
        assert_eq!(writer.write(line.as_bytes()).unwrap(), line.len());
        assert_eq!(String::from_utf8(writer.inner).unwrap(), expected);
    }

    #[test]
    fn what_can_be_seen_is_written_as_it_is() {
        for style in [TEXT, COLOURED, Style::Json] {
            for line in ["a=\"b\" \\ {}\n", "größer, 東京 🦀\n", "no end", "\n", ""] {
                check(style, line, line);
            }
        }
    }

    #[test]
    fn no_text_begins_a_line_of_its_own_and_what_steers_or_hides_is_its_number() {
        let evil = "a\nb\r\u{7}\u{202e}\u{9b}\u{e0001}\n";
        let text = "a\n    b\\u{d}\\u{7}\\u{202e}\\u{9b}\\u{e0001}\n";
        check(TEXT, evil, text);
        check(COLOURED, evil, text);
        let json = "\u{7}\u{202e}\u{9b}\u{e0001}\n";
        check(Style::Json, json, "\\u0007\\u202e\\u009b\\udb40\\udc01\n");
    }

    #[test]
    fn only_colours_pass_and_only_where_there_are_any() {
        let coloured = "\u{1b}[2m12:00\u{1b}[0m \u{1b}[1;31mERROR\u{1b}[0m\n";
        check(COLOURED, coloured, coloured);
        check(TEXT, "\u{1b}[31mred\n", "\\u{1b}[31mred\n");
        for (evil, shown) in [
            ("\u{1b}[2J\n", "\\u{1b}[2J\n"),
            ("\u{1b}]0;title\u{7}\n", "\\u{1b}]0;title\\u{7}\n"),
            ("\u{1b}[31\n", "\\u{1b}[31\n"),
            ("\u{1b}\n", "\\u{1b}\n"),
        ] {
            check(COLOURED, evil, shown);
        }
    }

    #[test]
    fn what_is_no_text_is_written_as_the_mark_for_that() {
        let mut writer = PlainWriter {
            style: TEXT,
            inner: Vec::new(),
        };
        writer.write_all(b"a\xff\x1bb\n").unwrap();
        assert_eq!(writer.inner, "a\u{fffd}\\u{1b}b\n".as_bytes());
    }
}
