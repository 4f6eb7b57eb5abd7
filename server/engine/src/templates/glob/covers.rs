//! Whether a glob matches whatever another one matches.
//!
//! Both are played at once, character by character, with all the places that the first may be at. Characters
//! that no part of either distinguishes are played once. "Yes" is certain; "no" may also mean that it is not
//! known: there is a limit to what is played, and a glob with a class that takes `/` is only known to cover
//! itself, since a `*` before it is not reconsidered (see the [module above](super)).

use std::collections::BTreeSet;

use super::{Glob, Token};

/// Situations that are played at most. Globs that people write have some dozens.
const SITUATIONS_MAX: usize = 2_000;

/// Places in a glob; the one behind its end is that of a match.
type Places = BTreeSet<usize>;

impl Glob {
    /// Whether it is certain that this matches whatever `other` does.
    pub fn covers(&self, other: &Self) -> bool {
        if self.tokens == other.tokens {
            return true;
        }
        if self.tokens.iter().any(Token::is_class_with_slash) {
            return false;
        }
        let chars = told_apart(&[self, other]);
        let mut start = Places::new();
        self.reach(0, &mut start);
        let mut seen: BTreeSet<(usize, Places)> = BTreeSet::new();
        let mut open = vec![(0, start)];
        while let Some(situation) = open.pop() {
            if seen.contains(&situation) {
                continue;
            }
            if seen.len() == SITUATIONS_MAX {
                return false;
            }
            let (at, places) = &situation;
            let Some(token) = other.tokens.get(*at) else {
                if !places.contains(&self.tokens.len()) {
                    return false;
                }
                seen.insert(situation);
                continue;
            };
            let is_many = *token == Token::Many;
            if is_many {
                open.push((at + 1, places.clone()));
            }
            for c in &chars {
                if token.takes(*c) {
                    open.push((at + 1, self.after(places, *c)));
                } else if is_many && *c != '/' {
                    open.push((*at, self.after(places, *c)));
                }
            }
            seen.insert(situation);
        }
        true
    }

    /// Whether there is no text at all that it matches: it has a class that takes no character.
    pub fn matches_nothing(&self) -> bool {
        let chars = told_apart(&[self]);
        let is_class = |token: &&Token| matches!(token, Token::Class { .. });
        let mut classes = self.tokens.iter().filter(is_class);
        classes.any(|class| !chars.iter().any(|c| class.takes(*c)))
    }

    /// Adds a place, and those behind stars that take nothing.
    fn reach(&self, at: usize, places: &mut Places) {
        let behind = self.tokens.iter().skip(at);
        let stars = behind.take_while(|token| **token == Token::Many).count();
        places.extend(at..=at + stars);
    }

    /// Where it may be after one character more.
    fn after(&self, places: &Places, c: char) -> Places {
        let mut after = Places::new();
        for at in places {
            match self.tokens.get(*at) {
                Some(token) if token.takes(c) => self.reach(at + 1, &mut after),
                Some(Token::Many) if c != '/' => self.reach(*at, &mut after),
                _ => {}
            }
        }
        after
    }
}

impl Token {
    fn is_class_with_slash(&self) -> bool {
        matches!(self, Self::Class { .. }) && self.takes('/')
    }
}

/// One character of each kind that the globs distinguish.
fn told_apart(globs: &[&Glob]) -> Vec<char> {
    let mut firsts = BTreeSet::from(['\0', '/', '0']);
    for token in globs.iter().flat_map(|glob| &glob.tokens) {
        match token {
            Token::Char(c) => firsts.extend((*c..=char::MAX).take(2)),
            Token::Class { ranges, .. } => {
                for (from, to) in ranges {
                    firsts.insert(*from);
                    firsts.extend((*to..=char::MAX).nth(1));
                }
            }
            Token::One | Token::Many => {}
        }
    }
    firsts.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn glob(text: &str) -> Glob {
        Glob::parse(text).unwrap()
    }

    #[test]
    fn a_glob_covers_what_matches_less() {
        for (one, other, covers) in [
            ("db/*", "db/*", true),
            ("db/*", "db/orders", true),
            ("db/*", "db/orders*", true),
            ("db/*", "db/?[a-z]*x", true),
            ("*", "db*", true),
            ("*", "**", true),
            ("?*", "*?", true),
            ("a*b*c", "a*c*b*c", true),
            ("[a-f]*", "[b-d]x", true),
            ("[^x]", "[a-w]", false),
            ("a\\*", "a\\*", true),
            ("a?", "a\\*", true),
            ("db/*", "[z-a]", true),
            ("*", "db/*", false),
            ("db/*", "db/*/*", false),
            ("db/orders*", "db/*", false),
            ("?*", "*", false),
            ("a*b*c", "a*c", false),
            ("[b-d]*", "[a-d]*", false),
            ("[a-b]", "?", false),
            ("?", "[^a]", false),
        ] {
            assert_eq!(glob(one).covers(&glob(other)), covers, "{one} {other}");
        }
    }

    #[test]
    fn globs_that_would_take_too_long_are_not_known_to_cover() {
        let one = glob(&format!("*a{}", "?".repeat(20)));
        assert!(!one.covers(&glob(&format!("*a{}", "[a-c]".repeat(20)))));
        let long = format!("*a{}", "?".repeat(200));
        assert!(glob(&long).covers(&glob(&long)));
    }

    #[test]
    fn a_class_that_takes_nothing_matches_nothing() {
        for (text, nothing) in [
            ("a[z-a]", true),
            ("[^\0-\u{10ffff}]*", true),
            ("[z-ab]", false),
            ("[^a]", false),
            ("*", false),
        ] {
            assert_eq!(glob(text).matches_nothing(), nothing, "{text}");
        }
    }

    proptest! {
        #[test]
        fn each_match_of_a_covered_glob_is_a_match_of_the_covering_one(
            one in "([ab/]|\\*|\\?|\\[[ab]\\]|\\[\\^[ab]\\]){0,5}",
            other in "([ab/]|\\*|\\?|\\[[ab]\\]|\\[\\^[ab]\\]){0,5}",
            texts in prop::collection::vec("[abc/]{0,6}", 50),
        ) {
            let (one, other) = (glob(&one), glob(&other));
            if one.covers(&other) {
                for text in texts {
                    prop_assert!(!other.matches(&text) || one.matches(&text), "{text}");
                }
            }
        }

        #[test]
        fn certain_coverage_is_known_as_such(
            one in "([ab/]|\\*|\\?|\\[[ab]\\]){0,4}",
            other in "([ab/]|\\*|\\?|\\[[ab]\\]){0,4}",
        ) {
            let (one, other) = (glob(&one), glob(&other));
            // Four tokens each: what distinguishes them is short.
            let mut texts = vec![String::new()];
            let mut from = 0;
            for _ in 0..6 {
                let to = texts.len();
                for index in from..to {
                    for c in ['a', 'b', 'c', '/'] {
                        texts.push(format!("{}{c}", texts[index]));
                    }
                }
                from = to;
            }
            let all = texts.iter().all(|text| !other.matches(text) || one.matches(text));
            prop_assert_eq!(one.covers(&other), all);
        }
    }
}
