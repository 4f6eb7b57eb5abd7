//! Log lines in which every character is visible.
//!
//! A log line may contain foreign text: names of clients, errors of a parent, paths. So the queue checks the whole
//! line, whatever field a text is in. An invisible character becomes its number, `\u{202e}`, or `\u202e` within JSON. A
//! continuation line is indented, so that no reader takes it for a log line of its own. Colours are the formatter's
//! own, which lets none of a field through; they stay on a terminal only.

use doorward_session::visible::{self, Looker};

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

/// Returns a line in its written form.
pub fn plain(line: &[u8], style: Style) -> Vec<u8> {
    let (body, end) = match line.strip_suffix(b"\n") {
        Some(body) => (body, &b"\n"[..]),
        None => (line, &b""[..]),
    };
    if body.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return line.to_vec();
    }
    let mut plain = plain_text(&String::from_utf8_lossy(body), style).into_bytes();
    plain.extend_from_slice(end);
    plain
}

/// Returns the text of a line in its written form.
fn plain_text(line: &str, style: Style) -> String {
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
