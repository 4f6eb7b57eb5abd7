//! Time of a failover: from the end of a master to the first grant of its successor.
//!
//! `cargo bench -p doorward-tests --bench failover` takes two minutes; the TTL of the election is `DOORWARD_TTL`, in
//! whole seconds.

use std::time::Duration;

use tokio::time::Instant;

use doorward_tests::candidates::{Candidate, Candidates, Setup};
use doorward_tests::etcd::Etcd;
use doorward_tests::probe::Watcher;
use doorward_tests::processes::signal;

const ROUNDS: usize = 20;

/// Ends masters, one after the other, and prints the times without one.
async fn measure(
    what: &str,
    candidates: &mut Candidates,
    watcher: &Watcher,
    end: impl Fn(&mut Candidate),
) {
    let mut took = Vec::new();
    for _ in 0..ROUNDS {
        let master = candidates.master().await;
        let ended = Instant::now();
        end(&mut candidates.list[master]);
        let grant = watcher.grant(ended, Some(master)).await;
        took.push(grant.received - ended);
        candidates.list[master].reap();
        candidates.list[master].start();
        let successor = candidates.master().await;
        candidates.until_all_follow(successor).await;
    }
    watcher.assert_one_master(what);
    took.sort();
    println!(
        "{ROUNDS} {what}: median {:.3?}, worst {:.3?}",
        took[ROUNDS / 2],
        took[ROUNDS - 1]
    );
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let ttl = std::env::var("DOORWARD_TTL").map_or(3, |ttl| ttl.parse().unwrap());
    let etcd = Etcd::start().await;
    let setup = Setup::new(3).with_ttl(Duration::from_secs(ttl));
    let mut candidates = setup.start(&etcd);
    let watcher = candidates.watch();
    println!("TTL {ttl} s, three candidates, one member of etcd");
    measure("kills", &mut candidates, &watcher, |master| {
        signal(master.server().process(), "KILL");
    })
    .await;
    measure("graceful stops", &mut candidates, &watcher, |master| {
        signal(master.server().process(), "TERM");
    })
    .await;
}
