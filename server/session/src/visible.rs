//! Escaping of text from others, so that a person sees its content.
//!
//! Texts of a server go to terminals and into logs. A control character there may clear the screen, an escape sequence
//! may do anything that a terminal can, U+202E turns the direction of the text after it, and a character without width
//! makes two names look the same. All these are shown as their numbers: `\u{202e}`. Visible characters stay as they
//! are, in any script. So do quotes and backslashes.

use std::borrow::Cow;
use std::fmt::Write;

/// Largest number of marks on a letter. More would grow over the lines above and below.
const MARKS_MAX: u32 = 4;

/// Largest text that [`cut`] keeps, in bytes. A reader needs no more of a message.
const MESSAGE_BYTES_MAX: usize = 1_000;

/// Escapes a text within a line. The end of a line in it and a tab are shown as their numbers, too.
pub fn line(text: &str) -> Cow<'_, str> {
    shown(text, |_| false)
}

/// Escapes a text of several lines. Line ends and tabs stay.
pub fn lines(text: &str) -> Cow<'_, str> {
    shown(text, |c| matches!(c, '\n' | '\t'))
}

/// Escapes a message within a line, and shortens it.
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

/// Escapes JSON. Invisible characters in strings become JSON's own escapes, `\u202e`, so the value stays the same.
/// Outside of strings JSON has only visible characters and blanks.
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

/// Decides for one character after the other whether it is visible.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looker {
    /// Number of marks on the last letter. None: there is no letter yet.
    marks: Option<u32>,
}

impl Looker {
    /// Whether the next character is visible in its place.
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
    let mut chars = text.char_indices();
    let Some((clean, _)) = chars.find(|(_, c)| !(keeps(*c) || looker.sees(*c))) else {
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

/// Whether Rust's own tables call it printable. They exclude controls, direction marks, characters without width,
/// surrogates and unassigned numbers.
fn is_printable(c: char) -> bool {
    // Rust escapes only the first character of a text for being a mark.
    let mut buffer = [0; 5];
    buffer[0] = b'a';
    // A character has at most 4 bytes.
    let length = 1 + c.encode_utf8(&mut buffer[1..]).len();
    let pair = buffer.get(..length);
    let pair = pair.and_then(|pair| std::str::from_utf8(pair).ok());
    pair.is_some_and(|pair| pair.escape_debug().count() == 2) || matches!(c, '"' | '\'' | '\\')
}

/// Whether it is a mark on the letter before it.
fn is_mark(c: char) -> bool {
    c.escape_debug().count() > 1 && !matches!(c, '"' | '\'' | '\\')
}

/// Whether it is printable to Rust, but invisible: fillers, joiners, variation selectors, unusual blanks.
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
