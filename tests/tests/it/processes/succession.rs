//! Start of a successor, if the key of a master disappears while that master is cut off: elections in this process, in
//! a real etcd.

use std::sync::Arc;
use std::time::Duration;

use doorward_clock::Instant;
use doorward_etcd::EtcdConfig;
use doorward_etcd::directory::Role;
use doorward_server::clock::instant_of;
use doorward_server::election::{CandidateServer, Election, Running, Standing, TreePlace, etcd};
use doorward_session::time::tolerance::Tolerance;
use doorward_tests::etcd::Etcd;
use doorward_tests::processes::PATIENCE;
use doorward_tests::proxy::Proxy;
use tokio::sync::watch;

const TTL: Duration = Duration::from_secs(4);

/// Starts a candidate that may be master as soon as `able` allows it.
fn candidate(etcd: EtcdConfig, address: &str, able: watch::Receiver<bool>) -> Running {
    let config = etcd::ElectionConfig {
        etcd,
        prefix: "/p".to_owned(),
        ttl: TTL,
    };
    Election::Etcd(config).start(CandidateServer {
        node: "n".to_owned(),
        address: address.to_owned(),
        http_address: None,
        clock_tolerance: Tolerance::LEAST,
        place: Arc::new(|| TreePlace {
            role: Role::Root,
            level: Some(0),
        }),
        able,
        templates: None,
    })
}

fn able() -> watch::Receiver<bool> {
    watch::channel(true).1
}

async fn until_master(running: &Running) -> Standing {
    let mut standings = running.standings();
    let won = tokio::time::timeout(PATIENCE, standings.wait_for(Standing::is_master));
    won.await.expect("it is elected").unwrap().clone()
}

/// A master that is cut off from etcd, whose key was deleted, and a candidate that has won and waits.
struct Torn {
    etcd: Etcd,
    _cut: Proxy,
    old: Running,
    /// End of the old master's own view of its mastership.
    old_until: Instant,
    /// The winner, which waits until the old mastership has certainly ended.
    waiting: Option<Running>,
    /// A candidate that may not be master yet.
    third: Running,
    third_able: watch::Sender<bool>,
}

impl Torn {
    async fn new() -> Self {
        let etcd = Etcd::start().await;
        let mut cut = Proxy::to(etcd.address(0));
        let old = candidate(etcd.config_at(&[&cut.address()]), "old:1", able());
        until_master(&old).await;
        let waiting = candidate(etcd.config(), "waiting:1", able());
        let (third_able, is_able) = watch::channel(false);
        let third = candidate(etcd.config(), "third:1", is_able);
        for running in [&waiting, &third] {
            let mut standings = running.standings();
            let follows = |standing: &Standing| matches!(standing, Standing::Elsewhere { .. });
            standings.wait_for(follows).await.unwrap();
        }
        cut.drop_all();
        let term = *old.standings().borrow().term().expect("it is the master");
        etcd.delete("/p/n/master").await;
        let torn = Self {
            etcd,
            _cut: cut,
            old,
            old_until: instant_of(term.valid_until),
            waiting: Some(waiting),
            third,
            third_able,
        };
        torn.until_term_of("waiting:1").await;
        torn
    }

    /// Waits until the term is that of a given server.
    async fn until_term_of(&self, address: &str) {
        let looking = async {
            loop {
                let term = self.etcd.get("/p/n/term").await.unwrap_or_default();
                if term.contains(address) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking)
            .await
            .expect("a term");
    }

    /// Fails unless the old master's time is over, and its successor knows the latest end of it.
    fn assert_old_is_over(&self, successor: &Running) {
        let old = self.old.standings().borrow().clone();
        assert!(self.old_until <= Instant::now(), "two masters: {old:?}");
        let term = *successor.standings().borrow().term().expect("the master");
        assert!(
            instant_of(term.vacant_since) >= self.old_until,
            "it would not learn of what the old one granted: {term:?}, {:?}",
            self.old_until
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_winner_waits_for_a_master_that_is_cut_off() {
    let torn = Torn::new().await;
    let waiting = torn.waiting.as_ref().unwrap();
    until_master(waiting).await;
    torn.assert_old_is_over(waiting);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_winner_that_resigns_early_leaves_the_wait_to_its_successor() {
    let mut torn = Torn::new().await;
    if let Some(waiting) = torn.waiting.take() {
        waiting.resign().await;
    }
    torn.third_able.send_replace(true);
    until_master(&torn.third).await;
    torn.assert_old_is_over(&torn.third);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_winner_that_loses_and_regains_the_key_keeps_waiting() {
    let torn = Torn::new().await;
    torn.etcd.delete("/p/n/master").await;
    let waiting = torn.waiting.as_ref().unwrap();
    until_master(waiting).await;
    torn.assert_old_is_over(waiting);
}
