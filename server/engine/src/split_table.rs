//! A hash table of places that does not grow all at once.
//!
//! A table that doubles puts all its entries elsewhere: with a million of them that takes tens of milliseconds, in the
//! middle of a request. So a table of more than [`SPLIT_AT`] entries becomes [`PARTS`] tables, chosen by the top bits
//! of the hash. Each of them grows by itself.
//!
//! An entry is a place, such as a slot, and 32 bits of a good hash, keyed if names come from outside.

use hashbrown::HashTable;

/// Entries of the first table.
const SPLIT_AT: usize = 7 * 1_024;

/// Tables after that: a power of two.
const PARTS: usize = 64;

/// A hash, and the place that has it.
type Entry = (u32, u32);

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct SplitTable {
    /// All entries, unless there are parts. Most tables are small, and need one step less this way.
    first: HashTable<Entry>,
    /// None, or [`PARTS`].
    parts: Vec<HashTable<Entry>>,
}

/// Spreads 32 good bits over 64: a table looks at both ends.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn spread_entry(entry: &Entry) -> u64 {
    spread(entry.0)
}

/// The part for a hash.
fn part_of(hash: u32) -> usize {
    (hash >> (u32::BITS - PARTS.ilog2())) as usize
}

impl SplitTable {
    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.tables().map(HashTable::len).sum()
    }

    /// The place of that hash which `is_it`.
    pub(crate) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let table = self.parts.get(part_of(hash)).unwrap_or(&self.first);
        let entry = table.find(spread(hash), |(other, place)| {
            *other == hash && is_it(*place)
        });
        entry.map(|(_, place)| *place)
    }

    /// Puts in a place that is not there yet.
    pub(crate) fn insert(&mut self, hash: u32, place: u32) {
        if self.first.len() == SPLIT_AT {
            self.split();
        }
        let table = self.table_mut(hash);
        table.insert_unique(spread(hash), (hash, place), spread_entry);
    }

    /// Takes out a place, which has that hash. Returns whether it was there.
    pub(crate) fn remove(&mut self, hash: u32, place: u32) -> bool {
        let entry = (hash, place);
        let table = self.table_mut(hash);
        let found = table.find_entry(spread(hash), |other| *other == entry);
        found.map(|found| found.remove()).is_ok()
    }

    fn tables(&self) -> impl Iterator<Item = &HashTable<Entry>> {
        std::iter::once(&self.first).chain(&self.parts)
    }

    fn table_mut(&mut self, hash: u32) -> &mut HashTable<Entry> {
        let part = self.parts.get_mut(part_of(hash));
        part.unwrap_or(&mut self.first)
    }

    fn split(&mut self) {
        self.parts = vec![HashTable::new(); PARTS];
        for (hash, place) in std::mem::take(&mut self.first) {
            self.insert(hash, place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Good hashes of numbers.
    fn hash(number: u32) -> u32 {
        let mixed = (number ^ (number >> 15)).wrapping_mul(0x85eb_ca6b);
        mixed ^ (mixed >> 13)
    }

    fn find(table: &SplitTable, number: u32) -> Option<u32> {
        table.find(hash(number), |it| it == number)
    }

    #[test]
    fn an_entry_is_found_until_it_is_taken_out_while_tables_are_split_and_grow() {
        let count = 20 * SPLIT_AT as u32;
        let mut table = SplitTable::default();
        assert_eq!(find(&table, 1), None);
        for number in 0..count {
            table.insert(hash(number), number);
        }
        assert_eq!(table.len(), count as usize);
        let largest = table.tables().map(HashTable::len).max().unwrap();
        assert!(
            largest < 2 * count as usize / PARTS,
            "{largest} in one table"
        );
        for number in (0..count).step_by(3) {
            assert!(table.remove(hash(number), number));
            assert!(!table.remove(hash(number), number));
        }
        for number in 0..count + 10 {
            let is_there = number < count && number % 3 != 0;
            assert_eq!(find(&table, number), is_there.then_some(number));
        }
    }

    #[test]
    fn a_table_of_one_hash_grows_as_any_table() {
        let mut table = SplitTable::default();
        let count = 1_500;
        for number in 0..count {
            table.insert(7, number);
        }
        for number in 0..count {
            assert_eq!(table.find(7, |it| it == number), Some(number));
        }
        for number in 0..count {
            assert!(table.remove(7, number));
        }
        assert_eq!(table.len(), 0);
    }

    proptest! {
        #[test]
        fn it_is_a_set_whatever_the_hashes(
            spread in 1..20_000_u32,
            steps in prop::collection::vec((0..24_000_u32, prop::bool::weighted(0.8)), 0..20_000),
        ) {
            let hash = |number| hash(number % spread);
            let (mut table, mut expected) = (SplitTable::default(), BTreeSet::new());
            for (number, comes) in steps {
                if comes && expected.insert(number) {
                    table.insert(hash(number), number);
                } else if !comes {
                    prop_assert_eq!(table.remove(hash(number), number), expected.remove(&number));
                }
            }
            prop_assert_eq!(table.len(), expected.len());
            for number in 0..24_000 {
                let found = table.find(hash(number), |it| it == number);
                prop_assert_eq!(found, expected.get(&number).copied());
            }
        }
    }
}
