//! Templates and rules on the page: read, planned, changed and undone by HTTP. Shadow templates.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use doorward_engine::node;
use doorward_etcd::layout::DocumentKeys;
use doorward_server::app::{Server, ServerConfig};
use doorward_server::rules::store::RulesPlace;
use doorward_server::status::shadow::Shadow;
use doorward_server::stored_place::StoredPlace;
use doorward_server::transports::parent::ParentTransportConfig;
use doorward_tests::etcd::Etcd;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::running::{asked, capacity, config, eventually, gets, json, page, started};

fn templates(capacity: f64) -> String {
    format!(
        "resources:\n- identifier_glob: fair/*\n  capacity: {capacity}\n  algorithm: {{kind: FAIR_SHARE, \
         lease_length: 60s, refresh_interval: 1s, learning_mode_duration: 0s}}\n"
    )
}

/// A root whose templates are in a file.
async fn root(folder: &TempDir) -> Server {
    let path = folder.path().join("templates.yaml");
    std::fs::write(&path, templates(100.0)).unwrap();
    started(ServerConfig {
        templates_place: Some(StoredPlace::File(path)),
        ..config()
    })
    .await
}

/// A leaf below a root.
async fn leaf(root: &Server) -> Server {
    started(ServerConfig {
        node_name: "leaf".to_owned(),
        parent: Some(ParentTransportConfig {
            servers: vec![root.grpc_address().to_string()].into(),
            round: Duration::from_millis(1),
            slow_round: Duration::from_millis(1),
        }),
        node: node::Config {
            refresh_floor: Duration::ZERO,
            ..node::Config::default()
        },
        ..ServerConfig::default()
    })
    .await
}

