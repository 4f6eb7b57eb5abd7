//! Lists of nodes, clients and resources, whose entries keep their numbers for the whole run.

use std::ops::{Index, IndexMut, Range};
use std::slice::{Iter, IterMut};

/// List that only grows. Its numbers come from [`Numbered::push`], so each of them names an entry.
#[derive(Clone, Debug)]
pub(crate) struct Numbered<T>(Vec<T>);

impl<T> Numbered<T> {
    /// Adds an entry, and returns its number.
    pub(crate) fn push(&mut self, entry: T) -> u32 {
        self.0.push(entry);
        self.len() - 1
    }

    pub(crate) fn len(&self) -> u32 {
        self.0.len() as u32
    }

    /// Returns the numbers of all entries.
    pub(crate) fn numbers(&self) -> Range<u32> {
        0..self.len()
    }

    pub(crate) fn iter(&self) -> Iter<'_, T> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> IterMut<'_, T> {
        self.0.iter_mut()
    }

    /// Returns all entries with their numbers.
    pub(crate) fn enumerate(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.0)
    }
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> FromIterator<T> for Numbered<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}

#[expect(clippy::indexing_slicing, reason = "no entry is ever removed")]
impl<T> Index<u32> for Numbered<T> {
    type Output = T;

    fn index(&self, number: u32) -> &T {
        &self.0[number as usize]
    }
}

#[expect(clippy::indexing_slicing, reason = "no entry is ever removed")]
impl<T> IndexMut<u32> for Numbered<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.0[number as usize]
    }
}
