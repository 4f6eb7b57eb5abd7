//! Descriptors as a trie, and the search in it.
//!
//! On each level the exact value is best, then the first value with a star in the order of the file, then the bare
//! key. The choice of a level is final. The request must end on the level that has the limit.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::rules::star::star_matches;

/// One entry of a request's descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The key.
    pub key: &'a str,
    /// The value, of any bytes. `None`: the request lacks it. It matches as the empty value does, the bare key and
    /// `*`, and is counted apart from it.
    pub value: Option<&'a [u8]>,
}

/// Largest value of a request that a rule limits, in bytes: as large as servers take a header.
pub const VALUE_BYTES_MAX: usize = 8 * 1024;

/// Returns whether a value is too long to match.
pub(crate) const fn is_long(value: &[u8]) -> bool {
    value.len() > VALUE_BYTES_MAX
}

/// A level of the trie. Its hashes need no secret: requests only look keys up.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Node {
    keys: HashMap<String, Values, FixedState>,
    /// Number of the rule that ends here.
    pub(crate) rule: Option<usize>,
}

/// The values of a key.
#[derive(Clone, Debug, Default, PartialEq)]
struct Values {
    exact: HashMap<Vec<u8>, Node, FixedState>,
    stars: Vec<(String, Node)>,
    bare: Option<Box<Node>>,
}

impl Node {
    /// Adds a descriptor. Returns false if its key and value are there.
    pub(crate) fn insert(&mut self, key: &str, value: Option<&str>, node: Node) -> bool {
        let values = self.keys.entry(key.to_owned()).or_default();
        let is_new = match value {
            None => values.bare.is_none(),
            Some(value) if value.contains('*') => values.stars.iter().all(|it| it.0 != value),
            Some(value) => !values.exact.contains_key(value.as_bytes()),
        };
        match value {
            _ if !is_new => {}
            None => values.bare = Some(Box::new(node)),
            Some(value) if value.contains('*') => values.stars.push((value.to_owned(), node)),
            Some(value) => _ = values.exact.insert(value.as_bytes().to_vec(), node),
        }
        is_new
    }

    /// Returns the number of the rule of a descriptor.
    pub(crate) fn find(&self, entries: &[Entry<'_>]) -> Option<usize> {
        if entries.is_empty() {
            return None;
        }
        let end = entries
            .iter()
            .try_fold(self, |node, entry| node.next(*entry));
        end.and_then(|node| node.rule)
    }

    fn next(&self, entry: Entry<'_>) -> Option<&Self> {
        let values = self.keys.get(entry.key)?;
        let value = entry.value.unwrap_or_default();
        // A request with a long value is refused, so no pattern is searched in it.
        let matches = |pattern: &str| is_long(value) || star_matches(pattern.as_bytes(), value);
        let star = || {
            let mut stars = values.stars.iter();
            let first = stars.find(|(pattern, _)| matches(pattern))?;
            // A request with the pattern itself as its value matches it exactly.
            let same = stars.find(|(pattern, _)| pattern.as_bytes() == value);
            Some(same.unwrap_or(first))
        };
        (values.exact.get(value))
            .or_else(|| star().map(|(_, node)| node))
            .or(values.bare.as_deref())
    }
}
