//! Faults of etcd and of its keys: masters come and go, never two at a time, and servers repair broken keys.

use etcd_client::GetResponse;
use serde_json::Value;
use tokio::time::Instant;

use doorward_tests::candidates::{
    Candidate, Candidates, GRANULARITY, Setup, TEMPLATES, TTL, until,
};
use doorward_tests::etcd::Etcd;
use doorward_tests::template_file::TemplateFile;

const MASTER: &str = "/doorward/nodes/root/master";
const TERM: &str = "/doorward/nodes/root/term";

const DOWN: &str = "etcd cannot be asked; trying on";
const UP: &str = "etcd answers again";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "one scenario, in order")]
async fn members_of_etcd_die_freeze_and_come_back() {
    let mut etcd = Etcd::cluster(3).await;
    // There is no master for longer than a short learning mode lasts; leases must not end meanwhile.
    let times = "lease_length: 20s, refresh_interval: 300ms";
    let templates = TEMPLATES
        .replace("lease_length: 10s, refresh_interval: 300ms", times)
        .replace("learning_mode_duration: 3s", "learning_mode_duration: 20s");
    let file = TemplateFile::new(&templates);
    let setup = Setup::new(2).with_templates(&file.path);
    let mut candidates = setup.start(&etcd);
    let watcher = candidates.watch();
    let crowd = candidates.crowd().await;
    let before = candidates.mastership().await;

    // The loss of a member that does not lead has no effect.
    let member = etcd.follower().await;
    etcd.kill(member);
    tokio::time::sleep(TTL * 2).await;
    assert_eq!(candidates.mastership().await, before);
    let claims = watcher.read(|record| record.epochs());
    assert_eq!(claims.len(), 1, "{claims:?}");
    etcd.restart_all().await;

    // The loss of the leader may end the mastership, or not.
    for freezes in [true, false] {
        let member = etcd.leader().await;
        if freezes {
            etcd.freeze(member);
        } else {
            etcd.kill(member);
        }
        let gone = Instant::now();
        tokio::time::sleep(TTL).await;
        if freezes {
            etcd.thaw(member);
        } else {
            etcd.restart_all().await;
        }
        tokio::time::sleep(TTL / 2).await;
        let grant = watcher.grant(gone + TTL, None).await;
        println!("a leader gone: {before:?}, and then {grant:?}");
        watcher.assert_one_master("a leader of etcd gone and back");
    }
    let (master, _) = candidates.mastership().await;
    candidates.assert_kept(master, &crowd, &watcher).await;

    // Without any member, there is no master once its last view is too old.
    let counts: Vec<_> = candidates.list.iter_mut().map(logged).collect();
    etcd.kill_all();
    let killed = Instant::now();
    tokio::time::sleep_until(killed + TTL).await;
    let lapsed = Instant::now();
    for candidate in &mut candidates.list {
        until("it knows of no master", async || {
            candidate.probe.discover().await.unwrap().epoch.is_none()
        })
        .await;
        until("it is not ready, and says why", async || {
            let ready = candidate.server().get("/readyz");
            ready.starts_with("HTTP/1.0 503")
                && ready.contains("no master of this node is known; etcd at")
        })
        .await;
        assert_eq!(candidate.metric("doorward_etcd_up"), 0.0);
        let problem = &candidate.status()["etcd"]["problem"];
        assert!(problem.is_string(), "{problem}");
    }
    tokio::time::sleep(TTL / 2).await;
    let claim = watcher.read(|record| record.master_since(lapsed));
    assert!(claim.is_none(), "no server can be elected: {claim:?}");
    etcd.restart_all().await;
    let back = Instant::now();
    let grant = watcher.grant(back, None).await;
    println!("granted {:.2?} after etcd is back", grant.received - back);
    for (candidate, (downs, ups)) in candidates.list.iter_mut().zip(counts) {
        candidate.server().wait_for_log(UP);
        until("the metric shows it", async || {
            candidate.metric("doorward_etcd_up") == 1.0
        })
        .await;
        assert_eq!(logged(candidate), (downs + 1, ups + 1), "once is enough");
    }
    candidates.assert_kept(grant.server, &crowd, &watcher).await;
}

/// Returns the number of log entries that etcd is away, and that it is back.
fn logged(candidate: &mut Candidate) -> (usize, usize) {
    let server = candidate.server();
    (server.logged(DOWN).len(), server.logged(UP).len())
}

/// Reads a key, with its metadata in etcd.
async fn read(etcd: &Etcd, key: &str) -> GetResponse {
    etcd.ask("get", async |client| client.get(key, None).await)
        .await
}

