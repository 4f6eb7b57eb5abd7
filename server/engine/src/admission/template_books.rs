//! The bytes of each template, and its requests lately.
//!
//! A book belongs to a number, which a template keeps for as long as one with its glob is in force
//! ([`InForce`](crate::node::reload::InForce)). So other templates change no book: each resource moves from one
//! to the other when it hears of them. A book begins when something is to be written into it.

use std::collections::BTreeMap;

use crate::admission::bucket::Bucket;

/// A template in the books.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TemplateSlot(u32);

impl TemplateSlot {
    /// Slot of resources that no template matches. No limit of a template applies to them.
    pub(crate) const NONE: Self = Self(0);

    /// The first slot of a template.
    pub(crate) const FIRST: Self = Self(1);

    /// The next slot.
    pub(crate) const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The book of a template.
#[derive(Clone, Debug, Default)]
pub(super) struct TemplateBook {
    /// Bytes of its resources and their holders.
    pub(super) bytes: usize,
    pub(super) requests: Bucket,
}

/// The books of all templates, and of resources that no template matches.
#[derive(Debug, Default)]
pub(super) struct TemplateBooks(BTreeMap<TemplateSlot, TemplateBook>);

impl TemplateBooks {
    /// The book of a template.
    pub(super) fn get_mut(&mut self, slot: TemplateSlot) -> &mut TemplateBook {
        self.0.entry(slot).or_default()
    }

    /// The bytes of a template.
    pub(super) fn bytes(&self, slot: TemplateSlot) -> usize {
        self.0.get(&slot).map_or(0, |book| book.bytes)
    }

    /// The books of all templates.
    pub(super) fn iter(&self) -> impl Iterator<Item = &TemplateBook> {
        let templates = self
            .0
            .iter()
            .filter(|(slot, _)| **slot != TemplateSlot::NONE);
        templates.map(|(_, book)| book)
    }

    /// The bytes of all templates.
    pub(super) fn all_bytes(&self) -> usize {
        self.0.values().map(|book| book.bytes).sum()
    }

    /// The template is not in force any more, and nothing belongs to it.
    pub(super) fn forget(&mut self, slot: TemplateSlot) {
        let gone = self.0.remove(&slot);
        debug_assert!(gone.is_none_or(|book| book.bytes == 0));
    }
}
