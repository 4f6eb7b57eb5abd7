//! Colour on a terminal, where it helps and a person sees it. It never says anything that the words do not.

use std::io::{self, IsTerminal};

use comfy_table::{Attribute, Cell, Color};
use doorward_session::visible;

/// Meaning of a colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// A full result.
    Good,
    /// A result below the wanted one, or for a while only.
    Partial,
    /// No result, or a wrong one.
    Bad,
    /// Text that the reader sees first.
    Strong,
    /// Text that the reader may skip.
    Quiet,
    /// Text without any of these meanings.
    Plain,
}

/// Switch that paints texts, or leaves them plain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    /// Whether texts are painted.
    pub on: bool,
}

impl Palette {
    /// Returns the palette for standard output. It paints on a terminal, unless `NO_COLOR` is set to anything or the
    /// terminal is dumb. Output to a file or a pipe is plain.
    pub fn of_stdout() -> Self {
        Self::of(io::stdout().is_terminal())
    }

    /// Returns the palette for standard error, by the same rules.
    pub fn of_stderr() -> Self {
        Self::of(io::stderr().is_terminal())
    }

    fn of(is_terminal: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            on: is_terminal && !dumb && !set("NO_COLOR"),
        }
    }

    /// Paints a text in a tone. Characters that cannot be seen are shown escaped.
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let text = visible::lines(text);
        let code = match tone {
            Tone::Good => "32",
            Tone::Partial => "33",
            Tone::Bad => "31",
            Tone::Strong => "1",
            Tone::Quiet => "2",
            Tone::Plain => return text.into_owned(),
        };
        if !self.on || text.is_empty() {
            return text.into_owned();
        }
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Returns a table cell in a tone.
    pub fn cell(self, tone: Tone, text: impl ToString) -> Cell {
        let cell = cell(text);
        if !self.on {
            return cell;
        }
        match tone {
            Tone::Good => cell.fg(Color::DarkGreen),
            Tone::Partial => cell.fg(Color::DarkYellow),
            Tone::Bad => cell.fg(Color::DarkRed),
            Tone::Strong => cell.add_attribute(Attribute::Bold),
            Tone::Quiet => cell.add_attribute(Attribute::Dim),
            Tone::Plain => cell,
        }
    }
}

/// Returns a table cell with a text. Characters that cannot be seen are shown escaped.
pub fn cell(text: impl ToString) -> Cell {
    Cell::new(visible::line(&text.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colour_a_text_stays_as_it_is() {
        assert_eq!(Palette { on: false }.paint(Tone::Bad, "none"), "none");
        let on = Palette { on: true };
        assert_eq!(on.paint(Tone::Bad, "none"), "\u{1b}[31mnone\u{1b}[0m");
        assert_eq!(on.paint(Tone::Plain, "none"), "none");
    }

    #[test]
    fn what_steers_a_terminal_is_shown_as_its_number() {
        let text = Palette { on: false }.paint(Tone::Plain, "a\u{1b}[31mb");
        assert_eq!(text, "a\\u{1b}[31mb");
    }
}