/// Returns whether the key has the value that candidates write.
async fn is_in_order(etcd: &Etcd, key: &str) -> bool {
    let value = etcd.get(key).await.unwrap_or_default();
    serde_json::from_str::<Value>(&value).is_ok_and(|value| value["server"].is_string())
}

/// Waits until the node works: one server is the master, all know it, and the keys in etcd are right.
async fn until_in_order(what: &str, etcd: &Etcd, candidates: &Candidates) {
    let began = Instant::now();
    until(what, async || {
        let mut masters = Vec::new();
        for candidate in &candidates.list {
            masters.push(candidate.probe.discover().await.unwrap().master);
        }
        masters.dedup();
        let knows = masters.len() == 1 && masters[0].is_some();
        let mut in_order = knows;
        for key in [MASTER.to_owned(), TERM.to_owned()]
            .into_iter()
            .chain(candidates.addresses().iter().map(|it| server_key(it)))
        {
            in_order = in_order && is_in_order(etcd, &key).await;
        }
        let leased = read(etcd, MASTER).await;
        in_order && leased.kvs().iter().all(|kv| kv.lease() != 0)
    })
    .await;
    println!("{what}: in order after {:.2?}", began.elapsed());
}

fn server_key(address: &str) -> String {
    format!("/doorward/nodes/root/servers/{address}")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_repair_keys_that_were_broken_by_hand() {
    let etcd = Etcd::start().await;
    let mut candidates = Setup::new(2).start(&etcd);
    let watcher = candidates.watch();
    let crowd = candidates.crowd().await;
    until_in_order("at the start", &etcd, &candidates).await;

    let (_, epoch) = candidates.mastership().await;
    etcd.delete(MASTER).await;
    until_in_order("the key of the master is deleted", &etcd, &candidates).await;
    let (_, next) = candidates.mastership().await;
    assert!(next > epoch, "another mastership: {epoch}, {next}");

    let lease = read(&etcd, MASTER).await.kvs()[0].lease();
    etcd.ask("revoke", async |client| client.lease_revoke(lease).await)
        .await;
    until_in_order("the lease is revoked", &etcd, &candidates).await;
    let (master, epoch) = candidates.mastership().await;
    assert!(epoch > next, "another mastership: {next}, {epoch}");

    // These cost no mastership.
    etcd.delete(TERM).await;
    until_in_order("the term is deleted", &etcd, &candidates).await;
    etcd.put(TERM, "nonsense").await;
    until_in_order("the term is nonsense", &etcd, &candidates).await;
    let address = candidates.list[master].address.clone();
    etcd.put(&server_key(&address), "nonsense").await;
    etcd.put(&server_key("unknown"), "nonsense").await;
    until_in_order("a server is nonsense", &etcd, &candidates).await;
    etcd.put(MASTER, "nonsense").await;
    until_in_order("the key of the master is nonsense", &etcd, &candidates).await;
    assert_eq!(candidates.mastership().await, (master, epoch));

    // A key without a lease would stay for ever if no server deleted it.
    candidates.list[master].server().freeze();
    let froze = Instant::now();
    etcd.put(MASTER, "nonsense").await;
    etcd.put(TERM, "nonsense").await;
    let grant = watcher.grant(froze, Some(master)).await;
    println!("succeeded after {:.2?}", grant.received - froze);
    // The server that it belongs to has a TTL to repair it, and the others look every third of one.
    assert!(grant.received - froze < TTL * 2 + TTL / 3 + GRANULARITY);
    candidates.list[master].server().thaw();
    until_in_order("nonsense of a dead master", &etcd, &candidates).await;
    watcher.assert_one_master("at the end");
    candidates.assert_kept(grant.server, &crowd, &watcher).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_that_is_set_up_anew_is_used_and_epochs_go_on() {
    let mut etcd = Etcd::start().await;
    // Its revisions are high, so that those of the next one are lower.
    etcd.go_far().await;
    let mut candidates = Setup::new(2).start(&etcd);
    let watcher = candidates.watch();
    let crowd = candidates.crowd().await;
    let (_, before) = candidates.mastership().await;
    assert!(before > 100);
    etcd.wipe().await;
    until_in_order("set up anew", &etcd, &candidates).await;
    let (master, epoch) = candidates.mastership().await;
    assert!(epoch > before, "{epoch} after {before}");
    candidates.assert_kept(master, &crowd, &watcher).await;

    // Later ones continue from there.
    candidates.list[master].terminate();
    candidates.list[master].start();
    let grant = watcher.grant(Instant::now(), Some(master)).await;
    let (successor, next) = candidates.mastership().await;
    assert_eq!(successor, grant.server);
    assert!(next > epoch, "{next} after {epoch}");
    candidates.assert_kept(successor, &crowd, &watcher).await;
}
