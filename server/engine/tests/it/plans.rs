//! Plans: a change gives every holder what its plan said, at one server and through the tree.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_engine::messages::{LeaseSnapshot, LeasesFrom};
use doorward_engine::node::Node;
use doorward_engine::plan::{Plan, PlannedDivision, Terms};
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

use crate::asking::{parsed, template};
use crate::story::chance::{Chance, cases};
use crate::tree_accuracy::{RandomTree, Tree, Wants, resource};

/// Time between two requests of each client.
const WAVE: Duration = Duration::from_secs(5);

fn leases(node: &Node, now: Time) -> Vec<LeaseSnapshot> {
    let (mut from, mut all) = (Some(LeasesFrom::Start), Vec::new());
    while let Some(place) = from {
        let (leases, next) = node.leases_from(&resource(), &place, "", 3, now);
        all.extend(leases);
        from = next;
    }
    all
}

fn divided(leases: &[LeaseSnapshot], terms: Terms) -> PlannedDivision {
    let mut plan = Plan::new(terms);
    leases.iter().for_each(|lease| plan.add(&lease.demand));
    plan.divide()
}

/// Plans a change for a server and all below it, and adds what each client would have. Returns whether that is exact: not
/// if `subclients_max` cuts demand below the root, since servers above will count less than now.
fn plan(tree: &Tree, number: usize, terms: Terms, clients: &mut BTreeMap<String, f64>) -> bool {
    let mut is_exact = true;
    let server = &tree.world.servers[number];
    let leases = leases(&server.node, tree.world.now);
    let division = divided(&leases, terms);
    for lease in &leases {
        let name = lease.holder.name.as_str();
        if let Some(planned) = division.lease_for(&resource(), &lease.demand) {
            let child = tree.world.server_named(name).unwrap();
            is_exact &= plan(tree, child, Terms::of_lease(planned).unwrap(), clients);
            is_exact &=
                number == 0 || division.counted_clients(&lease.demand) == lease.demand.clients();
        } else {
            let share = division.share_of(&lease.demand);
            clients.insert(format!("{}/{name}", server.name), share.get());
        }
    }
    is_exact
}

/// A template by chance, for clients that want `total` together. No client may have more than `wants_max`.
fn drawn(
    chance: &mut Chance,
    total: f64,
    clients: usize,
    before: Option<&TemplateSpec>,
) -> TemplateSpec {
    let kind = chance.one_of(&[
        AlgorithmKind::FairShare,
        AlgorithmKind::FairShare,
        AlgorithmKind::PriorityBands,
        AlgorithmKind::ProportionalShare,
        AlgorithmKind::Static,
        AlgorithmKind::NoAlgorithm,
    ]);
    let mean = total / clients as f64;
    let capacity = match kind {
        AlgorithmKind::Static => mean,
        _ => total,
    };
    let most = chance.happens(0.3).then(|| mean * (0.5 + chance.uniform()));
    let subclients = chance.happens(0.3).then(|| 1.0 + chance.below(20) as f64);
    let parameters = match kind {
        AlgorithmKind::PriorityBands if chance.happens(0.5) => {
            vec![("min_share.0".to_owned(), Some("0.2".to_owned()))]
        }
        _ => Vec::new(),
    };
    TemplateSpec {
        wants_max: lower(before.and_then(|it| it.wants_max), most),
        subclients_max: lower(before.and_then(|it| it.subclients_max), subclients),
        parameters,
        ..template("r", kind, capacity * (0.1 + 1.2 * chance.uniform()))
    }
}

/// Demand above a bound is unknown, so a change may only lower it.
fn lower(before: Option<f64>, after: Option<f64>) -> Option<f64> {
    before.into_iter().chain(after).reduce(f64::min)
}

fn settle(tree: &mut Tree, has: &mut BTreeMap<String, f64>) {
    for _ in 0..8 * tree.depth {
        tree.ask(has);
        tree.world.now = tree.world.now + WAVE;
        for number in 0..tree.world.servers.len() {
            tree.world.serve_timer(number);
        }
    }
}

#[test]
fn what_a_change_gives_each_client_is_what_its_plan_said() {
    let (mut changed, mut inexact) = (0, 0);
    for seed in 0..cases(200) {
        let mut chance = Chance(seed);
        let depth = chance.one_of(&[1, 2, 3]);
        let wants = chance.one_of(&[Wants::Uniform, Wants::Exponential, Wants::HeavyTailed]);
        let mut random = RandomTree {
            clients: 1 + chance.below(if depth == 1 { 60 } else { 15 }),
            chance,
            wants,
            all: Vec::new(),
        };
        let spec = random.grow("root".to_owned(), depth, "");
        let RandomTree {
            mut chance, all, ..
        } = random;
        let total = all.iter().map(|(_, _, wants)| wants).sum();
        let before = drawn(&mut chance, total, all.len(), None);
        let after = drawn(&mut chance, total, all.len(), Some(&before));
        let about = format!("seed {seed}, {depth} levels, from {before:?} to {after:?}");
        let (before, after) = (parsed(before), parsed(after));

        let mut tree = Tree {
            few_points: 32,
            ..Tree::default()
        };
        tree.grow(spec, None, &before);
        tree.world.now = Time::from_secs(1);
        let mut has = BTreeMap::new();
        settle(&mut tree, &mut has);
        let had = has.clone();
        let mut planned = BTreeMap::new();
        let is_exact = plan(&tree, 0, terms_of(&after), &mut planned);
        inexact += usize::from(!is_exact);
        let now = tree.world.now;
        tree.world.servers[0].node.handle_templates(after, now);
        settle(&mut tree, &mut has);
        assert_eq!(planned.len(), all.len(), "{about}");
        for (client, planned) in planned {
            let gets = has[&client];
            let error = (gets - planned).abs();
            assert!(
                error <= 1e-3 * planned.max(1e-6 * total) || !is_exact,
                "{about}: {client} had {}, should have {planned}, and has {gets}",
                had[&client]
            );
            changed += usize::from((gets - had[&client]).abs() > 1e-3 * gets);
        }
    }
    println!("{changed} clients have another amount than before");
    assert!(changed > 1_000);
    assert!(inexact < 20, "{inexact} plans");
}

fn terms_of(templates: &Templates) -> Terms {
    let template = templates.find(&resource());
    Terms::of_template(template.unwrap())
}
