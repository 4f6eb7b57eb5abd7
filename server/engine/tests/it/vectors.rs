//! All cases of the oracle, through the algorithms alone and through a whole node.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::claims::{Bands, Claim, Demand, Subclients};
use doorward_engine::division;
use doorward_engine::division::Supply;
use doorward_engine::messages::{GetCapacity, Has};
use doorward_engine::node::Node;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;
use serde::Deserialize;

use crate::asking::{self, ask, holder, no_floor, parsed, resource, served, template};

#[derive(Deserialize)]
struct Case {
    name: String,
    capacity: f64,
    clients: Vec<ClientCase>,
    #[serde(default)]
    min_share: BTreeMap<String, f64>,
    expected: Vec<Expected>,
}

#[derive(Deserialize)]
struct ClientCase {
    id: String,
    wants: f64,
    #[serde(default = "one")]
    subclients: f64,
    #[serde(default)]
    priority: i64,
}

#[derive(Deserialize)]
struct Expected {
    id: String,
    gets: f64,
}

fn one() -> f64 {
    1.0
}

#[test]
fn fair_share() {
    check(
        AlgorithmKind::FairShare,
        include_str!("../../testdata/vectors/fair_share.json"),
        63,
    );
}

#[test]
fn proportional_share() {
    let cases = include_str!("../../testdata/vectors/proportional_share.json");
    check(AlgorithmKind::ProportionalShare, cases, 56);
}

#[test]
fn static_share() {
    check(
        AlgorithmKind::Static,
        include_str!("../../testdata/vectors/static.json"),
        13,
    );
}

#[test]
fn no_algorithm() {
    check(
        AlgorithmKind::NoAlgorithm,
        include_str!("../../testdata/vectors/no_algorithm.json"),
        6,
    );
}

#[test]
fn priority_bands() {
    let cases = include_str!("../../testdata/vectors/priority_bands.json");
    check(AlgorithmKind::PriorityBands, cases, 60);
}

#[track_caller]
fn check(kind: AlgorithmKind, json: &str, count: usize) {
    let cases: Vec<Case> = serde_json::from_str(json).unwrap();
    assert_eq!(cases.len(), count);
    for case in &cases {
        compare(case, "the algorithm alone", &by_algorithm(kind, case));
        if case.clients.iter().all(|client| client.subclients == 1.0) {
            compare(case, "a whole node", &by_node(kind, case));
        }
    }
}

#[track_caller]
fn compare(case: &Case, through: &str, got: &BTreeMap<String, f64>) {
    for Expected { id, gets } in &case.expected {
        let got = got[id];
        let tolerance = (gets.abs() * 1e-9).max(1e-12);
        let Case { name, .. } = case;
        assert!(
            (got - gets).abs() <= tolerance,
            "{name}, {through}: {id} gets {got}, not {gets}"
        );
    }
}

fn by_algorithm(kind: AlgorithmKind, case: &Case) -> BTreeMap<String, f64> {
    let templates = templates(kind, case);
    let algorithm = &templates.iter().next().unwrap().algorithm;
    let supply = Supply::of_root(Amount::new(case.capacity).unwrap());
    let claim = |client: &ClientCase| Claim {
        wants: Amount::new(client.wants).unwrap(),
        subclients: Subclients::new(client.subclients).unwrap(),
    };
    let mut bands = Bands::default();
    for client in &case.clients {
        bands.insert(client.priority, claim(client));
    }
    let share = |client: &ClientCase| {
        let demand = Demand::Client {
            priority: client.priority,
            claim: claim(client),
        };
        let rule = division::solve(algorithm, &bands, &supply, &demand);
        rule.share_of(&demand).get()
    };
    case.clients
        .iter()
        .map(|client| (client.id.clone(), share(client)))
        .collect()
}

/// Lets clients ask in turns and report their leases, until nothing changes.
fn by_node(kind: AlgorithmKind, case: &Case) -> BTreeMap<String, f64> {
    let config = no_floor();
    let mut node = Node::new(config, templates(kind, case));
    node.handle_mastership(Mastership::Master { epoch: Some(1) }, Time::ZERO);
    let mut has: BTreeMap<String, Amount> = BTreeMap::new();
    for round in 1..100 {
        let before = has.clone();
        for client in &case.clients {
            let request = GetCapacity {
                sequence: Some(round),
                ..asking::request(
                    holder(&client.id),
                    vec![ask(
                        resource("r"),
                        client.priority,
                        Amount::new(client.wants).unwrap(),
                        has.get(&client.id).map(|has| Has {
                            granted_by: None,
                            capacity: *has,
                            expires_in: None,
                        }),
                    )],
                )
            };
            let reply = served(node.handle_get_capacity(&request, Time::from_secs(round)));
            has.insert(client.id.clone(), reply.leases[0].capacity);
        }
        node.assert_consistent();
        if has == before {
            return has.into_iter().map(|(id, has)| (id, has.get())).collect();
        }
    }
    panic!("{}: it never settles", case.name);
}

fn templates(kind: AlgorithmKind, case: &Case) -> Templates {
    let share = |(priority, share): (&String, &f64)| {
        (format!("min_share.{priority}"), Some(share.to_string()))
    };
    parsed(TemplateSpec {
        lease_length: Some(Duration::from_secs(3600)),
        parameters: case.min_share.iter().map(share).collect(),
        ..template("r", kind, case.capacity)
    })
}
