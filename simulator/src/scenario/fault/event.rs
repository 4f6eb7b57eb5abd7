//! Events: one key says which, its value names nodes or clients, and more keys stand beside it.

use std::path::Path;
use std::time::Duration;

use doorward_engine::templates::Templates;
use serde::Deserialize;
use serde_json::Value;

use crate::scenario::fault::{ClientChoice, ClockChoice, NodeChoice};
use crate::scenario::forms::{
    Amount, ClockSpeed, Fields, Part, Read, Span, Time, Within, kind_of, read_kind, refuse,
};
use crate::scenario::{ClientGroup, Scenario, templates};

/// An event. Its fields are named as the keys of a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(untagged, !deny_unknown_fields))]
pub enum Event {
    /// The master dies with all that it knows. The node has no master for that time, whatever else happens to it, but
    /// at least for an election.
    Kill {
        /// The node.
        kill: NodeChoice,
        /// The duration. Absent: an election.
        #[serde(rename = "for")]
        length: Option<Span>,
    },
    /// The process of the master starts anew, without any memory. A node with other candidates has no master for an
    /// election.
    Restart {
        /// The node.
        restart: NodeChoice,
        /// The time until the process is back.
        #[serde(default = "one_second", rename = "for")]
        length: Span,
    },
    /// All servers of the node stop, and start again after that, without any memory. The next master finds the last
    /// term in etcd, and waits until its leases are over.
    Stop {
        /// The node.
        stop: NodeChoice,
        /// The duration.
        #[serde(rename = "for")]
        length: Span,
    },
    /// No server reaches etcd for that time. Then etcd has lost all keys, or has the keys of an older time. Epochs of
    /// masterships go back, unless a living candidate remembers a higher one. Nodes with one candidate are not
    /// concerned.
    Etcd {
        /// The loss of keys.
        etcd: EtcdLoss,
        /// The age of the backup. For `restored` only.
        back: Option<Span>,
        /// The duration. Absent: at once.
        #[serde(rename = "for")]
        length: Option<Span>,
    },
    /// The master hands over to another candidate, which serves at once. Then its process starts anew.
    Elect {
        /// The node.
        elect: NodeChoice,
    },
    /// The key of the master in etcd is deleted. Its term is over at once; its process takes part in the next election.
    Depose {
        /// The node; it must have other candidates.
        depose: NodeChoice,
    },
    /// Elections take that long from then on, at all nodes, but at least as long as leases in etcd. An election that
    /// has begun does not change.
    Elections {
        /// The time from when a master is gone to when its successor serves.
        elections: Span,
        /// The duration of this. Absent: for ever.
        #[serde(rename = "for")]
        length: Option<Span>,
    },
    /// The master does nothing, and then goes on where it stopped. If that takes longer than an election, another
    /// candidate is master by then.
    Freeze {
        /// The node.
        freeze: NodeChoice,
        /// The duration.
        #[serde(rename = "for")]
        length: Span,
    },
    /// Some servers are cut off from etcd only. A master goes on for nine tenths of the shortest election after its
    /// last confirmed renewal, and decides nothing after that.
    Isolate {
        /// The node; it must have other candidates.
        isolate: NodeChoice,
        /// The servers that are cut off.
        #[serde(default)]
        servers: NodeServers,
        /// The lost messages.
        #[serde(default)]
        way: ToEtcd,
        /// The duration.
        #[serde(rename = "for")]
        length: Span,
    },
    /// Some messages between its servers and etcd are lost, and all others come later.
    EtcdLink {
        /// The node; it must have other candidates.
        etcd_link: NodeChoice,
        /// The part of requests and of answers that is lost.
        #[serde(default)]
        loss: Part,
        /// The additional time of each message.
        #[serde(default)]
        late: Span,
        /// The duration.
        #[serde(rename = "for")]
        length: Span,
    },
    /// Its candidates redirect clients and child servers to one another instead of to the master. A single candidate
    /// redirects to itself.
    RedirectLoop {
        /// The node; it must have other candidates.
        redirect_loop: NodeChoice,
        /// The duration.
        #[serde(rename = "for")]
        length: Span,
    },
    /// Clients and child servers that look for its servers find old addresses, as many as it has servers, and one that
    /// is right; and no master. After that they find all addresses and the master again.
    StaleAddresses {
        /// The node; it must have other candidates.
        stale_addresses: NodeChoice,
        /// The duration.
        #[serde(rename = "for")]
        length: Span,
    },
    /// No message gets through, to or from that side. A stream on which a message was lost is given up.
    Partition {
        /// The node.
        partition: NodeChoice,
        /// The side.
        #[serde(default)]
        side: Side,
        /// The duration.
        #[serde(rename = "for")]
        length: Span,
    },
    /// Clocks run at another speed from then on. Leases have a margin of a thousandth for that. With more, a slow
    /// client or a fast server may overshoot at the end of a lease.
    Drift {
        /// The owners of the clocks.
        drift: ClockChoice,
        /// The speed: 1.01 gains a second in 100.
        speed: ClockSpeed,
    },
    /// Clocks jump ahead.
    Jump {
        /// The owners of the clocks.
        jump: ClockChoice,
        /// The distance.
        by: Time,
    },
    /// The operator writes templates. A root with one candidate forgets earlier templates in a restart: give
    /// `learning_mode_duration` the longest lease that may be out.
    Edit {
        /// All templates.
        #[serde(skip)]
        templates: Templates,
        /// All templates, as in a template file; or the name of one.
        #[serde(rename = "edit")]
        #[cfg_attr(test, schemars(with = "crate::scenario::schema_tests::TemplatesForm"))]
        file: Value,
    },
    /// Clients stop at once, and start again.
    Crash {
        /// The clients.
        crash: ClientChoice,
        /// The duration. Absent: for ever.
        #[serde(rename = "for")]
        length: Option<Span>,
    },
    /// Clients finish their work, release all that they have, and end; then they start again.
    Leave {
        /// The clients.
        leave: ClientChoice,
        /// The duration. Absent: for ever.
        #[serde(rename = "for")]
        length: Option<Span>,
    },
    /// Clients finish their work with a resource and release it; then they use it again.
    Close {
        /// The clients.
        close: ClientChoice,
        /// One of their resources. Absent: the first.
        resource: Option<String>,
        /// The duration. Absent: for ever.
        #[serde(rename = "for")]
        length: Option<Span>,
    },
    /// A second process starts under the same name. Half of the clients of a node connect to it; the second process of
    /// a client wants what the first one wants then.
    Twin {
        /// A node below the root with one candidate, or clients.
        twin: ClockChoice,
        /// The duration.
        #[serde(rename = "for")]
        length: Span,
    },
    /// Clients want more from then on.
    Surge {
        /// The clients.
        surge: ClientChoice,
        /// The additional amount.
        by: Amount,
        /// One of their resources. Absent: the first.
        resource: Option<String>,
    },
    /// Clients want that much from then on, whatever their curve says.
    Demand {
        /// The clients.
        demand: ClientChoice,
        /// The amount.
        wants: Amount,
        /// One of their resources. Absent: the first.
        resource: Option<String>,
    },
}

