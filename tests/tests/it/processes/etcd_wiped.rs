//! etcd is wiped while no server runs: epochs start again, and no surviving client is cut off.

use doorward::Mode;
use doorward_tests::candidates::{CAPACITY, SHARED, Setup, until_fair};
use doorward_tests::crowd::Crowd;
use doorward_tests::etcd::Etcd;
use doorward_tests::processes::Server;
use doorward_tests::template_file::TemplateFile;

/// Learning mode is as long as leases: no client forgets an epoch before.
const TEMPLATES: &str = "
resources:
- identifier_glob: shared
  capacity: 100
  safe_capacity: 0
  algorithm: {kind: FAIR_SHARE, lease_length: 4s, refresh_interval: 300ms}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_and_leaves_that_live_on_come_back_when_etcd_was_wiped() {
    let mut etcd = Etcd::start().await;
    // Its revisions are high, so that those of the next one are lower.
    etcd.go_far().await;
    let file = TemplateFile::new(TEMPLATES);
    let setup = Setup::new(2).with_templates(&file.path);
    let mut candidates = setup.start(&etcd);
    let root = candidates.addresses();
    let parent = root.join(",");
    let pages = ["--http-listen", "127.0.0.1:0"];
    let place = [
        "--node",
        "leaf",
        "--parent",
        &parent,
        "--refresh-floor",
        "20ms",
    ];
    let mut leaf = Server::start(&[&place[..], &pages].concat());
    let mut crowd = Crowd::new(SHARED, CAPACITY);
    for wants in [20.0, 30.0, 40.0] {
        crowd.join_any(&root, wants, Mode::Safe);
        crowd.join(&leaf.address, wants, Mode::Safe);
    }
    until_fair(&crowd, "clients have what is fair").await;
    let before = candidates.mastership().await.1;
    assert!(before > 100);

    crowd.mark();
    for candidate in &mut candidates.list {
        candidate.kill();
    }
    etcd.wipe().await;
    // A client whose connection comes back before it has missed it does not ask for the master.
    crowd
        .until("clients of the root are without it", || {
            let reached = (0..crowd.members.len()).step_by(2);
            let mut reached = reached.filter(|member| crowd.answer_counts(*member).1 == 0);
            reached
                .next()
                .map_or(Ok(()), |member| Err(format!("{member} is answered")))
        })
        .await;
    for candidate in &mut candidates.list {
        candidate.start();
    }
    let after = candidates.mastership().await.1;
    assert!(after < before, "{after} after {before}");
    // Until then they keep their leases.
    crowd
        .until("the root answers its clients", || {
            let unanswered =
                (0..crowd.members.len()).find(|member| crowd.answer_counts(*member).0 == 0);
            unanswered.map_or(Ok(()), |member| Err(format!("{member} is not answered")))
        })
        .await;
    let message = "the parent's masterships have begun again";
    leaf.wait_for_log(message);
    until_fair(&crowd, "all are back").await;
    assert_eq!(leaf.logged(message).len(), 1);
    let metrics = leaf.get("/metrics");
    let name = "doorward_parent_masterships_forgotten_total{";
    let mut lines = metrics.lines();
    let line = lines.find(|line| line.starts_with(name)).unwrap();
    assert!(line.ends_with("} 1"), "{line}");
}
