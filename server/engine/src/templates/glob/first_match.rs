//! Which of many globs is the first in order that matches a text.
//!
//! Globs are grouped by how they begin, up to their first `*`, `?` or class. Only groups with which the text begins are
//! tried, one glob by one, in order. So 5,000 globs that begin alike cost about 0.3 ms.

use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasherDefault;

use siphasher::sip::SipHasher13;

use crate::templates::glob::Glob;

/// Globs, each with its place in the order. See the [module](self).
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
mod tests {
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
