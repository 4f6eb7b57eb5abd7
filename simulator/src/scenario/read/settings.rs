//! How servers and clients are set up, and what must hold.

use std::time::Duration;

use doorward_client::state::Config;

use crate::scenario::read::Reader;
use crate::scenario::read::form::Map;
use crate::scenario::{ClientGaps, Limits, Servers, WayUp};

/// As the flags of the server.
const SERVERS: Servers = Servers {
    refresh_floor: Duration::from_secs(1),
    push_round: Duration::from_millis(50),
    way_up: WayUp::Stream,
    election: (Duration::from_secs(10), Duration::from_secs(10)),
};

impl Default for Servers {
    fn default() -> Self {
        SERVERS
    }
}

/// As the library has them.
impl Default for ClientGaps {
    fn default() -> Self {
        let config = Config::default();
        Self {
            early: config.early_gap,
            news: config.news_gap,
        }
    }
}

impl Reader<'_> {
    pub(super) fn client_gaps(&mut self, map: &Map<'_>) -> ClientGaps {
        let usual = ClientGaps::default();
        let Some(map) = self.settings(map, "client_gaps", "{news: 100ms}") else {
            return usual;
        };
        map.check_keys(&["early", "news"], &mut self.problems);
        ClientGaps {
            early: self.duration(&map, "early").unwrap_or(usual.early),
            news: self.duration(&map, "news").unwrap_or(usual.news),
        }
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
            "mastership",
            "rest",
            "unfairness",
            "utilisation",
            "convergence",
            "starvation",
            "oscillation",
            "comeback",
            "not_back",
            "safe_use",
            "requests",
        ];
        map.check_keys(&keys, &mut self.problems);
        Limits {
            overshoot_max: map
                .get("overshoot")
                .and_then(|at| at.amount(&mut self.problems)),
            nesting_max: map
                .get("nesting")
                .and_then(|at| at.amount(&mut self.problems)),
            mastership_max: map
                .get("mastership")
                .and_then(|at| at.amount(&mut self.problems)),
            rest_max: map.get("rest").and_then(|at| at.amount(&mut self.problems)),
            unfairness_max: map
                .get("unfairness")
                .and_then(|at| at.part(&mut self.problems)),
            utilisation_min: map
                .get("utilisation")
                .and_then(|at| at.part(&mut self.problems)),
            convergence_max: self.duration(&map, "convergence"),
            starvation_max: self.duration(&map, "starvation"),
            comeback_max: self.duration(&map, "comeback"),
            not_back_max: map
                .get("not_back")
                .and_then(|at| at.amount(&mut self.problems)),
            safe_use_max: map
                .get("safe_use")
                .and_then(|at| at.amount(&mut self.problems)),
            requests_max: map
                .get("requests")
                .and_then(|at| at.amount(&mut self.problems)),
            oscillation_max: map
                .get("oscillation")
                .and_then(|at| at.amount(&mut self.problems)),
        }
    }

    pub(super) fn settings<'a>(
        &mut self,
        map: &Map<'a>,
        key: &str,
        example: &str,
    ) -> Option<Map<'a>> {
        map.get(key)?.map(example, &mut self.problems)
    }

    fn duration(&mut self, map: &Map<'_>, key: &str) -> Option<Duration> {
        map.get(key).and_then(|at| at.duration(&mut self.problems))
    }
}
