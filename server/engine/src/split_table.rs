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
    first: Part,
    /// None: there is no other part. Of most tables that is so, and what is in them is found with one step less.
    more: Option<Box<More>>,
}

/// What there is once a part was split.
#[derive(Clone, Debug)]
struct More {
    /// All parts but the first one, numbered from 1.
    others: Vec<Part>,
    /// The part for each value of the first bits.
    directory: Vec<u32>,
    /// How many bits these are: at least one.
    bits: u32,
    /// How many entries there are in all parts.
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
        let more = self.more.as_ref();
        more.map_or(self.first.len(), |more| more.len)
    }

    /// The place of that hash which `is_it`.
    pub(crate) fn find(&self, hash: u32, is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        self.part_for(hash).find(hash, is_it)
    }

    /// Puts in a place that is not there yet.
    pub(crate) fn insert(&mut self, hash: u32, place: u32) {
        // Again, if all entries are on one side.
        while self.is_to_be_split(self.part_for(hash)) {
            self.split(hash);
        }
        self.part_for_mut(hash).insert(hash, place);
        if let Some(more) = &mut self.more {
            more.len += 1;
        }
    }

    /// Takes out a place, which has that hash. Returns whether it was there.
    pub(crate) fn remove(&mut self, hash: u32, place: u32) -> bool {
        let is_there = self.part_for_mut(hash).remove(hash, place);
        if let Some(more) = &mut self.more {
            more.len -= usize::from(is_there);
        }
        is_there
    }

    /// Bytes of memory behind it.
    pub(crate) fn memory_bytes(&self) -> usize {
        let more = self.more.as_ref();
        self.first.memory_bytes() + more.map_or(0, |more| more.memory_bytes())
    }

    /// The part for a hash.
    fn part_for(&self, hash: u32) -> &Part {
        let more = self.more.as_ref();
        more.and_then(|more| more.others.get(more.position(hash)?))
            .unwrap_or(&self.first)
    }

    /// The same, to be changed.
    fn part_for_mut(&mut self, hash: u32) -> &mut Part {
        let more = self.more.as_mut();
        more.and_then(|more| {
            let position = more.position(hash)?;
            more.others.get_mut(position)
        })
        .unwrap_or(&mut self.first)
    }

    fn is_to_be_split(&self, part: &Part) -> bool {
        let is_even = FULL << part.bits <= UNEVEN_MAX * self.len();
        part.len() >= FULL && part.bits < BITS_MAX && is_even
    }

    /// Splits the part of that hash in two.
    fn split(&mut self, hash: u32) {
        let len = self.len();
        let part = self.part_for_mut(hash);
        let bits = part.bits + 1;
        let second = part.split(bits, |hash| first_bits(hash, bits) & 1 == 1);
        let more = self.more.get_or_insert_with(|| Box::new(More::of(len)));
        more.add(second, hash);
    }
}

impl More {
    /// No other part yet, and so many entries in the first one.
    fn of(len: usize) -> Self {
        Self {
            others: Vec::new(),
            directory: vec![0; 2],
            bits: 1,
            len,
        }
    }

    /// Which of the other parts is for a hash. None: the first one is.
    fn position(&self, hash: u32) -> Option<usize> {
        let number = self.directory.get(first_bits(hash, self.bits))?;
        (*number as usize).checked_sub(1)
    }

    /// The second half of the part that is for a hash.
    fn add(&mut self, part: Part, hash: u32) {
        let bits = part.bits;
        self.others.push(part);
        let number = u32::try_from(self.others.len()).unwrap_or(u32::MAX);
        if bits > self.bits {
            let twice = self.directory.iter().flat_map(|part| [*part, *part]);
            self.directory = twice.collect();
            self.bits += 1;
        }
        // All values with the bits that the part had, and then a one.
        let first = first_bits(hash, bits) | 1;
        let each = 1 << (self.bits - bits);
        let values = self.directory.get_mut(first * each..(first + 1) * each);
        values.unwrap_or_default().fill(number);
    }

    fn memory_bytes(&self) -> usize {
        let entries: usize = self.others.iter().map(Part::memory_bytes).sum();
        size_of::<Self>()
            + entries
            + self.others.capacity() * size_of::<Part>()
            + self.directory.capacity() * size_of::<u32>()
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

    fn parts(table: &SplitTable) -> impl Iterator<Item = &Part> {
        let others = table.more.iter().flat_map(|more| &more.others);
        std::iter::once(&table.first).chain(others)
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
        let sizes: Vec<_> = parts(&table).map(Part::len).collect();
        assert!(sizes.len() >= 40, "{} parts", sizes.len());
        assert!(sizes.iter().all(|it| *it <= FULL));
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
        assert!(parts(&table).count() < 10, "it cannot be told apart");
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
