//! Clients and child servers that find the servers of a node in a real etcd.

use std::time::Duration;

use doorward::state::{BackoffConfig, ClientConfig};
use doorward::{Capacity, Client, ClientBuilder, Resource};
use doorward_engine::node::mastership::Mastership;
use doorward_engine::templates::Templates;
use doorward_etcd::NodeAddress;
use doorward_server::app::{Server, ServerConfig};
use doorward_server::status::ParentLink;
use doorward_server::transports::parent::{self, ParentSource};
use doorward_tests::etcd::Etcd;

use crate::running::{
    PATIENCE, asked, capacity, config, eventually, gets, started, templates_with,
};
use crate::upstream::{news, until_link};

/// Starts a root with that capacity for `fair/*`.
async fn root_with(capacity: f64) -> Server {
    started(root_config(templates_with(capacity))).await
}

fn root_config(templates: Templates) -> ServerConfig {
    ServerConfig {
        node_name: "eu".to_owned(),
        http_listen: None,
        templates,
        ..config()
    }
}

fn address_of(server: &Server) -> String {
    server.grpc_address().to_string()
}

/// Returns the builder of an impatient client.
fn client(address: &str) -> ClientBuilder {
    let wait = Duration::from_millis(20);
    Client::builder()
        .id("c")
        .address(address)
        .config(ClientConfig {
            early_gap: wait,
            timeout: Duration::from_secs(2),
            backoff: BackoffConfig {
                base: wait,
                cap: wait,
                ..BackoffConfig::default()
            },
            ..ClientConfig::default()
        })
        .connect_timeout(PATIENCE)
}

async fn open(client: &Client) -> Resource {
    let resource = client.resource("fair/x").wants(1_000.0).open().unwrap();
    resource.wait_for_lease(PATIENCE).await.unwrap();
    resource
}

/// Raises the client's demand until the resource has `capacity`. The client asks at once after each change.
async fn until_has(resource: &Resource, capacity: f64) {
    let mut wants = 1_000.0;
    eventually(&format!("it has {capacity}"), async || {
        wants += 1.0;
        resource.ask(wants).unwrap();
        resource.capacity() == Capacity::Limited(capacity)
    })
    .await;
}

#[tokio::test]
async fn a_client_finds_the_master_and_the_one_after_it() {
    let etcd = Etcd::start().await;
    let first = root_with(100.0).await;
    let (address, nowhere) = (address_of(&first), "127.0.0.1:1");
    etcd.register("eu", nowhere).await;
    etcd.register("eu", &address).await;
    etcd.elect("eu", &address).await;
    let client = client(&etcd.node("eu")).connect().await.unwrap();
    let resource = open(&client).await;
    assert_eq!(resource.capacity(), Capacity::Limited(100.0));

    let second = root_with(50.0).await;
    etcd.depose("eu", &address, 1).await;
    etcd.unregister("eu", &address).await;
    first.shutdown().await;
    eventually("it is noticed", async || {
        resource.ask(2_000.0).unwrap();
        client.failure().is_some()
    })
    .await;
    etcd.register("eu", &address_of(&second)).await;
    etcd.elect("eu", &address_of(&second)).await;
    until_has(&resource, 50.0).await;
    assert_eq!(client.failure(), None);
}

#[tokio::test]
async fn a_client_goes_on_with_what_it_knows_while_etcd_is_away() {
    let mut etcd = Etcd::start().await;
    let server = root_with(100.0).await;
    let listen = server.grpc_address();
    etcd.register("eu", &address_of(&server)).await;
    etcd.elect("eu", &address_of(&server)).await;
    let before = client(&etcd.node("eu")).connect().await.unwrap();
    let resource = open(&before).await;

    etcd.kill(0);
    server.shutdown().await;
    let mut again = root_config(templates_with(50.0));
    again.listen = listen.into();
    let server = started(again).await;
    until_has(&resource, 50.0).await;

    // A new client that knows no server reports the problem.
    let newcomer = client(&etcd.node("eu")).connect_timeout(Duration::from_millis(500));
    let error = newcomer.connect().await.err().unwrap().to_string();
    assert!(error.contains(etcd.address(0)), "{error}");
    assert!(error.contains("does not answer"), "{error}");
    // A new client uses an address that it was given beside that of etcd.
    let newcomer = client(&etcd.node("eu")).address(address_of(&server));
    open(&newcomer.connect().await.unwrap()).await;

    etcd.restart_all().await;
    let newcomer = client(&etcd.node("eu")).connect().await.unwrap();
    open(&newcomer).await;
}

