//! Time until growth after a server without etcd is killed and started again, and the most that its clients may use; and
//! what a first lease costs that waits for the disk.
//!
//! `cargo bench -p doorward-tests --bench restarts` takes eleven minutes. It kills a root and then a leaf 50 times each
//! (or `DOORWARD_ROUNDS` times), at random instants, while ten clients change their demand, which stays below the
//! capacity. It fails if growth takes more than a second, if a client loses its lease, or if more than the capacity may
//! be in use. Kills are further apart than a lease lasts: until then, what a dead process had granted and holders did
//! not report stays reserved.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use doorward::{Client, Resource};
use doorward_tests::processes::{PATIENCE, Server, doorward_server, stderr};
use doorward_tests::template_file::TemplateFile;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

const CAPACITY: f64 = 1_000.0;
const TEMPLATES: &str = "
resources:
- identifier_glob: db*
  capacity: 1000
  algorithm: {kind: FAIR_SHARE, lease_length: 4s, refresh_interval: 1s}
";

/// Numbers that look random.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % most
    }
}

fn directory(node: &str) -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap().to_owned();
    let made = doorward_server(&["state", "init", &path, "--node", node]);
    assert!(made.status.success(), "{}", stderr(&made));
    (dir, path)
}

async fn open(address: &str, name: &str, wants: f64) -> (Client, Resource) {
    let client = Client::builder()
        .id(name)
        .address(address)
        .connect()
        .await
        .unwrap();
    let resource = client.resource("db").wants(wants).open().unwrap();
    (client, resource)
}

/// Reads all leases until no read changes them, so that their sum is of one moment.
fn total(clients: &[(Client, Resource)]) -> f64 {
    let read = || clients.iter().map(|it| it.1.holding().capacity.get());
    loop {
        let (first, second): (Vec<f64>, Vec<f64>) = (read().collect(), read().collect());
        if first == second {
            return first.iter().sum();
        }
    }
}

/// Prints how long first leases of resources take, which wait for the mark to be on the disk, beside a synced write.
async fn growth_beside_fsync(address: &str, folder: &Path) {
    const COUNT: usize = 300;
    let (client, _) = open(address, "grower", 0.0).await;
    let mut file = File::create(folder.join("beside")).unwrap();
    let (mut grew, mut synced) = (Vec::new(), Vec::new());
    for number in 0..COUNT {
        let began = Instant::now();
        file.write_all(&[7; 4_096]).unwrap();
        file.sync_all().unwrap();
        synced.push(began.elapsed());
        let began = Instant::now();
        let resource = client.resource(format!("db-{number}")).wants(1.0);
        let resource = resource.open().unwrap();
        resource.wait_for_lease(PATIENCE).await.unwrap();
        grew.push(began.elapsed());
        // Each has its own write.
        sleep(Duration::from_millis(20)).await;
    }
    client.close().await;
    for (what, mut took) in [("a first lease", grew), ("a synced write of 4 KiB", synced)] {
        took.sort();
        println!(
            "{what}: {:.2?} at the median, {:.2?} at p99",
            took[COUNT / 2],
            took[COUNT * 99 / 100]
        );
    }
}

/// Kills and starts a server, and returns whether all was well.
async fn measure(what: &str, mut server: Server, flags: &[&str], asked: &str) -> bool {
    let mut clients = Vec::new();
    for number in 0..10 {
        clients.push(open(asked, &format!("c{number}"), 50.0).await);
    }
    while total(&clients) < 499.0 {
        sleep(Duration::from_millis(10)).await;
    }
    let clients = Arc::new(clients);
    let is_over = Arc::new(AtomicBool::new(false));
    let watching = tokio::task::spawn_blocking({
        let (clients, is_over) = (Arc::clone(&clients), Arc::clone(&is_over));
        move || {
            let (mut most, mut least): (f64, f64) = (0.0, f64::MAX);
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(total(&clients));
                let holds = clients.iter().map(|it| it.1.holding().capacity.get());
                least = holds.fold(least, f64::min);
                std::thread::yield_now();
            }
            (most, least)
        }
    });
    let (mut chance, mut took) = (Chance(7), Vec::new());
    let rounds = std::env::var("DOORWARD_ROUNDS").map_or(50, |it| it.parse().unwrap());
    for _ in 0..rounds {
        for (_, resource) in clients.iter() {
            resource.ask(20.0 + chance.below(60) as f64).unwrap();
        }
        sleep(Duration::from_millis(chance.below(1_500))).await;
        let address = server.address.clone();
        server.kill();
        // A server that is away for longer leaves its clients with longer waits.
        server = Server::start_at(&address, flags);
        let began = Instant::now();
        let (newcomer, resource) = open(asked, "newcomer", 0.5).await;
        while resource.capacity().get() < 0.5 {
            sleep(Duration::from_millis(2)).await;
        }
        took.push(began.elapsed());
        newcomer.close().await;
        sleep(Duration::from_millis(4_500)).await;
    }
    is_over.store(true, Ordering::Relaxed);
    let (most, least) = watching.await.unwrap();
    took.sort();
    let (median, worst) = (took[took.len() / 2], took[took.len() - 1]);
    println!(
        "{rounds} kills of the {what}: growth {median:.3?} after the start at the median, {worst:.3?} at worst; the most \
         that leases allowed: {most:.1} of {CAPACITY}; the least of a client: {least:.1}"
    );
    worst <= Duration::from_secs(1) && most <= CAPACITY && least > 0.0
}

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let (file, (_root, of_root), (_leaf, of_leaf)) = (
        TemplateFile::new(TEMPLATES),
        directory("root"),
        directory("leaf"),
    );
    let flags = ["--templates", &file.path, "--state-dir", &of_root];
    let root = Server::start(&flags);
    let asked = root.address.clone();
    growth_beside_fsync(&asked, Path::new(&of_root)).await;
    let mut is_well = measure("root", root, &flags, &asked).await;
    let root = Server::start_at(&asked, &flags);
    let flags = [
        "--node",
        "leaf",
        "--parent",
        &asked,
        "--state-dir",
        &of_leaf,
    ];
    let leaf = Server::start(&flags);
    let asked = leaf.address.clone();
    is_well &= measure("leaf", leaf, &flags, &asked).await;
    drop(root);
    if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
