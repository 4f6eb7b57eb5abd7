//! Changes by line, as `diff -u` shows them.

use std::io::{self, Write};
use std::time::Duration;

use similar::TextDiff;

use crate::output::Out;
use doorward_pages::terminal::Tone;

/// Lines shown around a change.
const CONTEXT: usize = 3;

/// After this long a difference is shown as it is known then: correct, if not the shortest.
const SEARCH: Duration = Duration::from_secs(2);

/// Prints the changes from the old text to the new one; nothing if they are the same.
pub(crate) fn write(
    out: &mut Out<impl Write>,
    (old_name, old): (&str, &str),
    (new_name, new): (&str, &str),
) -> io::Result<()> {
    let diff = TextDiff::configure().timeout(SEARCH).diff_lines(old, new);
    let mut unified = diff.unified_diff();
    unified.context_radius(CONTEXT).header(old_name, new_name);
    for (number, line) in unified.to_string().lines().enumerate() {
        let tone = match line.get(..1) {
            _ if number < 2 => Tone::Strong,
            Some("@") => Tone::Quiet,
            Some("-") => Tone::Bad,
            Some("+") => Tone::Good,
            _ => Tone::Plain,
        };
        out.say(tone, line)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output;

    #[track_caller]
    fn check(old: &str, new: &str, expected: &str) {
        let mut out = output::buffer();
        write(&mut out, ("a", old), ("b", new)).unwrap();
        assert_eq!(String::from_utf8(out.into_inner()).unwrap(), expected);
    }

    #[test]
    fn only_what_changes_is_shown_with_what_is_around_it() {
        check("x\n", "x\n", "");
        check(
            "1\n2\n3\n4\n5\n6\n",
            "1\n2\n3\n4\n5\nsix\n",
            "--- a\n+++ b\n@@ -3,4 +3,4 @@\n 3\n 4\n 5\n-6\n+six\n",
        );
        check("", "x\n", "--- a\n+++ b\n@@ -0,0 +1 @@\n+x\n");
    }

    #[test]
    fn an_end_without_a_newline_is_reported() {
        check(
            "x",
            "x\n",
            "--- a\n+++ b\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n",
        );
    }

    #[test]
    fn garbage_steers_no_terminal() {
        check(
            "\u{1b}[2J\n",
            "x\n",
            "--- a\n+++ b\n@@ -1 +1 @@\n-\\u{1b}[2J\n+x\n",
        );
    }
}
