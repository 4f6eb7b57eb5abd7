//! Shares through the tree: the oracle's vectors, and random trees against a flat computation.
//!
//! Here messages arrive at once and none is lost; `tree_invariants.rs` tests trees with late and
//! lost messages. All demand is known before there is any capacity, so the grants are the shares at
//! once.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_engine::claims::POINTS_MAX;
use doorward_engine::id::ResourceId;
use doorward_engine::messages::{Has, Via};
use doorward_engine::node::Config;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;
use serde::Deserialize;

use crate::asking::{self, amount, holder, parsed, served, template};
use crate::story::chance::{Chance, cases};
use crate::story::story_server::Server;
use crate::story::world::{Arrived, World};
use crate::whole::Whole as _;

const WAVE: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, Deserialize)]
pub struct ClientSpec {
    pub id: String,
    pub wants: f64,
    #[serde(default)]
    pub priority: i64,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub struct NodeSpec {
    name: String,
    #[serde(default)]
    clients: Vec<ClientSpec>,
    #[serde(default)]
    children: Vec<NodeSpec>,
}

#[derive(Debug, Deserialize)]
struct Case {
    name: String,
    algorithm: String,
    capacity: f64,
    #[serde(default)]
    min_share: BTreeMap<String, f64>,
    tree: NodeSpec,
    expected: Vec<Expected>,
}

#[derive(Debug, Deserialize)]
struct Expected {
    client: String,
    gets: f64,
}

pub fn resource() -> ResourceId {
    asking::resource("r")
}

fn templates(kind: AlgorithmKind, capacity: f64, min_share: &BTreeMap<String, f64>) -> Templates {
    let share = |(priority, share): (&String, &f64)| {
        (format!("min_share.{priority}"), Some(share.to_string()))
    };
    parsed(TemplateSpec {
        lease_length: Some(Duration::from_secs(3600)),
        refresh_interval: Some(Duration::from_secs(1)),
        parameters: min_share.iter().map(share).collect(),
        ..template("r", kind, capacity)
    })
}

/// A client of the tree: its server, and its name in the whole tree.
pub struct Leaf {
    pub home: usize,
    pub path: String,
    pub spec: ClientSpec,
}

/// The world of the stories, in which messages arrive at once.
#[derive(Default)]
pub struct Tree {
    /// Points of the curves of leaves with few clients.
    pub few_points: usize,
    pub world: World,
    pub clients: Vec<Leaf>,
    pub depth: usize,
}

impl Tree {
    pub fn grow(&mut self, spec: NodeSpec, above: Option<usize>, templates: &Templates) {
        let path = above.map_or(spec.name.clone(), |above| {
            format!("{}/{}", self.world.servers[above].name, spec.name)
        });
        let config = Config {
            name: path.clone(),
            has_parent: above.is_some(),
            refresh_floor: Duration::ZERO,
            few_points: match spec.children.is_empty() {
                true => self.few_points,
                false => POINTS_MAX,
            },
            ..Config::default()
        };
        let server = Server::new(config, above, Via::Stream);
        let home = self.world.add_server(server);
        let templates = above.map_or(templates.clone(), |_| Templates::default());
        self.world.start(home, 1, templates.clone());
        let node = &mut self.world.servers[home].node;
        node.handle_mastership(Mastership::Master { epoch: Some(1) }, Time::ZERO);
        self.depth = self.depth.max(1 + self.world.depth(home));
        let clients = spec.clients.into_iter();
        self.clients.extend(clients.map(|spec| Leaf {
            home,
            path: format!("{path}/{}", spec.id),
            spec,
        }));
        for child in spec.children {
            self.grow(child, Some(home), &templates);
        }
    }

    /// Lets all clients and servers ask, from the leaves up. A client without an answer asks again
    /// in the next wave.
    pub fn ask(&mut self, has: &mut BTreeMap<String, f64>) {
        for Leaf { home, path, spec } in &self.clients {
            let had = has.get(path).map(|has| Has::untimed(amount(*has)));
            let ask = asking::ask(resource(), spec.priority, amount(spec.wants), had);
            let request = asking::request(holder(&spec.id), vec![ask]);
            let reply = served(self.world.asked(*home, &request));
            if let Some(lease) = reply.leases.first() {
                has.insert(path.clone(), lease.capacity.get());
            }
        }
        // Children come after their parents.
        for number in (0..self.world.servers.len()).rev() {
            while let Some(question) = self.world.ask_parent(number) {
                let Arrived::Answered(answer) = self.world.deliver(question, Duration::ZERO) else {
                    panic!("nothing is lost");
                };
                self.world.deliver(answer, Duration::ZERO);
                // After the first answer, all claims change bands, a few at a time.
                self.world.serve_timer(number);
            }
        }
    }

