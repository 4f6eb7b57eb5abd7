//! Keyed leases: one resource a key, opened at first use, bounded, and released when idle.

use std::time::Duration;

use doorward::limiter::demand::AdaptiveWants;
use doorward::limiter::rate::Burst;
use doorward::{
    Client, Keyed, KeyedBuilder, OnFailure, RatePermit, Refusal, ResourceError, Units, Why,
};

fn tenants(client: &Client) -> KeyedBuilder<'_> {
    client.keyed("tenants/{}").burst(Burst {
        span: Duration::from_secs(1),
        least: 0.0,
    })
}

/// Decides at once, but waits for the lease of a new key.
async fn admit(tenants: &Keyed, key: &str, cost: u64) -> Result<RatePermit<'static>, Refusal> {
    tenants.ready(key).await;
    tenants.try_acquire(key, cost)
}

#[tokio::test(start_paused = true)]
async fn each_key_has_a_lease_of_its_own_from_its_first_use() {
    let (client, server) = Client::fake("c");
    server.set_capacity("tenants/acme", 2.0);
    server.set_capacity("tenants/ann", 0.0);
    let tenants = tenants(&client).open().unwrap();
    assert!(tenants.is_empty());
    assert_eq!(server.wants("tenants/acme"), None);
    // The lease begins with its burst, here the amount of a second.
    for _ in 0..2 {
        admit(&tenants, "acme", 1).await.unwrap();
    }
    assert_eq!(server.wants("tenants/acme"), Some(10.0), "the least wants");
    for key in ["acme", "ann"] {
        let refused = admit(&tenants, key, 1).await.unwrap_err();
        assert!(refused.retry_after.is_some(), "{key}: {refused:?}");
    }
    assert_eq!(tenants.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn without_a_lease_on_failure_decides_after_the_wait() {
    #[derive(Clone, Copy)]
    enum Without {
        Server,
        Template,
        Room,
    }
    #[track_caller]
    fn check(admitted: u32, expected: u32, case: &str) {
        assert_eq!(admitted, expected, "{case}");
    }
    for (name, without) in [
        ("server", Without::Server),
        ("template", Without::Template),
        ("room", Without::Room),
    ] {
        for (on_failure, expected) in [
            (OnFailure::Open, 20),
            (OnFailure::Closed, 0),
            (OnFailure::UpTo(3.0), 3),
        ] {
            let (client, server) = Client::fake("c");
            let mut builder = tenants(&client).on_failure(on_failure);
            match without {
                Without::Server => server.stop(),
                Without::Template => server.set_unknown("tenants/a", "no template"),
                Without::Room => builder = builder.keys_max(0),
            }
            let tenants = builder.open().unwrap();
            let mut admitted = 0;
            for _ in 0..20 {
                match admit(&tenants, "a", 1).await {
                    Ok(_) => admitted += 1,
                    // A key without a template tells its operator so; the others say when to come back.
                    Err(refusal) if let Why::UnknownResource { .. } = refusal.why => {
                        assert_eq!(name, "template");
                    }
                    Err(refusal) => {
                        let retry_after = refusal.retry_after.unwrap();
                        assert!(!retry_after.is_zero(), "{name}");
                    }
                }
            }
            check(admitted, expected, &format!("{name}, {on_failure:?}"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn only_a_new_key_waits_for_its_lease() {
    let (client, server) = Client::fake("c");
    server.stop();
    let tenants = tenants(&client)
        .on_failure(OnFailure::Open)
        .max_wait(Duration::from_millis(50))
        .open()
        .unwrap();
    let waited = async |key: &'static str| {
        let began = tokio::time::Instant::now();
        admit(&tenants, key, 1).await.unwrap();
        began.elapsed()
    };
    assert_eq!(waited("a").await, Duration::from_millis(50));
    assert_eq!(waited("a").await, Duration::ZERO);
    assert_eq!(waited("b").await, Duration::from_millis(50));
}

/// The default burst is two, and the amount of 200 ms.
#[tokio::test(start_paused = true)]
async fn a_key_begins_with_its_burst() {
    let (client, server) = Client::fake("c");
    server.set_capacity("tenants/slow", 1.0);
    let tenants = client.keyed("tenants/{}").open().unwrap();
    for (key, burst) in [("slow", 2), ("usual", 4)] {
        let at_once = (0..100).map_while(|_| tenants.try_acquire(key, 1).ok());
        assert_eq!(at_once.count(), burst, "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_key_is_released_and_opens_again() {
    let (client, server) = Client::fake("c");
    let idle = Duration::from_secs(60);
    let tenants = tenants(&client).idle(idle).open().unwrap();
    tenants.acquire("a", 1).await.unwrap();
    for _ in 0..5 {
        tokio::time::sleep(idle / 2).await;
        tenants.acquire("busy", 1).await.unwrap();
    }
    assert_eq!(server.wants("tenants/a"), None);
    assert!(server.wants("tenants/busy").is_some());
    assert_eq!(tenants.len(), 1);
    tenants.acquire("a", 1).await.unwrap();
    assert_eq!(tenants.len(), 2);
    drop(tenants);
    assert_eq!(server.wants("tenants/busy"), None, "all are released");
}

#[tokio::test(start_paused = true)]
async fn other_tasks_run_while_many_idle_keys_are_released() {
    let (client, _server) = Client::fake("c");
    let tenants = tenants(&client).open().unwrap();
    for tenant in 0..500 {
        let _unused = tenants.try_acquire(&tenant.to_string(), 1);
    }
    // The first look finds them used, the second one idle.
    tokio::time::sleep(Duration::from_secs(120)).await;
    let mut seen = Vec::new();
    while !tenants.is_empty() {
        seen.push(tenants.len());
        tokio::task::yield_now().await;
    }
    assert!(seen.len() >= 3, "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_key_with_a_waiting_call_stays_open() {
    let (client, server) = Client::fake("c");
    server.set_capacity("tenants/a", 0.0);
    let tenants = tenants(&client).open().unwrap();
    let waiting = tokio::spawn({
        let tenants = tenants.clone();
        async move { tenants.acquire("a", 1).await }
    });
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(tenants.len(), 1);
    server.set_capacity("tenants/a", 10.0);
    waiting.await.unwrap().unwrap();
}

/// A tenant with three an hour has a burst of two. It comes back after each time in which an idle key ends.
#[tokio::test(start_paused = true)]
async fn a_pause_gains_no_burst() {
    let (client, server) = Client::fake("c");
    server.set_capacity("tenants/slow", 3.0 / 3_600.0);
    let tenants = client.keyed("tenants/{}").open().unwrap();
    let mut admitted = 0;
    for _ in 0..20 {
        admitted += (0..10)
            .map_while(|_| tenants.try_acquire("slow", 1).ok())
            .count();
        tokio::time::sleep(Duration::from_secs(180)).await;
    }
    assert_eq!(admitted, 4, "the burst, and what an hour brings in");
}

/// A call that waits for more than the burst is there before the first amount of a lease.
#[tokio::test(start_paused = true)]
async fn a_lease_that_begins_admits_no_more_than_its_burst() {
    let (client, server) = Client::fake("c");
    server.set_capacity("tenants/a", 0.0);
    let tenants = client.keyed("tenants/{}").open().unwrap();
    let waiting = tokio::spawn({
        let tenants = tenants.clone();
        async move { tenants.acquire("a", 104).await.map(drop) }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    let began = tokio::time::Instant::now();
    server.set_capacity("tenants/a", 10.0);
    waiting.await.unwrap().unwrap();
    assert_eq!(began.elapsed().as_secs(), 10, "the burst of 4 is there");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_can_have_no_lease_is_refused_at_once() {
    let (client, _server) = Client::fake("c");
    let tenants = tenants(&client).open().unwrap();
    let long = "x".repeat(300);
    assert_eq!(
        tenants.acquire(&long, 1).await.unwrap_err().retry_after,
        None
    );
    client.close().await;
    assert_eq!(
        tenants.acquire("new", 1).await.unwrap_err().why,
        Why::Closed
    );
    assert_eq!(tenants.try_acquire("new", 1).unwrap_err().why, Why::Closed);
}

/// A call runs for longer than a key stays open without one. Its permit keeps the lease, and settles it.
#[tokio::test(start_paused = true)]
async fn a_key_with_a_permit_stays_open() {
    let (client, server) = Client::fake("c");
    server.set_capacity("tenants/a", 10.0);
    let tenants = tenants(&client).open().unwrap();
    let permit = tenants.acquire("a", 10).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(tenants.len(), 1);
    // Three seconds of supply more than the estimate, of which the full bucket pays one.
    permit.settle(40);
    let wait = tenants.try_acquire("a", 10).unwrap_err().retry_after;
    assert_eq!(wait, Some(Duration::from_secs(3)));
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(tenants.is_empty(), "the permit has ended");
}

#[test]
fn keys_are_encoded_so_that_none_reaches_another_template() {
    let (client, server) = Client::fake("c");
    let tenants = client.keyed("tenants/{}/db").open().unwrap();
    for (key, id) in [
        ("acme-1.eu_x~", "tenants/acme-1.eu_x~/db"),
        ("a/b", "tenants/a%2Fb/db"),
        ("", "tenants//db"),
        ("ü %", "tenants/%C3%BC%20%25/db"),
    ] {
        let _unused = tenants.try_acquire(key, 1);
        assert_eq!(server.wants(id), Some(10.0), "{key:?}");
    }
    assert!(tenants.try_acquire(&"x".repeat(300), 1).is_err());
    assert_eq!(tenants.len(), 4);
}

#[test]
fn bad_settings_are_refused() {
    let (client, _server) = Client::fake("c");
    for pattern in ["tenants", "{}/{}", ""] {
        let error = client.keyed(pattern).open().err();
        assert_eq!(error, Some(ResourceError::BadPattern(pattern.to_owned())));
    }
    let least = AdaptiveWants {
        least: f64::NAN,
        ..AdaptiveWants::default()
    };
    assert!(client.keyed("{}").adaptive_wants(least).open().is_err());
    for amount in [0.0, -1.0, f64::NAN] {
        let builder = client.keyed("{}").on_failure(OnFailure::UpTo(amount));
        assert!(builder.open().is_err(), "{amount}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_settled_call_counts_what_it_used() {
    let (client, server) = Client::fake("c");
    server.set_capacity("tenants/a", 10.0);
    let tenants = tenants(&client).open().unwrap();
    admit(&tenants, "a", 10).await.unwrap().settle(4);
    admit(&tenants, "a", 6).await.unwrap().refund();
    // Ten more than the estimate: a second of supply pays them.
    admit(&tenants, "a", 6).await.unwrap().settle(16);
    for (_, is_admitted) in [(1, false), (2, true)] {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(admit(&tenants, "a", 1).await.is_ok(), is_admitted);
    }
}

/// The server is away when the lease ends. A call of the next lease has 3 of 10 left.
#[tokio::test(start_paused = true)]
async fn a_settle_after_the_end_of_its_lease_has_no_effect_on_the_next_one() {
    for used in [0, 30] {
        let (client, server) = Client::fake("c");
        server.set_capacity("tenants/a", 10.0);
        let tenants = tenants(&client).open().unwrap();
        let permits = [(); 2].map(|()| tenants.try_acquire("a", 5).unwrap());
        tokio::time::sleep(Duration::from_millis(1)).await;
        server.stop();
        assert!(tenants.try_acquire("a", 1).is_err());
        server.start();
        let [first, second] = permits;
        first.settle(used);
        assert!(
            tenants.try_acquire("a", 1).is_err(),
            "the burst was that of the first lease"
        );
        tokio::time::sleep(Duration::from_secs(1)).await;
        tenants.try_acquire("a", 7).unwrap();
        second.settle(used);
        tenants.try_acquire("a", 3).unwrap();
        assert!(
            tenants
                .try_acquire("a", Units::at_least(0.1).unwrap())
                .is_err()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_refresh_keeps_what_has_come_in_for_a_waiting_request() {
    let (client, server) = Client::fake("c");
    let database = client.resource("db").wants(10.0).open().unwrap();
    let limiter = database.rate_limiter(Burst::default());
    let began = tokio::time::Instant::now();
    // The burst is one request and the amount of 20 ms.
    let waiting = tokio::spawn(async move { limiter.acquire(30).await.map(drop) });
    for capacity in [9.0, 10.0] {
        tokio::time::sleep(Duration::from_secs(1)).await;
        server.set_capacity("db", capacity);
    }
    waiting.await.unwrap().unwrap();
    let took = began.elapsed().as_secs_f64();
    // 10 in the first second, 9 in the next one, and 11 at the end.
    assert!((3.0..3.2).contains(&took), "{took}");
}
