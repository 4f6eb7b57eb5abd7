//! Trees of real servers, as their clients see them: their capacity, which never exceeds the
//! root's.

use std::ops::Range;
use std::time::Duration;

use doorward::{Mode, Source};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use doorward_tests::candidates::Candidate;
use doorward_tests::crowd::Crowd;
use doorward_tests::processes::{PATIENCE, doorward_server, stderr};
use doorward_tests::template_file::TemplateFile;

/// Capacity of cut-off clients, in safe mode.
const SAFE: f64 = 0.25;

/// Returns templates with a capacity of the resource `shared`. Leases are short, but outlast a restart on a busy
/// machine.
fn templates(capacity: f64, kind: &str, learning: &str) -> TemplateFile {
    TemplateFile::new(&format!(
        "resources: [{{identifier_glob: shared, capacity: {capacity}, safe_capacity: {SAFE}, \
         algorithm: {{kind: {kind}, lease_length: 8s, refresh_interval: 1s, \
         learning_mode_duration: {learning}}}}}]"
    ))
}

fn root(templates: &TemplateFile) -> Candidate {
    started(&["--templates", &templates.path])
}

fn below(parent: &str, name: &str) -> Candidate {
    started(&["--node", name, "--parent", parent])
}

fn started(flags: &[&str]) -> Candidate {
    let mut server = Candidate::new(&[flags, &["--refresh-floor", "50ms"]].concat());
    server.start();
    server
}

/// Stops a server as operators do: it ends soon, even while clients are connected.
fn stop(server: &mut Candidate) {
    let began = Instant::now();
    let logged = server.terminate();
    let last = logged.last().unwrap();
    assert_eq!(last["message"], "stopped", "{logged:#?}");
    let grace = Duration::from_secs(10);
    assert!(began.elapsed() < grace / 2, "{logged:#?}");
}

const CAPACITY: f64 = 500.0;
const REGIONS: usize = 3;
const LEAVES: usize = 6;
const CLIENTS: usize = 120;

/// Returns the clients of a leaf; the leaves of a region stand together.
fn of_leaf(leaf: usize) -> Range<usize> {
    let many = CLIENTS / LEAVES;
    leaf * many..(leaf + 1) * many
}

/// Returns different wants for all, from 1 to 10.
fn wants(index: usize) -> f64 {
    1.0 + 9.0 * ((index * 97 % CLIENTS) as f64 / CLIENTS as f64)
}

struct Tree {
    root: Candidate,
    regions: Vec<Candidate>,
    leaves: Vec<Candidate>,
    crowd: Crowd,
}

impl Tree {
    fn start(templates: &TemplateFile) -> Self {
        let root = root(templates);
        let region = |number| below(&root.address, &format!("region-{number}"));
        let regions: Vec<Candidate> = (0..REGIONS).map(region).collect();
        let leaf = |number| {
            let region: &Candidate = &regions[number * REGIONS / LEAVES];
            below(&region.address, &format!("leaf-{number}"))
        };
        let leaves: Vec<Candidate> = (0..LEAVES).map(leaf).collect();
        let mut crowd = Crowd::new("shared", CAPACITY);
        for (number, leaf) in leaves.iter().enumerate() {
            for index in of_leaf(number) {
                let mode = [Mode::Pessimistic, Mode::Safe, Mode::Optimistic][index % 3];
                crowd.join(&leaf.address, wants(index), mode);
            }
        }
        Self {
            root,
            regions,
            leaves,
            crowd,
        }
    }

    /// Waits until every client has its fair share.
    async fn until_fair(&self, when: &str) {
        let fair = self.crowd.fair(CAPACITY, |_| true);
        let check = || self.crowd.check(&fair);
        self.crowd.until(when, check).await;
    }

    /// Waits until nothing changes any more, and records every client's capacity.
    async fn settle(&self) {
        let check = || self.crowd.check_quiet(Duration::from_millis(1500));
        self.crowd.until("all is quiet", check).await;
        self.crowd.mark();
    }

    /// Waits until the answer counts of every client of leaf 0 satisfy a condition.
    async fn until_answers(&self, what: &str, enough: impl Fn((u32, u32)) -> bool) {
        let check = || match of_leaf(0).find(|index| !enough(self.crowd.answer_counts(*index))) {
            None => Ok(()),
            Some(index) => Err(format!("not client {index}")),
        };
        self.crowd.until(what, check).await;
    }

    /// Checks, after a killed server is back, that every client always kept its capacity.
    fn assert_kept(&self, what: &str) {
        self.crowd.assert_no_overshoot(what);
        let kept = self.crowd.check_kept(1.0 - INEXACT);
        assert!(kept.is_ok(), "{what}: a client fell{}", kept.unwrap_err());
    }
}

/// Largest error of compressed demand curves, and so of a newly computed capacity.
const INEXACT: f64 = 0.004;

