//! Globs with the meaning of Go's `path/filepath.Match` on Unix, as Doorman's templates use them.
//!
//! | pattern | matches |
//! | --- | --- |
//! | `*` | any characters but `/`, also none |
//! | `?` | one character but `/` |
//! | `[abc]`, `[a-z]`, `[^a-z]` | one character of the class, or not of it (`/` included) |
//! | `\c` | the character c itself, also in a class |
//! | anything else | itself |
//!
//! A glob matches the whole text. A malformed one is an error when it is parsed, never a glob that
//! matches nothing.
//!
//! Characters are Unicode characters, also for `*`: Go's may stop in the middle of one, so that it
//! has `*[^☺]` match "☺" and ours has not. On ASCII there is no difference.
//!
//! As in Go, a `*` takes as little as lets the part up to the next `*` match, and is not reconsidered once
//! that part has matched; so matching any text costs at most text × pattern.

mod covers;

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasherDefault;
use std::iter::{Enumerate, Peekable};
use std::str::Chars;

use siphasher::sip::SipHasher13;
use thiserror::Error;

/// A parsed glob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    tokens: Vec<Token>,
    /// Common prefix of all matching texts: the literal characters before the first wildcard, and their
    /// number of tokens.
    prefix: (Box<str>, usize),
    /// Common suffix of all matching texts, behind the prefix.
    suffix: (Box<str>, usize),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// Exactly this.
    Char(char),
    /// One, but `/`.
    One,
    /// Any number, but `/`.
    Many,
    Class {
        negated: bool,
        /// From, to; both included. A range that runs backwards holds nothing.
        ranges: Vec<(char, char)>,
    },
}

/// Why a text is no glob. Positions count characters from 1.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GlobError {
    /// A `[` without its `]`.
    #[error(
        "the class that starts with '[' at character {0} is not closed; add ']', or write '\\[' for \
         the character itself"
    )]
    OpenClass(usize),
    /// `[]` or `[^]`.
    #[error("the class at character {0} is empty; name a character, or write '\\]' for ']' itself")]
    EmptyClass(usize),
    /// A `-` in a class that does not stand between two characters.
    #[error("the '-' at character {0} is no range; write '\\-' for the character itself")]
    LoneDash(usize),
    /// A `\` at the end.
    #[error("the '\\' at the end escapes nothing; write '\\\\' for the character itself")]
    LoneEscape,
}

impl Glob {
    /// Parses a glob.
    ///
    /// # Errors
    ///
    /// If it is malformed, wherever in it.
    pub fn parse(text: &str) -> Result<Self, GlobError> {
        let mut rest = text.chars().enumerate().peekable();
        let mut tokens = Vec::new();
        while let Some((at, c)) = rest.next() {
            tokens.push(match c {
                '*' => Token::Many,
                '?' => Token::One,
                '[' => class(&mut rest, at + 1)?,
                '\\' => Token::Char(escaped(&mut rest)?),
                c => Token::Char(c),
            });
        }
        Ok(Self::of(tokens))
    }

    fn of(tokens: Vec<Token>) -> Self {
        let literal = |token: &Token| match token {
            Token::Char(c) => Some(*c),
            Token::One | Token::Many | Token::Class { .. } => None,
        };
        let prefix: Vec<char> = tokens.iter().map_while(literal).collect();
        let behind = tokens.iter().skip(prefix.len()).rev();
        let mut suffix: Vec<char> = behind.map_while(literal).collect();
        suffix.reverse();
        let text = |chars: Vec<char>| (chars.iter().collect(), chars.len());
        Self {
            prefix: text(prefix),
            suffix: text(suffix),
            tokens,
        }
    }

    /// Whether it matches all of `text`.
    pub fn matches(&self, text: &str) -> bool {
        let ((prefix, begins), (suffix, ends)) = (&self.prefix, &self.suffix);
        let Some(rest) = text.strip_prefix(&**prefix) else {
            return false;
        };
        let Some(between) = rest.strip_suffix(&**suffix) else {
            return false;
        };
        let tokens = self.tokens.get(*begins..).unwrap_or_default();
        match tokens.get(..tokens.len().saturating_sub(*ends)) {
            None | Some([]) => between.is_empty(),
            // Most globs: all that is left for the star to take is what is between.
            Some([Token::Many]) => !between.as_bytes().contains(&b'/'),
            Some(_) => Self::play(tokens, rest),
        }
    }

    /// The only text that it matches, if nothing in it stands for anything but itself.
    pub(crate) fn literal(&self) -> Option<&str> {
        let (prefix, begins) = &self.prefix;
        (*begins == self.tokens.len()).then_some(&**prefix)
    }

    /// Whether that part of a glob, up to its end, matches all of `text`.
    fn play(mut tokens: &[Token], mut text: &str) -> bool {
        // Where to go on if the part after the last `*` does not match: behind that `*`, with what
        // is left of the text, of which it would then take one character more.
        let mut retry: Option<(&[Token], &str)> = None;
        loop {
            match tokens.split_first() {
                Some((Token::Many, after)) => {
                    retry = Some((after, text));
                    tokens = after;
                    continue;
                }
                Some((token, after)) => {
                    let mut chars = text.chars();
                    if chars.next().is_some_and(|c| token.takes(c)) {
                        (tokens, text) = (after, chars.as_str());
                        continue;
                    }
                }
                None if text.is_empty() => return true,
                None => {}
            }
            let Some((after, from)) = retry else {
                return false;
            };
            let mut chars = from.chars();
            match chars.next() {
                Some(c) if c != '/' => {
                    retry = Some((after, chars.as_str()));
                    (tokens, text) = (after, chars.as_str());
                }
                _ => return false,
            }
        }
    }
}

