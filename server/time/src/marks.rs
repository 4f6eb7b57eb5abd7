//! Marks of a root's resources, as its store has them. Elections and nodes do not know each other, and both know these.
//!
//! There may be a million. So they are put in while they are read, and nothing later passes through all of them.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

/// Largest sum of a resource's leases, and the longest remaining time of any of them. Without the sum: any amount.
pub type StoredMark = (Option<f64>, Duration);

/// Stands between the id of a budget and the start of its window, in the name of the window's mark. No id has it.
pub const BUDGET_KEY: char = '\u{1f}';

/// Marks by resource.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MarksByResource {
    marks: BTreeMap<Box<str>, StoredMark>,
    /// Marks of windows of budgets. They count until the window is over, even without requests.
    budgets: BTreeMap<Box<str>, StoredMark>,
    longest: Duration,
}

impl MarksByResource {
    /// Puts a mark in, or in place of another one.
    pub fn insert(&mut self, resource: &str, mark: StoredMark) {
        self.longest = self.longest.max(mark.1);
        let marks = match resource.contains(BUDGET_KEY) {
            true => &mut self.budgets,
            false => &mut self.marks,
        };
        marks.insert(resource.into(), mark);
    }

    /// Takes the marks of a budget out: the starts of its windows, and the amounts.
    pub fn take_budget(&mut self, budget: &str) -> Vec<(i64, f64)> {
        let prefix = format!("{budget}{BUDGET_KEY}");
        let from = (Bound::Included(prefix.as_str()), Bound::Unbounded);
        let all = self.budgets.range::<str, _>(from);
        let keys = all.take_while(|(key, _)| key.starts_with(&prefix));
        let keys: Vec<_> = keys.map(|(key, _)| key.clone()).collect();
        let mark = |key: Box<str>| {
            let (amount, _) = self.budgets.remove(&key)?;
            Some((key.strip_prefix(&prefix)?.parse().ok()?, amount?))
        };
        keys.into_iter().filter_map(mark).collect()
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
        self.marks.len() + self.budgets.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there are some of leases.
    pub fn has_leases(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Returns all marks.
    pub fn iter(&self) -> impl Iterator<Item = (&str, StoredMark)> {
        let all = self.marks.iter().chain(&self.budgets);
        all.map(|(resource, mark)| (&**resource, *mark))
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
