//! Terminal of eighty columns, with or without colours.

use std::io::{self, Write};

use doorward_pages::terminal::palette::{Palette, Tone};
use doorward_pages::terminal::table::Table;
use doorward_session::visible;

/// Width of all text on a terminal.
pub(super) const WIDTH: usize = 80;

/// Returns the width of a text. Names mostly have one column a character; wider ones only move a column.
pub(super) fn width(text: &str) -> usize {
    text.chars().count()
}

/// Splits a text into lines of at most so many characters. A longer word has a line of its own; a number and its
/// percent sign stay together.
fn wrapped(text: &str, width_max: usize) -> Vec<String> {
    const GLUE: &str = "\u{a0}%";
    let mut lines: Vec<String> = Vec::new();
    for word in text.replace(" %", GLUE).split_ascii_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= width_max => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    let lines = lines.into_iter().map(|line| line.replace(GLUE, " %"));
    lines.collect()
}

/// Returns a text of at most so many characters, with an ellipsis in place of the rest.
pub(super) fn shortened(text: &str, width_max: usize) -> String {
    if width(text) <= width_max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width_max.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Returns a name for a terminal: no character in it moves the cursor or changes colours.
pub(super) fn printable(name: &str) -> String {
    visible::line(name).into_owned()
}

pub(super) struct Terminal<'a> {
    pub(super) out: &'a mut dyn Write,
    pub(super) palette: Palette,
}

impl Terminal<'_> {
    /// Writes an empty line and a text.
    pub(super) fn title(&mut self, tone: Tone, text: &str) -> io::Result<()> {
        writeln!(self.out)?;
        for line in wrapped(text, WIDTH) {
            writeln!(self.out, "{}", self.palette.paint(tone, &line))?;
        }
        Ok(())
    }

    /// Writes a text in lines that are indented by two.
    pub(super) fn text(&mut self, tone: Tone, text: &str) -> io::Result<()> {
        for line in wrapped(text, WIDTH - 2) {
            writeln!(self.out, "  {}", self.palette.paint(tone, &line))?;
        }
        Ok(())
    }

    /// Writes a text beside a mark.
    pub(super) fn item(&mut self, mark: &str, text: &str) -> io::Result<()> {
        for (index, line) in wrapped(text, WIDTH - 5).into_iter().enumerate() {
            let mark = if index == 0 { mark } else { " " };
            let mark = self.palette.paint(Tone::Strong, mark);
            writeln!(self.out, "  {mark}  {line}")?;
        }
        Ok(())
    }

    /// Writes an empty line and a table.
    pub(super) fn table(&mut self, table: Table) -> io::Result<()> {
        writeln!(self.out)?;
        table.write(&mut self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(printable("a\u{1b}[31mb"), "a\\u{1b}[31mb");
    }
}
