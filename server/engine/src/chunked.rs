//! A long list that never moves its entries.
//!
//! A full vector copies its entries to a larger allocation. With a million entries that takes milliseconds in the
//! middle of a client's request. This list keeps its entries in chunks, which stay in place.

/// Entries of a chunk: a power of two.
pub(crate) const CHUNK: usize = 1_024;

/// Empty chunks kept for later entries.
const SPARE: usize = 2;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Chunked<T> {
    /// Entries beyond the length are stale.
    chunks: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for Chunked<T> {
    fn default() -> Self {
        let chunks = Vec::new();
        Self { chunks, len: 0 }
    }
}

impl<T> Chunked<T> {
    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns a reference to an entry.
    pub(crate) fn place(&self, at: usize) -> Option<&T> {
        if at >= self.len {
            return None;
        }
        self.chunks.get(at / CHUNK)?.get(at % CHUNK)
    }

    /// Returns a mutable reference to an entry.
    pub(crate) fn place_mut(&mut self, at: usize) -> Option<&mut T> {
        if at >= self.len {
            return None;
        }
        self.chunks.get_mut(at / CHUNK)?.get_mut(at % CHUNK)
    }

    /// Overwrites an entry.
    pub(crate) fn set(&mut self, at: usize, entry: T) {
        if let Some(place) = self.place_mut(at) {
            *place = entry;
        }
    }

    /// Appends an entry.
    pub(crate) fn push(&mut self, entry: T) {
        let (chunk, place) = (self.len / CHUNK, self.len % CHUNK);
        if self.chunks.len() == chunk {
            // The first chunk grows as needed, since most lists are short.
            let capacity = if chunk == 0 { 0 } else { CHUNK };
            self.chunks.push(Vec::with_capacity(capacity));
        }
        if let Some(chunk) = self.chunks.get_mut(chunk) {
            chunk.truncate(place);
            chunk.push(entry);
        }
        self.len += 1;
    }

    /// Drops the last entry.
    fn shorten(&mut self) {
        self.len = self.len.saturating_sub(1);
        if self.chunks.len() > self.len / CHUNK + SPARE {
            self.chunks.pop();
        }
    }

    /// Iterates over all entries, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten().take(self.len)
    }

    /// Bytes of memory behind it.
    pub(crate) fn memory_bytes(&self) -> usize {
        let entries: usize = self.chunks.iter().map(Vec::capacity).sum();
        entries * size_of::<T>() + self.chunks.capacity() * size_of::<Vec<T>>()
    }
}

impl<T: Copy> Chunked<T> {
    /// Returns an entry.
    pub(crate) fn get(&self, at: usize) -> Option<T> {
        self.place(at).copied()
    }

    /// Removes the last entry.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let last = self.get(self.len.checked_sub(1)?)?;
        self.shorten();
        Some(last)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cleared_list_frees_its_memory_chunk_by_chunk() {
        let mut list = Chunked::default();
        (0..10 * CHUNK).for_each(|entry| list.push(entry));
        let most = list.memory_bytes();
        while list.pop().is_some() {}
        assert!(list.memory_bytes() < most / 3);
    }

    proptest! {
        #[test]
        fn the_list_behaves_like_a_vector(
            steps in prop::collection::vec((0..100_u32, any::<u32>()), 1..6_000),
        ) {
            let (mut list, mut expected) = (Chunked::default(), Vec::new());
            for (step, entry) in steps {
                match step {
                    ..20 => prop_assert_eq!(list.pop(), expected.pop()),
                    20..40 if !expected.is_empty() => {
                        let at = entry as usize % expected.len();
                        list.set(at, entry);
                        expected[at] = entry;
                    }
                    _ => {
                        list.push(entry);
                        expected.push(entry);
                    }
                }
                prop_assert_eq!(list.len(), expected.len());
            }
            for at in 0..expected.len() + 1 {
                prop_assert_eq!(list.get(at), expected.get(at).copied());
            }
            prop_assert!(list.iter().eq(&expected));
        }
    }
}
