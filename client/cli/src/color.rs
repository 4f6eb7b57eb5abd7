//! When to colour: `auto` on a terminal, unless `NO_COLOR` is set to anything or the terminal is dumb.

use clap::ValueEnum;
use doorward_pages::terminal::Palette;

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

impl ColorFlag {
    /// For standard output.
    pub(crate) fn of_stdout(self) -> Palette {
        self.or(Palette::of_stdout())
    }

    /// For standard error.
    pub(crate) fn of_stderr(self) -> Palette {
        self.or(Palette::of_stderr())
    }

    const fn or(self, wanted: Palette) -> Palette {
        match self {
            Self::Auto => wanted,
            Self::Always => Palette { on: true },
            Self::Never => Palette { on: false },
        }
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
            assert_eq!(
                flag.or(Palette { on: wanted }).on,
                expected,
                "{flag:?} {wanted}"
            );
        }
    }
}
