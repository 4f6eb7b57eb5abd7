//! A master that is cut off from etcd, but not from its clients: it steps down in time, whatever part of the path still
//! works, and becomes a normal candidate when the path is back.

use std::time::Duration;

use tokio::time::Instant;

use doorward_tests::candidates::{FAILOVER, GRANULARITY, Setup, TTL, until};
use doorward_tests::etcd::Etcd;
use doorward_tests::probe::Record;
use doorward_tests::proxy::{Direction, Flow, Proxy};

/// A fault, and its name.
type Fault = (&'static str, fn(&mut Proxy));

/// Cuts off the present master, in one way after the other. The one that was cut off before is the master then, so all
/// of them come back.
async fn cut_off(faults: &[Fault]) {
    let etcd = Etcd::start().await;
    let mut candidates = Setup::new(2).with_ways().start(&etcd);
    let watcher = candidates.watch();
    let crowd = candidates.crowd().await;
    let mut master = candidates.master().await;
    for (what, fault) in faults {
        println!("{what}");
        candidates.list[master].change_ways(fault);
        let cut = Instant::now();
        let grant = watcher.grant(cut, Some(master)).await;
        let took = grant.received - cut;
        println!("succeeded after {took:.2?}");
        // A renewal that was in flight may have arrived.
        let late = GRANULARITY + TTL / 3;
        assert!(took < FAILOVER + late, "{what}: {took:?}");
        let discovered = candidates.list[master].probe.discover().await.unwrap();
        assert!(!discovered.is_master, "{what}: {discovered:?}");
        let server = candidates.list[master].server();
        server.wait_for_log("etcd cannot be asked; trying on");
        candidates.assert_kept(grant.server, &crowd, &watcher).await;

        candidates.list[master].change_ways(Proxy::pass);
        let successor = candidates.list[grant.server].address.clone();
        let probe = candidates.list[master].probe.clone();
        until("it knows the successor", async || {
            let discovered = probe.discover().await.unwrap();
            discovered.master.as_ref() == Some(&successor)
        })
        .await;
        let server = candidates.list[master].server();
        server.wait_for_log("etcd answers again");
        master = grant.server;
    }
    watcher.assert_one_master("at the end");
    let epochs = watcher.read(Record::epochs);
    assert!(
        epochs.len() > faults.len(),
        "the record shows every mastership: {epochs:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_without_etcd_steps_down_in_time() {
    cut_off(&[
        ("nothing passes", Proxy::drop_all),
        ("connections are refused", Proxy::refuse),
        ("everything is late", |way| {
            way.delay(Direction::Requests, TTL / 4);
            way.delay(Direction::Answers, TTL / 4);
        }),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_whose_etcd_is_slow_stays_the_master() {
    let ttl = Duration::from_secs(5);
    let etcd = Etcd::start().await;
    let mut candidates = Setup::new(2).with_ways().with_ttl(ttl).start(&etcd);
    let watcher = candidates.watch();
    let crowd = candidates.crowd().await;
    let master = candidates.master().await;
    let epochs = watcher.read(Record::epochs);
    candidates.list[master].change_ways(|way| {
        way.delay(Direction::Requests, ttl * 3 / 20);
        way.delay(Direction::Answers, ttl * 3 / 20);
    });
    let before = etcd.revision().await;
    until("it is confirmed six times", async || {
        etcd.revision().await >= before + 6
    })
    .await;
    candidates.assert_kept(master, &crowd, &watcher).await;
    assert_eq!(watcher.read(Record::epochs), epochs);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_is_heard_but_does_not_hear_steps_down_in_time() {
    cut_off(&[
        ("answers are swallowed", |way| {
            way.set(Direction::Answers, Flow::Drop);
        }),
        ("requests are swallowed", |way| {
            way.set(Direction::Requests, Flow::Drop);
        }),
        ("answers are held", |way| {
            way.set(Direction::Answers, Flow::Hold);
        }),
    ])
    .await;
}

/// etcd has elected it, and the answer is lost: no other server can be elected as long as it lives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_elected_without_its_answer_finds_out() {
    const MASTER: &str = "/doorward/nodes/root/master";
    let etcd = Etcd::start().await;
    let mut candidates = Setup::new(1).with_ways().start(&etcd);
    let watcher = candidates.watch();
    // If a renewal is lost before it sees that its key is gone, it first checks whether etcd answers. It is not elected
    // as long as answers are late. Then the test tries again.
    let mut is_elected = false;
    for _ in 0..30 {
        candidates.master().await;
        // Its requests arrive at once. The answer to the one that elects it is lost.
        let late = |way: &mut Proxy| way.delay(Direction::Answers, TTL / 5);
        candidates.list[0].change_ways(late);
        etcd.delete(MASTER).await;
        let elected = until("it is elected", async || etcd.get(MASTER).await.is_some());
        is_elected = tokio::time::timeout(2 * TTL, elected).await.is_ok();
        if is_elected {
            candidates.list[0].change_ways(|way| way.set(Direction::Answers, Flow::Drop));
            let server = candidates.list[0].server();
            server.wait_for_log("etcd cannot be asked; trying on");
        }
        candidates.list[0].change_ways(Proxy::pass);
        if is_elected {
            break;
        }
    }
    assert!(is_elected, "in none of thirty attempts");
    let back = Instant::now();
    let grant = watcher.grant(back, None).await;
    println!("granted after {:.2?}", grant.received - back);
    watcher.assert_one_master("at the end");
}

/// One of the paths to etcd works: the master finds it in time to resign.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_master_that_stops_finds_a_member_that_answers() {
    let etcd = Etcd::cluster(3).await;
    let mut candidates = Setup::new(2).with_ways().start(&etcd);
    let watcher = candidates.watch();
    for works in 0..etcd.len() {
        let master = candidates.master().await;
        let others = candidates.list[master].ways.iter_mut().enumerate();
        for (_, way) in others.filter(|(way, _)| *way != works) {
            way.drop_all();
        }
        let stopped = Instant::now();
        candidates.list[master].terminate();
        let grant = watcher.grant(stopped, Some(master)).await;
        let took = grant.received - stopped;
        println!("succeeded after {took:.2?}");
        // Without the resignation, the successor would wait for a TTL.
        assert!(took < TTL * 2 / 3, "{took:?}");
        candidates.list[master].change_ways(Proxy::pass);
        candidates.list[master].start();
    }
    watcher.assert_one_master("at the end");
}
