//! Shared rules: a lease decides, and without one `on_failure`.

use std::time::Duration;

use doorward::Client;
use doorward::fake::FakeServer;
use doorward::layer::Limits;
use doorward::limiter::rate::Burst;

use crate::stand::{app, builder, rules, statuses};

fn shared(fields: &str) -> (Limits, FakeServer) {
    let text = format!(
        "- key: user
  scope: shared
  max_wait: 50ms
  {fields}
  rate_limit: {{rate: 3/h, algorithm: token_bucket, burst: 3}}
"
    );
    let (client, server) = Client::fake("api-1");
    let burst = Burst {
        span: Duration::from_secs(1),
        least: 0.0,
    };
    let leases = client.keyed("shared/api/{}").burst(burst).open().unwrap();
    (builder().leases(leases).load(rules(&text)).unwrap(), server)
}

#[tokio::test(start_paused = true)]
async fn a_lease_decides_and_the_rule_bounds_each_process() {
    let (limits, server) = shared("");
    server.set_capacity("shared/api/user=ann", 2.0);
    let app = app(&limits);
    assert_eq!(statuses(&app, "ann", 3).await, [200, 200, 429], "the lease");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(statuses(&app, "ann", 2).await, [200, 429], "the rule");
    // The refusal of the rule gave one back to the lease.
    let fresh = "- key: user\n  value: ann\n  scope: shared\n  rate_limit: {rate: 9/h}\n";
    limits.replace(rules(fresh)).unwrap();
    assert_eq!(statuses(&app, "ann", 2).await, [200, 429]);
}

/// `printf 'user\0ann' | sha256sum | head -c 32`
#[tokio::test(start_paused = true)]
async fn a_hashed_value_names_the_resource_of_other_programs() {
    let (limits, server) = shared("hash: true");
    server.set_capacity("shared/api/user==a0f3b5cd8cc4469122686f9478835635", 2.0);
    let app = app(&limits);
    assert_eq!(statuses(&app, "ann", 3).await, [200, 200, 429]);
}

#[tokio::test(start_paused = true)]
async fn without_a_lease_on_failure_decides_after_the_wait() {
    for (on_failure, expected) in [
        ("open", [200, 200, 200, 200]),
        ("closed", [503, 503, 503, 503]),
        ("safe", [200, 200, 200, 429]),
    ] {
        let (limits, server) = shared(&format!("on_failure: {on_failure}"));
        server.stop();
        let began = tokio::time::Instant::now();
        let app = app(&limits);
        assert_eq!(statuses(&app, "ann", 4).await, expected, "{on_failure}");
        assert_eq!(began.elapsed(), Duration::from_millis(50), "{on_failure}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_its_lease_a_safe_rule_goes_on_by_the_safe_capacity() {
    let (limits, server) = shared("on_failure: safe");
    server.set_capacity("shared/api/user=ann", 9.0);
    server.set_safe_capacity("shared/api/user=ann", 1.0);
    let app = app(&limits);
    let rule = "- key: user\n  scope: shared\n  rate_limit: {rate: 100/s}\n";
    limits.replace(rules(rule)).unwrap();
    let _ = statuses(&app, "ann", 9).await;
    server.stop();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(statuses(&app, "ann", 2).await, [200, 429], "one a second");
}

#[tokio::test(start_paused = true)]
async fn before_the_first_lease_each_of_several_processes_admits_its_part() {
    let (limits, server) = shared("processes: 3");
    server.stop();
    assert_eq!(statuses(&app(&limits), "ann", 2).await, [200, 429]);
}
