//! What happens.

use std::time::Duration;

use crate::scenario::fault::{ClockChoice, Event, NodeChoice, Servers, Side, Span, ToEtcd};
use crate::scenario::read::Reader;
use crate::scenario::read::faults::Around;
use crate::scenario::read::form::{At, Map};

/// What can happen, and what else can be said of each.
const EVENTS: [(&str, &[&str]); 22] = [
    ("kill", &["for"]),
    ("restart", &["for"]),
    ("stop", &["for"]),
    ("etcd", &["back", "for"]),
    ("elect", &[]),
    ("depose", &[]),
    ("elections", &["for"]),
    ("freeze", &["for"]),
    ("isolate", &["servers", "way", "for"]),
    ("etcd_link", &["loss", "late", "for"]),
    ("redirect_loop", &["for"]),
    ("stale_addresses", &["for"]),
    ("partition", &["side", "for"]),
    ("drift", &["speed"]),
    ("jump", &["by"]),
    ("edit", &[]),
    ("crash", &["for"]),
    ("leave", &["for"]),
    ("close", &["resource", "for"]),
    ("twin", &["for"]),
    ("surge", &["by", "resource"]),
    ("demand", &["wants", "resource"]),
];

const SIDES: [(&str, Side); 3] = [
    ("all", Side::All),
    ("parent", Side::Parent),
    ("below", Side::Below),
];

const SERVERS: [(&str, Servers); 4] = [
    ("master", Servers::Master),
    ("others", Servers::Others),
    ("some", Servers::Some),
    ("all", Servers::All),
];

const WAYS: [(&str, ToEtcd); 3] = [
    ("both", ToEtcd::Both),
    ("there", ToEtcd::There),
    ("back", ToEtcd::Back),
];

/// How much faster or slower a clock may run: what is beyond is no clock.
const SPEEDS: (f64, f64) = (0.01, 100.0);

/// How long a process takes to start anew, if nothing else is said.
const RESTARTS_WITHIN: Span = (Duration::from_secs(1), Duration::from_secs(1));

