//! The nodes of the claim index's tree, by number.

/// Nodes by number. The arena grows by chunks, so that no insertion moves another node.
#[derive(Clone, Debug)]
pub(super) struct Arena<T> {
    chunks: Vec<Vec<T>>,
    /// Numbers of free places.
    free: Vec<u32>,
}

/// Largest chunk, in bytes. Growth of the first chunk copies it, which takes some microseconds.
const CHUNK_BYTES: usize = 32 * 1024;

impl<T> Arena<T> {
    /// Number of nodes in a chunk: a power of two.
    const CHUNK: usize = {
        let fit = CHUNK_BYTES / size_of::<T>();
        1 << fit.ilog2()
    };
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T: Default> Arena<T> {
    /// Inserts a node, and returns its number.
    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self[number] = value;
            return number;
        }
        let full = self
            .chunks
            .last()
            .is_none_or(|chunk| chunk.len() == Self::CHUNK);
        if full {
            // The first chunk grows as needed, since most trees are small.
            let is_first = self.chunks.is_empty();
            self.chunks.reserve_exact(usize::from(is_first));
            self.chunks
                .push(Vec::with_capacity(if is_first { 0 } else { Self::CHUNK }));
        }
        let chunks = self.chunks.len();
        // A chunk exists: an older one, or the one pushed above.
        let Some(chunk) = self.chunks.last_mut() else {
            return 0;
        };
        if chunk.len() == chunk.capacity() {
            chunk.reserve_exact(1 + chunk.len() / 4);
        }
        chunk.push(value);
        u32::try_from((chunks - 1) * Self::CHUNK + chunk.len() - 1).unwrap_or(u32::MAX)
    }

    /// Removes a node.
    pub(super) fn remove(&mut self, number: u32) {
        self[number] = T::default();
        self.free.push(number);
    }

    /// Returns two different nodes at once.
    pub(super) fn pair_mut(&mut self, left: u32, right: u32) -> (&mut T, &mut T) {
        debug_assert_ne!(left, right);
        let [left, right] = [left as usize, right as usize];
        let (chunk_l, chunk_r) = (left / Self::CHUNK, right / Self::CHUNK);
        let (at_l, at_r) = (left % Self::CHUNK, right % Self::CHUNK);
        #[expect(clippy::indexing_slicing, reason = "both numbers came from `insert`")]
        if chunk_l == chunk_r {
            let (low, high) = self.chunks[chunk_l].split_at_mut(at_l.max(at_r));
            let (low, high) = (&mut low[at_l.min(at_r)], &mut high[0]);
            if at_l < at_r {
                (low, high)
            } else {
                (high, low)
            }
        } else {
            let (low, high) = self.chunks.split_at_mut(chunk_l.max(chunk_r));
            let (low, high) = (&mut low[chunk_l.min(chunk_r)], &mut high[0]);
            if chunk_l < chunk_r {
                (&mut low[at_l], &mut high[at_r])
            } else {
                (&mut high[at_l], &mut low[at_r])
            }
        }
    }

    /// Number of nodes and free places. O(chunks).
    pub(super) fn places(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum()
    }
}

#[expect(
    clippy::indexing_slicing,
    reason = "numbers come from `insert` and are never made up"
)]
impl<T> std::ops::Index<u32> for Arena<T> {
    type Output = T;

    fn index(&self, number: u32) -> &T {
        &self.chunks[number as usize / Self::CHUNK][number as usize % Self::CHUNK]
    }
}

#[expect(
    clippy::indexing_slicing,
    reason = "numbers come from `insert` and are never made up"
)]
impl<T> std::ops::IndexMut<u32> for Arena<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.chunks[number as usize / Self::CHUNK][number as usize % Self::CHUNK]
    }
}
