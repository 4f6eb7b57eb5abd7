//! Small trees with fast elections and hungry siblings: a root, perhaps a region, and two or three
//! leaves, of three candidates each; few clients, who want more than there is; links that are slow and
//! lose messages. Within one lease length a node and its parent lose their masters several times. So
//! whatever one of them is told too early, or believes for too long, somebody else uses at once.

use std::time::Duration;

use doorward_client::state::Mode;
use doorward_engine::id::ResourceId;
use doorward_engine::template::{AlgorithmKind, Templates};

use crate::chance::Chance;
use crate::fuzz::drawn::{RESOURCE, Spec, limits, templates};
use crate::scenario::demand::Demand;
use crate::scenario::fault::{
    ClientChoice, Event, Fault, NodeChoice, Servers as Whose, Side, Span, ToEtcd, When,
};
use crate::scenario::{
    ClientGaps, ClientGroup, Latency, Link, Network, Node, Scenario, Servers, WayUp,
};

/// Makes the stream of a seed.
const STREAM: u64 = 0x5eed_0000_0000_0005;

/// How long anything goes wrong.
const FAULTY_FOR: Duration = Duration::from_secs(200);

/// What a seed of this family draws.
pub(super) fn scenario(seed: u64) -> Scenario {
    let mut chance = Chance::new(seed ^ STREAM);
    // With less, a lease may run out under way on links as slow as these.
    let lease = Duration::from_secs(chance.pick([20, 20, 30]));
    let refresh = lease / chance.pick([4, 4, 8]);
    let kind = chance.pick([
        AlgorithmKind::FairShare,
        AlgorithmKind::FairShare,
        AlgorithmKind::ProportionalShare,
        AlgorithmKind::PriorityBands,
    ]);
    let spec = spec(kind, lease, refresh);
    let templates = templates(&[spec]);
    let nodes = nodes(&mut chance, 3);
    let most = chance.pick([2, 4, 10]);
    let clients = hungry(&mut chance, &nodes, &templates, most);
    let way = |chance: &mut Chance| Link {
        latency: chance.pick([
            Latency::Uniform(Duration::from_millis(1), Duration::from_millis(400)),
            Latency::Uniform(Duration::from_millis(1), Duration::from_millis(900)),
            Latency::Constant(Duration::from_millis(20)),
        ]),
        loss: chance.pick([0.0, 0.05, 0.2]),
        duplication: chance.pick([0.0, 0.0, 0.1]),
    };
    let network = Network {
        clients: way(&mut chance),
        servers: way(&mut chance),
        ..Network::default()
    };
    let shortest = Duration::from_millis(chance.pick([500, 1_000, 2_000]));
    let servers = Servers {
        refresh_floor: chance.pick([Duration::ZERO, Duration::from_secs(1)]),
        push_round: Duration::from_millis(50),
        way_up: chance.pick([WayUp::Stream, WayUp::Stream, WayUp::Poll]),
        election: (shortest, shortest * chance.pick([1, 3])),
    };
    let mut faults = Vec::new();
    for _ in 0..3 + chance.below(4) {
        chain(&mut chance, &nodes, spec, &mut faults);
    }
    rest_of(
        seed,
        "Small trees, fast elections and hungry siblings; chains of masters that change.",
        templates,
        Parts {
            nodes,
            clients,
            network,
            servers,
            faults,
        },
    )
}

/// One resource with as much as these trees share.
pub(super) fn spec(kind: AlgorithmKind, lease: Duration, refresh: Duration) -> Spec {
    Spec {
        resource: RESOURCE,
        kind,
        capacity: 100.0,
        lease,
        refresh,
        learning: None,
    }
}

/// All links are like this one.
pub(super) fn all_links(way: Link) -> Network {
    Network {
        clients: way,
        servers: way,
        ..Network::default()
    }
}

/// Servers whose elections take so long, at least and at most.
pub(super) fn servers(chance: &mut Chance, election: Span) -> Servers {
    Servers {
        refresh_floor: chance.pick([Duration::ZERO, Duration::from_secs(1)]),
        push_round: Duration::from_millis(50),
        way_up: chance.pick([WayUp::Stream, WayUp::Poll]),
        election,
    }
}

/// What families draw, each in its own way.
pub(super) struct Parts {
    pub(super) nodes: Vec<Node>,
    pub(super) clients: Vec<ClientGroup>,
    pub(super) network: Network,
    pub(super) servers: Servers,
    pub(super) faults: Vec<Fault>,
}

/// What is the same for all: things go wrong for a while, and then they do not.
pub(super) fn rest_of(seed: u64, what: &str, templates: Templates, parts: Parts) -> Scenario {
    let mut scenario = Scenario {
        name: format!("fuzz-{seed}"),
        description: what.to_owned(),
        seed,
        duration: FAULTY_FOR,
        sample_every: Duration::from_secs(5),
        settled_after: Duration::ZERO,
        templates,
        nodes: parts.nodes,
        clients: parts.clients,
        network: parts.network,
        servers: parts.servers,
        client_gaps: ClientGaps::default(),
        faults: parts.faults,
        heal_at: Some(FAULTY_FOR),
        right_at: Vec::new(),
        limits: limits(),
    };
    let (mut lease, mut refresh) = (Duration::ZERO, Duration::ZERO);
    for template in scenario.templates_ever() {
        lease = lease.max(template.algorithm.lease_length);
        refresh = refresh.max(template.algorithm.refresh_interval);
    }
    scenario.duration =
        FAULTY_FOR + (lease * 4 + refresh * 12).mul_f64(1.2) + Duration::from_secs(30);
    scenario.settled_after = scenario.duration - refresh * 2;
    scenario
}

