//! Faults as clients of real servers see them: a removed template, a wrong interval, a proxy that hangs.

use std::time::Duration;

use doorward::{Capacity, Client, Mode, Resource, ResourceError, Source};
use doorward_proto::doorman::capacity_client::CapacityClient;
use doorward_proto::doorman::{GetCapacityRequest, ResourceRequest};
use tonic::transport::Endpoint;

use doorward_tests::processes::{PATIENCE, Server};
use doorward_tests::proxy::Proxy;
use doorward_tests::template_file::TemplateFile;

/// A server, and its templates.
struct Root {
    file: TemplateFile,
    server: Server,
}

impl Root {
    fn start(templates: &str) -> Self {
        let file = TemplateFile::new(templates);
        let server = Server::start(&["--templates", &file.path, "--refresh-floor", "0s"]);
        Self { file, server }
    }

    fn leaf(&self) -> Server {
        let flags = ["--node", "leaf", "--refresh-floor", "0s", "--parent"];
        Server::start(&[flags.as_slice(), &[&self.server.address]].concat())
    }
}

/// Returns templates that grant at once.
fn template(glob: &str, times: &str) -> String {
    format!(
        "- {{identifier_glob: {glob}, capacity: 100, safe_capacity: 3, \
         algorithm: {{kind: FAIR_SHARE, {times}, learning_mode_duration: 0s}}}}\n"
    )
}

async fn open(address: &str, name: &str, resource: &str) -> (Client, Resource) {
    let client = Client::builder()
        .id(name)
        .address(address)
        .connect()
        .await
        .unwrap();
    let resource = client.resource(resource).wants(20.0);
    let resource = resource.mode(Mode::Safe).open().unwrap();
    (client, resource)
}

/// Waits until it holds. The check itself asserts other conditions.
async fn until(what: &str, mut check: impl FnMut() -> bool) {
    let mut looks = tokio::time::interval(Duration::from_millis(5));
    let waited = tokio::time::timeout(PATIENCE, async {
        while !check() {
            looks.tick().await;
        }
    });
    assert!(waited.await.is_ok(), "{what} never came");
}

fn has_lease(resource: &Resource, capacity: f64) -> bool {
    let holding = resource.holding();
    holding.source == Source::Lease && holding.capacity == Capacity::Limited(capacity)
}

#[tokio::test]
async fn a_template_that_is_removed_lets_leases_run_down_below_the_root_too() {
    let times = "lease_length: 5s, refresh_interval: 200ms";
    let kept = template("kept", times);
    let removed = template("removed-*", times);
    let root = Root::start(&format!("resources:\n{kept}{removed}"));
    let leaf = root.leaf();
    let mut open_now = Vec::new();
    // Many, so that some of them ask between the push and the refusal.
    for number in 0..40 {
        let (name, id) = (format!("client-{number}"), format!("removed-{number}"));
        open_now.push(open(&leaf.address, &name, &id).await);
    }
    open_now.push(open(&root.server.address, "another", "removed-0").await);
    until("a lease of all that is wanted", || {
        open_now
            .iter()
            .all(|(_, resource)| has_lease(resource, 20.0))
    })
    .await;
    root.file.write(&format!("resources:\n{kept}"));
    until("the end of all leases", || {
        for (_, resource) in &open_now {
            let holding = resource.holding();
            let is_lease = holding.source == Source::Lease;
            assert!(
                !is_lease || holding.capacity == Capacity::Limited(20.0),
                "{holding:?}"
            );
        }
        open_now.iter().all(|(_, resource)| {
            let is_unknown = |it: ResourceError| matches!(it, ResourceError::Unknown { .. });
            resource.problem().is_some_and(is_unknown) && resource.holding().source == Source::Mode
        })
    })
    .await;
}

#[tokio::test]
async fn no_server_asks_a_client_to_wait_for_an_hour() {
    let times = "lease_length: 7200s, refresh_interval: 3600s";
    let root = Root::start(&format!("resources:\n{}", template("shared", times)));
    let leaf = root.leaf();
    for address in [&root.server.address, &leaf.address] {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let mut capacity = CapacityClient::new(endpoint.connect().await.unwrap());
        let request = GetCapacityRequest {
            client_id: "a Doorman client".to_owned(),
            resource: vec![ResourceRequest {
                resource_id: "shared".to_owned(),
                wants: 20.0,
                ..ResourceRequest::default()
            }],
            ..GetCapacityRequest::default()
        };
        let mut gets = None;
        for _ in 0..1_000 {
            let answer = capacity
                .get_capacity(request.clone())
                .await
                .unwrap()
                .into_inner();
            // A leaf may not have an answer from its parent yet.
            gets = answer.response.first().map(|it| it.gets);
            if gets.is_some() {
                break;
            }
        }
        let gets = gets.expect("a lease");
        assert_eq!((gets.refresh_interval, gets.refresh_in_ms()), (60, 60_000));
    }
}

/// The stream's connection stays open, but nothing arrives any more. The client finds that out by its keep-alive, and goes
/// to its other address.
#[tokio::test]
async fn a_client_behind_a_proxy_that_hangs_gives_way_long_before_its_lease_ends() {
    let times = "lease_length: 300s, refresh_interval: 100s";
    let root = Root::start(&format!("resources:\n{}", template("shared", times)));
    let mut proxy = Proxy::to(&root.server.address);
    let behind = Client::builder()
        .address(proxy.address())
        .address(&root.server.address);
    let behind = behind.connect().await.unwrap();
    let behind = behind.resource("shared").wants(90.0).open().unwrap();
    until("its lease", || has_lease(&behind, 90.0)).await;
    proxy.hold_all();
    let other = Client::connect(&root.server.address).await.unwrap();
    let other = other.resource("shared").wants(90.0).open().unwrap();
    until("what the first one left", || has_lease(&other, 10.0)).await;
    until("both halves", || {
        has_lease(&behind, 50.0) && has_lease(&other, 50.0)
    })
    .await;
}
