//! Patterns with stars.

use memchr::memmem;

/// Returns whether a text matches a pattern, in which each star stands for any number of any bytes.
///
/// The first part must be the text's start and the last its end. The parts between are found from left to right, each
/// as early as possible, by a search whose time is linear.
pub(crate) fn star_matches(pattern: &[u8], text: &[u8]) -> bool {
    let mut parts = pattern.split(|byte| *byte == b'*');
    let first = parts.next().unwrap_or_default();
    let last = parts.next_back();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = last else {
        return rest.is_empty();
    };
    for part in parts.filter(|part| !part.is_empty()) {
        let Some(at) = memmem::find(rest, part) else {
            return false;
        };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::star_matches;

    #[test]
    fn a_star_stands_for_any_bytes() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("a*", "a", true),
            ("ab*ba", "aba", false),
            ("ab*ba", "abba", true),
            ("*x*y*", "1x2y3", true),
            ("*x*y*", "1y2x3", false),
            ("a**b", "ab", true),
            ("a*", "b", false),
            ("*aab*aab*", "aaabaab", true),
            ("*aab*aab*", "aaabab", false),
            ("*é*", "caf\u{e9}s", true),
        ] {
            let matches = star_matches(pattern.as_bytes(), text.as_bytes());
            assert_eq!(matches, expected, "{pattern} on {text}");
        }
    }
}
