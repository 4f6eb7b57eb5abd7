//! Globs that are tried one by one, in order.

use crate::glob::Glob;

/// Globs and their places, in order.
pub(super) type Ordered = Vec<(usize, Glob)>;

/// The search for the first glob that matches a text.
#[derive(Debug)]
pub(super) struct Search<'a> {
    /// What is to be matched.
    pub(super) text: &'a str,
    found: Option<usize>,
    tried: usize,
}

impl<'a> Search<'a> {
    /// None was tried yet.
    pub(super) fn of(text: &'a str) -> Self {
        Self {
            text,
            found: None,
            tried: 0,
        }
    }

    /// The place of the first that matches, and how many were tried.
    pub(super) fn result(&self) -> (Option<usize>, usize) {
        (self.found, self.tried)
    }

    /// Whether that place, or one before it, was found already.
    pub(super) fn is_over(&self, place: usize) -> bool {
        self.found.is_some_and(|found| found <= place)
    }

    /// Whether one of these is before what was found, and matches, too.
    pub(super) fn try_each(&mut self, globs: &Ordered) {
        for (place, glob) in globs {
            if self.is_over(*place) {
                return;
            }
            self.tried += 1;
            if glob.matches(self.text) {
                self.found = Some(*place);
                return;
            }
        }
    }
}
