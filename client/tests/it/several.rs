//! Several limiters as one: all admit a call, or none has used anything.

use doorward::limiter::rate::Burst;
use doorward::{Acquire as _, Client, ConcurrencyLimiter, Keyed, RateLimiter, Refund as _};
use tokio::time::{Duration, sleep, timeout};

/// Three places, a key with a burst of 100, and a rate with one of 10 that is full.
async fn limiters() -> (Client, ConcurrencyLimiter, Keyed, RateLimiter) {
    let (client, server) = Client::fake("c");
    server.set_capacity("places", 3.0);
    server.set_capacity("tokens/acme", 10.0);
    server.set_capacity("rate", 1.0);
    let places = client.resource("places").wants(3.0).open().unwrap();
    let burst = |least| Burst {
        span: Duration::ZERO,
        least,
    };
    let tokens = client.keyed("tokens/{}").burst(burst(100.0)).open();
    let rate = client.resource("rate").wants(1.0).open().unwrap();
    let rate = rate.rate_limiter(burst(10.0));
    sleep(Duration::from_secs(20)).await;
    (client, places.concurrency_limiter(), tokens.unwrap(), rate)
}

#[tokio::test(start_paused = true)]
async fn a_call_that_one_refuses_has_used_nothing_of_the_others() {
    let (_client, places, tokens, rate) = limiters().await;
    let limiter = places.clone().and(tokens.clone()).and(rate.clone());
    let held = limiter.acquire(((1, ("acme", 40)), 4)).await.unwrap();
    assert_eq!(places.in_flight(), 1);
    let refused = |cost| limiter.try_acquire(cost).unwrap_err();
    let refusal = refused(((1, ("acme", 40)), 7));
    assert_eq!(refusal.limit.as_deref(), Some("rate"));
    assert!(refusal.to_string().starts_with("rate: over the limit"));
    assert_eq!(places.in_flight(), 1, "its place is free");
    let refusal = refused(((1, ("acme", 61)), 1));
    assert_eq!(refusal.limit.as_deref(), Some("tokens/acme"));
    assert_eq!(
        refused(((3, ("acme", 1)), 1)).limit.as_deref(),
        Some("places")
    );
    // The refused calls have left 60 of the key, and 6 of the rate.
    limiter
        .try_acquire(((1, ("acme", 60)), 6))
        .unwrap()
        .refund();
    held.refund();
    assert_eq!(places.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_gives_back_what_it_had() {
    let (_client, places, tokens, rate) = limiters().await;
    let limiter = tokens.clone().and(places.clone()).and(rate.clone());
    rate.try_acquire(10).unwrap();
    let cost = ((("acme", 100), 2), 1);
    let waits = timeout(Duration::from_millis(100), limiter.acquire(cost));
    assert!(waits.await.is_err(), "nothing has come in yet");
    assert_eq!(places.in_flight(), 0);
    tokens.try_acquire("acme", 100).unwrap().refund();
    let _held = limiter.acquire(cost).await.unwrap();
    assert_eq!(places.in_flight(), 2);
}