/// A root and its leaves, or a region between them; each of up to so many candidates.
pub(super) fn nodes(chance: &mut Chance, candidates: u32) -> Vec<Node> {
    let node = |name: &str, parent| Node {
        name: name.to_owned(),
        parent,
        candidates,
    };
    let mut nodes = vec![node("root", None)];
    let mut above = 0;
    if chance.happens(0.4) {
        nodes.push(node("region", Some(0)));
        above = 1;
    }
    for name in ["leaf-a", "leaf-b", "leaf-c"]
        .iter()
        .take(2 + chance.below(2))
    {
        nodes.push(node(name, Some(above)));
    }
    nodes
}

/// A few clients at each leaf, up to so many; together they want more than there is.
pub(super) fn hungry(
    chance: &mut Chance,
    nodes: &[Node],
    templates: &Templates,
    most: usize,
) -> Vec<ClientGroup> {
    let mut groups = Vec::new();
    let Ok(resource) = ResourceId::new(RESOURCE) else {
        // The id is written here.
        return groups;
    };
    let template = templates.find(&resource);
    let capacity = template.map_or(0.0, |template| template.capacity.get());
    let has_bands = template.is_some_and(|it| it.algorithm.kind == AlgorithmKind::PriorityBands);
    let leaves = (0..nodes.len()).filter(|node| nodes.iter().all(|it| it.parent != Some(*node)));
    for leaf in leaves {
        for _ in 0..1 + chance.below(most) {
            let wants = capacity * chance.between(0.1, 1.0);
            let every = Duration::from_secs(2 + chance.below(15) as u64);
            let demand = match chance.below(4) {
                0 | 1 => Demand::Constant(wants),
                2 => Demand::OnOff {
                    on: wants,
                    off: wants / 10.0,
                    on_for: every,
                    off_for: every,
                },
                _ => Demand::Walk {
                    start: wants,
                    factor: (0.5, 2.0),
                    every,
                },
            };
            groups.push(ClientGroup {
                name: format!("client-{}", groups.len()),
                count: 1,
                nodes: vec![leaf],
                resource: resource.clone(),
                priority: if has_bands { chance.below(2) as i64 } else { 0 },
                mode: Mode::Pessimistic,
                demand,
                start_within: Duration::ZERO,
            });
        }
    }
    groups
}

/// Within a lease length the master of a node changes, and while that learns, masters of a node below it
/// change several times. In between somebody wants more, or vanishes, and all are cut off for a moment.
fn chain(chance: &mut Chance, nodes: &[Node], spec: Spec, faults: &mut Vec<Fault>) {
    let lower = 1 + chance.below(nodes.len() - 1);
    let upper = nodes.get(lower).and_then(|node| node.parent).unwrap_or(0);
    let begins = chance.duration(spec.lease, FAULTY_FOR - spec.lease * 2);
    faults.push(once(begins, change(chance, upper)));
    for _ in 0..2 + chance.below(3) {
        let node = if chance.happens(0.8) { lower } else { upper };
        let event = change(chance, node);
        faults.push(once(soon(chance, begins, spec), event));
    }
    for _ in 0..chance.below(3) {
        let event = Event::Partition {
            node: NodeChoice::Node(if chance.happens(0.5) { lower } else { upper }),
            from: chance.pick([Side::Parent, Side::Below, Side::All]),
            length: brief(chance),
        };
        faults.push(once(soon(chance, begins, spec), event));
    }
    for _ in 0..1 + chance.below(3) {
        let clients = ClientChoice::any(1 + chance.below(3));
        let event = match chance.below(4) {
            0 => Event::Surge {
                clients,
                by: spec.capacity,
            },
            1 => Event::Crash {
                clients,
                length: Some((Duration::from_secs(1), spec.lease)),
            },
            _ => Event::Demand {
                clients,
                wants: spec.capacity * chance.pick([0.0, 0.1, 1.0, 2.0]),
            },
        };
        faults.push(once(soon(chance, begins, spec), event));
    }
}

/// Within a lease length.
fn soon(chance: &mut Chance, begins: Duration, spec: Spec) -> Duration {
    begins + chance.duration(Duration::ZERO, spec.lease)
}

fn brief(chance: &mut Chance) -> Span {
    let most = chance.pick([1, 3, 9]);
    (Duration::from_millis(100), Duration::from_secs(most))
}

/// A node has another master, in one way or another.
pub(super) fn change(chance: &mut Chance, node: usize) -> Event {
    let node = NodeChoice::Node(node);
    match chance.below(10) {
        0..=2 => Event::Kill {
            node,
            length: chance.happens(0.7).then(|| brief(chance)),
        },
        3 | 4 => Event::Restart {
            node,
            length: brief(chance),
        },
        5..=7 => Event::Elect { node },
        8 => Event::Freeze {
            node,
            length: brief(chance),
        },
        _ => Event::Isolate {
            node,
            servers: Whose::Master,
            way: ToEtcd::Both,
            length: brief(chance),
        },
    }
}

pub(super) fn once(at: Duration, event: Event) -> Fault {
    Fault {
        when: When::At(at),
        choices: vec![(1.0, event)],
    }
}
