//! Text that becomes markup: what comes from names is escaped here and nowhere else, and numbers
//! are written as short as a screen can tell apart.

use std::fmt;

/// Markup that grows.
#[derive(Clone, Debug, Default)]
pub(super) struct Markup(pub(super) String);

impl Markup {
    /// Adds what is already markup.
    pub(super) fn add(&mut self, markup: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = fmt::Write::write_fmt(&mut self.0, markup);
    }
}

/// A text as it may stand between tags and in quotes. Characters that XML has no place for are
/// replaced: one name must not make a whole file unreadable.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A coordinate with at most one decimal: `12`, `12.5`.
pub(super) fn coordinate(value: f64) -> String {
    exact(value, 1)
}

/// A coordinate with at most so many decimals, and at least one is asked for.
pub(super) fn exact(value: f64, decimals: usize) -> String {
    let text = format!("{value:.*}", decimals.max(1));
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "-0" => "0".to_owned(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_markup() {
        assert_eq!(
            escaped("a<b>&\"c\" 'd'\n\u{0}\u{7f}é"),
            "a&lt;b&gt;&amp;&quot;c&quot; &#39;d&#39; \u{fffd}\u{fffd}é"
        );
    }

    #[test]
    fn coordinates_are_short() {
        for (value, expected) in [(12.0, "12"), (0.04, "0"), (-0.001, "0"), (1.256, "1.3")] {
            assert_eq!(coordinate(value), expected);
        }
        assert_eq!(exact(1.256, 2), "1.26");
    }
}
