//! Estimates of memory without a look at it: counts times weights.
//!
//! The weights are measured (`cargo bench -p doorward-engine --bench memory`), and a test holds the figure
//! within 10 % of what the process grows by, whatever resources clients have leases of; within 30 % for child servers.

/// A resource with its first lease, without what that lease weighs by itself.
const RESOURCE_BYTES: usize = 720;

/// The tables of a resource that has more than a few leases, and what they begin with.
const TABLES_BYTES: usize = 540;

/// Additional bytes of each early lease, if a resource has more than a few: the tables grow in steps, and are partly
/// empty.
const EARLY_BYTES: usize = 40;

/// Number of leases of a resource that count as early, at most.
const EARLY_MAX: usize = 100;

/// A resource with this many leases, or fewer, has no tables.
const SCANNED_MAX: usize = 4;

/// Further bytes of the claims of a resource that do not fit into one leaf of their tree.
const TREE_BYTES: usize = 1_400;

/// A resource with this many leases, or fewer, has one leaf of claims.
const ONE_LEAF: usize = 16;

/// A lease of a client, its claim and its place in line; its name, if it is short.
const LEASE_BYTES: usize = 260;

/// A lease of a child server, without the points of its curve.
const CURVE_BYTES: usize = 550;

/// A point of a demand curve, and the claim that it stands for.
const POINT_BYTES: usize = 55;

/// A further priority of a resource.
pub(crate) const BAND_BYTES: usize = 150;

/// Bytes of an allocation besides its content.
const ALLOCATION_BYTES: usize = 32;

/// A name of up to so many bytes needs no allocation.
const NAME_INLINE_MAX: usize = 23;

/// Bytes of a name that is not kept in place.
pub(crate) fn name_bytes(name: &str) -> usize {
    if name.len() > NAME_INLINE_MAX {
        name.len() + ALLOCATION_BYTES
    } else {
        0
    }
}

/// Bytes of a resource of that id, without its holders.
pub(crate) fn resource_bytes(id: &str) -> usize {
    RESOURCE_BYTES + name_bytes(id)
}

/// Bytes of a client of that name.
pub(crate) fn client_bytes(name: &str) -> usize {
    LEASE_BYTES + name_bytes(name)
}

/// Bytes of a child server of that name, with so many points and priorities. Every priority but one counts, although
/// other holders may share it.
pub(crate) fn child_bytes(name: &str, points: usize, bands: usize) -> usize {
    CURVE_BYTES + points * POINT_BYTES + bands.saturating_sub(1) * BAND_BYTES + name_bytes(name)
}

/// The parts of a resource that take memory. Each resource keeps one `Weight`, so it is small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weight {
    /// Leases of clients.
    pub(crate) leases: u32,
    /// Leases of child servers.
    pub(crate) curves: u32,
    /// Points of their demand curves.
    pub(crate) points: u32,
    /// Priorities, but for the first one.
    pub(crate) bands: u32,
    /// Names of holders that are not kept in place.
    pub(crate) name_bytes: u32,
}

impl Weight {
    /// Leases of clients and of child servers.
    pub(crate) const fn holders(self) -> usize {
        self.leases as usize + self.curves as usize
    }

    /// In bytes, without the resource itself.
    pub(crate) fn bytes(self) -> usize {
        // Of many priorities, each has tables of its own, which weigh more.
        let has_tables = self.bands == 0 && self.holders() > SCANNED_MAX;
        let in_tables = if has_tables { self.holders() } else { 0 };
        let tables = if has_tables { TABLES_BYTES } else { 0 };
        let tree = if in_tables > ONE_LEAF { TREE_BYTES } else { 0 };
        tables
            + tree
            + in_tables.min(EARLY_MAX) * EARLY_BYTES
            + self.leases as usize * LEASE_BYTES
            + self.curves as usize * CURVE_BYTES
            + self.points as usize * POINT_BYTES
            + self.bands as usize * BAND_BYTES
            + self.name_bytes as usize
    }
}

/// A number of what one resource has, as its weight keeps it.
pub(crate) fn counted(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
