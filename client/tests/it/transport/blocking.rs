//! Programs without async, and programs whose runtime does not run.

use doorward::limiter::rate::Burst;
use doorward::{Client, Mode, ResourceError};

use crate::transport::fake_server::{FakeServer, lease};
use crate::transport::{PATIENCE, opened};

#[test]
fn a_program_without_async_acquires_and_closes() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut server = runtime.block_on(FakeServer::master([lease(1e6, 60_000)]));
    let builder = Client::builder().address(&server.address);
    let client = builder.connect_blocking().unwrap();
    let resource = client.resource("r").wants(1e6).open().unwrap();
    let limiter = resource.rate_limiter(Burst::default());
    for _ in 0..100 {
        client.block_on(limiter.acquire(1)).unwrap();
    }
    client.close_blocking();
    runtime.block_on(async { assert_eq!(server.next_release().await.resource_id, ["r"]) });
}

#[test]
fn a_program_without_async_starts_before_its_servers() {
    // There is no server.
    let builder = Client::builder()
        .address("127.0.0.1:1")
        .mode(Mode::Optimistic);
    let client = builder.connect_lazy_blocking().unwrap();
    let resource = client.resource("r").wants(100.0).open().unwrap();
    let limiter = resource.rate_limiter(Burst::default());
    client.block_on(limiter.acquire(1)).unwrap();
}

/// The runtime has one thread, which the program keeps busy for longer than the lease lasts.
#[tokio::test]
async fn a_client_whose_task_does_not_run_says_so() {
    let server = FakeServer::master([lease(8.0, 20)]).await;
    let (_client, resource) = opened(&server, Mode::Pessimistic).await;
    assert_eq!(resource.problem(), None);
    let limiter = resource.rate_limiter(Burst::default());
    let began = tokio::time::Instant::now();
    while !matches!(resource.problem(), Some(ResourceError::TaskIsLate(_))) {
        let _any = limiter.try_acquire(1);
        assert!(began.elapsed() < PATIENCE, "{:?}", resource.problem());
    }
}
