//! Several resources of a client, limiters, and what clients give back.

use doorward_client::limiter::demand::AdaptiveWants;

use super::*;
use crate::scenario::fault::{ClientChoice, Event, NodeChoice};
use crate::scenario::usage::{Limiter, Work};

const TWO: &str = "templates: {resources: [\
    {identifier_glob: rps, capacity: 100, algorithm: {kind: FAIR_SHARE, lease_length: 60s, refresh_interval: 5s}}, \
    {identifier_glob: workers, capacity: 8, algorithm: {kind: STATIC, lease_length: 60s, refresh_interval: 5s}}]}\n";

#[test]
fn clients_use_several_resources_with_limiters() {
    let scenario = read(&format!(
        "{TWO}clients:
- resource: rps
  wants: 20
  limiter: {{rate: 2.5, adaptive: {{window: 5s, headroom: 1.5, least: 0, most: 40}}}}
  also:
  - {{resource: workers, wants: 3, priority: 2, mode: pessimistic,
     limiter: {{concurrency: 2, for: [1s, 9s], adaptive: {{}}}}}}"
    ));
    let group = &scenario.clients[0];
    let adaptive = AdaptiveWants {
        window: s(5),
        headroom: 1.5,
        least: 0.0,
        most: 40.0,
    };
    let rate = Limiter {
        work: Work::Rate { cost: 2.5 },
        adaptive: Some(adaptive),
    };
    assert_eq!(group.first.limiter, Some(rate));
    let workers = &group.also[0];
    assert_eq!(workers.resource.as_str(), "workers");
    assert_eq!((workers.priority, workers.mode), (2, Mode::Pessimistic));
    assert_eq!(workers.demand, Demand::Constant(3.0));
    let takes = (s(1), s(9));
    let concurrency = Limiter {
        work: Work::Concurrency { permits: 2, takes },
        adaptive: Some(AdaptiveWants::default()),
    };
    assert_eq!(workers.limiter, Some(concurrency));
    // What was said is what a file of it says.
    let again = read(&scenario.to_yaml().unwrap());
    assert_eq!(
        format!("{:?}", again.clients),
        format!("{:?}", scenario.clients)
    );
}

#[test]
fn clients_leave_and_close_and_masters_are_deposed() {
    let scenario = read(&format!(
        "{TWO}tree: {{root: {{candidates: 2}}}}
clients: [{{resource: rps, wants: 1, also: [{{resource: workers, wants: 1}}]}}]
faults:
- {{at: 1s, leave: {{clients: 1}}, for: [1s, 9s]}}
- {{at: 1s, close: {{clients: 1}}, resource: workers, for: 5s}}
- {{at: 1s, close: {{clients: 1}}}}
- {{at: 1s, surge: {{clients: 1}}, by: 2, resource: workers}}
- {{at: 1s, demand: {{clients: 1}}, wants: 3, resource: rps}}
- {{at: 1s, depose: root}}"
    ));
    let events = scenario.faults.iter().map(|it| &it.choices[0].1);
    let shown: Vec<String> = events.map(|it| format!("{it:?}")).collect();
    let clients = format!("{:?}", ClientChoice::any(1));
    let (rps, workers) = (
        format!("{:?}", scenario.clients[0].first.resource),
        format!("{:?}", scenario.clients[0].also[0].resource),
    );
    let expected = [
        format!("Leave {{ clients: {clients}, length: Some((1s, 9s)) }}"),
        format!(
            "Close {{ clients: {clients}, resource: Some({workers}), length: Some((5s, 5s)) }}"
        ),
        format!("Close {{ clients: {clients}, resource: None, length: None }}"),
        format!("Surge {{ clients: {clients}, by: 2.0, resource: Some({workers}) }}"),
        format!("Demand {{ clients: {clients}, wants: 3.0, resource: Some({rps}) }}"),
        format!(
            "{:?}",
            Event::Depose {
                node: NodeChoice::Node(0)
            }
        ),
    ];
    assert_eq!(shown, expected);
    let again = read(&scenario.to_yaml().unwrap());
    assert_eq!(
        format!("{:?}", again.faults),
        format!("{:?}", scenario.faults)
    );
}
