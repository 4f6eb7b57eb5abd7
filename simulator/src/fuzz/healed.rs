//! What comes when nothing goes wrong any more: after a while everybody must have what is right. Then
//! some want something else, and soon after that everybody must have what is right again.
//!
//! It is drawn from a stream of its own, like each part.

use std::time::Duration;

use crate::chance::Chance;
use crate::fuzz::clocks::one;
use crate::fuzz::topology::depth;
use crate::scenario::fault::{Event, Fault, When};
use crate::scenario::{ClientGroup, Latency, Network, Scenario};

/// What may be missing then, as a part of what could be had.
const RIGHT: f64 = 0.01;

/// Requests of a client within a second, at most. In some hundred worlds the most were 12; who follows redirects
/// without end sends hundreds.
const REQUESTS_MAX: f64 = 60.0;

/// How much longer everything may take by the slowest clocks there are.
const SLOW: f64 = 1.12;

/// What a level of the tree adds to it when somebody wants something else: a message that is lost is
/// missed after 2 s, and so may be the one that makes up for it. Where servers poll, a slow network adds to that:
/// who asks for more waits for a level to hear of it, which asks others for less.
const ROUND: Duration = Duration::from_secs(4);

/// How long a client may wait between two attempts, at most, when nobody answers.
const BACKOFF_MAX: Duration = Duration::from_secs(60);

/// Makes the stream of a seed.
const STREAM: u64 = 0x5eed_0000_0000_0003;

/// The longest that a message takes, one way.
fn slowest(network: &Network) -> Duration {
    let Network {
        clients,
        servers,
        at,
        above,
    } = network;
    let links = [clients, servers].into_iter();
    let links = links.chain(at.values()).chain(above.values());
    let longest = links.map(|link| match link.latency {
        Latency::Constant(latency) | Latency::Uniform(_, latency) => latency,
        // Of a thousand, one takes longer.
        Latency::Exponential { least, mean } => least + mean * 7,
    });
    longest.max().unwrap_or_default()
}

/// Draws what is wanted then, and says when everybody must have what is right.
pub(super) fn demand_what_is_right(scenario: &mut Scenario) {
    let mut chance = Chance::new(scenario.seed ^ STREAM);
    let Some(healed) = scenario.heal_at else {
        return;
    };
    let (mut learns, mut refresh) = (Duration::ZERO, Duration::ZERO);
    let templates = scenario.templates_ever();
    for template in templates {
        let algorithm = &template.algorithm;
        learns = learns.max(algorithm.lease_length.max(algorithm.learning_mode_duration));
        refresh = refresh.max(algorithm.refresh_interval);
    }
    let levels = 1 + depth(&scenario.nodes);
    // Levels may learn one after the other; who was cut off for long comes again late; by slow clocks
    // it takes longer.
    let first = (learns * 2).max(BACKOFF_MAX) + (refresh * 3 * levels) + Duration::from_secs(10);
    let first = healed + first.mul_f64(SLOW);
    let usages = scenario.clients.iter().flat_map(ClientGroup::usages);
    let works = usages.filter_map(|usage| Some(usage.limiter?.work.longest()));
    // What was begun is finished before it is given up.
    let work = works.max().unwrap_or_default();
    // Who holds too much refreshes once, and those who wait are asked to come soon.
    let refreshed = refresh.mul_f64(1.1) + Duration::from_secs(3);
    let again = refreshed + work + (ROUND + slowest(&scenario.network)) * levels;
    let again = first + again.mul_f64(SLOW);
    let client = chance.below(scenario.clients.len());
    let resource = scenario
        .clients
        .get(client)
        .map(|client| &client.first.resource);
    let template = resource.and_then(|resource| scenario.templates.find(resource));
    let Some(capacity) = template.map(|template| template.capacity.get()) else {
        return;
    };
    let event = Event::Demand {
        clients: one(client),
        wants: capacity * chance.between(0.0, 1.0),
        resource: None,
    };
    scenario.faults.push(Fault {
        when: When::At(first + Duration::from_secs(1)),
        choices: vec![(1.0, event)],
    });
    scenario.right_at = vec![first, again];
    scenario.settled_after = scenario.settled_after.max(again);
    let end = scenario.settled_after + refresh * 2;
    scenario.duration = scenario.duration.max(end);
    scenario.limits.settled_unfairness_max = Some(RIGHT);
    scenario.limits.requests_max = Some(REQUESTS_MAX);
}
