//! Places for entries that come and go. Memory grows by a chunk at a time, so that little of it stays empty.

/// Entries by place.
pub(crate) struct Slab<T> {
    chunks: Vec<Box<[Option<T>]>>,
    /// Free places, the next one last.
    free: Vec<u32>,
    /// Number of places that were ever taken.
    used: u32,
}

/// Number of entries per chunk.
const CHUNK: usize = 64;

impl<T> Slab<T> {
    pub(crate) const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            free: Vec::new(),
            used: 0,
        }
    }

    /// Returns one more than the highest place of an entry.
    pub(crate) const fn places(&self) -> usize {
        self.used as usize
    }

    /// Returns whether less than a quarter of several chunks is in use.
    pub(crate) fn is_sparse(&self) -> bool {
        let used = self.used as usize;
        used > CHUNK && (used - self.free.len()) * 4 < used
    }

    /// Returns the entries with their places.
    pub(crate) fn into_entries(self) -> impl Iterator<Item = (usize, T)> {
        let slots = self.chunks.into_iter().flatten().enumerate();
        slots.filter_map(|(place, slot)| Some((place, slot?)))
    }

    #[inline]
    pub(crate) fn get(&self, place: u32) -> Option<&T> {
        let chunk = self.chunks.get(place as usize / CHUNK)?;
        chunk.get(place as usize % CHUNK)?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.slot(place)?.as_mut()
    }

    /// Stores an entry and returns its place. The caller holds fewer than 2³² of them.
    pub(crate) fn insert(&mut self, entry: T) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.used += 1;
            self.used - 1
        });
        if place as usize / CHUNK == self.chunks.len() {
            self.chunks.push((0..CHUNK).map(|_| None).collect());
        }
        if let Some(slot) = self.slot(place) {
            *slot = Some(entry);
        }
        place
    }

    pub(crate) fn remove(&mut self, place: u32) -> Option<T> {
        let entry = self.slot(place)?.take()?;
        self.free.push(place);
        Some(entry)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.chunks.iter_mut().flatten().flatten()
    }

    #[inline]
    fn slot(&mut self, place: u32) -> Option<&mut Option<T>> {
        let chunk = self.chunks.get_mut(place as usize / CHUNK)?;
        chunk.get_mut(place as usize % CHUNK)
    }
}