    fn settled(
        spec: NodeSpec,
        templates: &Templates,
        without: &Templates,
        few_points: usize,
    ) -> BTreeMap<String, f64> {
        let mut tree = Self {
            few_points,
            ..Self::default()
        };
        tree.grow(spec, None, without);
        let mut has = BTreeMap::new();
        tree.world.now = Time::from_secs(1);
        // There is no capacity until all demand has come up.
        for wave in 0..=3 * tree.depth {
            if wave == tree.depth + 1 {
                let now = tree.world.now;
                let root = &mut tree.world.servers[0].node;
                root.handle_templates(templates.clone(), now);
            }
            tree.ask(&mut has);
            tree.world.now = tree.world.now + WAVE;
        }
        tree.check();
        has
    }

    fn check(&self) {
        self.world.assert_consistent();
        for server in &self.world.servers {
            for snapshot in server.node.snapshot(Time::ZERO).resources {
                let fits = snapshot.reserved <= snapshot.capacity;
                let promised = snapshot.kind.promises_total();
                assert!(fits || !promised, "{}: {snapshot:?}", server.name);
            }
        }
    }
}

fn run(
    kind: AlgorithmKind,
    capacity: f64,
    min_share: &BTreeMap<String, f64>,
    tree: NodeSpec,
    few_points: usize,
) -> BTreeMap<String, f64> {
    let of = |capacity| templates(kind, capacity, min_share);
    Tree::settled(tree, &of(capacity), &of(0.0), few_points)
}

#[test]
fn the_vectors_of_the_oracle() {
    let text = include_str!("../../testdata/vectors/tree.json");
    let cases: Vec<Case> = serde_json::from_str(text).unwrap();
    assert!(cases.len() >= 49);
    for case in cases {
        let kind = match case.algorithm.as_str() {
            "FAIR_SHARE" => AlgorithmKind::FairShare,
            "PRIORITY_BANDS" => AlgorithmKind::PriorityBands,
            other => panic!("{other}"),
        };
        let got = run(kind, case.capacity, &case.min_share, case.tree, POINTS_MAX);
        for Expected { client, gets } in &case.expected {
            let got = got[client];
            assert!(
                (got - gets).abs() <= (gets.abs() * 1e-9).max(1e-12),
                "{}: {client} gets {got}, not {gets}",
                case.name
            );
        }
    }
}

/// How the wants of a tree's clients are distributed.
#[derive(Clone, Copy, Debug)]
pub enum Wants {
    Uniform,
    Exponential,
    /// Over five orders of magnitude.
    HeavyTailed,
}

impl Wants {
    fn draw(self, chance: &mut Chance) -> f64 {
        match self {
            Self::Uniform => chance.uniform() * 100.0,
            Self::Exponential => -10.0 * (1.0 - chance.uniform()).ln(),
            Self::HeavyTailed => 10f64.powf(chance.uniform() * 5.0 - 1.0),
        }
    }
}

/// Shape of a random tree, and its clients by their names in the whole tree.
pub struct RandomTree {
    pub chance: Chance,
    /// Approximate number of clients at each leaf.
    pub clients: usize,
    pub wants: Wants,
    pub all: Vec<(String, i64, f64)>,
}

impl RandomTree {
    pub fn grow(&mut self, name: String, depth: usize, above: &str) -> NodeSpec {
        let path = format!("{above}{name}/");
        let mut spec = NodeSpec {
            name,
            ..NodeSpec::default()
        };
        let own = match depth {
            1 => self.clients,
            _ => self.chance.below(4),
        };
        for number in 0..own {
            let client = ClientSpec {
                id: format!("c{number}"),
                wants: self.wants.draw(&mut self.chance),
                priority: self.chance.one_of(&[0, 5, 9]),
            };
            let full_name = format!("{path}{}", client.id);
            self.all.push((full_name, client.priority, client.wants));
            spec.clients.push(client);
        }
        if depth > 1 {
            for number in 0..1 + self.chance.below(4) {
                let deeper = self.grow(format!("n{number}"), depth - 1, &path);
                spec.children.push(deeper);
            }
        }
        spec
    }
}

/// Computes max-min shares by sorting, independent of the engine.
fn flat_max_min(capacity: f64, wants: &mut [(usize, f64)]) -> BTreeMap<usize, f64> {
    wants.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (mut left, mut people) = (capacity, wants.len());
    let mut gets = BTreeMap::new();
    for (number, wanted) in wants.iter() {
        let got = wanted.min(left / people as f64);
        gets.insert(*number, got);
        left -= got;
        people -= 1;
    }
    gets
}

/// Returns the share of each client by a single server for all of them.
fn flat(kind: AlgorithmKind, capacity: f64, all: &[(String, i64, f64)]) -> Vec<f64> {
    let total: f64 = all.iter().map(|(_, _, wants)| wants).sum();
    match kind {
        AlgorithmKind::NoAlgorithm => all.iter().map(|(_, _, wants)| *wants).collect(),
        AlgorithmKind::Static => all.iter().map(|it| it.2.min(capacity)).collect(),
        AlgorithmKind::ProportionalShare if total <= capacity => {
            all.iter().map(|(_, _, wants)| *wants).collect()
        }
        AlgorithmKind::ProportionalShare => {
            let equal = capacity / all.len() as f64;
            let demand: f64 = all.iter().map(|(_, _, wants)| wants.min(equal)).sum();
            let part = (capacity - demand) / (total - demand);
            let of = |wants: f64| wants.min(equal) + (wants - equal).max(0.0) * part;
            all.iter().map(|(_, _, wants)| of(*wants)).collect()
        }
        AlgorithmKind::FairShare | AlgorithmKind::PriorityBands | AlgorithmKind::Budget => {
            // The highest priority comes first. FAIR_SHARE has a single priority.
            let mut bands: BTreeMap<i64, Vec<(usize, f64)>> = BTreeMap::new();
            for (number, (_, priority, wants)) in all.iter().enumerate() {
                let is_fair = kind == AlgorithmKind::FairShare;
                let band = if is_fair { 0 } else { -priority };
                bands.entry(band).or_default().push((number, *wants));
            }
            let (mut left, mut gets) = (capacity, vec![0.0; all.len()]);
            for band in bands.values_mut() {
                for (number, got) in flat_max_min(left, band) {
                    gets[number] = got;
                }
                left -= band.iter().map(|(number, _)| gets[*number]).sum::<f64>();
            }
            gets
        }
    }
}

/// Compares random trees with the flat computation. Returns the worst client's relative error.
fn worst_error(kind: AlgorithmKind, trees: u64, clients_max: f64, few_points: usize) -> f64 {
    let mut worst: f64 = 0.0;
    for seed in 0..trees {
        let mut chance = Chance(seed * 31 + kind as u64);
        let wants = [Wants::Uniform, Wants::Exponential, Wants::HeavyTailed][chance.below(3)];
        let depth = 1 + chance.below(4);
        let clients = clients_max.powf(chance.uniform()) / 3f64.powi(depth as i32 - 1);
        let mut drawn = RandomTree {
            chance,
            clients: clients as usize + 1,
            wants,
            all: Vec::new(),
        };
        let tree = drawn.grow("root".to_owned(), depth, "");
        let RandomTree {
            all, mut chance, ..
        } = drawn;
        if all.is_empty() {
            continue;
        }
        let total: f64 = all.iter().map(|(_, _, wants)| wants).sum();
        let capacity = match kind {
            AlgorithmKind::Static => total / all.len() as f64,
            _ => total * (0.2 + chance.uniform() * 0.75),
        };
        let got = run(kind, capacity, &BTreeMap::new(), tree, few_points);
        let expected = flat(kind, capacity, &all);
        let sum: f64 = got.values().sum();
        let is_all = (sum - capacity).abs() <= capacity * 1e-9;
        let about = format!("seed {seed}, {kind}, {} clients, depth {depth}", all.len());
        assert!(
            is_all || !kind.promises_total(),
            "{about}: {sum} of {capacity}"
        );
        for ((client, _, wants), expected) in all.iter().zip(&expected) {
            let gets = got[client];
            let error = (gets - expected).abs() / expected.max(capacity * 1e-6);
            assert!(
                error <= if few_points < POINTS_MAX { 0.05 } else { 0.01 },
                "{about}: {client} wants {wants} and gets {gets}, not {expected}"
            );
            worst = worst.max(error);
        }
    }
    worst
}

#[test]
fn random_trees_give_every_client_its_share_by_a_single_server() {
    let worst = worst_error(AlgorithmKind::FairShare, cases(200), 5000.0, POINTS_MAX);
    println!("FAIR_SHARE: the worst client is {:.4} % off", worst * 100.0);
}

#[test]
fn eight_points_of_few_clients_give_about_the_same() {
    let worst = worst_error(AlgorithmKind::FairShare, cases(200), 300.0, 8);
    println!("8 points: the worst client is {:.4} % off", worst * 100.0);
    assert!(worst > 0.001, "curves have more points");
}

#[test]
fn random_trees_with_other_algorithms_give_every_client_the_same() {
    for kind in [
        AlgorithmKind::PriorityBands,
        AlgorithmKind::ProportionalShare,
        AlgorithmKind::Static,
        AlgorithmKind::NoAlgorithm,
    ] {
        let worst = worst_error(kind, cases(200) / 8, 1000.0, POINTS_MAX);
        println!("{kind}: the worst client is {:.4} % off", worst * 100.0);
    }
}
