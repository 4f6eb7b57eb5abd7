//! Demands on a world after the heal: after a while all clients must have their ideal share. Then a
//! client changes its demand, and soon after all must have their ideal share again.
//!
//! They are drawn from their own random stream, like each part.

use std::time::Duration;

use crate::chance::Chance;
use crate::fuzz::draft::FAULTY_FOR;
use crate::fuzz::topology::depth;
use crate::scenario::fault::{ClientChoice, Event, Fault};
use crate::scenario::{ClientGroup, Latency, Network, Scenario};

/// Largest distance from the ideal at these times, as a part of what all should have.
const RIGHT: f64 = 0.01;

/// Most requests of a client within a second. The largest count in some hundred worlds was 12; a
/// client that follows redirects without end sends hundreds.
const REQUESTS_MAX: f64 = 60.0;

/// Factor for the slowest clocks.
const SLOW: f64 = 1.12;

/// Time that each level of the tree adds after a change of demand. A lost message is missed after 2
/// s, and so may be its replacement. Where servers poll, a slow network adds to that: a request for
/// more waits for a level to learn of it, which then asks others for less.
const ROUND: Duration = Duration::from_secs(4);

/// Longest wait of a client between two attempts when no server answers.
const BACKOFF_MAX: Duration = Duration::from_secs(60);

/// Value that separates this stream from others.
const STREAM: u64 = 0x5eed_0000_0000_0003;

/// Returns the longest delay of a message.
fn slowest(network: &Network) -> Duration {
    let links = [&network.clients, &network.servers].into_iter();
    let links = links.chain(network.links.iter().map(|it| &it.link));
    let longest = links.filter_map(|link| match link.latency? {
        Latency::Uniform((_, latency)) => Some(latency),
        // One in a thousand takes longer.
        Latency::Exponential { least, mean } => Some(least + mean * 7),
    });
    longest.max().unwrap_or_default()
}

/// Draws the change of demand, and sets the times by which clients must have their ideal share.
pub(super) fn demand_ideal_shares(scenario: &mut Scenario) {
    let mut chance = Chance::new(scenario.seed ^ STREAM);
    let (mut lease, mut learns, mut refresh) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for template in scenario.templates_ever() {
        let algorithm = &template.algorithm;
        lease = lease.max(algorithm.lease_length);
        learns = learns.max(algorithm.lease_length.max(algorithm.learning_mode_duration));
        refresh = refresh.max(algorithm.refresh_interval);
    }
    let levels = 1 + depth(&scenario.nodes);
    // Old leases expire, and one level may learn after the other, on slow clocks too.
    let rest = (lease * 4 + refresh * 4 * levels).mul_f64(1.2) + Duration::from_secs(30);
    scenario.duration = FAULTY_FOR + rest;
    // Levels may learn one after the other. A client that was cut off for long tries again late.
    // Slow clocks add to that.
    let first = (learns * 2).max(BACKOFF_MAX) + (refresh * 3 * levels) + Duration::from_secs(10);
    let first = FAULTY_FOR + first.mul_f64(SLOW);
    let usages = scenario.clients.iter().flat_map(ClientGroup::usages);
    let works = usages.filter_map(|usage| Some(usage.limiter?.takes?.1));
    // Work under way finishes before its permits are free.
    let work = works.max().unwrap_or_default();
    // A client that holds too much refreshes once, and waiting clients are asked to come soon.
    let refreshed = refresh.mul_f64(1.1) + Duration::from_secs(3);
    let again = refreshed + work + (ROUND + slowest(&scenario.network)) * levels;
    let again = first + again.mul_f64(SLOW);
    let client = chance.below(scenario.clients.len());
    let client = scenario.clients.get(client);
    let template = client.and_then(|it| scenario.templates.find(&it.first.resource));
    let Some((client, template)) = client.zip(template) else {
        return;
    };
    let event = Event::Demand {
        clients: ClientChoice::one_of(client),
        wants: template.capacity.get() * chance.between(0.0, 1.0),
        resource: None,
    };
    let fault = Fault::once(first + Duration::from_secs(1), event);
    scenario.faults.push(fault);
    scenario.right_at = vec![first, again];
    scenario.settled_after = again.max(scenario.duration - refresh * 2);
    let end = scenario.settled_after + refresh * 2;
    scenario.duration = scenario.duration.max(end);
    scenario.limits.settled_unfairness = Some(RIGHT);
    scenario.limits.requests_max = Some(REQUESTS_MAX);
}
