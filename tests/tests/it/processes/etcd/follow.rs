//! A follower of etcd finally sees every state, and none that is older than one that it saw.

use std::sync::Arc;
use std::time::Duration;

use doorward_etcd::EtcdConfig;
use doorward_etcd::follow::{Followed, Range, RangeView};
use doorward_tests::etcd::Etcd;
use doorward_tests::ports::lasting_address;
use doorward_tests::processes::PATIENCE;
use doorward_tests::proxy::{Direction, Flow, Proxy};
use futures_util::future::join_all;
use tokio::sync::watch::Receiver;

use crate::processes::etcd::impatient;

/// Time between its reads without an event.
pub(crate) const LOOK: Duration = Duration::from_millis(300);

/// A time so long that it sees only events.
const NEVER: Duration = Duration::from_secs(3_600);

/// A follower of keys, with its observations.
pub(crate) struct Reader {
    followed: Receiver<Followed>,
    /// The last revision.
    revision: i64,
    may_go_back: bool,
}

impl Reader {
    /// Follows all keys that begin with `/a/`.
    pub(crate) fn start(config: &Arc<EtcdConfig>, look: Duration) -> Self {
        Self::of("/a/", config, look)
    }

    fn of(prefix: &str, config: &Arc<EtcdConfig>, look: Duration) -> Self {
        let range = Range::Prefix(prefix.to_owned());
        Self {
            followed: Followed::start(Arc::clone(config), range, look),
            revision: 0,
            may_go_back: false,
        }
    }

    pub(crate) fn now(&self) -> Followed {
        self.followed.borrow().clone()
    }

