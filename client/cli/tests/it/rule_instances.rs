//! `doorward rules instances` against real servers.

use std::fs;

use doorward::rules::source::Retriever;
use doorward_server::app::{Server, ServerConfig};
use doorward_server::rules::store::{POLL_INTERVAL, RulesPlace};
use serde_json::Value;

use crate::{check_failure, nowhere, printed, run};

const RULES: &str = "domain: login\ndescriptors:\n- key: user\n  rate_limit: {rate: 2/min}\n";

async fn serve(rules: Option<RulesPlace>) -> (Server, String) {
    let config = ServerConfig {
        rules,
        ..ServerConfig::default()
    };
    let server = Server::start(config).await.unwrap();
    let address = server.grpc_address().to_string();
    (server, address)
}

/// Calls the command beside the server, which is in this process.
async fn apart<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(call).await.unwrap()
}

#[tokio::test]
async fn each_domain_of_an_instance_has_a_row() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("login.yaml"), RULES).unwrap();
    let place = RulesPlace::Directory(folder.path().to_owned(), POLL_INTERVAL);
    let (_server, address) = serve(Some(place)).await;
    let asked = address.clone();
    let nobody = apart(move || printed(&asked, &["rules", "instances"])).await;
    assert_eq!(nobody, "no service follows the rules of this server\n");

    let retriever = Retriever::server(&[&address], "web-1", &[])
        .start()
        .await
        .unwrap();
    let version = retriever.status().versions["login"].clone();
    let asked = address.clone();
    let listed = apart(move || {
        loop {
            let listed = printed(&asked, &["rules", "instances", "-o", "json"]);
            let listed: Value = serde_json::from_str(&listed).unwrap();
            // The first report may be on its way.
            if listed[0]["running"] != serde_json::json!([]) {
                return listed;
            }
        }
    })
    .await;
    let running = serde_json::json!([{"domain": "login", "version": version}]);
    let instance = &listed[0];
    assert_eq!(
        (&instance["name"], &instance["running"]),
        (&"web-1".into(), &running)
    );
    assert_eq!(
        (&instance["server"], &instance["problem"]),
        (&Value::from(&*address), &Value::Null)
    );

    let asked = address.clone();
    let table = apart(move || printed(&asked, &["rules", "instances"])).await;
    let row: Vec<&str> = table.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(
        row[..5],
        ["web-1", "127.0.0.1", &*address, "login", &*version],
        "{table}"
    );
}

#[tokio::test]
async fn a_server_without_rules_is_a_failure_with_advice() {
    let (_server, address) = serve(None).await;
    let output = apart(move || run(&address, &["rules", "instances"])).await;
    check_failure(&output, 1, "start it with --rules DIR");
    let output = apart(|| run(&nowhere(), &["rules", "instances"])).await;
    check_failure(&output, 3, "onnection refused");
}

#[tokio::test]
async fn a_silent_server_does_not_hide_the_others() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("login.yaml"), RULES).unwrap();
    let place = RulesPlace::Directory(folder.path().to_owned(), POLL_INTERVAL);
    let (_server, address) = serve(Some(place)).await;
    let _retriever = Retriever::server(&[&address], "web-1", &[])
        .start()
        .await
        .unwrap();
    let both = format!("{},{address}", nowhere());
    let output = apart(move || run(&both, &["rules", "instances"])).await;
    check_failure(&output, 1, "onnection refused");
    let listed = String::from_utf8(output.stdout).unwrap();
    assert!(listed.contains("web-1"), "{listed}");
}
