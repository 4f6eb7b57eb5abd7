//! What every seed draws: a tree, clients, a network, faults. Seeds that failed once are tests: what
//! is drawn here, and in which order, stays as it is.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_client::state::Mode;
use doorward_engine::id::ResourceId;
use doorward_engine::template::{AlgorithmKind, TemplateSpec, Templates};

use crate::chance::Chance;
use crate::scenario::demand::Demand;
use crate::scenario::fault::{
    ClientChoice, ClockChoice, Event, Fault, NodeChoice, Side, Span, When,
};
use crate::scenario::{
    ClientGaps, ClientGroup, Latency, Limits, Link, Network, Node, Scenario, Servers, WayUp,
};

/// What is asked for.
pub(super) const RESOURCE: &str = "shared";

/// What may be missing at rest, as a part of what could be used: what curves lose in compression.
const AT_REST: f64 = 0.005;

/// What every seed draws.
pub(super) fn scenario(seed: u64) -> Scenario {
    let mut chance = Chance::new(seed);
    let seconds = Duration::from_secs;
    let lease = seconds(chance.pick([20, 60]));
    let refresh = seconds(chance.pick([2, 5, 8]));
    let kinds = [
        AlgorithmKind::FairShare,
        AlgorithmKind::FairShare,
        AlgorithmKind::ProportionalShare,
        AlgorithmKind::PriorityBands,
    ];
    let kind = chance.pick(kinds);
    let capacity = chance.pick([1.0, 77.7, 500.0, 1e6]);
    let templates = |capacity| {
        templates(&[Spec {
            resource: RESOURCE,
            kind,
            capacity,
            lease,
            refresh,
            learning: None,
        }])
    };
    let nodes = tree(&mut chance);
    let faulty_for = seconds(300);
    // Learning may follow learning, level by level, and what was out runs down.
    let levels = 1 + depth(&nodes);
    let rest_for = lease * 4 + refresh * 4 * levels + seconds(30);
    let clients = clients(&mut chance, capacity, nodes.len(), kind);
    let way = |chance: &mut Chance| Link {
        latency: match chance.below(4) {
            0 => Latency::Constant(Duration::ZERO),
            1 => Latency::Constant(Duration::from_millis(20)),
            2 => Latency::Uniform(Duration::from_millis(1), Duration::from_millis(400)),
            _ => Latency::Exponential {
                least: Duration::from_millis(1),
                mean: Duration::from_millis(100),
            },
        },
        loss: chance.pick([0.0, 0.0, 0.02, 0.2]),
        duplication: chance.pick([0.0, 0.0, 0.1]),
    };
    let network = Network {
        clients: way(&mut chance),
        servers: way(&mut chance),
        at: BTreeMap::new(),
        above: BTreeMap::new(),
    };
    let servers = Servers {
        refresh_floor: chance.pick([Duration::ZERO, seconds(1)]),
        push_round: Duration::from_millis(50),
        way_up: chance.pick([WayUp::Stream, WayUp::Stream, WayUp::Poll]),
        election: (seconds(2), seconds(10)),
    };
    let edited = |chance: &mut Chance| {
        let factors = [0.3, 0.8, 1.2, 2.0];
        templates(capacity * chance.pick(factors))
    };
    let faults = faults(&mut chance, capacity, faulty_for, edited);
    Scenario {
        name: format!("fuzz-{seed}"),
        description: "Everything by chance: first everything goes wrong, then nothing.".to_owned(),
        seed,
        duration: faulty_for + rest_for,
        sample_every: seconds(5),
        settled_after: faulty_for + rest_for - refresh * 2,
        templates: templates(capacity),
        nodes,
        clients,
        network,
        servers,
        client_gaps: ClientGaps::default(),
        faults,
        heal_at: Some(faulty_for),
        right_at: Vec::new(),
        limits: limits(),
    }
}

/// What must hold in every world.
pub(super) fn limits() -> Limits {
    Limits {
        overshoot_max: Some(0.0),
        nesting_max: Some(0.0),
        mastership_max: Some(0.0),
        utilisation_min: Some(1.0 - AT_REST),
        unfairness_max: Some(AT_REST),
        ..Limits::default()
    }
}

/// One resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spec {
    pub(super) resource: &'static str,
    pub(super) kind: AlgorithmKind,
    pub(super) capacity: f64,
    pub(super) lease: Duration,
    pub(super) refresh: Duration,
    /// Absent: as long as leases last.
    pub(super) learning: Option<Duration>,
}