    /// Waits until it reports such a state.
    pub(crate) async fn until(&mut self, what: &str, is: impl Fn(&Followed) -> bool) -> Followed {
        let waiting = async {
            loop {
                let followed = self.followed.borrow_and_update().clone();
                let revision = followed.view.as_ref().map_or(0, |view| view.revision);
                if revision < self.revision {
                    assert!(self.may_go_back, "{what}: back to {revision}");
                    self.may_go_back = false;
                }
                self.revision = revision;
                if is(&followed) {
                    return followed;
                }
                self.followed.changed().await.unwrap();
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(followed) => followed,
            Err(_) => panic!("{what}: {:#?}", self.now()),
        }
    }

    /// Waits until it reports these keys and values.
    pub(crate) async fn until_shows(&mut self, expected: &[(&str, &str)]) -> Arc<RangeView> {
        let what = format!("{expected:?}");
        let shows = |followed: &Followed| {
            let view = followed.view.as_ref();
            view.is_some_and(|view| {
                let shown = view.entries.iter();
                let shown = shown.map(|(key, entry)| (key.as_str(), entry.value.as_slice()));
                shown.eq(expected.iter().map(|(key, value)| (*key, value.as_bytes())))
            })
        };
        self.until(&what, shows).await.view.unwrap()
    }
}

#[tokio::test]
async fn every_put_and_delete_is_told_in_order() {
    let etcd = Etcd::start().await;
    let first = etcd.put("/a/1", "x").await;
    let mut reader = Reader::start(&impatient(etcd.config()), NEVER);
    let view = reader.until_shows(&[("/a/1", "x")]).await;
    assert_eq!(view.revision, first);
    let second = etcd.put("/a/2", "y").await;
    let view = reader.until_shows(&[("/a/1", "x"), ("/a/2", "y")]).await;
    assert_eq!(view.revision, second);
    let third = etcd.put("/a/1", "z").await;
    let view = reader.until_shows(&[("/a/1", "z"), ("/a/2", "y")]).await;
    let entry = view.entries.get("/a/1").unwrap();
    assert_eq!((entry.create_revision, entry.mod_revision), (first, third));
    // It gets no events of other keys.
    etcd.put("/b/1", "x").await;
    let deleted = etcd.delete("/a/1").await;
    let view = reader.until_shows(&[("/a/2", "y")]).await;
    assert_eq!(view.revision, deleted);

    // All changes of one transaction appear at once.
    etcd.ask("txn", async |client| {
        let puts = ["/a/3", "/a/4"].map(|key| etcd_client::TxnOp::put(key, "w", None));
        client.txn(etcd_client::Txn::new().and_then(puts)).await
    })
    .await;
    let seen = reader.until("a change", |followed| {
        followed
            .view
            .as_ref()
            .is_some_and(|view| view.revision > deleted)
    });
    assert_eq!(seen.await.view.unwrap().entries.len(), 3);
}

#[tokio::test]
async fn one_key_is_followed_alone() {
    let etcd = Etcd::start().await;
    etcd.put("/a/1", "x").await;
    let range = Range::Key("/a/".to_owned());
    let mut followed = Followed::start(impatient(etcd.config()), range, LOOK);
    let is = |count| {
        move |followed: &Followed| {
            let view = followed.view.as_ref();
            view.is_some_and(|view| view.entries.len() == count)
        }
    };
    tokio::time::timeout(PATIENCE, followed.wait_for(is(0)))
        .await
        .unwrap()
        .unwrap();
    etcd.put("/a/", "y").await;
    tokio::time::timeout(PATIENCE, followed.wait_for(is(1)))
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_watch_that_tells_nothing_is_kept() {
    let etcd = Etcd::start().await;
    let proxy = Proxy::to(etcd.address(0));
    let config = impatient(etcd.config_at(&[&proxy.address()]));
    let mut reader = Reader::start(&config, NEVER);
    reader.until_shows(&[]).await;
    // etcd takes that long to disconnect a client that pings it every half second.
    tokio::time::sleep(Duration::from_secs(3)).await;
    etcd.put("/a/1", "x").await;
    reader.until_shows(&[("/a/1", "x")]).await;
    assert_eq!(proxy.accepted(), 1);
}

#[tokio::test]
async fn a_dead_watch_is_noticed_even_by_who_never_looks() {
    let etcd = Etcd::start().await;
    let mut proxy = Proxy::to(etcd.address(0));
    let config = impatient(etcd.config_at(&[&proxy.address()]));
    let mut reader = Reader::start(&config, NEVER);
    reader.until_shows(&[]).await;
    // An event shows that there is a watch.
    etcd.put("/a/1", "x").await;
    reader.until_shows(&[("/a/1", "x")]).await;
    proxy.set(Direction::Answers, Flow::Drop);
    etcd.put("/a/1", "y").await;
    proxy.pass();
    reader.until_shows(&[("/a/1", "y")]).await;
}

#[tokio::test]
async fn whatever_becomes_of_its_connection_it_goes_on() {
    let etcd = Etcd::start().await;
    let faults: [fn(&mut Proxy); 5] = [
        Proxy::refuse,
        Proxy::drop_all,
        Proxy::hold_all,
        |proxy| proxy.set(Direction::Answers, Flow::Drop),
        |proxy| proxy.set(Direction::Requests, Flow::Hold),
    ];
    let all = faults.into_iter().enumerate();
    join_all(all.map(|(number, fault)| survives(&etcd, number, fault))).await;
}

async fn survives(etcd: &Etcd, number: usize, fault: fn(&mut Proxy)) {
    let mut proxy = Proxy::to(etcd.address(0));
    let config = impatient(etcd.config_at(&[&proxy.address()]));
    let [one, two] = ["one", "two"].map(|name| format!("/{number}/{name}"));
    let mut reader = Reader::of(&format!("/{number}/"), &config, LOOK);
    etcd.put(&one, "gone").await;
    reader.until_shows(&[(&one, "gone")]).await;
    for (round, breaks) in [fault, Proxy::sever].into_iter().enumerate() {
        breaks(&mut proxy);
        etcd.delete(&one).await;
        let value = round.to_string();
        etcd.put(&two, &value).await;
        etcd.compact().await;
        if round == 0 {
            // It has met the fault.
            let met = reader.until("a problem", |now| now.problem.is_some());
            met.await;
            proxy.pass();
        }
        reader.until_shows(&[(&two, &value)]).await;
        let over = reader.until("no problem", |now| now.problem.is_none());
        over.await;
    }
}

#[tokio::test]
async fn the_first_endpoint_makes_no_difference() {
    let etcd = Etcd::start().await;
    etcd.put("/a/1", "x").await;
    let mut hole = Proxy::to(etcd.address(0));
    hole.drop_all();
    let (dead, hole) = (lasting_address(), hole.address());
    let good = etcd.address(0);
    for order in [
        vec![&*dead, good],
        vec![good, &*dead],
        vec![&*hole, good],
        vec![&*dead, &*hole, good],
        vec![&*dead, good, &*hole, &*dead],
    ] {
        // The first endpoint is random.
        let config = impatient(etcd.config_at(&order));
        let mut readers: Vec<_> = (0..8).map(|_| Reader::start(&config, LOOK)).collect();
        for reader in &mut readers {
            reader.until_shows(&[("/a/1", "x")]).await;
            assert_eq!(reader.now().problem, None, "{order:?}");
        }
    }
}

#[tokio::test]
async fn connections_that_break_all_the_time_lose_nothing() {
    let etcd = Etcd::start().await;
    let mut proxies = [Proxy::to(etcd.address(0)), Proxy::to(etcd.address(0))];
    let [one, two] = &proxies;
    let config = impatient(etcd.config_at(&[&one.address(), &two.address()]));
    let mut reader = Reader::start(&config, LOOK);
    let mut keys = Vec::new();
    for number in 0..150 {
        let key = format!("/a/{:03}", number % 10);
        // Some stay, some go, and the past is compacted at times.
        if number % 3 == 0 {
            etcd.put(&key, &number.to_string()).await;
        } else {
            etcd.delete(&key).await;
        }
        if number % 4 == 0 {
            etcd.compact().await;
        }
        for (proxy, often) in proxies.iter_mut().zip([5, 7]) {
            match number % often {
                0 => proxy.sever(),
                1 => proxy.hold_all(),
                3 => proxy.pass(),
                _ => {}
            }
        }
        // It never goes back.
        reader.until("anything", |_| true).await;
    }
    proxies.iter_mut().for_each(Proxy::pass);
    for key in etcd.keys("/a/").await {
        let value = etcd.get(&key).await.unwrap();
        keys.push((key, value));
    }
    let expected: Vec<_> = keys.iter().map(|(key, value)| (&**key, &**value)).collect();
    reader.until_shows(&expected).await;
}
