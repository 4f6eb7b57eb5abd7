//! Number of subclients of each claim of a leaf.
//!
//! A client's claim has one subclient, and nearly all claims are clients'. A leaf of such claims stores no numbers.
//! That makes it a third smaller, and a change of a claim waits for less memory. Claims of child servers have any
//! number of subclients.
#![expect(
    clippy::indexing_slicing,
    reason = "positions are within the array: they are those of the leaf"
)]

/// See the [module](self). Stored numbers beyond the length of the leaf are zero.
#[derive(Clone, Debug)]
pub(super) struct LeafSubclients<const MAX: usize>(Option<Box<[f64; MAX]>>);

impl<const MAX: usize> Default for LeafSubclients<MAX> {
    fn default() -> Self {
        Self(None)
    }
}

impl<const MAX: usize> LeafSubclients<MAX> {
    /// Numbers of all claims. None: every claim has one subclient.
    pub(super) fn each(&self) -> Option<&[f64; MAX]> {
        self.0.as_deref()
    }

    /// Number of subclients of the claim at a position.
    pub(super) fn at(&self, position: usize) -> f64 {
        self.each().map_or(1.0, |each| each[position])
    }

    /// Inserts the number of a new claim at a position, among `len` others.
    pub(super) fn insert(&mut self, position: usize, subclients: f64, len: usize) {
        if self.0.is_none() && subclients != 1.0 {
            let mut each = Box::new([0.0; MAX]);
            each[..len].fill(1.0);
            self.0 = Some(each);
        }
        if let Some(each) = &mut self.0 {
            each.copy_within(position..len, position + 1);
            each[position] = subclients;
        }
    }

    /// Removes the number at a position, one of `len`.
    pub(super) fn remove(&mut self, position: usize, len: usize) {
        if let Some(each) = &mut self.0 {
            each.copy_within(position + 1..len, position);
        }
        self.truncate(len - 1, len);
    }

    /// Drops the numbers from a position on, of `len`.
    pub(super) fn truncate(&mut self, at: usize, len: usize) {
        if at == 0 {
            self.0 = None;
        }
        if let Some(each) = &mut self.0 {
            each[at..len].fill(0.0);
        }
    }

    /// Bytes of heap memory that the numbers use.
    pub(super) fn memory_bytes(&self) -> usize {
        self.each().map_or(0, size_of_val)
    }
}