pub(super) fn templates(specs: &[Spec]) -> Templates {
    let spec = |spec: &Spec| {
        let parameters = if spec.kind == AlgorithmKind::PriorityBands {
            vec![("min_share.0".to_owned(), Some("0.2".to_owned()))]
        } else {
            Vec::new()
        };
        TemplateSpec {
            identifier_glob: Some(spec.resource.to_owned()),
            capacity: Some(spec.capacity),
            kind: Some(spec.kind),
            lease_length: Some(spec.lease),
            refresh_interval: Some(spec.refresh),
            learning_mode_duration: spec.learning,
            parameters,
            ..TemplateSpec::default()
        }
    };
    let specs: Vec<TemplateSpec> = specs.iter().map(spec).collect();
    // All of it was written here; nothing is wrong with it.
    Templates::parse(&specs).unwrap_or_default()
}

fn tree(chance: &mut Chance) -> Vec<Node> {
    let mut nodes = vec![Node {
        name: "root".to_owned(),
        parent: None,
        candidates: 1 + chance.below(3) as u32,
    }];
    let mut level = vec![0];
    for depth in 0..chance.below(4) {
        let mut below = Vec::new();
        for parent in level {
            for _ in 0..1 + chance.below(3) {
                if nodes.len() >= 16 {
                    break;
                }
                below.push(nodes.len());
                nodes.push(Node {
                    name: format!("node-{depth}-{}", nodes.len()),
                    parent: Some(parent),
                    candidates: 1 + chance.below(3) as u32,
                });
            }
        }
        level = below;
    }
    nodes
}

pub(super) fn depth(nodes: &[Node]) -> u32 {
    let mut levels: Vec<u32> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let above = node.parent.and_then(|parent| levels.get(parent));
        levels.push(above.map_or(0, |above| above + 1));
    }
    levels.into_iter().max().unwrap_or_default()
}

fn clients(
    chance: &mut Chance,
    capacity: f64,
    nodes: usize,
    kind: AlgorithmKind,
) -> Vec<ClientGroup> {
    let many = 1 + chance.below(30);
    let mean = capacity / many as f64 * chance.pick([0.3, 1.0, 1.6, 5.0]);
    // The scenario names it itself.
    let Ok(resource) = ResourceId::new(RESOURCE) else {
        return Vec::new();
    };
    let one = |number: usize, chance: &mut Chance| {
        let amount = mean * chance.between(0.0, 2.0);
        let every = Duration::from_secs(1 + chance.below(20) as u64);
        let demand = match chance.below(5) {
            0 | 1 => Demand::Constant(amount),
            2 => Demand::Walk {
                start: amount,
                factor: (0.8, 1.25),
                every,
            },
            3 => Demand::OnOff {
                on: amount,
                off: 0.0,
                on_for: every * 4,
                off_for: every * 2,
            },
            _ => Demand::Spike {
                base: amount,
                peak: amount * 10.0,
                at: every * 5,
                length: every * 3,
            },
        };
        ClientGroup {
            name: format!("client-{number}"),
            count: 1,
            nodes: vec![chance.below(nodes)],
            resource: resource.clone(),
            priority: if kind == AlgorithmKind::PriorityBands {
                chance.below(3) as i64
            } else {
                0
            },
            mode: chance.pick([Mode::Pessimistic, Mode::Safe, Mode::Optimistic]),
            demand,
            start_within: Duration::ZERO,
        }
    };
    (0..many).map(|number| one(number, chance)).collect()
}

fn faults(
    chance: &mut Chance,
    capacity: f64,
    length: Duration,
    edited: impl Fn(&mut Chance) -> Templates,
) -> Vec<Fault> {
    let many = chance.below(25);
    let mut faults = Vec::with_capacity(many);
    for _ in 0..many {
        let at = chance.duration(Duration::from_secs(5), length);
        let node = if chance.happens(0.3) {
            NodeChoice::Node(0)
        } else {
            NodeChoice::Any
        };
        let most = Duration::from_secs(chance.pick([3, 20, 80]));
        let span: Span = (Duration::from_millis(100), most);
        let event = match chance.below(12) {
            0 | 1 => Event::Kill {
                node,
                length: Some(span),
            },
            2 => Event::Kill { node, length: None },
            3 => Event::Elect { node },
            4 | 5 => Event::Freeze { node, length: span },
            6 | 7 => Event::Partition {
                node,
                from: chance.pick([Side::Parent, Side::Below, Side::All]),
                length: span,
            },
            8 => Event::Edit {
                templates: edited(chance),
            },
            9 => Event::Crash {
                clients: ClientChoice::any(1 + chance.below(5)),
                length: chance.happens(0.8).then_some(span),
            },
            10 => Event::Surge {
                clients: ClientChoice::any(1 + chance.below(3)),
                by: capacity * chance.between(0.0, 1.0),
            },
            // A clock that is fast ends a client's leases too early, which harms nobody else.
            _ => Event::Drift {
                clock: ClockChoice::Clients(ClientChoice::any(1 + chance.below(5))),
                speed: chance.between(1.0, 1.05),
            },
        };
        faults.push(Fault {
            when: When::At(at),
            choices: vec![(1.0, event)],
        });
    }
    faults
}
