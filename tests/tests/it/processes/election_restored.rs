//! etcd is restored from a backup while candidates run: a client that has seen an epoch is never sent to a lower one,
//! and clients continue.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use doorward_tests::candidates::{Candidates, Setup, TTL, until};
use doorward_tests::etcd::Etcd;
use doorward_tests::probe::Probe;

const MASTER: &str = "/doorward/nodes/root/master";

/// A watcher that asks every server for the master again and again, and fails if an epoch ever decreases.
struct Epochs {
    asking: JoinSet<()>,
}

impl Epochs {
    fn watch(addresses: &[String]) -> Self {
        let mut asking = JoinSet::new();
        for address in addresses {
            let probe = Probe::to(address);
            asking.spawn(async move {
                let mut highest = 0;
                loop {
                    let epoch = match probe.discover().await {
                        Ok(discovered) => discovered.epoch.unwrap_or(highest),
                        // It is not there, or not yet.
                        Err(_) => highest,
                    };
                    assert!(highest <= epoch, "{epoch} after {highest}");
                    highest = epoch;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            });
        }
        Self { asking }
    }

    fn assert_none_went_down(&mut self) {
        let ended = self.asking.try_join_next();
        assert!(ended.is_none(), "{ended:?}");
    }
}

/// Waits until there is a master with an epoch above that one.
async fn until_above(candidates: &Candidates, epoch: u64) -> usize {
    let began = Instant::now();
    loop {
        let master = candidates.master().await;
        let discovered = candidates.list[master].probe.discover().await.unwrap();
        if discovered.is_master && discovered.epoch > Some(epoch) {
            return master;
        }
        assert!(
            began.elapsed() < 10 * TTL,
            "{discovered:?}, not above {epoch}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn epochs_go_on_in_an_etcd_that_was_restored() {
    let mut etcd = Etcd::start().await;
    let mut candidates = Setup::new(2).start(&etcd);
    let watcher = candidates.watch();
    let crowd = candidates.crowd().await;
    let before = candidates.master().await;
    let old_epoch = candidates.epoch_of(before).await;
    etcd.back_up().await;
    // Its revisions grow, and masters come and go. The first one keeps its lease in etcd: the backup has its key.
    etcd.go_far().await;
    etcd.delete(MASTER).await;
    let master = until_above(&candidates, old_epoch + 100).await;
    let epoch = candidates.epoch_of(master).await;
    candidates.assert_kept(master, &crowd, &watcher).await;

    let mut epochs = Epochs::watch(&candidates.addresses());
    etcd.restore().await;
    let restored: u64 = etcd.revision().await.try_into().unwrap();
    assert!(restored < epoch, "{restored} is not before {epoch}");
    let master = until_above(&candidates, epoch).await;
    candidates.assert_kept(master, &crowd, &watcher).await;

    // Later ones continue from there.
    let epoch = candidates.epoch_of(master).await;
    candidates.list[master].kill();
    let successor = until_above(&candidates, epoch).await;
    candidates.list[master].start();
    candidates.assert_kept(successor, &crowd, &watcher).await;
    epochs.assert_none_went_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_has_just_started_hears_from_others_how_high_epochs_were() {
    let mut etcd = Etcd::start().await;
    let mut candidates = Setup::new(2).start(&etcd);
    candidates.master().await;
    etcd.back_up().await;
    etcd.go_far().await;
    etcd.delete(MASTER).await;
    let master = until_above(&candidates, 100).await;
    let epoch = candidates.epoch_of(master).await;

    // The server that remembers is frozen, and the other one has no memory.
    candidates.list[master].server().freeze();
    let other = 1 - master;
    candidates.list[other].kill();
    etcd.restore().await;
    candidates.list[other].start();
    assert_eq!(candidates.master_but(Some(master)).await, other);
    assert!(candidates.epoch_of(other).await < epoch);
    candidates.list[master].server().thaw();
    let mut epochs = Epochs::watch(&candidates.addresses());
    until_above(&candidates, epoch).await;
    until("both know", async || {
        let mut all = Vec::new();
        for candidate in &candidates.list {
            all.push(candidate.probe.discover().await.unwrap().epoch);
        }
        all.iter().all(|seen| *seen > Some(epoch))
    })
    .await;
    epochs.assert_none_went_down();
}
