//! A long list that never moves what is in it.
//!
//! A vector that is full is copied to where there is more room. With a million entries that takes milliseconds, in the
//! middle of somebody's request. So this one is in chunks, which stay where they are.

/// Entries of a chunk: a power of two.
pub(crate) const CHUNK: usize = 1_024;

/// Chunks that are kept for entries to come.
const SPARE: usize = 2;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Chunked<T> {
    /// Beyond the length, what is in them means nothing.
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
    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where an entry is.
    pub(crate) fn place(&self, at: usize) -> Option<&T> {
        if at >= self.len {
            return None;
        }
        self.chunks.get(at / CHUNK)?.get(at % CHUNK)
    }

    /// The same, to be changed.
    pub(crate) fn place_mut(&mut self, at: usize) -> Option<&mut T> {
        if at >= self.len {
            return None;
        }
        self.chunks.get_mut(at / CHUNK)?.get_mut(at % CHUNK)
    }

    /// Puts an entry in the place of another one.
    pub(crate) fn set(&mut self, at: usize, entry: T) {
        if let Some(place) = self.place_mut(at) {
            *place = entry;
        }
    }

    /// Puts an entry in, behind all others.
    pub(crate) fn push(&mut self, entry: T) {
        let (chunk, place) = (self.len / CHUNK, self.len % CHUNK);
        if self.chunks.len() == chunk {
            // The first chunk grows as needed: most lists are short.
            let capacity = if chunk == 0 { 0 } else { CHUNK };
            self.chunks.push(Vec::with_capacity(capacity));
        }
        if let Some(chunk) = self.chunks.get_mut(chunk) {
            chunk.truncate(place);
            chunk.push(entry);
        }
        self.len += 1;
    }

    /// Forgets the last entry.
    fn shorten(&mut self) {
        self.len = self.len.saturating_sub(1);
        if self.chunks.len() > self.len / CHUNK + SPARE {
            self.chunks.pop();
        }
    }

    /// All entries, in order.
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
    /// An entry.
    pub(crate) fn get(&self, at: usize) -> Option<T> {
        self.place(at).copied()
    }

    /// Takes the last entry out.
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
    fn it_gives_its_memory_back_chunk_by_chunk() {
        let mut list = Chunked::default();
        (0..10 * CHUNK).for_each(|entry| list.push(entry));
        let most = list.memory_bytes();
        while list.pop().is_some() {}
        assert!(list.memory_bytes() < most / 3);
    }

    proptest! {
        #[test]
        fn it_is_a_vector(
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