/// The loss of keys in etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub enum EtcdLoss {
    /// All keys are gone.
    Wiped,
    /// The keys are those of a backup.
    Restored,
}

/// The side from which a node is cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema), schemars(inline))]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema), schemars(inline))]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema), schemars(inline))]
pub enum ToEtcd {
    /// Requests and answers.
    #[default]
    Both,
    /// Requests.
    There,
    /// Answers: etcd does what was requested.
    Back,
}

const fn one_second() -> Span {
    Span(Duration::from_secs(1), Duration::from_secs(1))
}

/// The keys that may stand beside the name of an event.
const BESIDE: [&str; 11] = [
    "for", "back", "servers", "way", "loss", "late", "side", "speed", "by", "wants", "resource",
];

/// The events that do not happen at a node.
const NOWHERE: [&str; 3] = ["etcd", "elections", "edit"];

impl Event {
    /// Reads one. All but the faults of the scenario is known.
    pub(super) fn read(fields: Fields, scenario: &Scenario, folder: &Path) -> Read<Self> {
        let kind = kind_of(&fields, &BESIDE)?;
        let whom = fields.get(&kind).cloned().unwrap_or_default();
        let resource = fields.get("resource").filter(|it| !it.is_null()).cloned();
        let mut event: Self = read_kind(&kind, fields)?;
        if let Self::Edit { templates, file } = &mut event {
            *templates = templates::read(file, folder).within("edit")?;
        }
        if let Some(id) = resource {
            let mut usages = scenario.clients.iter().flat_map(ClientGroup::usages);
            if !usages.any(|usage| usage.resource.as_str() == id) {
                return refuse("resource", format!("no client uses {id}"));
            }
        }
        if let Self::Etcd { etcd, back, .. } = &event
            && (*etcd == EtcdLoss::Restored) != back.is_some()
        {
            return refuse("back", "give it with etcd: restored, and only there");
        }
        if let Ok(clients) = ClientChoice::deserialize(&whom) {
            clients.check(scenario, &kind)?;
        }
        if let Ok(node) = NodeChoice::deserialize(&whom)
            && !NOWHERE.contains(&kind.as_str())
        {
            node.places(&scenario.nodes).within(&kind)?;
            event.check_node(&kind, &node, scenario)?;
        }
        Ok(event)
    }

    /// Refuses a node to which this cannot happen.
    fn check_node(&self, kind: &str, node: &NodeChoice, scenario: &Scenario) -> Read<()> {
        let node = node.only(&scenario.nodes);
        let node = node.and_then(|node| scenario.nodes.get(node));
        let Some(node) = node.filter(|_| !scenario.idle_faults) else {
            return Ok(());
        };
        let (is_alone, is_root) = (node.candidates == 1, node.parent.is_none());
        let is_above = matches!(self, Self::Partition { side, .. } if *side == Side::Parent);
        let message = match kind {
            "depose" | "isolate" | "etcd_link" | "redirect_loop" | "stale_addresses"
                if is_alone =>
            {
                "has no other candidate; give it candidates: 2"
            }
            "twin" if is_root || !is_alone => {
                "is the root or has other candidates; give a node below the root that has none"
            }
            "partition" if is_root && is_above => "has no parent; give side: below or all",
            _ => return Ok(()),
        };
        refuse("", format!("{:?} {message}", node.name))
    }
}
