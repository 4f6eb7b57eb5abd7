//! What the tree costs: demand curves, and a parent's decisions.
//!
//! * `build` makes the curve of so many different claims, as a leaf does before it asks its parent;
//!   `read_all` is the same the plain way, by looking at every claim, to compare with.
//! * `merge` puts the curves of 100 children (64 points each) into an empty index; `compress` makes
//!   one curve of 64 points out of that.
//! * `decide_same` and `decide_changed` are a whole request of one of so many children of 64 points
//!   each, as the node handles it: the same demand again, or a new curve.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench may panic"
)]

use std::sync::Arc;
use std::time::Duration;

use divan::{Bencher, black_box};
use doorward_engine::amount::Amount;
use doorward_engine::claim::Claim;
use doorward_engine::claim_index::ClaimIndex;
use doorward_engine::demand::{BandDemand, ServerDemand};
use doorward_engine::demand_curve::{DemandCurve, POINTS_MAX};
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::request::Has;
use doorward_engine::request::server::{GetServerCapacity, ServerAsk, Via};
use doorward_engine::template::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

const CLAIMS: [usize; 4] = [1_000, 10_000, 100_000, 1_000_000];

const CHILDREN: usize = 100;

fn main() {
    divan::main();
}

/// Xorshift64 (Marsaglia, 2003).
struct Draws(u64);

impl Draws {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Over four orders of magnitude.
    fn wants(&mut self) -> Amount {
        Amount::new(10f64.powf(self.uniform() * 4.0 - 1.0)).unwrap()
    }
}

fn index_of(claims: usize, draws: &mut Draws) -> ClaimIndex {
    let mut index = ClaimIndex::default();
    for _ in 0..claims {
        index.insert(Claim::of_client(draws.wants()));
    }
    index
}

fn demand(clients: usize, draws: &mut Draws) -> ServerDemand {
    let index = index_of(clients, draws);
    ServerDemand::new(vec![BandDemand {
        priority: 0,
        clients: index.total_subclients(),
        wants: Amount::new(index.total_wants()).unwrap(),
        curve: DemandCurve::of(&index, POINTS_MAX),
    }])
}

#[divan::bench(args = CLAIMS)]
fn build(bencher: Bencher, claims: usize) {
    let index = index_of(claims, &mut Draws(7));
    bencher.bench_local(|| DemandCurve::of(black_box(&index), POINTS_MAX));
}

#[divan::bench(args = CLAIMS)]
fn read_all(bencher: Bencher, claims: usize) {
    let mut draws = Draws(7);
    let mut wants: Vec<f64> = (0..claims).map(|_| draws.wants().get()).collect();
    wants.sort_by(f64::total_cmp);
    bencher.bench_local(|| {
        // D at every claim, which is what choosing among all of them starts from.
        let (mut sum, mut left) = (0.0, wants.len() as f64);
        let corners: Vec<(f64, f64)> = black_box(&wants)
            .iter()
            .map(|wanted| {
                sum += wanted;
                left -= 1.0;
                (*wanted, sum + wanted * left)
            })
            .collect();
        corners
    });
}

#[divan::bench]
fn merge(bencher: Bencher) {
    let mut draws = Draws(7);
    let demands: Vec<ServerDemand> = (0..CHILDREN).map(|_| demand(1_000, &mut draws)).collect();
    bencher.bench_local(|| merged(black_box(&demands)));
}

#[divan::bench]
fn compress(bencher: Bencher) {
    let mut draws = Draws(7);
    let demands: Vec<ServerDemand> = (0..CHILDREN).map(|_| demand(1_000, &mut draws)).collect();
    let index = merged(&demands);
    bencher.bench_local(|| DemandCurve::of(black_box(&index), POINTS_MAX));
}

fn merged(demands: &[ServerDemand]) -> ClaimIndex {
    let mut index = ClaimIndex::default();
    for band in demands.iter().flat_map(ServerDemand::bands) {
        band.curve
            .claims(band.clients)
            .for_each(|claim| index.insert(claim));
    }
    index
}

#[divan::bench(args = [1, 10, 100, 1_000])]
fn decide_same(bencher: Bencher, children: usize) {
    bench_decisions(bencher, children, false);
}

#[divan::bench(args = [1, 10, 100, 1_000])]
fn decide_changed(bencher: Bencher, children: usize) {
    bench_decisions(bencher, children, true);
}

fn bench_decisions(bencher: Bencher, children: usize, changed: bool) {
    let mut draws = Draws(7);
    // Two demands for each child, told in turns.
    let demands: Vec<[Arc<ServerDemand>; 2]> = (0..children)
        .map(|_| [(); 2].map(|()| Arc::new(demand(1_000, &mut draws))))
        .collect();
    let total: f64 = demands.iter().map(|[one, _]| one.wants().get()).sum();
    let templates = Templates::parse(&[TemplateSpec {
        identifier_glob: Some("*".into()),
        capacity: Some(total / 2.0),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(Duration::from_secs(60)),
        refresh_interval: Some(Duration::from_secs(5)),
        learning_mode_duration: Some(Duration::ZERO),
        ..TemplateSpec::default()
    }])
    .unwrap();
    let mut node = Node::new(Config::default(), templates);
    node.handle_mastership(Mastership::Master { epoch: Some(1) }, Time::ZERO);
    let mut has = vec![Amount::ZERO; children];
    let mut sequence = 0;
    let mut ask = |child: usize, has: Amount, now: u64| {
        sequence += 1;
        let version = if changed {
            sequence as usize / children % 2
        } else {
            0
        };
        let request = GetServerCapacity {
            caller: None,
            incarnation: None,
            mastership: None,
            epoch: None,
            server: HolderName::new(&format!("leaf-{child}")).unwrap(),
            sequence: Some(sequence),
            height: 1,
            asks: vec![ServerAsk {
                unreported: Amount::ZERO,
                reported: Vec::new(),
                resource: ResourceId::new("bench").unwrap(),
                demand: Arc::clone(&demands[child][version]),
                has: Some(Has::untimed(has)),
                outstanding: Some(Has::untimed(has)),
                learning: false,
            }],
        };
        (request, Time::from_nanos(now * 1_000_000))
    };
    let mut now = 1;
    for round in 0..3 * children {
        let child = round % children;
        let (request, at) = ask(child, has[child], now);
        now += 1;
        if let Ok(Outcome::Served(reply)) =
            node.handle_get_server_capacity(&request, Via::Stream, at)
        {
            has[child] = reply.leases[0].capacity;
        }
    }
    let mut child = 0;
    bencher
        .with_inputs(|| {
            child = (child + 1) % children;
            now += 1;
            ask(child, has[child], now)
        })
        .bench_local_values(|(request, at)| {
            let answer = node.handle_get_server_capacity(&request, Via::Stream, at);
            (answer, request)
        });
}
