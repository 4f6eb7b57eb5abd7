//! A hash table of places that grows a little at a time.
//!
//! A table that doubles puts everything that is in it elsewhere, at once: with a million entries that takes tens of
//! milliseconds, in the middle of somebody's request. So here are many small tables ([`Part`]). An entry is in the one
//! that the first bits of its hash say; one that is full is split in two by the next bit, and no other is touched.
//! Where the table for some first bits is stands in a directory, which doubles when a table is split that is told apart
//! by all the bits that the directory knows. It has four bytes for some hundreds of entries.
//!
//! An entry is a place, such as a slot, and 32 bits of the hash of whoever is in it, which have to be good ones, and keyed
//! if names come from outside. What is looked for nearly always stands where its hash says or next to that: it
//! takes one access to memory.

use crate::split_table::part::Part;

mod part;

/// A part that has as many entries is split in two.
const FULL: usize = 768;

/// First bits that tell parts apart, at most: beyond that they grow. With good hashes that is hundreds of millions of
/// entries.
const BITS_MAX: u32 = 19;

/// How many times as many parts as are needed there may be, by those that are told apart by most bits. With good hashes
/// parts are nearly of one size.
const UNEVEN_MAX: usize = 16;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct SplitTable {
    parts: Vec<Part>,
    /// The part for each value of the first bits. Empty: there is one part.
    directory: Vec<u32>,
    /// How many bits these are.
    bits: u32,
    len: usize,
}

/// Spreads 32 good bits over 64. Parts go by the upper end, and their directory by what follows.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// So many first bits, at least one.
fn first_bits(hash: u32, bits: u32) -> usize {
    (spread(hash) << 16 >> (u64::BITS - bits)) as usize
}

impl SplitTable {
    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The place of that hash which `is_it`.
    pub(crate) fn find(&self, hash: u32, is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        self.parts.get(self.part_of(hash))?.find(hash, is_it)
    }

    /// Puts in a place that is not there yet.
    pub(crate) fn insert(&mut self, hash: u32, place: u32) {
        if self.parts.is_empty() {
            self.parts.push(Part::default());
        }
        let mut part = self.part_of(hash);
        // Again, if all entries are on one side.
        while self.is_to_be_split(part) {
            self.split(part, hash);
            part = self.part_of(hash);
        }
        if let Some(part) = self.parts.get_mut(part) {
            part.insert(hash, place);
            self.len += 1;
        }
    }

    /// Takes out a place, which has that hash. Returns whether it was there.
    pub(crate) fn remove(&mut self, hash: u32, place: u32) -> bool {
        let part = self.part_of(hash);
        let part = self.parts.get_mut(part);
        let is_there = part.is_some_and(|part| part.remove(hash, place));
        self.len -= usize::from(is_there);
        is_there
    }

    /// Bytes of memory behind it.
    pub(crate) fn memory_bytes(&self) -> usize {
        let entries: usize = self.parts.iter().map(Part::memory_bytes).sum();
        entries
            + self.parts.capacity() * size_of::<Part>()
            + self.directory.capacity() * size_of::<u32>()
    }

    /// The position of the part for a hash.
    fn part_of(&self, hash: u32) -> usize {
        if self.bits == 0 {
            return 0;
        }
        let part = self.directory.get(first_bits(hash, self.bits));
        part.map_or(0, |part| *part as usize)
    }

    fn is_to_be_split(&self, part: usize) -> bool {
        self.parts.get(part).is_some_and(|part| {
            let is_even = FULL << part.bits <= UNEVEN_MAX * self.len;
            part.len() >= FULL && part.bits < BITS_MAX && is_even
        })
    }

    /// Splits the part of that hash in two.
    fn split(&mut self, part: usize, hash: u32) {
        let new = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        let Some(part) = self.parts.get_mut(part) else {
            return;
        };
        let bits = part.bits + 1;
        let second = part.split(bits, |hash| first_bits(hash, bits) & 1 == 1);
        self.parts.push(second);
        if bits > self.bits {
            self.double_directory();
        }
        // All values with the bits that the part had, and then a one.
        let first = first_bits(hash, bits) | 1;
        let each = 1 << (self.bits - bits);
        let values = self.directory.get_mut(first * each..(first + 1) * each);
        values.unwrap_or_default().fill(new);
    }

    fn double_directory(&mut self) {
        let before = match self.bits {
            0 => vec![0],
            _ => std::mem::take(&mut self.directory),
        };
        self.directory = before.iter().flat_map(|part| [*part, *part]).collect();
        self.bits += 1;
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
    fn whatever_was_put_in_is_found_until_it_is_taken_out_while_parts_are_split() {
        let count = 40 * FULL as u32;
        let mut table = SplitTable::default();
        assert_eq!(find(&table, 1), None);
        for number in 0..count {
            table.insert(hash(number), number);
        }
        assert_eq!(table.len(), count as usize);
        assert!(table.parts.len() >= 40, "{} parts", table.parts.len());
        assert!(table.parts.iter().all(|it| it.len() <= FULL));
        let bytes = table.memory_bytes() as f64 / f64::from(count);
        assert!(bytes < 24.0, "{bytes} bytes an entry");
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
        let count = 2 * FULL as u32;
        for number in 0..count {
            table.insert(7, number);
        }
        assert!(table.parts.len() < 10, "it cannot be told apart");
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
            spread in 1..2_000_u32,
            steps in prop::collection::vec((0..4_000_u32, any::<bool>()), 0..8_000),
        ) {
            let hash = |number| hash(number % spread);
            let (mut table, mut expected) = (SplitTable::default(), BTreeSet::new());
            for (number, comes) in steps {
                if comes && expected.insert(number) {
                    table.insert(hash(number), number);
                } else if !comes {
                    prop_assert_eq!(table.remove(hash(number), number), expected.remove(&number));
                }
                prop_assert_eq!(table.len(), expected.len());
            }
            for number in 0..4_000 {
                let found = table.find(hash(number), |it| it == number);
                prop_assert_eq!(found, expected.get(&number).copied());
            }
        }
    }
}
