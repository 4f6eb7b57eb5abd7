//! An operator makes leases shorter, and the master is lost before the old ones end: no other
//! client gets capacity that the first may still be using.

use std::time::Duration;

use tokio::time::Instant;

use doorward_tests::candidates::{CAPACITY, Candidates, SHARED, Setup, WATCHED, until};
use doorward_tests::etcd::Etcd;
use doorward_tests::probe::{Answer, Probe};
use doorward_tests::template_file::TemplateFile;

const KEY: &str = "/doorward/templates";
const TERM: &str = "/doorward/nodes/root/term";

/// Length of leases at first.
const LONG: Duration = Duration::from_secs(12);

/// Returns leases of a number of seconds, and a second resource that shows which templates are in
/// force.
fn document(lease: u64, learning: &str, mark: f64) -> String {
    format!(
        "resources:\n\
         - identifier_glob: {SHARED}\n  capacity: {CAPACITY}\n  algorithm: {{kind: FAIR_SHARE, \
         lease_length: {lease}s, refresh_interval: 500ms{learning}}}\n\
         - identifier_glob: {WATCHED}\n  capacity: {mark}\n  algorithm: {{kind: STATIC, \
         lease_length: 2s, refresh_interval: 1s}}\n"
    )
}

/// Returns templates without learning mode: the first master has no predecessor.
fn long() -> String {
    let learning = ", learning_mode_duration: 0s";
    document(LONG.as_secs(), learning, 1.0)
}

fn short() -> String {
    document(2, "", 2.0)
}

/// Waits until a server uses the templates with that mark.
async fn until_in_force(probe: &Probe, mark: f64) {
    until("the templates are in force", async || {
        let answer = probe.ask("looker", WATCHED, 1e9, None).await;
        answer.is_ok_and(|answer| answer == Answer::Grant(Some(mark)))
    })
    .await;
}

/// Gives a client everything, by a long lease. Returns the time from which others may have it.
async fn hold_everything(probe: &Probe) -> Instant {
    let asked = Instant::now();
    let answer = probe.ask("holder", SHARED, CAPACITY, None).await.unwrap();
    assert_eq!(answer, Answer::Grant(Some(CAPACITY)));
    asked + LONG
}

/// Lets another client ask the present master until it gets something, and checks that this is not
/// before the end of the first client's lease, which is no longer refreshed.
async fn assert_nobody_gets_it_before(candidates: &Candidates, over: Instant) {
    until("a newcomer gets something", async || {
        let running = candidates.list.iter().filter(|it| it.runs());
        for candidate in running {
            let answer = candidate.probe.ask("newcomer", SHARED, CAPACITY, None);
            if let Ok(Answer::Grant(Some(granted))) = answer.await
                && granted > 0.0
            {
                let now = Instant::now();
                let early = over.saturating_duration_since(now);
                assert!(early.is_zero(), "{granted} was given {early:?} too early");
                return true;
            }
        }
        false
    })
    .await;
}

/// Waits until the term in etcd is another master's than this one.
async fn until_term_is_not(etcd: &Etcd, address: &str) {
    until("a successor is listed", async || {
        let term = etcd.get(TERM).await.unwrap_or_default();
        !term.contains(address)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_outlives_its_master_and_the_next_one_too() {
    let etcd = Etcd::start().await;
    etcd.put(KEY, &long()).await;
    let templates = format!("etcd:{KEY}");
    let mut candidates = Setup::new(3).with_templates(&templates).start(&etcd);
    let first = candidates.master().await;
    let over = hold_everything(&candidates.list[first].probe).await;
    etcd.put(KEY, &short()).await;
    until_in_force(&candidates.list[first].probe, 2.0).await;
    candidates.list[first].kill();

    let second = candidates.master_but(Some(first)).await;
    until_term_is_not(&etcd, &candidates.list[first].address).await;
    candidates.list[second].kill();
    assert_nobody_gets_it_before(&candidates, over).await;
}

/// A template that is in force before etcd knows it would be forgotten with its master.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn templates_wait_until_etcd_knows_of_them_or_the_mastership_is_over() {
    let etcd = Etcd::start().await;
    let file = TemplateFile::new(&long());
    let setup = Setup::new(1).with_ways();
    let mut candidates = setup.with_templates(&file.path).start(&etcd);
    let master = candidates.master().await;
    let master = &mut candidates.list[master];
    until_in_force(&master.probe, 1.0).await;
    master.change_ways(doorward_tests::proxy::Proxy::drop_all);
    file.write(&short());
    // As long as it is the master, it uses the templates that etcd knows.
    until("its mastership is over", async || {
        match master.probe.ask("looker", WATCHED, 1e9, None).await {
            Ok(Answer::Grant(granted)) => {
                assert_eq!(granted, Some(1.0));
                false
            }
            answer => answer.is_ok(),
        }
    })
    .await;
    master.server().wait_for_log("new templates are in force");
    master.change_ways(doorward_tests::proxy::Proxy::pass);
    until_in_force(&master.probe, 2.0).await;
}
