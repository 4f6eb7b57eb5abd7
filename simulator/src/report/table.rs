//! Tables on a terminal: two spaces before and between columns, no frame, no spaces at the end of a
//! line, and text that is wrapped where the line would be too long.

use std::io::{self, Write};

use crate::report::palette::{Palette, Tone};

/// What everything is readable at.
pub const WIDTH: usize = 80;

/// How a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// Rows of cells, each with its tone.
pub(super) struct Table {
    columns: Vec<Align>,
    rows: Vec<Vec<(Tone, String)>>,
}

impl Table {
    pub(super) fn new(columns: impl IntoIterator<Item = Align>) -> Self {
        Self {
            columns: columns.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, row: impl IntoIterator<Item = (Tone, String)>) {
        self.rows.push(row.into_iter().collect());
    }

    /// A row whose cells have one tone.
    pub(super) fn add_all<T: Into<String>>(
        &mut self,
        tone: Tone,
        row: impl IntoIterator<Item = T>,
    ) {
        self.add(row.into_iter().map(|text| (tone, text.into())));
    }

    pub(super) fn write(&self, out: &mut impl Write, palette: Palette) -> io::Result<()> {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|(_, text)| width(text)).max().unwrap_or(0)
            })
            .collect();
        for row in &self.rows {
            let mut line = String::new();
            let mut spaces = 0;
            for ((tone, text), (align, column)) in row.iter().zip(self.columns.iter().zip(&widths))
            {
                let free = column.saturating_sub(width(text));
                let (before, after) = match align {
                    Align::Left => (0, free),
                    Align::Right => (free, 0),
                };
                // Spaces are written only before something, so that none end a line.
                spaces += 2 + before;
                if text.is_empty() {
                    spaces += after;
                    continue;
                }
                line.extend(std::iter::repeat_n(' ', spaces));
                line += &palette.paint(*tone, text);
                spaces = after;
            }
            writeln!(out, "{line}")?;
        }
        Ok(())
    }
}

/// How wide a text is. Names are mostly of one column a character; wider ones only move a column.
pub(super) fn width(text: &str) -> usize {
    text.chars().count()
}

/// A text in lines of at most so many characters. A word that is longer has a line of its own; a
/// number and its percent sign stay together.
pub fn wrapped(text: &str, width_max: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(number) if word.starts_with('%') => {
                number.push(' ');
                number.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    let mut lines: Vec<String> = Vec::new();
    for word in &words {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= width_max => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.clone()),
        }
    }
    lines
}

/// A text of at most so many characters, an ellipsis in place of what is cut.
pub(super) fn shortened(text: &str, width_max: usize) -> String {
    if width(text) <= width_max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width_max.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// A name as it may stand on a terminal: no character in it moves the cursor or changes colours.
pub(super) fn printable(name: &str) -> String {
    let visible = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    name.chars().map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(table: &Table, on: bool) -> String {
        let mut out = Vec::new();
        table.write(&mut out, Palette { on }).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_stand_to_the_right_and_lines_end_with_text() {
        let mut table = Table::new([Align::Left, Align::Right, Align::Left]);
        table.add_all(Tone::Quiet, ["name", "wants", "why"]);
        table.add_all(Tone::Plain, ["a", "5", "enough"]);
        table.add_all(Tone::Plain, ["longer", "1000", ""]);
        let expected = "  name    wants  why\n  a           5  enough\n  longer   1000\n";
        assert_eq!(written(&table, false), expected);
    }

    #[test]
    fn colour_does_not_move_columns() {
        let mut table = Table::new([Align::Right, Align::Left]);
        table.add([(Tone::Bad, "5".to_owned()), (Tone::Good, "é".to_owned())]);
        table.add_all(Tone::Plain, ["10", "b"]);
        let plain: String = written(&table, true)
            .split('\u{1b}')
            .map(|part| match part.split_once('m') {
                Some((code, text)) if code.starts_with('[') => text,
                _ => part,
            })
            .collect();
        assert_eq!(plain, "   5  é\n  10  b\n");
    }

    #[test]
    fn long_text_is_wrapped_and_long_names_are_cut() {
        assert_eq!(
            wrapped("one two  three four", 9),
            ["one two", "three", "four"]
        );
        assert_eq!(wrapped("nearly 100 %, yes", 11), ["nearly", "100 %, yes"]);
        assert_eq!(wrapped("", 9), Vec::<String>::new());
        assert_eq!(shortened("a long name", 7), "a long…");
        assert_eq!(shortened("short", 5), "short");
        assert_eq!(printable("a\u{1b}[31mb"), "a\u{fffd}[31mb");
    }
}
