//! How much memory what is out takes, roughly, without looking at it: counts times weights.
//!
//! The weights are measured (`cargo bench -p doorward-engine --bench memory`), and a test holds the figure
//! within 10 % of what the process grows by, whatever resources clients have leases of; within 30 % for child servers.

/// A resource with its first lease, without what that lease weighs by itself.
pub(crate) const RESOURCE_BYTES: usize = 710;

/// What each of the first leases takes in addition, if a resource has more than a few: their tables grow by steps, and
/// are partly empty.
pub(crate) const EARLY_BYTES: usize = 90;

/// No more leases of a resource are such.
const EARLY_MAX: usize = 100;

/// A resource with so many leases has no tables.
const FEW: usize = 4;

/// A lease of a client, its claim and its place in line; its name, if it is short.
pub(crate) const LEASE_BYTES: usize = 300;

/// A lease of a child server, without the points of its curve.
pub(crate) const CURVE_BYTES: usize = 590;

/// A point of a demand curve, and the claim that it stands for.
pub(crate) const POINT_BYTES: usize = 55;

/// A further priority of a resource.
pub(crate) const BAND_BYTES: usize = 190;

/// What an allocation costs besides what it holds.
const ALLOCATION_BYTES: usize = 32;

/// A name of up to so many bytes needs no allocation.
const NAME_INLINE_MAX: usize = 23;

/// What a name takes that is not kept in place.
pub fn name_bytes(name: &str) -> usize {
    if name.len() > NAME_INLINE_MAX {
        name.len() + ALLOCATION_BYTES
    } else {
        0
    }
}

/// How many of so many leases of a resource are among the first ones, if its tables are such.
pub(crate) fn early(leases: usize) -> usize {
    if leases > FEW {
        leases.min(EARLY_MAX)
    } else {
        0
    }
}

/// What takes memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    /// Leases of clients.
    pub leases: usize,
    /// Leases of child servers.
    pub curves: usize,
    /// Leases that are among the first of resources with more than a few.
    pub early: usize,
    /// Points of their demand curves.
    pub points: usize,
    /// Priorities of resources, but for the first of each.
    pub bands: usize,
    /// Names of holders that are not kept in place.
    pub name_bytes: usize,
}

impl Weight {
    /// In bytes.
    pub(crate) const fn bytes(self) -> usize {
        self.leases * LEASE_BYTES
            + self.curves * CURVE_BYTES
            + self.early * EARLY_BYTES
            + self.points * POINT_BYTES
            + self.bands * BAND_BYTES
            + self.name_bytes
    }

    /// This instead of what was there before.
    pub(crate) const fn replace(&mut self, before: Self, after: Self) {
        self.leases = self.leases + after.leases - before.leases;
        self.curves = self.curves + after.curves - before.curves;
        self.early = self.early + after.early - before.early;
        self.points = self.points + after.points - before.points;
        self.bands = self.bands + after.bands - before.bands;
        self.name_bytes = self.name_bytes + after.name_bytes - before.name_bytes;
    }
}