impl Reader<'_> {
    /// The event of a map, in which `others` stand besides.
    pub(super) fn event(
        &mut self,
        map: &Map<'_>,
        others: &[&str],
        around: &Around<'_>,
    ) -> Option<Event> {
        let names = EVENTS.map(|(name, _)| name);
        let Some(name) = map.only_one(&names, &mut self.problems) else {
            // What else there is cannot be told from what is misspelt.
            return None;
        };
        let beside = EVENTS.iter().find(|(known, _)| *known == name);
        let beside = beside.map_or(&[][..], |(_, beside)| beside);
        let keys = [&[name], beside, others].concat();
        map.check_keys(&keys, &mut self.problems);
        let at = map.need(name, "what it happens to", &mut self.problems)?;
        match name {
            "kill" => self.kill(&at, map, around),
            "etcd" => self.etcd(&at, map),
            "elections" => {
                let (take, length) = (at.span(&mut self.problems), self.may_last(map));
                Some(Event::Elections {
                    take: take?,
                    length: length?,
                })
            }
            "isolate" => self.isolate(&at, map, around),
            "etcd_link" => self.etcd_link(&at, map, around),
            "partition" => self.partition(&at, map, around),
            "drift" => self.drift(&at, map, around),
            "jump" => self.jump(&at, map, around),
            "edit" => {
                let templates = self.templates(&at)?;
                Some(Event::Edit { templates })
            }
            "twin" => self.twin(&at, map, around),
            "restart" | "stop" | "elect" | "depose" | "freeze" | "redirect_loop"
            | "stale_addresses" => self.event_of_node(name, &at, map, around),
            _ => self.event_of_clients(name, &at, map, around),
        }
    }

    /// What happens to a node, of these names, and needs no more words than for how long.
    fn event_of_node(
        &mut self,
        name: &str,
        at: &At<'_>,
        map: &Map<'_>,
        around: &Around<'_>,
    ) -> Option<Event> {
        match name {
            "restart" => {
                let (node, length) = (self.node(at, around), self.may_last(map));
                Some(Event::Restart {
                    node: node?,
                    length: length?.unwrap_or(RESTARTS_WITHIN),
                })
            }
            "stop" => {
                let (node, length) = (self.node(at, around), self.lasts(map));
                Some(Event::Stop {
                    node: node?,
                    length: length?,
                })
            }
            "elect" => {
                let node = self.node(at, around)?;
                Some(Event::Elect { node })
            }
            "depose" => {
                let node = self.elected(at, around)?;
                Some(Event::Depose { node })
            }
            "freeze" => {
                let (node, length) = (self.node(at, around), self.lasts(map));
                Some(Event::Freeze {
                    node: node?,
                    length: length?,
                })
            }
            "redirect_loop" => {
                let (node, length) = (self.elected(at, around), self.lasts(map));
                Some(Event::RedirectLoop {
                    node: node?,
                    length: length?,
                })
            }
            "stale_addresses" => {
                let (node, length) = (self.elected(at, around), self.lasts(map));
                Some(Event::StaleAddresses {
                    node: node?,
                    length: length?,
                })
            }
            _ => None,
        }
    }

    /// What clients do, of these names.
    fn event_of_clients(
        &mut self,
        name: &str,
        at: &At<'_>,
        map: &Map<'_>,
        around: &Around<'_>,
    ) -> Option<Event> {
        let clients = self.some_clients(at, around);
        let (resource, length) = (self.one_they_use(map, around), self.may_last(map));
        match name {
            "crash" => Some(Event::Crash {
                clients: clients?,
                length: length?,
            }),
            "leave" => Some(Event::Leave {
                clients: clients?,
                length: length?,
            }),
            "close" => Some(Event::Close {
                clients: clients?,
                resource: resource?,
                length: length?,
            }),
            "surge" => {
                let by = self.amount(map, "by");
                Some(Event::Surge {
                    clients: clients?,
                    by: by?,
                    resource: resource?,
                })
            }
            _ => {
                let wants = self.amount(map, "wants");
                Some(Event::Demand {
                    clients: clients?,
                    wants: wants?,
                    resource: resource?,
                })
            }
        }
    }

    fn kill(&mut self, at: &At<'_>, map: &Map<'_>, around: &Around<'_>) -> Option<Event> {
        let (node, length) = (self.node(at, around), self.may_last(map));
        Some(Event::Kill {
            node: node?,
            length: length?,
        })
    }

    fn etcd(&mut self, at: &At<'_>, map: &Map<'_>) -> Option<Event> {
        let words = [("wiped", false), ("restored", true)];
        let is_restored = at.word(&words, &mut self.problems)?;
        let length = self.may_last(map)?;
        if !is_restored {
            if let Some(at) = map.get("back") {
                let message = "is for etcd: restored; what is wiped is gone";
                self.problems.wrong(&at, message);
            }
            return Some(Event::Etcd { back: None, length });
        }
        let what = "how old the backup is";
        let back = map.need("back", what, &mut self.problems)?;
        let back = Some(back.span(&mut self.problems)?);
        Some(Event::Etcd { back, length })
    }

    fn twin(&mut self, at: &At<'_>, map: &Map<'_>, around: &Around<'_>) -> Option<Event> {
        let (of, length) = (self.clock(at, around), self.lasts(map));
        if let (Some(ClockChoice::Node(node)), Some(tree)) = (&of, around.tree)
            && let Some(only) = node.only().and_then(|node| tree.nodes.get(node))
            && (only.parent.is_none() || only.candidates > 1)
            && !around.may_be_idle
        {
            let message = format!(
                "{:?} is the root, or has other candidates; give a node below the root that has none",
                only.name
            );
            self.problems.wrong(at, message);
            return None;
        }
        Some(Event::Twin {
            of: of?,
            length: length?,
        })
    }

    fn isolate(&mut self, at: &At<'_>, map: &Map<'_>, around: &Around<'_>) -> Option<Event> {
        let (node, length) = (self.elected(at, around), self.lasts(map));
        let servers = match map.get("servers") {
            Some(at) => at.word(&SERVERS, &mut self.problems),
            None => Some(Servers::Master),
        };
        let way = match map.get("way") {
            Some(at) => at.word(&WAYS, &mut self.problems),
            None => Some(ToEtcd::Both),
        };
        Some(Event::Isolate {
            node: node?,
            servers: servers?,
            way: way?,
            length: length?,
        })
    }

    fn etcd_link(&mut self, at: &At<'_>, map: &Map<'_>, around: &Around<'_>) -> Option<Event> {
        let (node, length) = (self.elected(at, around), self.lasts(map));
        let loss = match map.get("loss") {
            Some(at) => at.number(0.0, 1.0, &mut self.problems),
            None => Some(0.0),
        };
        let late = match map.get("late") {
            Some(at) => at.span(&mut self.problems),
            None => Some((Duration::ZERO, Duration::ZERO)),
        };
        Some(Event::EtcdLink {
            node: node?,
            loss: loss?,
            late: late?,
            length: length?,
        })
    }

    /// A node that may have an election.
    fn elected(&mut self, at: &At<'_>, around: &Around<'_>) -> Option<NodeChoice> {
        let node = self.node(at, around);
        if let (Some(number), Some(tree)) = (node.as_ref().and_then(NodeChoice::only), around.tree)
            && let Some(only) = tree.nodes.get(number).filter(|it| it.candidates == 1)
            && !around.may_be_idle
        {
            let message = format!(
                "{:?} has no other candidate, so there is no election; give it candidates: 2",
                only.name
            );
            self.problems.wrong(at, message);
            return None;
        }
        node
    }

    fn partition(&mut self, at: &At<'_>, map: &Map<'_>, around: &Around<'_>) -> Option<Event> {
        let (node, length) = (self.node(at, around), self.lasts(map));
        let side = map.get("side");
        let from = match &side {
            Some(at) => at.word(&SIDES, &mut self.problems),
            None => Some(Side::All),
        };
        let only = node.as_ref().and_then(NodeChoice::only);
        if let (Some(0), Some(Side::Parent), Some(side)) = (only, from, &side)
            && !around.may_be_idle
        {
            let message = "is parent, and the root has none; give below or all";
            self.problems.wrong(side, message);
            return None;
        }
        Some(Event::Partition {
            node: node?,
            from: from?,
            length: length?,
        })
    }

    fn drift(&mut self, at: &At<'_>, map: &Map<'_>, around: &Around<'_>) -> Option<Event> {
        let what = "how fast it runs, as in 1.01";
        let speed = map.need("speed", what, &mut self.problems);
        let speed = speed.and_then(|at| at.number(SPEEDS.0, SPEEDS.1, &mut self.problems));
        Some(Event::Drift {
            clock: self.clock(at, around)?,
            speed: speed?,
        })
    }

    fn jump(&mut self, at: &At<'_>, map: &Map<'_>, around: &Around<'_>) -> Option<Event> {
        let by = map.need("by", "how far it jumps ahead", &mut self.problems);
        let by: Option<Duration> = by.and_then(|at| at.duration(&mut self.problems));
        Some(Event::Jump {
            clock: self.clock(at, around)?,
            by: by?,
        })
    }

    fn amount(&mut self, map: &Map<'_>, key: &str) -> Option<f64> {
        let at = map.need(key, "how much", &mut self.problems)?;
        at.amount(&mut self.problems)
    }

    /// How long something lasts.
    fn lasts(&mut self, map: &Map<'_>) -> Option<Span> {
        let at = map.need("for", "how long it lasts", &mut self.problems)?;
        at.span(&mut self.problems)
    }

    /// How long something lasts, if it is said.
    fn may_last(&mut self, map: &Map<'_>) -> Option<Option<Span>> {
        match map.get("for") {
            Some(at) => at.span(&mut self.problems).map(Some),
            None => Some(None),
        }
    }
}
