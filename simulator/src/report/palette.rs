//! Colour on a terminal, where somebody sees it. It never says anything that the words do not.

use std::io::{self, IsTerminal};

/// What a colour means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// All is as it should be.
    Good,
    /// It is not.
    Bad,
    /// What the eye looks for first.
    Strong,
    /// What it may skip.
    Quiet,
    /// Neither.
    Plain,
}

/// Paints, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Palette {
    /// Whether it paints.
    pub on: bool,
}

impl Palette {
    /// For standard output: on a terminal, unless `NO_COLOR` is set or the terminal is dumb.
    pub fn of_stdout() -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            on: io::stdout().is_terminal() && !dumb && !set("NO_COLOR"),
        }
    }

    pub(super) fn paint(self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Good => "32",
            Tone::Bad => "1;31",
            Tone::Strong => "1",
            Tone::Quiet => "2",
            Tone::Plain => return text.to_owned(),
        };
        if !self.on || text.is_empty() {
            return text.to_owned();
        }
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_colour_a_text_stays_as_it_is() {
        assert_eq!(Palette { on: false }.paint(Tone::Bad, "no"), "no");
        assert_eq!(
            Palette { on: true }.paint(Tone::Bad, "no"),
            "\u{1b}[1;31mno\u{1b}[0m"
        );
        assert_eq!(Palette { on: true }.paint(Tone::Plain, "no"), "no");
    }
}
