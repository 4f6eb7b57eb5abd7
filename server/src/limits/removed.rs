//! Removed flags. This release accepts each of them, and its variable, without effect, and warns with the name of the
//! flag that took its place.

/// A flag without effect, and the flag that took its place.
pub type Removed = (&'static str, &'static str);

const NEWCOMERS: &str = "--newcomers-per-second-per-address-max";
const REQUESTS: &str = "--requests-per-second-per-template-max";

/// All removed flags.
pub const REMOVED: [Removed; 15] = [
    ("--resources-max", "--memory-max"),
    ("--resources-per-address-max", "--memory-per-address-max"),
    ("--resources-per-template-max", "--memory-per-template-max"),
    ("--new-resources-per-second-per-address-max", NEWCOMERS),
    ("--new-resources-per-second-per-template-max", REQUESTS),
    ("--leases-max", "--memory-max"),
    ("--leases-per-address-max", "--memory-per-address-max"),
    ("--leases-per-template-max", "--memory-per-template-max"),
    ("--new-leases-per-second-per-address-max", NEWCOMERS),
    ("--new-leases-per-second-per-template-max", REQUESTS),
    ("--priorities-per-address-max", "--priorities-max"),
    ("--curves-max", "--memory-max"),
    ("--curves-per-address-max", "--memory-per-address-max"),
    ("--curve-points-max", "--memory-max"),
    ("--curve-points-per-address-max", "--memory-per-address-max"),
];
