//! The values that servers of a node write to etcd, as JSON.
//!
//! Servers of the previous release read and write the same values. A field that a release lacks is passed over when it
//! is read, and left out of what is written. So each field that came later has a meaning when it is absent.

use std::ops::Not;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::named;

/// The master of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Master {
    /// Its address, `host:port`.
    pub address: SmolStr,
    /// The id of its process: a new one each time the server starts.
    pub server: SmolStr,
    /// Difference between its epoch and the revision at which the key was created. It is 0 unless etcd was set up
    /// again, or restored from a backup: then revisions go back, and epochs must not. Absent: 0.
    #[serde(default)]
    pub epoch_offset: u64,
}

/// A mastership, as its master last confirmed it. It stays when the mastership is over, so that a successor knows until
/// when its predecessor may act.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermRecord {
    /// The epoch. 0: the term is unreadable.
    pub epoch: u64,
    /// The master's address.
    pub address: SmolStr,
    /// The id of the master's process.
    pub server: SmolStr,
    /// Longest time for which the master may act without another confirmation.
    #[serde(rename = "length_ms", with = "whole_millis")]
    pub length: Duration,
    /// Whether the master has resigned, and decides nothing any more.
    pub resigned: bool,
    /// Lengths of the leases that it may have granted. Only at the root: below it, the parent tells how long its leases
    /// last. Absent: a server of an older version wrote the term, or one with a parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leases: Option<LeaseLengths>,
    /// Whether its master wrote the key [`EtcdKey::LeaseSpan`](super::store::EtcdKey::LeaseSpan) with this term. Then if
    /// that key is gone, the term is over, and so are all leases that it or an earlier master granted. Absent: it did
    /// not, because it is a server of an older version, or leases last longer than a year.
    #[serde(default, rename = "outstanding", skip_serializing_if = "Not::not")]
    pub has_lease_span: bool,
}

/// An operator's request that another server becomes the master. Servers of the previous release do not follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepDown {
    /// The epoch of the master that steps down. A master with another epoch ignores it.
    pub epoch: u64,
}

/// Facts about all marks of a node. Every write of marks writes it, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarksHead {
    /// The epoch of the master that wrote it. If the last term has another epoch, no mark counts: the last master kept
    /// none.
    pub epoch: u64,
    /// Number of the write in that mastership.
    pub write: u64,
    /// Number of marks. If another number of them is found, no mark counts.
    pub count: u64,
    /// Remaining time of leases of resources without a mark. 0: they have none. If not, no mark counts.
    #[serde(rename = "unmarked_ms", with = "whole_millis")]
    pub unmarked: Duration,
}

/// The mark of a resource. A resource without one has no leases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MarkRecord {
    /// Largest sum of all leases. Absent: any amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amount: Option<f64>,
    /// Longest remaining time of any of them, when it was written or later.
    #[serde(rename = "longest_ms", with = "whole_millis")]
    pub longest: Duration,
}

/// Lengths of the leases of a master, for a successor with other templates, or one that learns while leases of former
/// templates last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseLengths {
    /// Digest of the lease lengths in force: the same text for the same lengths.
    pub templates: SmolStr,
    /// Longest lease by the templates in force.
    #[serde(rename = "longest_ms", with = "whole_millis")]
    pub longest: Duration,
    /// Longest remaining time of leases from former templates with longer leases. Absent, or 0: there are none.
    #[serde(default, rename = "older_ms", with = "whole_millis")]
    pub older: Duration,
}

/// A server's entry about itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// Its node.
    pub node: SmolStr,
    /// The address of gRPC, `host:port`.
    pub address: SmolStr,
    /// The address of its pages, if it serves any.
    #[serde(
        default,
        rename = "http_address",
        skip_serializing_if = "Option::is_none"
    )]
    pub pages: Option<SmolStr>,
    /// The id of its process.
    pub server: SmolStr,
    /// Its place in the tree. Only the master knows it; the other candidates copy it from the master.
    #[serde(flatten)]
    pub place: TreePlace,
    /// The highest epoch of the node that it has seen. If etcd is restored from a backup, a master that does not
    /// remember it finds it here. Absent: it has seen none, or is of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highest_epoch: Option<u64>,
    /// Its version.
    pub version: SmolStr,
}

/// A place in the tree, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreePlace {
    /// Role of the node.
    pub role: Role,
    /// Number of nodes above it. Absent: unknown yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
}

named! {
    /// Role of a node in the tree.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    Role {
        /// It has no parent.
        Root = "root",
        /// It has a parent, and child servers.
        Regional = "regional",
        /// It has a parent, and no child servers.
        Leaf = "leaf",
    }
}

/// Durations in whole milliseconds.
mod whole_millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(crate::time::millis(*span))
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}