impl Token {
    /// Whether it takes one character.
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Char(own) => *own == c,
            Self::One => c != '/',
            Self::Many => false,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *negated
            }
        }
    }
}

/// Characters of a glob that are still to be read, with their numbers.
type Rest<'a> = Peekable<Enumerate<Chars<'a>>>;

/// Parses a class, after its `[`, which is character `start`.
fn class(rest: &mut Rest<'_>, start: usize) -> Result<Token, GlobError> {
    let negated = rest.next_if(|(_, c)| *c == '^').is_some();
    let mut ranges = Vec::new();
    loop {
        if rest.next_if(|(_, c)| *c == ']').is_some() {
            if ranges.is_empty() {
                return Err(GlobError::EmptyClass(start));
            }
            return Ok(Token::Class { negated, ranges });
        }
        let from = class_char(rest, start)?;
        let to = match rest.next_if(|(_, c)| *c == '-') {
            None => from,
            Some((at, _)) if rest.peek().is_some_and(|(_, c)| *c == ']') => {
                return Err(GlobError::LoneDash(at + 1));
            }
            Some(_) => class_char(rest, start)?,
        };
        ranges.push((from, to));
    }
}

/// A character of a class, perhaps escaped.
fn class_char(rest: &mut Rest<'_>, start: usize) -> Result<char, GlobError> {
    match rest.next() {
        None => Err(GlobError::OpenClass(start)),
        Some((at, '-')) => Err(GlobError::LoneDash(at + 1)),
        Some((_, '\\')) => escaped(rest),
        Some((_, c)) => Ok(c),
    }
}

/// The character after a `\`.
fn escaped(rest: &mut Rest<'_>) -> Result<char, GlobError> {
    rest.next().map(|(_, c)| c).ok_or(GlobError::LoneEscape)
}

/// Globs, each with its place in the order: finds the first in order that matches a text.
///
/// Globs are grouped by how they begin, up to their first `*`, `?` or class. Only groups with which the text begins are
/// tried, one glob by one, in order. So 5,000 globs that begin alike cost about 0.3 ms.
#[derive(Clone, Debug)]
pub(crate) struct FirstMatch {
    /// In order, by how they begin.
    by_prefix: HashMap<Box<str>, Vec<(usize, Glob)>, BuildHasherDefault<SipHasher13>>,
    /// Lengths of the prefixes.
    lengths: BTreeSet<usize>,
}

impl FirstMatch {
    /// Of globs with their places, in order.
    pub(crate) fn new(globs: impl IntoIterator<Item = (usize, Glob)>) -> Self {
        let mut by_prefix: HashMap<_, Vec<(usize, Glob)>, _> = HashMap::default();
        let mut lengths = BTreeSet::new();
        for (place, glob) in globs {
            let (prefix, _) = &glob.prefix;
            lengths.insert(prefix.len());
            let group = by_prefix.entry(prefix.clone()).or_default();
            debug_assert!(group.last().is_none_or(|(last, _)| *last < place));
            group.push((place, glob));
        }
        Self { by_prefix, lengths }
    }

    /// Returns the place of the first glob that matches.
    pub(crate) fn find(&self, text: &str) -> Option<usize> {
        let mut found = None;
        let prefixes = self.lengths.iter().filter_map(|length| text.get(..*length));
        for group in prefixes.filter_map(|prefix| self.by_prefix.get(prefix)) {
            for (place, glob) in group {
                if found.is_some_and(|found| found < *place) {
                    break;
                }
                if glob.matches(text) {
                    found = Some(*place);
                    break;
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod first_match_tests {
    use proptest::prelude::*;

    use super::*;

    /// By trying them all.
    fn naive(globs: &[Glob], text: &str) -> Option<usize> {
        globs.iter().position(|glob| glob.matches(text))
    }

    fn parse(texts: &[String]) -> Vec<Glob> {
        texts.iter().map(|it| Glob::parse(it).unwrap()).collect()
    }

    fn indexed(globs: &[Glob]) -> FirstMatch {
        FirstMatch::new(globs.iter().cloned().enumerate())
    }

    #[track_caller]
    fn check(globs: &[&str], text: &str, expected: Option<usize>) {
        let globs = parse(&globs.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        assert_eq!(naive(&globs, text), expected, "tried one by one: {text}");
        assert_eq!(indexed(&globs).find(text), expected, "{text}");
    }

    #[test]
    fn the_first_in_order_counts_and_not_the_longest() {
        check(&["a*", "ab*", "*"], "abc", Some(0));
        check(&["ab*", "a*", "*"], "abc", Some(0));
        check(&["ab*", "a*", "*"], "acc", Some(1));
        check(&["ab*", "a*", "*"], "b", Some(2));
        check(&["*", "ab*", "a*"], "abc", Some(0));
        check(&["ab*", "a*"], "b", None);
        check(&["a/*", "?/b", "*/*"], "a/b", Some(0));
        check(&["?/b", "a/*", "*/*"], "a/b", Some(0));
        check(&["a\\*", "a*"], "a*", Some(0));
        check(&[], "a", None);
    }

    proptest! {
        #[test]
        fn it_finds_what_trying_one_by_one_finds(
            globs in prop::collection::vec(
                "[ab]{0,2}([ab☺/*?]|\\\\[*a☺]|\\[\\^?([ab☺/]|a-b|/-☺){1,2}\\]){0,5}[ab]{0,2}",
                0..24,
            ),
            texts in prop::collection::vec("[ab☺/*]{0,8}", 20),
        ) {
            let globs = parse(&globs);
            let found = indexed(&globs);
            for text in texts {
                prop_assert_eq!(found.find(&text), naive(&globs, &text), "{}", text);
            }
        }
    }
}
