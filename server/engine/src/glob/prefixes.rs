//! Texts in order, so that those with which a text begins are found without looking at the others.

use std::collections::BTreeMap;

/// Values by a text each. See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Prefixes<T> {
    /// By rising text.
    entries: Vec<Entry<T>>,
}

#[derive(Clone, Debug)]
struct Entry<T> {
    text: Box<[u8]>,
    /// Where the longest of the others is with which this one begins.
    shorter: Option<usize>,
    value: T,
}

impl<T> Prefixes<T> {
    pub(super) fn new(values: BTreeMap<Box<[u8]>, T>) -> Self {
        let mut entries: Vec<Entry<T>> = Vec::with_capacity(values.len());
        for (text, value) in values {
            let mut shorter = entries.len().checked_sub(1);
            while let Some(entry) = shorter.and_then(|at| entries.get(at)) {
                if text.starts_with(&entry.text) {
                    break;
                }
                shorter = entry.shorter;
            }
            entries.push(Entry {
                text,
                shorter,
                value,
            });
        }
        Self { entries }
    }

    /// The values of all texts with which that one begins, those of longer ones first. O(log n), and a step for
    /// each text of which the one next to it is made longer.
    pub(super) fn of<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = &'a T> {
        // A text with which it begins is not behind it, and all that are between the two begin with that as well.
        let behind = self.entries.partition_point(|entry| *entry.text <= *text);
        let next_to = behind.checked_sub(1).and_then(|at| self.entries.get(at));
        let all = std::iter::successors(next_to, |entry| self.entries.get(entry.shorter?));
        all.filter(|entry| text.starts_with(&entry.text))
            .map(|entry| &entry.value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(texts: &[&str], text: &str, expected: &[&str]) {
        let values = texts.iter().map(|it| (it.as_bytes().into(), *it));
        let prefixes = Prefixes::new(values.collect());
        let found: Vec<&str> = prefixes.of(text.as_bytes()).copied().collect();
        assert_eq!(found, expected, "{text} among {texts:?}");
    }

    #[test]
    fn what_a_text_begins_with_is_found_the_longest_first() {
        let texts = ["", "a", "ab", "abc", "abd", "b", "bb"];
        check(&texts, "", &[""]);
        check(&texts, "abce", &["abc", "ab", "a", ""]);
        check(&texts, "abb", &["ab", "a", ""]);
        check(&texts, "abz", &["ab", "a", ""]);
        check(&texts, "ba", &["b", ""]);
        check(&texts, "c", &[""]);
        check(&["b"], "a", &[]);
        check(&[], "a", &[]);
    }

    proptest! {
        #[test]
        fn nothing_is_overlooked(
            texts in prop::collection::btree_set("[ab]{0,4}", 0..20),
            text in "[abc]{0,6}",
        ) {
            let values = texts.iter().map(|it| (it.as_bytes().into(), it.as_str()));
            let prefixes = Prefixes::new(values.collect());
            let found: Vec<&str> = prefixes.of(text.as_bytes()).copied().collect();
            let mut expected: Vec<&str> =
                texts.iter().map(String::as_str).filter(|it| text.starts_with(it)).collect();
            expected.sort_by_key(|it| std::cmp::Reverse(it.len()));
            prop_assert_eq!(found, expected);
        }
    }
}