/// Posts JSON, with further headers. Returns the status code and the body.
async fn post(server: &Server, path: &str, headers: &str, body: &Value) -> (u16, String) {
    let address = server.http_address().unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let (body, json) = (body.to_string(), "content-type: application/json");
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{json}\r\n{headers}content-length: \
         {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let code = head.split(' ').nth(1).unwrap().parse().unwrap();
    (code, body.to_owned())
}

/// Returns a page of JSON, or null: an address that looks too often must wait.
async fn looked(server: &Server, path: &str) -> Value {
    let (code, _, text) = page(server, path).await;
    match code {
        200 => serde_json::from_str(&text).unwrap(),
        _ => Value::Null,
    }
}

async fn posted(server: &Server, path: &str, body: &Value) -> Value {
    let (code, answer) = post(server, path, "", body).await;
    assert_eq!(code, 200, "{answer}");
    serde_json::from_str(&answer).unwrap()
}

#[tokio::test]
async fn a_change_is_planned_through_the_tree_applied_and_undone() {
    let folder = tempfile::tempdir().unwrap();
    let root = root(&folder).await;
    let leaf = leaf(&root).await;
    let mut client = capacity(&leaf).await;
    eventually("the client has what it wants", async || {
        gets(&mut client, "app", asked("fair/x", 80.0)).await == 80.0
    })
    .await;

    let shown = json(&root, "/document?kind=templates").await;
    assert_eq!(shown["text"], templates(100.0));
    assert_eq!(shown["refusal"], Value::Null);
    let text = templates(30.0);
    let edited = json!({"kind": "templates", "text": text});
    let planned = posted(&root, "/document/plan", &edited).await;
    assert_eq!(planned["problems"], json!([]));
    let resource = &planned["plan"]["resources"][0];
    assert_eq!(resource["resource_id"], "fair/x");
    assert_eq!(resource["losing_count"], 1);
    let loser = &resource["losing"][0];
    assert_eq!(
        (&loser["server"], &loser["holder"]),
        (&json!("leaf"), &json!("app"))
    );
    assert_eq!(
        (&loser["granted"], &loser["planned"]),
        (&json!(80.0), &json!(30.0))
    );

    assert_eq!(planned["plan"]["warnings"], json!([]));
    let hardly = json!({"kind": "templates", "text": templates(5.0)});
    let planned = posted(&root, "/document/plan", &hardly).await;
    let warning = &planned["plan"]["warnings"][0];
    assert_eq!(
        (&warning["line"], &warning["needs_force"]),
        (&json!(3), &json!(true))
    );

    let why = "the database is slow";
    let apply = json!({"kind": "templates", "text": text, "seen": shown["version"], "why": why});
    let applied = posted(&root, "/document/apply", &apply).await;
    eventually("the client has less", async || {
        gets(&mut client, "app", asked("fair/x", 80.0)).await == 30.0
    })
    .await;
    let chart = json(&root, "/history?id=fair/x").await;
    let marks = chart["marks"].to_string();
    assert!(
        marks.contains("templates written by 127.0.0.1: the database is slow"),
        "{marks}"
    );

    // Another writer that has not seen this is refused, and writes nothing.
    let (code, answer) = post(&root, "/document/apply", "", &apply).await;
    assert_eq!(code, 409, "{answer}");
    assert!(answer.contains("nothing was written"), "{answer}");
    let undo = json!({"kind": "templates", "text": shown["text"], "seen": applied["version"]});
    let undone = posted(&root, "/document/apply", &undo).await;
    assert_eq!(undone["version"], shown["version"]);
    eventually("the client has what it had", async || {
        gets(&mut client, "app", asked("fair/x", 80.0)).await == 80.0
    })
    .await;

    let (code, _, answer) = page(&leaf, "/document?kind=templates").await;
    assert_eq!(code, 404);
    assert!(answer.contains("at the root"), "{answer}");
}

#[tokio::test]
async fn an_invalid_text_is_told_at_its_lines_and_never_written() {
    let folder = tempfile::tempdir().unwrap();
    let root = root(&folder).await;
    let text = templates(100.0)
        .replace("100", "many")
        .replace("60s", "soon");
    let mut edited = json!({"kind": "templates", "text": text});
    let planned = posted(&root, "/document/plan", &edited).await;
    assert_eq!(planned["plan"], Value::Null);
    let lines = planned["problems"].as_array().unwrap();
    let lines = lines.iter().map(|it| it["line"].as_u64().unwrap());
    assert_eq!(lines.collect::<Vec<_>>(), [3, 4]);
    edited["seen"] = json(&root, "/document?kind=templates").await["version"].take();
    let (code, answer) = post(&root, "/document/apply", "", &edited).await;
    assert_eq!(code, 400);
    assert!(
        answer.starts_with("nothing was written: line 3: "),
        "{answer}"
    );
    let stored = std::fs::read_to_string(folder.path().join("templates.yaml"));
    assert_eq!(stored.unwrap(), templates(100.0));
}

#[tokio::test]
async fn neither_another_site_nor_a_caller_behind_a_proxy_may_change_anything() {
    let folder = tempfile::tempdir().unwrap();
    let root = root(&folder).await;
    let version = json(&root, "/document?kind=templates").await["version"].take();
    let apply = json!({"kind": "templates", "text": templates(1.0), "seen": version});
    for headers in [
        "sec-fetch-site: cross-site\r\n",
        "sec-fetch-site: same-site\r\n",
        "x-forwarded-for: 192.0.2.1\r\n",
        "forwarded: for=192.0.2.1\r\n",
        "via: 1.1 proxy\r\n",
        // A proxy on this machine, without a header of its own.
        "origin: https://quota.example.com\r\n",
        "origin: null\r\n",
    ] {
        let (code, answer) = post(&root, "/document/apply", headers, &apply).await;
        assert_eq!(code, 403, "{headers}: {answer}");
    }
    let stored = std::fs::read_to_string(folder.path().join("templates.yaml"));
    assert_eq!(stored.unwrap(), templates(100.0));
    let own = format!("origin: http://{}\r\n", root.http_address().unwrap());
    let (code, answer) = post(&root, "/document/apply", &own, &apply).await;
    assert_eq!(code, 200, "{answer}");
    let fixed = started(config()).await;
    let (code, answer) = post(&fixed, "/document/apply", "", &apply).await;
    assert_eq!(code, 404);
    assert!(answer.contains("--templates FILE"), "{answer}");
}

#[tokio::test]
async fn rules_are_checked_and_changed_on_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let rules = |per: &str| {
        format!("domain: orders\ndescriptors:\n- key: user\n  rate_limit: {{rate: {per}}}\n")
    };
    std::fs::write(folder.path().join("orders.yaml"), rules("5/s")).unwrap();
    let server = started(ServerConfig {
        rules: Some(RulesPlace::Directory(
            folder.path().to_owned(),
            Duration::from_millis(10),
        )),
        ..config()
    })
    .await;
    let path = "/document?kind=rules&domain=orders";
    eventually("the rules are read", async || {
        page(&server, path).await.0 == 200
    })
    .await;
    let shown = json(&server, path).await;
    assert_eq!(shown["text"], rules("5/s"));
    let edited = |text: String, seen: &Value| json!({"kind": "rules", "domain": "orders", "text": text, "seen": seen});
    let wrong = edited(rules("5/x"), &shown["version"]);
    let planned = posted(&server, "/document/plan", &wrong).await;
    assert_eq!(planned["problems"][0]["line"], 4, "{planned}");
    assert_eq!(post(&server, "/document/apply", "", &wrong).await.0, 400);
    let right = edited(rules("9/s"), &shown["version"]);
    let planned = posted(&server, "/document/plan", &right).await;
    assert_eq!(planned, json!({"problems": [], "plan": null}));
    posted(&server, "/document/apply", &right).await;
    let stored = std::fs::read_to_string(folder.path().join("orders.yaml"));
    assert_eq!(stored.unwrap(), rules("9/s"));
    eventually("the chart says so", async || {
        let chart = looked(&server, "/history?id=any").await;
        chart["marks"]
            .to_string()
            .matches("rules of orders came into force")
            .count()
            == 2
    })
    .await;
}

