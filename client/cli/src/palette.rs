//! Colour, where it helps and somebody sees it.
//!
//! `auto` colours on a terminal, unless `NO_COLOR` is set to anything or the terminal is dumb;
//! what goes to a file or a pipe is plain. Colour never says anything that the words do not.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use comfy_table::{Attribute, Cell, Color};
use doorward_session::visible;

use crate::table::cell;

/// When to colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorFlag {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Even into a pipe.
    Always,
    /// Nowhere.
    Never,
}

/// What a colour means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// All is as wanted.
    Good,
    /// Less than wanted, or for a while only.
    Partial,
    /// Nothing, or wrong.
    Bad,
    /// What the eye looks for first.
    Strong,
    /// What it may skip.
    Quiet,
}

/// Paints, or does not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    pub(crate) on: bool,
}

impl Palette {
    /// For standard output.
    pub(crate) fn of_stdout(flag: ColorFlag) -> Self {
        Self::of(flag, io::stdout().is_terminal())
    }

    /// For standard error.
    pub(crate) fn of_stderr(flag: ColorFlag) -> Self {
        Self::of(flag, io::stderr().is_terminal())
    }

    fn of(flag: ColorFlag, terminal: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let wanted = terminal && !dumb && !set("NO_COLOR");
        Self {
            on: decide(flag, wanted),
        }
    }

    /// A text in a tone.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        let text = visible::lines(text);
        if !self.on || text.is_empty() {
            return text.into_owned();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Partial => "33",
            Tone::Bad => "31",
            Tone::Strong => "1",
            Tone::Quiet => "2",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// A cell of a table in a tone.
    pub(crate) fn cell(self, tone: Tone, text: impl ToString) -> Cell {
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
        }
    }
}

/// The tone of a grant beside what was wanted; -1 is no limit.
pub(crate) fn tone_of(gets: f64, wants: f64) -> Tone {
    if gets >= wants || gets < 0.0 {
        Tone::Good
    } else if gets > 0.0 {
        Tone::Partial
    } else {
        Tone::Bad
    }
}

const fn decide(flag: ColorFlag, wanted: bool) -> bool {
    match flag {
        ColorFlag::Auto => wanted,
        ColorFlag::Always => true,
        ColorFlag::Never => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_overrides_what_the_terminal_suggests() {
        for (flag, wanted, expected) in [
            (ColorFlag::Auto, true, true),
            (ColorFlag::Auto, false, false),
            (ColorFlag::Always, false, true),
            (ColorFlag::Never, true, false),
        ] {
            assert_eq!(decide(flag, wanted), expected, "{flag:?} {wanted}");
        }
    }

    #[test]
    fn without_colour_a_text_stays_as_it_is() {
        assert_eq!(Palette { on: false }.paint(Tone::Bad, "none"), "none");
        assert_eq!(
            Palette { on: true }.paint(Tone::Bad, "none"),
            "\u{1b}[31mnone\u{1b}[0m"
        );
    }

    #[test]
    fn a_grant_is_good_if_it_is_all_that_was_wanted() {
        assert_eq!(tone_of(5.0, 5.0), Tone::Good);
        assert_eq!(tone_of(4.0, 5.0), Tone::Partial);
        assert_eq!(tone_of(0.0, 5.0), Tone::Bad);
        assert_eq!(tone_of(0.0, 0.0), Tone::Good);
        assert_eq!(tone_of(-1.0, 5.0), Tone::Good);
    }
}
