//! Grants as text: -1 is no limit.

use std::time::Duration;

use doorward::Capacity;
use doorward_pages::numbers;
pub(crate) use doorward_pages::numbers::capacity as number;
use doorward_pages::terminal::{Cell, Palette, Tone};
pub(crate) use doorward_session::time::millis;

/// As JSON has it: -1 means no limit.
pub(crate) fn amount_of(capacity: Capacity) -> f64 {
    match capacity {
        Capacity::Limited(capacity) => capacity,
        Capacity::Unlimited => -1.0,
    }
}

/// Returns a time of a message.
pub(crate) fn span(millis: u64) -> String {
    numbers::typed_span(Duration::from_millis(millis))
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

/// Returns the cell of a grant beside what was wanted.
pub(crate) fn gets_cell(gets: f64, wants: f64, palette: Palette) -> Cell {
    palette.cell(tone_of(gets, wants), number(gets))
}

/// Returns a cell that the reader sees first.
pub(crate) fn strong(text: impl ToString, palette: Palette) -> Cell {
    palette.cell(Tone::Strong, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_limit_is_said_in_a_word() {
        assert_eq!(number(-1.0), "unlimited");
        assert_eq!(number(69.690_721_649), "69.6907");
        assert_eq!(number(2.842e-14), "0");
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
