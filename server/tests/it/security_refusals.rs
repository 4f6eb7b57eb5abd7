//! Callers without a valid proof are refused, and both sides tell why.

use std::net::SocketAddr;

use doorward::tls::{ClientFiles, ClientTls};
use doorward::{Client, ConnectError};
use doorward_proto::admin::v1::GetStatusRequest;
use doorward_proto::admin::v1::admin_client::AdminClient;
use doorward_proto::doorman::DiscoveryRequest;
use doorward_proto::doorman::capacity_client::CapacityClient;
use doorward_server::app::Server;
use doorward_server::flags::SecurityFlags;
use doorward_tests::certificates::{Authority, date_time_ymd};
use doorward_tls::dialer::Dialer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;
use tonic::transport::Endpoint;

use crate::process::Process;
use crate::running::page;
use crate::security::{Files, channel, serve};

/// Connects a client once. Returns the problem.
async fn problem(address: &str, tls: Option<ClientTls>) -> String {
    let builder = Client::builder()
        .id("orders-1")
        .address(address)
        .connect_timeout(std::time::Duration::from_millis(500));
    let builder = match tls {
        Some(tls) => builder.tls(tls),
        None => builder,
    };
    match builder.connect().await {
        Err(ConnectError::NotConnected { last, .. }) => last,
        Err(other) => other.to_string(),
        Ok(_) => "connected".to_owned(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_certificate_of_a_client_is_refused() {
    let files = Files::new();
    let own = &files.authority;
    let other = Authority::named("another");
    let revoked = own.certify_with("revoked", &["revoked"], |params| {
        params.serial_number = Some(4711.into());
    });
    files.write("crl.pem", &own.revoke(4711));
    let expired = own.certify_with("expired", &["expired"], |params| {
        params.not_after = date_time_ymd(2020, 1, 1);
    });
    let early = own.certify_with("early", &["early"], |params| {
        params.not_before = date_time_ymd(2120, 1, 1);
        params.not_after = date_time_ymd(2121, 1, 1);
    });
    let path = |name: &str| files.path(name).display().to_string();
    let (ca, cert, key, crl) = (
        path("ca.pem"),
        path("server.pem"),
        path("server.key"),
        path("crl.pem"),
    );
    let mut server = Process::start(&[
        "--tls-cert",
        &cert,
        "--tls-key",
        &key,
        "--tls-client-ca",
        &ca,
        "--tls-crl",
        &crl,
        "--log-level",
        "debug",
    ]);
    for (name, pair, at_client, at_server) in [
        ("revoked", revoked, "CertificateRevoked", "it is revoked"),
        ("expired", expired, "it has ended", "it has ended"),
        ("early", early, "does not begin yet", "does not begin yet"),
        (
            "other",
            other.certify("other", &["other"]),
            "does not trust its authority",
            "no authority of --tls-client-ca signed it",
        ),
        (
            "self-signed",
            other.self_signed(),
            "self-signed",
            "self-signed",
        ),
    ] {
        files.write_pair(name, &pair);
        let tls = files.client(Some(name), None);
        let told = problem(&server.grpc, Some(tls)).await;
        assert!(told.contains(at_client), "{name}: {told}");
        // The client has tried more than once, also with the certificate before.
        let mut refused = || server.wait_for_log("a connection was refused").to_string();
        while !refused().contains(at_server) {}
    }
}

#[tokio::test]
async fn an_invalid_certificate_of_a_server_is_refused() {
    let files = Files::new();
    let own = &files.authority;
    let here = ["localhost", "127.0.0.1"];
    let expired = own.certify_with("expired", &here, |params| {
        params.not_after = date_time_ymd(2020, 1, 1);
    });
    for (name, pair, told) in [
        ("expired", expired, "it has ended"),
        (
            "other",
            Authority::named("another").certify("other", &here),
            "no authority that this program trusts signed it",
        ),
        (
            "elsewhere",
            own.certify("elsewhere", &["example.com"]),
            "not valid for name",
        ),
    ] {
        files.write_pair(name, &pair);
        let mut flags = files.flags();
        (flags.tls.cert, flags.tls.key) = (
            Some(files.path(&format!("{name}.pem"))),
            Some(files.path(&format!("{name}.key"))),
        );
        let server = serve(flags.config().unwrap()).await;
        let address = server.grpc_address().to_string();
        let problem = problem(&address, Some(files.client(None, None))).await;
        assert!(problem.contains(told), "{name}: {problem}");
    }
}

/// Asks for the master without TLS.
async fn ask_plainly(address: SocketAddr) -> Result<(), tonic::Status> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    let mut client = CapacityClient::new(Dialer::default().channel(&endpoint));
    client.discovery(DiscoveryRequest {}).await.map(drop)
}

#[tokio::test]
async fn a_connection_without_tls_is_told_so_unless_it_is_allowed() {
    let files = Files::new();
    let mut flags = files.flags();
    let server = serve(flags.config().unwrap()).await;
    let refused = problem(&server.grpc_address().to_string(), None).await;
    assert!(refused.contains("this port needs TLS"), "{refused}");
    let (status, _, body) = page(&server, "/status").await;
    assert_eq!(
        (status, body.as_str()),
        (400, "this port needs TLS: https://\n")
    );

    flags.accept_plaintext = true;
    let server = serve(flags.config().unwrap()).await;
    ask_plainly(server.grpc_address()).await.unwrap();
    let mut by_tls = CapacityClient::new(channel(&server, Some(files.client(None, None))));
    by_tls.discovery(DiscoveryRequest {}).await.unwrap();

    // A server without TLS is not used by a client that wants it.
    let server = serve(SecurityFlags::default().config().unwrap()).await;
    let tls = || Some(files.client(None, None));
    let refused = problem(&server.grpc_address().to_string(), tls()).await;
    assert!(refused.contains("does not answer by TLS"), "{refused}");
    let refused = problem(&format!("http://{}", server.grpc_address()), tls()).await;
    assert!(refused.contains("needs https"), "{refused}");
    let refused = problem(&format!("https://{}", server.grpc_address()), None).await;
    assert!(refused.contains("ClientBuilder::tls"), "{refused}");
}

#[tokio::test]
async fn the_plain_port_serves_doormans_clients_and_nothing_else() {
    let files = Files::new();
    let mut flags = files.flags();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let plain = free.local_addr().unwrap();
    drop(free);
    flags.plain_listen = Some(plain);
    let _server = serve(flags.config().unwrap()).await;
    ask_plainly(plain).await.unwrap();
    let endpoint = Endpoint::from_shared(format!("http://{plain}")).unwrap();
    let mut admin = AdminClient::new(endpoint.connect_lazy());
    let refused = admin
        .get_status(GetStatusRequest::default())
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("Doorman's clients only"));
}

/// Sends a request to the pages. Returns the first line of the answer.
async fn requested(server: &Server, head: &str) -> String {
    let mut socket = TcpStream::connect(server.http_address().unwrap())
        .await
        .unwrap();
    let request = format!("{head}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn pages_answer_to_names_of_the_server_alone_and_other_sites_change_nothing() {
    let flags = SecurityFlags {
        http_host: vec!["quota.example.com".to_owned()],
        ..SecurityFlags::default()
    };
    let server = serve(flags.config().unwrap()).await;
    for (host, expected) in [
        ("127.0.0.1:6971", "200"),
        ("localhost", "200"),
        ("[::1]:6971", "200"),
        ("Quota.Example.com:80", "200"),
        ("evil.example.com", "421"),
        ("127.0.0.1.evil.example.com:6971", "421"),
    ] {
        let line = requested(&server, &format!("GET /status HTTP/1.1\r\nHost: {host}")).await;
        assert!(line.contains(expected), "{host}: {line}");
    }
    for path in ["/status", "/healthz"] {
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nHost: localhost");
        let line = requested(&server, &head).await;
        assert!(line.contains("400"), "{path}: {line}");
    }
    let probe = requested(&server, "GET /healthz HTTP/1.1\r\nHost: pod-7").await;
    assert!(probe.contains("200"), "{probe}");
    for (site, expected) in [
        ("cross-site", "403"),
        ("same-site", "403"),
        ("same-origin", "404"),
    ] {
        let head = format!("POST /none HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: {site}");
        let line = requested(&server, &head).await;
        assert!(line.contains(expected), "{site}: {line}");
    }
}

#[test]
fn files_that_cannot_be_used_are_named_with_the_reason() {
    let files = Files::new();
    files.write("empty.pem", "");
    let other = Authority::new().certify("other", &["other"]);
    files.write_pair("other", &other);
    type Change = fn(&mut SecurityFlags, std::path::PathBuf);
    let cases: [(&str, Change, &str); 5] = [
        (
            "missing.pem",
            |flags, path| flags.tls.cert = Some(path),
            "cannot read",
        ),
        (
            "empty.pem",
            |flags, path| flags.tls_client_ca = Some(path),
            "no certificate",
        ),
        (
            "other.key",
            |flags, path| flags.tls.key = Some(path),
            "is not that of",
        ),
        (
            "empty.pem",
            |flags, path| flags.tls_crl = Some(path),
            "no revocation list",
        ),
        (
            "server.pem",
            |flags, path| flags.tokens = Some(path),
            "server.pem",
        ),
    ];
    for (name, change, expected) in cases {
        let mut flags = files.flags();
        change(&mut flags, files.path(name));
        let problem = flags.config().map(drop).unwrap_err();
        assert!(problem.contains(expected), "{name}: {problem}");
        assert!(problem.contains(".pem"), "{name}: {problem}");
    }
    let invalid = ClientTls::open(ClientFiles {
        ca: files.path("server.key"),
        ..ClientFiles::default()
    });
    assert!(invalid.is_err());
}
