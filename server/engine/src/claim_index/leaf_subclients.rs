//! How many subclients each claim of a leaf has.
//!
//! A client's claim is of one, and nearly all claims are clients': a leaf of such claims keeps nothing of it. That
//! makes it a third smaller, and a change of a claim waits for less memory. Claims of child servers are of any number.
#![expect(
    clippy::indexing_slicing,
    reason = "positions are within the array: they are those of the leaf"
)]

/// See the [module](self). What is beyond the length of the leaf is zero, if it is kept.
#[derive(Clone, Debug)]
pub(super) struct LeafSubclients<const MAX: usize>(Option<Box<[f64; MAX]>>);

impl<const MAX: usize> Default for LeafSubclients<MAX> {
    fn default() -> Self {
        Self(None)
    }
}

impl<const MAX: usize> LeafSubclients<MAX> {
    /// Of each claim. None: every claim is of one.
    pub(super) fn each(&self) -> Option<&[f64; MAX]> {
        self.0.as_deref()
    }

    /// Of the claim at a position.
    pub(super) fn at(&self, position: usize) -> f64 {
        self.each().map_or(1.0, |each| each[position])
    }

    /// A claim comes to a position. There are `len` others.
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

    /// The claim at a position goes, of `len`.
    pub(super) fn remove(&mut self, position: usize, len: usize) {
        if let Some(each) = &mut self.0 {
            each.copy_within(position + 1..len, position);
        }
        self.truncate(len - 1, len);
    }

    /// The claims from a position on go, of `len`.
    pub(super) fn truncate(&mut self, at: usize, len: usize) {
        if at == 0 {
            self.0 = None;
        }
        if let Some(each) = &mut self.0 {
            each[at..len].fill(0.0);
        }
    }

    /// Bytes of memory behind it.
    pub(super) fn memory_bytes(&self) -> usize {
        self.each().map_or(0, size_of_val)
    }
}
