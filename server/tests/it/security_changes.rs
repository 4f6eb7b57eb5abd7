//! Files that change while a server runs: what it shows of them, and what becomes of open connections.

use doorward_door::listener::Address;
use doorward_server::app::ServerConfig;
use doorward_server::edge::EdgeDoors;
use doorward_server::rules::store::RulesPlace;

use crate::running::{config, eventually, metrics, started, status_of};
use crate::security::{Files, exchange, redis_client, serve, tokens};

#[tokio::test]
async fn files_that_are_refused_are_shown_until_they_are_valid() {
    let files = Files::new();
    let mut flags = files.flags();
    flags.accept_plaintext = true;
    flags.tokens = Some(tokens(&files));
    let server = serve(flags.config().unwrap()).await;
    let shows = async || {
        let status = status_of(server.state(), None, 0);
        status
            .tls_problem()
            .contains("a file without tokens locks callers out")
    };
    assert!(!shows().await);
    files.write("tokens.yaml", "tokens: []");
    eventually("the status shows the reason", &mut async || shows().await).await;
    let status = status_of(server.state(), None, 0);
    assert!(status.tls_problem().contains("tokens.yaml"), "{status:?}");
    let text = metrics(&server).await;
    for line in [
        "doorward_tls_files_refused{files=\"tokens\"} 1.0",
        "doorward_tls_files_refused{files=\"certificates\"} 0.0",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}: {text}");
    }
    tokens(&files);
    eventually("it is shown no more", &mut async || !shows().await).await;
}

#[tokio::test]
async fn connections_of_a_revoked_certificate_or_a_removed_token_are_closed_and_no_others() {
    let files = Files::new();
    let own = &files.authority;
    for (name, serial) in [("revoked", 7), ("other", 8)] {
        let pair = own.certify_with(name, &[name], |params| {
            params.serial_number = Some(serial.into());
        });
        files.write_pair(name, &pair);
    }
    let mut flags = files.flags();
    flags.tls_crl = Some(files.write("crl.pem", &own.revoke_in(2021, &[])));
    flags.tokens = Some(tokens(&files));
    let rules = files.write("rules.yaml", "domain: other\nempty: true");
    let _server = started(ServerConfig {
        security: flags.config().unwrap(),
        rules: Some(RulesPlace::of_files(rules).unwrap()),
        doors: EdgeDoors {
            redis_listen: Some(Address::Unix(files.path("redis"))),
            ..EdgeDoors::default()
        },
        ..config()
    })
    .await;
    let mut clients = Vec::new();
    for (certificate, token, goes) in [
        (Some("revoked"), None, true),
        (Some("other"), None, false),
        (None, Some("batch"), true),
        (None, Some("ops"), false),
    ] {
        let mut client = redis_client(&files, certificate).await;
        if let Some(token) = token {
            let answer = exchange(&mut client, &format!("AUTH {token}")).await;
            assert_eq!(answer, "+OK\r\n");
        }
        assert_eq!(exchange(&mut client, "PING").await, "+PONG\r\n");
        clients.push((client, certificate.or(token), goes));
    }
    files.write("crl.pem", &own.revoke_in(2022, &[7]));
    let text = std::fs::read_to_string(tokens(&files)).unwrap();
    files.write("tokens.yaml", &text.replace("name: batch", "name: former"));
    for (client, name, goes) in &mut clients {
        if *goes {
            let mut is_closed = async || exchange(client, "PING").await.is_empty();
            eventually(name.unwrap(), &mut is_closed).await;
        }
    }
    for (client, name, goes) in &mut clients {
        if !*goes {
            assert_eq!(exchange(client, "PING").await, "+PONG\r\n", "{name:?}");
        }
    }
}
