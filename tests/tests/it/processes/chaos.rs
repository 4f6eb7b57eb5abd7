//! A tree of three levels with three candidates for every node. Masters die at random while clients run and change
//! their wants: no client ever exceeds its lease, and every client recovers.
//!
//! `DOORWARD_CHAOS_SECONDS` sets the duration (a minute by default), `DOORWARD_CHAOS_SEED` the seed.

use std::time::Duration;

use doorward::Mode;
use tokio::time::Instant;

use doorward_tests::candidates::Candidate;
use doorward_tests::crowd::Crowd;
use doorward_tests::etcd::Etcd;
use doorward_tests::template_file::TemplateFile;

const CAPACITY: f64 = 1000.0;
const CLIENTS_PER_LEAF: usize = 20;
const CANDIDATES: usize = 3;

/// Every node with its parent, from the root down.
const NODES: [(&str, &str); 6] = [
    ("root", ""),
    ("eu", "root"),
    ("us", "root"),
    ("eu-1", "eu"),
    ("eu-2", "eu"),
    ("us-1", "us"),
];

const TEMPLATES: &str = "resources: [{identifier_glob: shared, capacity: 1000, safe_capacity: 0, \
     algorithm: {kind: FAIR_SHARE, lease_length: 8s, refresh_interval: 500ms}}]";

/// Repeatable random numbers (SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((bits ^ (bits >> 31)) % n as u64).unwrap()
    }

    fn millis(&mut self, least: usize, most: usize) -> Duration {
        Duration::from_millis((least + self.below(most - least)) as u64)
    }
}

fn from_environment(name: &str, otherwise: u64) -> u64 {
    let given = std::env::var(name).ok();
    given.map_or(otherwise, |text| text.parse().unwrap())
}

/// Returns different wants for all, from 1 to 40: two and a half times the capacity.
fn wants(index: usize) -> f64 {
    1.0 + 39.0 * ((index * 37 % 60) as f64 / 60.0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "one scenario, in order")]
async fn masters_die_at_random_in_a_tree_and_nobody_ever_exceeds() {
    let length = Duration::from_secs(from_environment("DOORWARD_CHAOS_SECONDS", 60));
    let seed = from_environment("DOORWARD_CHAOS_SEED", 1);
    let mut chance = Chance(seed);
    let etcd = Etcd::cluster(3).await;
    let file = TemplateFile::new(TEMPLATES);
    let endpoints = etcd.endpoints().join(",");
    // Each candidate, and the time at which it starts again.
    let mut nodes: Vec<Vec<(Candidate, Option<Instant>)>> = NODES
        .iter()
        .map(|(node, parent)| {
            let mut flags = vec!["--node", *node, "--etcd-endpoints", &endpoints];
            flags.extend(["--election-ttl", "2s", "--refresh-floor", "50ms"]);
            let address = format!("etcd:///{parent}");
            if parent.is_empty() {
                flags.extend(["--templates", &file.path]);
            } else {
                flags.extend(["--parent", &address]);
            }
            let mut candidates: Vec<Candidate> =
                (0..CANDIDATES).map(|_| Candidate::new(&flags)).collect();
            candidates.iter_mut().for_each(Candidate::start);
            candidates.into_iter().map(|it| (it, None)).collect()
        })
        .collect();
    let mut crowd = Crowd::new("shared", CAPACITY);
    for leaf in ["eu-1", "eu-2", "us-1"] {
        let members: Vec<&str> = (0..etcd.len()).map(|member| etcd.address(member)).collect();
        let address = format!("etcd://{}/{leaf}", members.join(","));
        for _ in 0..CLIENTS_PER_LEAF {
            let index = crowd.members.len();
            let mode = [Mode::Pessimistic, Mode::Safe, Mode::Optimistic][index % 3];
            crowd.join(&address, wants(index), mode);
        }
    }
    let fair = crowd.fair(CAPACITY, |_| true);
    crowd
        .until("at first, every client has its share", || {
            crowd.check(&fair)
        })
        .await;

    let over = Instant::now() + length;
    let (mut killed, mut stopped, mut changed) = (0, 0, 0);
    while Instant::now() < over {
        tokio::time::sleep(chance.millis(300, 2_500)).await;
        crowd.assert_no_overshoot("while masters die");
        for (candidate, back_at) in nodes.iter_mut().flatten() {
            if back_at.take_if(|at| *at <= Instant::now()).is_some() {
                candidate.start();
            }
        }
        // Also while no server runs: so a later master learns another demand than it then finds.
        for _ in 0..chance.below(8) {
            let index = chance.below(crowd.members.len());
            let factor = [0.0, 0.1, 0.5, 1.0, 2.0, 5.0][chance.below(6)];
            let resource = &crowd.members[index].resource;
            resource.ask(wants(index) * factor).unwrap();
            changed += 1;
        }
        let node = chance.below(nodes.len());
        let gently = chance.below(4) == 0;
        let back_at = Instant::now() + chance.millis(500, 6_000);
        for (candidate, back) in &mut nodes[node] {
            let is_master = candidate
                .probe
                .discover()
                .await
                .is_ok_and(|it| it.is_master);
            if !candidate.runs() || !is_master {
                continue;
            }
            *back = Some(back_at);
            if gently {
                stopped += 1;
                candidate.reap();
            } else {
                killed += 1;
                candidate.kill();
            }
        }
    }
    println!(
        "seed {seed}: {killed} masters killed, {stopped} stopped, {changed} wants changed, in {length:?}"
    );
    assert!(
        killed + stopped > length.as_secs() / 6,
        "{killed} and {stopped}"
    );
    for (candidate, _) in nodes.iter_mut().flatten() {
        if !candidate.runs() {
            candidate.start();
        }
    }
    let fair = crowd.fair(CAPACITY, |_| true);
    crowd
        .until("in the end, every client has its share", || {
            crowd.check(&fair)
        })
        .await;
    let (peak, looks) = crowd.peak();
    println!("at most {peak} of {CAPACITY} in use, in {looks} looks");
}
