//! Where a holder is in the table of leases, as a number.

/// Where a holder is in the table. Not valid any more once the holder is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(pub(super) u32);

/// Holders in a chunk: a power of two. Chunks never move, so adding a holder never copies what is there.
pub(super) const CHUNK: usize = 512;

impl Slot {
    /// The first of all.
    pub(crate) const FIRST: Self = Self(0);

    /// The one after it.
    pub(crate) fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// That place.
    pub(super) fn of(at: usize) -> Self {
        Self(u32::try_from(at).unwrap_or(u32::MAX))
    }

    /// Its chunk, and the place in it.
    pub(super) fn place(self) -> (usize, usize) {
        (self.0 as usize / CHUNK, self.0 as usize % CHUNK)
    }
}