const CANNOT_ASK: &str = "the parent cannot be asked";
const ANSWERS: &str = "the parent answers";
const LEARNED: &str = "learning mode ended";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "one scenario, in order")]
async fn a_tree_is_fair_and_never_over_whatever_dies() {
    let templates = templates(CAPACITY, "FAIR_SHARE", "8s");
    let mut tree = Tree::start(&templates);
    tree.until_fair("learned and divided").await;

    // A step on one leaf moves capacity to the others, and back.
    for factor in [0.1, 1.0] {
        for index in of_leaf(0) {
            let resource = &tree.crowd.members[index].resource;
            resource.ask(wants(index) * factor).unwrap();
        }
        tree.until_fair(&format!("leaf 0 wants {factor} of what it wanted"))
            .await;
    }

    // Killed, and back before leases end.
    tree.settle().await;
    tree.leaves[0].kill();
    tree.until_answers("a leaf is gone", |(_, failed)| failed > 0)
        .await;
    tree.assert_kept("a leaf is down");
    tree.leaves[0].start();
    tree.until_answers("it confirms", |(answered, _)| answered > 1)
        .await;
    tree.leaves[0].server().wait_for_log(LEARNED);
    tree.assert_kept("a leaf learned");
    tree.until_fair("a leaf is back").await;
    tree.assert_kept("a leaf is back");

    tree.settle().await;
    tree.regions[0].kill();
    for leaf in &mut tree.leaves[..LEAVES / REGIONS] {
        leaf.server().wait_for_log(CANNOT_ASK);
    }
    tree.assert_kept("a region is down");
    tree.regions[0].start();
    for leaf in &mut tree.leaves[..LEAVES / REGIONS] {
        leaf.server().wait_for_log(ANSWERS);
    }
    tree.regions[0].server().wait_for_log(LEARNED);
    tree.assert_kept("a region learned");
    tree.until_fair("a region is back").await;
    tree.assert_kept("a region is back");

    tree.settle().await;
    tree.root.kill();
    for region in &mut tree.regions {
        region.server().wait_for_log(CANNOT_ASK);
    }
    tree.assert_kept("the root is down");
    tree.root.start();
    for region in &mut tree.regions {
        region.server().wait_for_log(ANSWERS);
    }
    tree.root.server().wait_for_log(LEARNED);
    tree.assert_kept("the root learned");
    tree.until_fair("the root is back").await;
    tree.assert_kept("the root is back");

    // All of it again, at once and while all clients change their wants all the time.
    let restless = restless(&tree.crowd);
    tree.crowd.mark();
    tree.leaves[0].kill();
    tree.until_answers("a leaf is gone", |(_, failed)| failed > 0)
        .await;
    tree.leaves[0].start();
    tree.regions[1].kill();
    for leaf in &mut tree.leaves[2..4] {
        leaf.server().wait_for_log(CANNOT_ASK);
    }
    tree.regions[1].start();
    tree.root.kill();
    for region in &mut tree.regions {
        region.server().wait_for_log(CANNOT_ASK);
    }
    tree.root.start();
    tree.root.server().wait_for_log(LEARNED);
    restless.abort();
    let _aborted = restless.await;
    for (index, member) in tree.crowd.members.iter().enumerate() {
        member.resource.ask(wants(index)).unwrap();
    }
    tree.until_fair("everything is back").await;

    // Down for longer than leases last: those below are on their own, others keep their capacity.
    tree.regions[0].kill();
    let cut_off = of_leaf(0).start..of_leaf(LEAVES / REGIONS).start;
    let alone = || {
        for member in &tree.crowd.members[cut_off.clone()] {
            let holding = member.resource.holding();
            let capacity = match member.mode {
                Mode::Pessimistic => 0.0,
                Mode::Safe => SAFE,
                Mode::Optimistic => member.resource.wants(),
            };
            if (holding.source, holding.capacity.get()) != (Source::Mode, capacity) {
                return Err(format!("{:?}: {holding:?}", member.mode));
            }
        }
        Ok(())
    };
    tree.crowd
        .until("cut off, clients obey their modes", alone)
        .await;
    let fair = tree.crowd.fair(CAPACITY, |index| !cut_off.contains(&index));
    let check = || tree.crowd.check(&fair);
    tree.crowd.until("the others have it", check).await;
    tree.regions[0].start();
    tree.until_fair("a region is back after all").await;

    // Stopping takes no grace period, even while clients are connected.
    stop(&mut tree.root);
    stop(&mut tree.regions[0]);
    stop(&mut tree.leaves[LEAVES - 1]);
    tree.crowd.assert_no_overshoot("at the end");
    let (peak, looks) = tree.crowd.peak();
    println!("at most {peak} of {CAPACITY} in use at {looks} looks");
}

/// Changes the wants of a client every few milliseconds, until this is aborted.
fn restless(crowd: &Crowd) -> JoinHandle<()> {
    let members = crowd.members.iter();
    let resources: Vec<_> = members.map(|member| member.resource.clone()).collect();
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(Duration::from_millis(5));
        for step in 0_usize.. {
            ticks.tick().await;
            // Steps that share no factor with the number of clients reach every client.
            let resource = &resources[step * 77 % CLIENTS];
            resource.ask(wants(step * 31) * (step % 3) as f64).unwrap();
        }
    })
}

#[test]
fn a_parent_needs_a_name_to_know_its_child_by() {
    let output = doorward_server(&["--parent", "127.0.0.1:6970"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("--node <NAME>"), "{said}");
}

/// Proves that the measure notices an intended overshoot.
#[tokio::test]
async fn too_much_in_use_is_noticed() {
    let templates = templates(100.0, "NO_ALGORITHM", "0s");
    let server = root(&templates);
    let mut crowd = Crowd::new("shared", 100.0);
    for _ in 0..2 {
        crowd.join(&server.address, 60.0, Mode::Pessimistic);
    }
    for member in &crowd.members {
        member.resource.wait_for_lease(PATIENCE).await.unwrap();
    }
    assert_eq!(crowd.peak().0, 120.0);
    assert!(crowd.overshoot().is_some());
}
