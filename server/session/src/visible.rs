//! Text of others, so that a person sees what is in it.
//!
//! What a server says goes to terminals and into logs. A control character there may clear the screen, an
//! escape sequence may do anything that a terminal can, U+202E turns the direction of what follows, and a
//! character of no width makes two names look the same. All these are shown as their numbers: `\u{202e}`.
//! What can be seen stays as it is, in any script; so do quotes and backslashes.

use std::borrow::Cow;
use std::fmt::Write;

/// More marks than that on one letter grow over the lines above and below.
const MARKS_MAX: u32 = 4;

/// How much of a text is kept by [`cut`], in bytes. Nobody reads more of a message.
const MESSAGE_BYTES_MAX: usize = 1_000;

/// A text within a line: the end of a line in it and a tab are shown as their numbers, too.
pub fn line(text: &str) -> Cow<'_, str> {
    shown(text, |_| false)
}

/// A text of several lines: these end where they end, and tabs are tabs.
pub fn lines(text: &str) -> Cow<'_, str> {
    shown(text, |c| matches!(c, '\n' | '\t'))
}

/// A message within a line, and no more of it than anybody reads.
pub fn cut(text: &str) -> Cow<'_, str> {
    if text.len() <= MESSAGE_BYTES_MAX {
        return line(text);
    }
    let end = (0..=MESSAGE_BYTES_MAX).rev();
    let end = end.into_iter().find(|at| text.is_char_boundary(*at));
    // Every text has a boundary at 0.
    let (kept, left) = text.split_at(end.unwrap_or(0));
    Cow::Owned(format!("{}… (and {} bytes more)", line(kept), left.len()))
}

/// JSON whose strings hold what cannot be seen as JSON's own numbers, `\u202e`: it says the same. In JSON
/// there is nothing else outside of strings but blanks.
pub fn json(text: &str) -> Cow<'_, str> {
    escaped(
        text,
        |c| matches!(c, '\n' | '\t' | '\r'),
        |c, shown| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing into a string does not fail.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        },
    )
}

/// Tells of one character after the other whether it can be seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looker {
    /// How many marks the last letter has; none if there is no letter yet to have one.
    marks: Option<u32>,
}

impl Looker {
    /// Whether the next character can be seen where it stands.
    pub fn sees(&mut self, c: char) -> bool {
        if matches!(c, ' '..='~') {
            self.marks = Some(0);
            return true;
        }
        if is_blank(c) || !is_printable(c) {
            self.marks = None;
            return false;
        }
        if !is_mark(c) {
            self.marks = Some(0);
            return true;
        }
        let sees = self.marks.is_some_and(|marks| marks < MARKS_MAX);
        self.marks = self.marks.map(|marks| marks.saturating_add(1));
        sees
    }
}

fn shown(text: &str, keeps: impl Fn(char) -> bool) -> Cow<'_, str> {
    escaped(text, keeps, |c, shown| shown.extend(c.escape_unicode()))
}

fn escaped(
    text: &str,
    keeps: impl Fn(char) -> bool,
    escape: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    let mut looker = Looker::default();
    let first = text
        .char_indices()
        .find(|(_, c)| !(keeps(*c) || looker.sees(*c)));
    let Some((clean, _)) = first else {
        return Cow::Borrowed(text);
    };
    let (clean, rest) = text.split_at(clean);
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(clean);
    let mut looker = Looker::default();
    for c in clean.chars() {
        looker.sees(c);
    }
    for c in rest.chars() {
        if keeps(c) {
            looker = Looker::default();
            shown.push(c);
        } else if looker.sees(c) {
            shown.push(c);
        } else {
            escape(c, &mut shown);
        }
    }
    Cow::Owned(shown)
}

/// Printable as Rust's own tables have it, which leave out controls, what steers the direction, what has
/// no width, surrogates and what no character is assigned to.
fn is_printable(c: char) -> bool {
    // Of a text, only its first character is escaped for being a mark.
    let mut buffer = [0; 5];
    buffer[0] = b'a';
    // A character has at most 4 bytes.
    let length = 1 + c.encode_utf8(&mut buffer[1..]).len();
    let pair = buffer
        .get(..length)
        .and_then(|pair| std::str::from_utf8(pair).ok());
    pair.is_some_and(|pair| pair.escape_debug().count() == 2) || matches!(c, '"' | '\'' | '\\')
}

/// A mark on the letter before it.
fn is_mark(c: char) -> bool {
    c.escape_debug().count() > 1 && !matches!(c, '"' | '\'' | '\\')
}

/// Printable to Rust, and nothing to the eye: fillers, joiners, variation selectors, odd blanks.
const fn is_blank(c: char) -> bool {
    matches!(
        c,
        '\u{34f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{e0100}'..='\u{e01ef}'
    )
}

#[cfg(test)]
mod tests;
