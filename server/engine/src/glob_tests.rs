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

proptest! {
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
