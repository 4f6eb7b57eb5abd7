//! Globs: the cases that Go's own test of `path/filepath.Match` has, and what ours add.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(pattern: &str, text: &str, expected: bool) {
    let glob = Glob::parse(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    assert_eq!(glob.matches(text), expected, "{pattern:?} on {text:?}");
}

#[test]
fn matches_what_go_matches() {
    for (pattern, text, expected) in [
        ("abc", "abc", true),
        ("*", "abc", true),
        ("*c", "abc", true),
        ("a*", "a", true),
        ("a*", "abc", true),
        ("a*", "ab/c", false),
        ("a*/b", "abc/b", true),
        ("a*/b", "a/c/b", false),
        ("a*b*c*d*e*/f", "axbxcxdxe/f", true),
        ("a*b*c*d*e*/f", "axbxcxdxexxx/f", true),
        ("a*b*c*d*e*/f", "axbxcxdxe/xxx/f", false),
        ("a*b*c*d*e*/f", "axbxcxdxexxx/fff", false),
        ("a*b?c*x", "abxbbxdbxebxczzx", true),
        ("a*b?c*x", "abxbbxdbxebxczzy", false),
        ("ab[c]", "abc", true),
        ("ab[b-d]", "abc", true),
        ("ab[e-g]", "abc", false),
        ("ab[^c]", "abc", false),
        ("ab[^b-d]", "abc", false),
        ("ab[^e-g]", "abc", true),
        ("a\\*b", "a*b", true),
        ("a\\*b", "ab", false),
        ("a?b", "a☺b", true),
        ("a[^a]b", "a☺b", true),
        ("a???b", "a☺b", false),
        ("a[^a][^a][^a]b", "a☺b", false),
        ("[a-ζ]*", "α", true),
        ("*[a-ζ]", "A", false),
        ("a?b", "a/b", false),
        ("a*b", "a/b", false),
        ("[\\]a]", "]", true),
        ("[\\-]", "-", true),
        ("[x\\-]", "x", true),
        ("[x\\-]", "-", true),
        ("[x\\-]", "z", false),
        ("[\\-x]", "x", true),
        ("[\\-x]", "-", true),
        ("[\\-x]", "a", false),
        ("*x", "xxx", true),
    ] {
        check(pattern, text, expected);
    }
}

#[test]
fn the_corners_are_as_in_go() {
    for (pattern, text, expected) in [
        ("", "", true),
        ("", "a", false),
        ("*", "", true),
        ("*", "a/b", false),
        ("*/*", "a/b", true),
        ("**", "ab", true),
        ("db/*", "db/", true),
        ("db/*", "db", false),
        // A class may be a slash.
        ("a[^b]c", "a/c", true),
        // A range that runs backwards is empty.
        ("[z-a]", "m", false),
        ("[^z-a]", "m", true),
        // A `*` is not reconsidered once what follows it has matched.
        ("*[^x]*b", "a/ab", false),
        // A `*` does not stop in the middle of a character, as Go's does.
        ("*[^☺]", "☺", false),
        ("*??", "☺", false),
        // A class may hold what is special outside of it.
        ("[*]", "*", true),
        ("[*]", "a", false),
        ("[[?]", "[", true),
        ("[^^]", "^", false),
        ("[a^]", "^", true),
        // A class is one character, a literal one is taken as it is.
        ("[ab]", "ab", false),
        ("\\[a]", "[a]", true),
        ("\\a\\\\", "a\\", true),
        ("[\\a-\\c]", "b", true),
        ("a]", "a]", true),
        ("a-^", "a-^", true),
    ] {
        check(pattern, text, expected);
    }
}

#[test]
fn a_malformed_glob_is_refused_and_says_where() {
    use GlobError::*;
    for (pattern, expected) in [
        ("[]a]", EmptyClass(1)),
        ("[-]", LoneDash(2)),
        ("[x-]", LoneDash(3)),
        ("[-x]", LoneDash(2)),
        ("\\", LoneEscape),
        ("[a-b-c]", LoneDash(5)),
        ("[", OpenClass(1)),
        ("[^", OpenClass(1)),
        ("[^bc", OpenClass(1)),
        ("a[", OpenClass(2)),
        ("a/b[", OpenClass(4)),
        ("[^]", EmptyClass(1)),
        ("[a\\", LoneEscape),
        ("[a-", OpenClass(1)),
        ("ok/*[", OpenClass(5)),
        ("[a-]", LoneDash(3)),
        ("[--a]", LoneDash(2)),
        ("[\\", LoneEscape),
        ("*\\", LoneEscape),
        ("☺☺[]", EmptyClass(3)),
    ] {
        assert_eq!(Glob::parse(pattern), Err(expected), "{pattern:?}");
    }
}

#[test]
fn a_hostile_glob_is_matched_in_no_time() {
    let pattern = "a*".repeat(120) + "b";
    check(&pattern, &"a".repeat(10_000), false);
}

/// By the definition: a `*` takes nothing, or one character and then what it takes again.
fn dumb_matches(tokens: &[Token], text: &[char]) -> bool {
    match (tokens.split_first(), text.split_first()) {
        (None, _) => text.is_empty(),
        (Some((Token::Many, after)), rest) => {
            dumb_matches(after, text)
                || rest.is_some_and(|(c, rest)| *c != '/' && dumb_matches(tokens, rest))
        }
        (Some((token, after)), Some((c, rest))) => token.takes(*c) && dumb_matches(after, rest),
        (Some(_), None) => false,
    }
}

/// As Go goes about it: part by part between the `*`, each at the first place where it matches, the
/// last one where it ends the text.
fn leftmost_matches(tokens: &[Token], text: &[char]) -> bool {
    let parts: Vec<&[Token]> = tokens.split(|token| *token == Token::Many).collect();
    let mut at = 0;
    for (number, part) in parts.iter().enumerate() {
        let last = number + 1 == parts.len();
        let fits = |start: usize| {
            text.get(start..start + part.len()).is_some_and(|piece| {
                let takes = part.iter().zip(piece).all(|(token, c)| token.takes(*c));
                takes && (!last || start + part.len() == text.len())
            })
        };
        let skippable = if number == 0 {
            0
        } else {
            text[at..].iter().take_while(|c| **c != '/').count()
        };
        match (at..=at + skippable).find(|start| fits(*start)) {
            Some(start) => at = start + part.len(),
            None => return false,
        }
    }
    true
}

proptest! {
    #[test]
    fn globs_match_part_by_part_whatever_their_classes(
        pattern in "([ab☺/*?]|\\\\[*a☺]|\\[\\^?([ab☺/]|a-b|/-☺){1,2}\\]){0,8}",
        text in "[ab☺/*]{0,12}",
    ) {
        let glob = Glob::parse(&pattern).unwrap();
        let chars: Vec<char> = text.chars().collect();
        prop_assert_eq!(glob.matches(&text), leftmost_matches(&glob.tokens, &chars));
    }

    #[test]
    fn globs_without_slashes_in_classes_match_by_their_definition(
        pattern in "([ab/*?]|\\[[ab]\\]){0,8}",
        text in "[ab/]{0,10}",
    ) {
        let glob = Glob::parse(&pattern).unwrap();
        let chars: Vec<char> = text.chars().collect();
        prop_assert_eq!(glob.matches(&text), dumb_matches(&glob.tokens, &chars));
    }

    #[test]
    fn no_text_makes_it_panic(pattern in any::<String>(), text in any::<String>()) {
        if let Ok(glob) = Glob::parse(&pattern) {
            glob.matches(&text);
        }
    }
}