fn shadow(server: &mut Server, path: &Path) {
    let place = StoredPlace::File(path.to_owned());
    let state = server.state().clone();
    let shadow = state.shadow.get_or_init(|| Shadow::new(place)).clone();
    server.spawn(shadow.run(state));
}

/// Returns what is granted, and what the shadow would grant, in the newest sample.
async fn sample(server: &Server) -> Option<(f64, f64)> {
    let chart = looked(server, "/history?id=fair/x").await;
    let samples = chart["series"][0]["samples"].as_array()?.clone();
    let newest = samples.last()?;
    Some((newest[3].as_f64()?, newest[5].as_f64()?))
}

#[tokio::test]
async fn a_shadow_that_equals_what_is_in_force_shows_equal_numbers_and_changes_no_lease() {
    let folder = tempfile::tempdir().unwrap();
    let mut root = root(&folder).await;
    let mut client = capacity(&root).await;
    let mut ask = async || {
        let one = gets(&mut client, "a", asked("fair/x", 80.0)).await;
        (one, gets(&mut client, "b", asked("fair/x", 30.0)).await)
    };
    eventually("shares", async || ask().await == (70.0, 30.0)).await;
    let (code, ..) = page(&root, "/document?kind=shadow").await;
    assert_eq!(code, 404);

    let path = folder.path().join("shadow.yaml");
    std::fs::write(&path, templates(100.0)).unwrap();
    shadow(&mut root, &path);
    let shows = async |numbers| {
        eventually("the shadow's number", async || {
            sample(&root).await == Some(numbers)
        })
        .await;
    };
    shows((100.0, 100.0)).await;
    std::fs::write(&path, templates(40.0)).unwrap();
    shows((100.0, 40.0)).await;
    assert_eq!(ask().await, (70.0, 30.0));
    let plan = json!({"kind": "shadow", "text": ""});
    let planned = posted(&root, "/document/plan", &plan).await;
    assert_eq!(
        planned["plan"]["resources"][0]["losing_count"], 2,
        "{planned}"
    );
    // An invalid text does not count, and the page says why.
    std::fs::write(&path, "resources: many").unwrap();
    eventually("the problem", async || {
        let chart = looked(&root, "/history?id=fair/x").await;
        chart["shadow"]["problem"].is_string()
    })
    .await;
    shows((100.0, 40.0)).await;
    let (code, answer) = post(&root, "/document/apply", "", &plan).await;
    assert_eq!(code, 403, "{answer}");
    assert_eq!(ask().await, (70.0, 30.0));
}

#[tokio::test]
async fn resources_are_searched_at_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let root = root(&folder).await;
    let mut client = capacity(&root).await;
    for name in ["fair/orders", "fair/users", "fair/ORDER-items"] {
        gets(&mut client, "a", asked(name, 1.0)).await;
    }
    let found = json(&root, "/status?named=Order").await;
    let ids = found["resources"].as_array().unwrap().iter();
    let ids: Vec<&str> = ids.map(|it| it["resource_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["fair/ORDER-items", "fair/orders"]);
    let pages = root.http_address().unwrap().to_string();
    assert_eq!(found["pages_address"], pages);
}

#[tokio::test]
async fn a_document_in_etcd_has_revisions_with_authors() {
    let etcd = Etcd::start().await;
    let (keys, config_of_etcd) = (DocumentKeys::new("/t"), Arc::new(etcd.config()));
    let server = started(ServerConfig {
        templates_place: Some(StoredPlace::Etcd(keys, config_of_etcd)),
        ..config()
    })
    .await;
    let path = "/document?kind=templates";
    let shown = json(&server, path).await;
    assert_eq!(
        (&shown["text"], &shown["version"]),
        (&json!(""), &json!(""))
    );
    let mut seen = json!("");
    for (capacity, why) in [(100.0, "first"), (50.0, "second")] {
        let text = templates(capacity);
        let apply = json!({"kind": "templates", "text": text, "seen": seen, "why": why});
        seen = posted(&server, "/document/apply", &apply).await["version"].take();
    }
    let shown = json(&server, path).await;
    assert_eq!(shown["text"], templates(50.0));
    let newest = &shown["revisions"][0];
    let about = ["number", "who", "why"].map(|key| newest[key].clone());
    assert_eq!(about, [json!(2), json!("127.0.0.1"), json!("second")]);
    let former = json(&server, &format!("{path}&revision=1")).await;
    assert_eq!(former["text"], templates(100.0));
    assert_eq!(page(&server, &format!("{path}&revision=3")).await.0, 404);
    eventually("the chart names the author", async || {
        let marks = looked(&server, "/history?id=any").await["marks"].to_string();
        marks.contains("templates came into force, revision 2 by 127.0.0.1: second")
    })
    .await;
}
