//! Removed flags. This release accepts each of them, and its variable, without effect, and warns with the name of the
//! flag that took its place.

/// A flag without effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The flag.
    pub flag: &'static str,
    /// The flag that took its place.
    pub successor: &'static str,
}

const fn removed(flag: &'static str, successor: &'static str) -> Removed {
    Removed { flag, successor }
}

/// All removed flags.
pub const REMOVED: [Removed; 15] = [
    removed("--resources-max", "--memory-max"),
    removed("--resources-per-address-max", "--memory-per-address-max"),
    removed("--resources-per-template-max", "--memory-per-template-max"),
    removed(
        "--new-resources-per-second-per-address-max",
        "--newcomers-per-second-per-address-max",
    ),
    removed(
        "--new-resources-per-second-per-template-max",
        "--requests-per-second-per-template-max",
    ),
    removed("--leases-max", "--memory-max"),
    removed("--leases-per-address-max", "--memory-per-address-max"),
    removed("--leases-per-template-max", "--memory-per-template-max"),
    removed(
        "--new-leases-per-second-per-address-max",
        "--newcomers-per-second-per-address-max",
    ),
    removed(
        "--new-leases-per-second-per-template-max",
        "--requests-per-second-per-template-max",
    ),
    removed("--priorities-per-address-max", "--priorities-max"),
    removed("--curves-max", "--memory-max"),
    removed("--curves-per-address-max", "--memory-per-address-max"),
    removed("--curve-points-max", "--memory-max"),
    removed("--curve-points-per-address-max", "--memory-per-address-max"),
];
