//! Which of many globs is the first in order that matches a text.
//!
//! A glob is tried only if the text begins as the glob does, up to its first `*`, `?` or class; where many
//! begin alike, only if it ends as the glob does, too; and where many do both alike, only if it contains what the glob
//! wants between. So it costs O(log n) and the length of the text for globs that people write, however many there are.
//! Globs that are alike in all three are tried one by one, in order.

use std::collections::BTreeMap;

use crate::glob::Glob;
use crate::glob::fragments::Fragments;
use crate::glob::ordered::{Ordered, Search};
use crate::glob::prefixes::Prefixes;

/// So many globs that are alike are tried one by one.
const TRIED_MAX: usize = 4;

/// Globs, each with its place in the order. See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct FirstMatch {
    by_prefix: Prefixes<Bucket>,
}

/// Globs that begin alike.
#[derive(Clone, Debug)]
enum Bucket {
    /// A few.
    Few(Ordered),
    /// More of them, by how they end, read backwards; and the place of the first.
    ByEnd(usize, Prefixes<Alike>),
}

/// Globs that begin and end alike.
#[derive(Clone, Debug)]
enum Alike {
    /// A few.
    Few(Ordered),
    /// More of them, by what they want between.
    ByFragment(Fragments),
}

impl FirstMatch {
    /// Of globs with their places, in order.
    pub(crate) fn new(globs: impl IntoIterator<Item = (usize, Glob)>) -> Self {
        let mut by_prefix: BTreeMap<Box<[u8]>, Ordered> = BTreeMap::new();
        for (place, glob) in globs {
            let (prefix, _) = &glob.prefix;
            let bucket = by_prefix.entry(prefix.as_bytes().into()).or_default();
            debug_assert!(bucket.last().is_none_or(|(last, _)| *last < place));
            bucket.push((place, glob));
        }
        let buckets = by_prefix.into_iter();
        let buckets = buckets.map(|(prefix, globs)| (prefix, Bucket::of(globs)));
        Self {
            by_prefix: Prefixes::new(buckets.collect()),
        }
    }

    /// The place of the first glob that matches, and how many were tried for it.
    pub(crate) fn find(&self, text: &str) -> (Option<usize>, usize) {
        let mut backwards: Option<Vec<u8>> = None;
        let mut search = Search::of(text);
        for bucket in self.by_prefix.of(text.as_bytes()) {
            match bucket {
                Bucket::Few(globs) => search.try_each(globs),
                Bucket::ByEnd(first, by_end) => {
                    if search.is_over(*first) {
                        continue;
                    }
                    let backwards = backwards.get_or_insert_with(|| text.bytes().rev().collect());
                    for alike in by_end.of(backwards) {
                        match alike {
                            Alike::Few(globs) => search.try_each(globs),
                            Alike::ByFragment(fragments) => fragments.search(&mut search),
                        }
                    }
                }
            }
        }
        search.result()
    }
}

impl Bucket {
    fn of(globs: Ordered) -> Self {
        let Some((first, _)) = globs.first().filter(|_| globs.len() > TRIED_MAX) else {
            return Self::Few(globs);
        };
        let first = *first;
        let mut by_end: BTreeMap<Box<[u8]>, Ordered> = BTreeMap::new();
        for (place, glob) in globs {
            let (suffix, _) = &glob.suffix;
            let backwards = suffix.bytes().rev().collect();
            by_end.entry(backwards).or_default().push((place, glob));
        }
        let by_end = by_end.into_iter();
        let by_end = by_end.map(|(suffix, globs)| (suffix, Alike::of(globs)));
        Self::ByEnd(first, Prefixes::new(by_end.collect()))
    }
}

impl Alike {
    fn of(globs: Ordered) -> Self {
        if globs.len() <= TRIED_MAX {
            return Self::Few(globs);
        }
        Fragments::of(globs).map_or_else(Self::Few, Self::ByFragment)
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
        assert_eq!(indexed(&globs).find(text).0, expected, "{text}");
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

    #[test]
    fn many_that_begin_alike_are_told_apart_by_how_they_end() {
        let globs: Vec<String> = (0..100).map(|n| format!("db/*-{n}")).collect();
        let mut globs = parse(&globs);
        globs.push(Glob::parse("db/*").unwrap());
        let found = indexed(&globs);
        assert_eq!(found.find("db/orders-7"), (Some(7), 1));
        assert_eq!(found.find("db/orders-77"), (Some(77), 1));
        assert_eq!(found.find("db/orders-777"), (Some(100), 1));
        assert_eq!(found.find("db/orders/7"), (None, 1));
    }

    #[test]
    fn many_that_begin_and_end_alike_are_told_apart_by_what_is_between() {
        let globs: Vec<String> = (0..100).map(|n| format!("db/*-{n}-[a-q]*")).collect();
        let mut globs = parse(&globs);
        globs.push(Glob::parse("db/[a-f]*").unwrap());
        globs.push(Glob::parse("db/*").unwrap());
        let found = indexed(&globs);
        assert_eq!(found.find("db/orders-7-eu"), (Some(7), 1));
        assert_eq!(found.find("db/orders-77-eu"), (Some(77), 1));
        assert_eq!(found.find("db/a-7-8-eu"), (Some(8), 2), "7 is tried first");
        assert_eq!(found.find("db/orders-777-eu"), (Some(101), 2));
        assert_eq!(found.find("db/a-777-eu"), (Some(100), 1));
        assert_eq!(found.find("db/orders/-7-eu"), (None, 3));
        // However often one is contained, its globs are tried once.
        assert_eq!(found.find("db/x-7--7--7--7-z"), (Some(101), 3));
    }

    #[test]
    fn what_many_have_in_common_does_not_tell_them_apart() {
        let globs: Vec<String> = (0..100).map(|n| format!("*-{n}-*-production-*")).collect();
        let found = indexed(&parse(&globs));
        assert_eq!(found.find("db-77-eu-production-1"), (Some(77), 1));
        assert_eq!(found.find("db-x-eu-production-1"), (None, 0));
    }

    proptest! {
        #[test]
        fn of_those_that_begin_and_end_alike_it_finds_what_trying_one_by_one_finds(
            between in prop::collection::vec("([ab☺]{0,3}[?*]|\\\\[*a☺]|\\[[ab☺]\\]){1,4}", 5..24),
            texts in prop::collection::vec("[ab☺*]{0,10}", 20),
        ) {
            let globs: Vec<String> = between.iter().map(|it| format!("x*{it}*x")).collect();
            let globs = parse(&globs);
            let found = indexed(&globs);
            for text in texts {
                let text = format!("x{text}x");
                prop_assert_eq!(found.find(&text).0, naive(&globs, &text), "{}", text);
            }
        }

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
                prop_assert_eq!(found.find(&text).0, naive(&globs, &text), "{}", text);
            }
        }
    }
}
