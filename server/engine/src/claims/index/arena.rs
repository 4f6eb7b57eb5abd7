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

    /// Changes two different nodes together.
    pub(super) fn change_both<R>(
        &mut self,
        one: u32,
        other: u32,
        change: impl FnOnce(&mut T, &mut T) -> R,
    ) -> R {
        debug_assert_ne!(one, other);
        let mut taken = std::mem::take(&mut self[other]);
        let result = change(&mut self[one], &mut taken);
        self[other] = taken;
        result
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
