//! Sockets in the file system instead of TCP.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use doorward_door::listener::Address;
use doorward_proto::envoy::ratelimit as rls;
use doorward_proto::envoy::ratelimit::rate_limit_service_client::RateLimitServiceClient;
use doorward_server::app::{Server, ServerConfig, ServerError};
use doorward_server::edge::EdgeDoors;
use doorward_server::rules::store::RulesPlace;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tonic::transport::Endpoint;

use crate::running::{config, eventually, started};

const RULES: &str = "
domain: redis
descriptors:
- {key: key, scope: shared, rate_limit: {rate: 100/s}}
";

/// Sockets of an agent in a folder.
fn sockets(folder: &Path) -> [PathBuf; 3] {
    ["grpc", "http", "redis"].map(|name| folder.join(name))
}

fn agent(folder: &Path) -> ServerConfig {
    let rules = folder.join("rules.yaml");
    fs::write(&rules, RULES).unwrap();
    let [grpc, http, redis] = sockets(folder).map(Address::Unix);
    ServerConfig {
        listen: grpc,
        http_listen: Some(http),
        rules: Some(RulesPlace::of_files(rules).unwrap()),
        doors: EdgeDoors {
            has_http: true,
            redis_listen: Some(redis),
            makes_templates: true,
        },
        ..config()
    }
}

/// Sends bytes to a socket, and returns the answer up to some bytes.
async fn exchange(socket: &Path, request: &[u8], end: &str) -> String {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    while !answer.contains(end) {
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).await.unwrap();
        assert!(count > 0, "{answer}");
        answer.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
    }
    answer
}

#[tokio::test]
async fn all_doors_serve_unix_sockets_and_their_callers_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let sockets = sockets(folder.path());
    // A server that was killed leaves its socket.
    drop(UnixListener::bind(&sockets[0]).unwrap());
    let server = started(agent(folder.path())).await;
    for socket in &sockets {
        let mode = fs::metadata(socket).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o660, "{socket:?}");
    }
    assert!(server.state().address().starts_with("unix:/"));
    let [grpc, http, redis] = &sockets;
    let alive = b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";
    exchange(http, alive, "\r\n\r\nok\n").await;
    eventually("the rules are in force", async || {
        let answer = exchange(redis, b"THROTTLE k 5 10 1\r\n", "\r\n").await;
        answer.starts_with("*5")
    })
    .await;
    let endpoint = Endpoint::from_shared(format!("unix:{}", grpc.display())).unwrap();
    let mut client = RateLimitServiceClient::new(endpoint.connect().await.unwrap());
    let request = rls::RateLimitRequest {
        domain: "other".to_owned(),
        descriptors: vec![rls::RateLimitDescriptor::default()],
        hits_addend: 0,
    };
    client.should_rate_limit(request).await.unwrap();
    let status = b"GET /status?leases=9 HTTP/1.1\r\nhost: a\r\n\r\n";
    let status = exchange(http, status, "}\n").await;
    assert!(status.contains("caller:unix"), "{status}");
    drop(client);
    assert!(server.shutdown().await);
    for socket in &sockets {
        assert!(!socket.exists(), "{socket:?}");
    }
}

#[tokio::test]
async fn a_socket_in_use_and_other_files_are_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let [grpc, _, redis] = sockets(folder.path());
    let _listening = UnixListener::bind(&grpc).unwrap();
    let refused = async |config| match Server::start(config).await {
        Err(ServerError::Listen { address, .. }) => address.to_string(),
        other => panic!("{other:?}"),
    };
    let of = |path: &Path| format!("unix:{}", path.display());
    assert_eq!(refused(agent(folder.path())).await, of(&grpc));
    assert!(std::os::unix::net::UnixStream::connect(&grpc).is_ok());
    fs::remove_file(&grpc).unwrap();
    fs::write(&redis, "not a socket").unwrap();
    assert_eq!(refused(agent(folder.path())).await, of(&redis));
    assert_eq!(fs::read(&redis).unwrap(), b"not a socket");
    assert!(
        !grpc.exists(),
        "a server that does not start leaves nothing"
    );
}
