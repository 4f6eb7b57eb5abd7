//! Estimates of memory without a look at it: counts times weights.
//!
//! The weights are measured (`cargo bench -p doorward-engine --bench memory`), and a test holds the figure
//! within 10 % of what the process grows by, whatever resources clients have leases of; within 30 % for child servers.

/// A resource with its first lease, without what that lease weighs by itself.
const RESOURCE_BYTES: usize = 790;

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

/// A part of a tree that is empty, if it is larger than one piece of memory.
const LARGE_TREE_BYTES: usize = 16_000;

/// A resource with this many leases, or fewer, has such a small tree.
const SMALL_TREE: usize = 700;

/// A lease of a client, its claim and its place in line; its name, if it is short.
const LEASE_BYTES: usize = 270;

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
fn name_bytes(name: &str) -> usize {
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

/// Bytes of a child server of that name, with so many points, without its priorities.
pub(crate) fn child_bytes(name: &str, points: usize) -> usize {
    CURVE_BYTES + points * POINT_BYTES + name_bytes(name)
}

/// Bytes of so many priorities, but for the first one.
pub(crate) fn band_bytes(bands: usize) -> usize {
    bands.saturating_sub(1) * BAND_BYTES
}

/// Bytes of what so many holders with so many priorities share.
pub(crate) fn shared_bytes(holders: usize, bands: usize) -> usize {
    // Of many priorities, each has tables of its own, which weigh more.
    if bands > 1 || holders <= SCANNED_MAX {
        return band_bytes(bands);
    }
    let tree = match holders {
        _ if holders > SMALL_TREE => LARGE_TREE_BYTES,
        _ if holders > ONE_LEAF => TREE_BYTES,
        _ => 0,
    };
    TABLES_BYTES + tree + holders.min(EARLY_MAX) * EARLY_BYTES
}
