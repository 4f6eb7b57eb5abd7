//! Marks of a root's resources, as its store has them. Elections and nodes do not know each other, and both know these.
//!
//! There may be a million. So they are put in while they are read, and nothing later passes through all of them.

use std::collections::BTreeMap;
use std::time::Duration;

/// Largest sum of a resource's leases, and the longest remaining time of any of them. Without the sum: any amount.
pub type StoredMark = (Option<f64>, Duration);

/// Marks by resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MarksByResource {
    marks: BTreeMap<Box<str>, StoredMark>,
    longest: Duration,
}

impl MarksByResource {
    /// Puts a mark in, or in place of another one.
    pub fn insert(&mut self, resource: &str, mark: StoredMark) {
        self.longest = self.longest.max(mark.1);
        self.marks.insert(resource.into(), mark);
    }

    /// Takes the mark of a resource out.
    pub fn remove(&mut self, resource: &str) -> Option<StoredMark> {
        self.marks.remove(resource)
    }

    /// Takes any mark out, and returns its resource.
    pub fn pop(&mut self) -> Option<Box<str>> {
        self.marks.pop_first().map(|(resource, _)| resource)
    }

    /// Longest remaining time of leases by any mark that was put in.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// Number of marks.
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Returns all marks.
    pub fn iter(&self) -> impl Iterator<Item = (&str, StoredMark)> {
        self.marks
            .iter()
            .map(|(resource, mark)| (&**resource, *mark))
    }
}

impl<'a> FromIterator<(&'a str, StoredMark)> for MarksByResource {
    fn from_iter<T: IntoIterator<Item = (&'a str, StoredMark)>>(marks: T) -> Self {
        let mut all = Self::default();
        for (resource, mark) in marks {
            all.insert(resource, mark);
        }
        all
    }
}
