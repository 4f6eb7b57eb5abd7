//! Words in events: the servers, the side and the direction that an event means.

use serde::{Deserialize, Serialize};

/// The loss of keys in etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub enum EtcdLoss {
    /// All keys are gone.
    Wiped,
    /// The keys are those of a backup.
    Restored,
}

/// The side from which a node is cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub enum Side {
    /// From all.
    #[default]
    All,
    /// From its parent.
    Parent,
    /// From its clients and child servers.
    Below,
}

/// Servers of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub enum NodeServers {
    /// The master.
    #[default]
    Master,
    /// All but the master.
    Others,
    /// Each of them, or not, by chance.
    Some,
    /// All.
    All,
}

/// The lost messages between a server and etcd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub enum ToEtcd {
    /// Requests and answers.
    #[default]
    Both,
    /// Requests.
    There,
    /// Answers: etcd does what was requested.
    Back,
}