#[tokio::test]
async fn a_client_does_not_wait_for_an_etcd_that_hangs() {
    let mut etcd = Etcd::start().await;
    let server = root_with(100.0).await;
    etcd.freeze(0);
    let began = tokio::time::Instant::now();
    let client = client(&etcd.node("eu")).address(address_of(&server));
    open(&client.connect().await.unwrap()).await;
    // The limit is half of the longest call, plus the time for the rest.
    let took = began.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test]
async fn a_node_without_servers_is_a_clear_failure() {
    let etcd = Etcd::start().await;
    let lonely = client(&etcd.node("us")).connect_timeout(Duration::from_millis(500));
    let error = lonely.connect().await.err().unwrap().to_string();
    let expected = format!("etcd lists no server of {}", etcd.node("us"));
    assert!(error.contains(&expected), "{error}");
}

async fn until_problem(server: &Server, text: &str) {
    eventually(text, async || {
        let problem = news(server).problem.unwrap_or_default();
        problem.contains(text)
    })
    .await;
}

/// Makes the server the master of an epoch, or takes its mastership away.
fn set_master(server: &Server, epoch: Option<u64>) {
    let mastership = epoch.map_or(Mastership::Unknown, |epoch| Mastership::Master {
        epoch: Some(epoch),
    });
    let node = server.state().node();
    node.change(|node, now| node.handle_mastership(mastership, now));
}

async fn child(address: &str) -> Server {
    let node = NodeAddress::parse(address).unwrap().place(None).unwrap();
    let child = ServerConfig {
        node_name: "eu1".to_owned(),
        http_listen: None,
        templates: Templates::default(),
        parent: Some(parent::ParentTransportConfig {
            servers: ParentSource {
                given: Vec::new(),
                node: Some(node),
            },
            round: Duration::from_millis(10),
            slow_round: Duration::from_millis(100),
        }),
        ..config()
    };
    started(child).await
}

#[tokio::test]
async fn a_child_follows_its_parent_where_it_moves() {
    let etcd = Etcd::start().await;
    let (first, second) = (root_with(100.0).await, root_with(100.0).await);
    for server in [&first, &second] {
        etcd.register("eu", &address_of(server)).await;
    }
    set_master(&second, None);
    etcd.elect("eu", &address_of(&first)).await;

    let server = child(&etcd.node("eu")).await;
    until_link(&server, ParentLink::Stream).await;
    assert_eq!(news(&server).address, address_of(&first));
    assert_eq!(news(&server).addresses, [etcd.node("eu")]);
    // The child moves as soon as etcd names another master, without a request of any client.
    set_master(&first, None);
    etcd.depose("eu", &address_of(&first), 1).await;
    set_master(&second, Some(8));
    etcd.elect("eu", &address_of(&second)).await;
    let asks_at = async |parent: &Server| {
        eventually("it moves", async || {
            let news = news(&server);
            news.address == address_of(parent) && news.link == ParentLink::Stream
        })
        .await;
    };
    asks_at(&second).await;
    // The child moves back, after a while without a master.
    etcd.depose("eu", &address_of(&second), 2).await;
    etcd.unregister("eu", &address_of(&second)).await;
    second.shutdown().await;
    until_problem(&server, "knows of none").await;
    set_master(&first, Some(9));
    etcd.elect("eu", &address_of(&first)).await;
    asks_at(&first).await;
}

#[tokio::test]
async fn a_child_that_is_there_before_its_parent_waits_for_it() {
    let mut etcd = Etcd::start().await;
    etcd.kill(0);
    let server = child(&etcd.node("eu")).await;
    until_problem(&server, "does not answer").await;
    etcd.restart_all().await;
    until_problem(&server, "no server of etcd://").await;
    let parent = root_with(100.0).await;
    etcd.register("eu", &address_of(&parent)).await;
    until_link(&server, ParentLink::Stream).await;
    let mut client = capacity(&server).await;
    assert_eq!(gets(&mut client, "a", asked("fair/x", 30.0)).await, 30.0);
}
