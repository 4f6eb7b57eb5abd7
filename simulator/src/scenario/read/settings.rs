//! What is between clients and servers, how servers are set up, and what must hold.

use std::time::Duration;

use doorward_documents::tree::Value;

use crate::scenario::read::Reader;
use crate::scenario::read::form::{At, Map};
use crate::scenario::{Latency, Limits, Link, Network, Servers, WayUp};

const LINK_KEYS: [&str; 3] = ["latency", "loss", "duplication"];

/// Within a region, as in any cloud.
const LINK: Link = Link {
    latency: Latency::Uniform(Duration::from_millis(1), Duration::from_millis(5)),
    loss: 0.0,
    duplication: 0.0,
};

/// As the flags of the server.
const SERVERS: Servers = Servers {
    refresh_floor: Duration::from_secs(1),
    push_round: Duration::from_millis(50),
    way_up: WayUp::Stream,
    election: (Duration::from_secs(10), Duration::from_secs(10)),
};

impl Default for Network {
    fn default() -> Self {
        Self {
            clients: LINK,
            servers: LINK,
        }
    }
}

impl Default for Servers {
    fn default() -> Self {
        SERVERS
    }
}

impl Reader<'_> {
    /// Both ways alike, or each for itself.
    pub(super) fn network(&mut self, map: &Map<'_>) -> Network {
        let mut network = Network::default();
        let Some(map) = self.settings(map, "network", "{clients: {…}, servers: {…}}") else {
            return network;
        };
        let keys = [&LINK_KEYS[..], &["clients", "servers"]].concat();
        map.check_keys(&keys, &mut self.problems);
        let both = self.link(&map, LINK);
        network.clients = both;
        network.servers = both;
        for (key, link) in [
            ("clients", &mut network.clients),
            ("servers", &mut network.servers),
        ] {
            if let Some(map) = self.settings(&map, key, "{latency: 5ms, loss: 0.01}") {
                map.check_keys(&LINK_KEYS, &mut self.problems);
                *link = self.link(&map, both);
            }
        }
        network
    }

    fn link(&mut self, map: &Map<'_>, default: Link) -> Link {
        let latency = map.get("latency").and_then(|at| self.latency(&at));
        let loss = map.get("loss").and_then(|at| at.part(&mut self.problems));
        let duplication = map.get("duplication");
        let duplication = duplication.and_then(|at| at.part(&mut self.problems));
        Link {
            latency: latency.unwrap_or(default.latency),
            loss: loss.unwrap_or(default.loss),
            duplication: duplication.unwrap_or(default.duplication),
        }
    }

    fn latency(&mut self, at: &At<'_>) -> Option<Latency> {
        if let Value::Map(_) = at.node.value {
            let map = at.map("{least: 1ms, mean: 5ms}", &mut self.problems)?;
            map.check_keys(&["least", "mean"], &mut self.problems);
            let least = map.get("least");
            let least = least.map_or(Some(Duration::ZERO), |at| at.duration(&mut self.problems));
            let what = "the mean of what is added to the least";
            let mean = map.need("mean", what, &mut self.problems);
            let mean = mean.and_then(|at| at.duration(&mut self.problems));
            return Some(Latency::Exponential {
                least: least?,
                mean: mean?,
            });
        }
        let (least, most) = at.span(&mut self.problems)?;
        Some(if least == most {
            Latency::Constant(least)
        } else {
            Latency::Uniform(least, most)
        })
    }

    pub(super) fn servers(&mut self, map: &Map<'_>) -> Servers {
        let Some(map) = self.settings(map, "servers", "{election: 10s}") else {
            return SERVERS;
        };
        let keys = ["refresh_floor", "push_round", "way_up", "election"];
        map.check_keys(&keys, &mut self.problems);
        let ways = [("stream", WayUp::Stream), ("poll", WayUp::Poll)];
        let way_up = map.get("way_up");
        let way_up = way_up.and_then(|at| at.word(&ways, &mut self.problems));
        let election = map.get("election");
        let election = election.and_then(|at| at.span(&mut self.problems));
        Servers {
            refresh_floor: self
                .duration(&map, "refresh_floor")
                .unwrap_or(SERVERS.refresh_floor),
            push_round: self
                .duration(&map, "push_round")
                .unwrap_or(SERVERS.push_round),
            way_up: way_up.unwrap_or(SERVERS.way_up),
            election: election.unwrap_or(SERVERS.election),
        }
    }

    pub(super) fn limits(&mut self, map: &Map<'_>) -> Limits {
        let Some(map) = self.settings(map, "limits", "{overshoot: 0}") else {
            return Limits::default();
        };
        let keys = [
            "overshoot",
            "nesting",
            "unfairness",
            "utilisation",
            "convergence",
            "starvation",
            "oscillation",
        ];
        map.check_keys(&keys, &mut self.problems);
        Limits {
            overshoot_max: map
                .get("overshoot")
                .and_then(|at| at.amount(&mut self.problems)),
            nesting_max: map
                .get("nesting")
                .and_then(|at| at.amount(&mut self.problems)),
            unfairness_max: map
                .get("unfairness")
                .and_then(|at| at.part(&mut self.problems)),
            utilisation_min: map
                .get("utilisation")
                .and_then(|at| at.part(&mut self.problems)),
            convergence_max: self.duration(&map, "convergence"),
            starvation_max: self.duration(&map, "starvation"),
            oscillation_max: map
                .get("oscillation")
                .and_then(|at| at.amount(&mut self.problems)),
        }
    }

    fn settings<'a>(&mut self, map: &Map<'a>, key: &str, example: &str) -> Option<Map<'a>> {
        map.get(key)?.map(example, &mut self.problems)
    }

    fn duration(&mut self, map: &Map<'_>, key: &str) -> Option<Duration> {
        map.get(key).and_then(|at| at.duration(&mut self.problems))
    }
}
