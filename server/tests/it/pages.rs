//! The HTTP port.

use std::time::Duration;

use doorward_engine::node::mastership::Mastership;
use doorward_server::app::{Server, ServerConfig};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::{TcpSocket, TcpStream};

use crate::logs::Logs;
use crate::mastership::lose;
use crate::processes::start_with;
use crate::running::{
    asked, capacity, check_lines, config, eventually, get, json, page, start, started,
};
use crate::upstream::check_count;

#[tokio::test]
async fn the_page_loads_from_its_server_only_and_all_that_it_names_is_there() {
    let server = start().await;
    for path in ["/", "/resource?id=fair%2Fx", "/limits"] {
        let (code, head, text) = page(&server, path).await;
        assert_eq!(code, 200, "{path}");
        assert!(head.contains("content-security-policy: default-src 'none'; script-src 'self'"));
        let names = text
            .split(['"', '\''])
            .filter(|it| it.starts_with("/page/"));
        let names: Vec<&str> = names.collect();
        assert!(names.len() >= 4, "{text}");
        for name in names {
            assert_eq!(page(&server, name).await.0, 200, "{name}");
        }
        assert!(!text.contains("://"), "{text}");
    }
    assert_eq!(page(&server, "/nowhere").await.0, 404);
}

#[tokio::test]
async fn learning_mode_is_in_the_status_and_in_the_log() {
    let logs = Logs::start();
    let server = start_with(|template| {
        template.lease_length = Some(Duration::from_secs(100));
        template.learning_mode_duration = None;
    })
    .await;
    let mut client = capacity(&server).await;
    get(&mut client, "a", vec![asked("fair/r", 5.0)]).await;
    let advice = "`doorward learning end` ends it now";
    let status = json(&server, "/status").await;
    let text = status["resources"][0]["learning"].as_str();
    let text = text.expect("it learns");
    assert!(text.starts_with("learning mode, "), "{text}");
    assert!(text.contains(advice), "{text}");
    check_count(&logs, "learning mode began", 1);
    check_count(&logs, "lasts=\"1 min ", 1);
}

/// Opens a stream of events. Returns the status code, and what follows.
async fn follow(server: &Server, path: &str) -> (u16, Lines<BufReader<TcpStream>>) {
    follow_from([127, 0, 0, 1], server, path).await
}

/// The same for a caller at an address.
async fn follow_from(
    caller: [u8; 4],
    server: &Server,
    path: &str,
) -> (u16, Lines<BufReader<TcpStream>>) {
    let address = server.http_address().expect("pages are on");
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((caller, 0).into()).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next_line().await.unwrap().unwrap();
    (first.split(' ').nth(1).unwrap().parse().unwrap(), lines)
}

/// Returns the data of the next event of a stream.
async fn event(lines: &mut Lines<BufReader<TcpStream>>) -> Value {
    loop {
        let line = lines
            .next_line()
            .await
            .unwrap()
            .expect("the stream goes on");
        if let Some(data) = line.strip_prefix("data: ") {
            return serde_json::from_str(data).unwrap();
        }
    }
}

#[tokio::test]
async fn a_browser_hears_of_a_change_without_asking() {
    let server = start().await;
    let mut client = capacity(&server).await;
    get(&mut client, "a", vec![asked("fair/x", 10.0)]).await;
    let (_, mut lines) = follow(&server, "/live?id=fair%2Fx&leases=9").await;
    assert_eq!(event(&mut lines).await["resources"][0]["wants"], 10.0);
    get(&mut client, "b", vec![asked("fair/x", 5.0)]).await;
    while event(&mut lines).await["resources"][0]["wants"] != 15.0 {}
    server.shutdown().await;
    while lines.next_line().await.unwrap_or_default().is_some() {}
}

#[tokio::test]
async fn the_page_of_a_candidate_shows_what_its_master_holds() {
    let (master, candidate) = (start().await, start().await);
    let mut client = capacity(&master).await;
    get(&mut client, "a", vec![asked("fair/x", 10.0)]).await;
    let elsewhere = |master_address| Mastership::Elsewhere {
        master_address,
        epoch: Some(9),
    };
    lose(&candidate, elsewhere(master.grpc_address().to_string()));
    let (_, mut lines) = follow(&candidate, "/live?id=fair%2Fx&leases=9").await;
    let shown = event(&mut lines).await;
    assert_eq!(shown["is_master"], false);
    assert_eq!(shown["leases_count"], 1);
    assert_eq!(shown["resources"][0]["leases"][0]["holder"], "a");
    let tree = json(&candidate, "/tree?id=fair%2Fx").await;
    assert_eq!(tree[0]["status"]["resources"][0]["wants"], 10.0);

    // Without its master, the page goes on with what it has itself.
    lose(&candidate, elsewhere("127.0.0.1:1".to_owned()));
    while event(&mut lines).await["resources"] != Value::Array(Vec::new()) {}
}

#[tokio::test]
async fn no_more_different_views_are_followed_than_the_limit_and_half_of_them_by_one_caller() {
    let server = start().await;
    let mut open = Vec::new();
    for number in 1..=32_u8 {
        let caller = [127, 0, 0, number.div_ceil(16)];
        let path = format!("/live?limit={number}");
        open.push(follow_from(caller, &server, &path).await);
        if number == 16 {
            assert_eq!(follow(&server, "/live?limit=33").await.0, 503);
        }
    }
    assert!(open.iter().all(|(code, _)| *code == 200));
    let third = follow_from([127, 0, 0, 3], &server, "/live?limit=33").await;
    assert_eq!(third.0, 503);
    let (code, _again) = follow(&server, "/live?limit=1").await;
    assert_eq!(code, 200, "it is followed already");
}

#[tokio::test]
async fn a_history_has_samples_of_a_resource_that_is_held() {
    let server = start().await;
    let mut client = capacity(&server).await;
    get(&mut client, "a", vec![asked("fair/x", 10.0)]).await;
    eventually("a sample is recorded", async || {
        let history = json(&server, "/history?id=fair%2Fx").await;
        history["series"][0]["samples"][0].is_array()
    })
    .await;
    let history = json(&server, "/history?id=fair%2Fx").await;
    let sample = history["series"][0]["samples"][0].as_array().unwrap();
    assert_eq!(sample[1..5], [100.0, 10.0, 10.0, 10.0], "{history}");
    assert_eq!(sample[5], Value::Null, "there is no shadow");
    assert_eq!(page(&server, "/history?id=").await.0, 400);
    let never = json(&server, "/history?id=never").await;
    assert_eq!(never["series"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn the_status_is_json_with_as_many_leases_as_asked_for() {
    let server = start().await;
    let mut client = capacity(&server).await;
    for id in ["a", "b"] {
        let asks = vec![asked("fair/x", 10.0), asked("bands", 1.0)];
        get(&mut client, id, asks).await;
    }
    let status = json(&server, "/status?leases=1&id=fair%2Fx").await;
    assert_eq!(status["node"], "root");
    assert_eq!(status["is_master"], true);
    assert_eq!(status["templates_problem"], Value::Null);
    let resources = status["resources"].as_array().expect("a list");
    assert_eq!(resources.len(), 1);
    assert_eq!(resources[0]["resource_id"], "fair/x");
    assert_eq!(resources[0]["wants"], 20.0);
    assert_eq!(resources[0]["leases_count"], 2);
    assert_eq!(resources[0]["leases"].as_array().map(Vec::len), Some(1));
    assert_eq!(page(&server, "/status?leases=-1").await.0, 400);
    let all = json(&server, "/status").await;
    assert_eq!(all["resources"].as_array().map(Vec::len), Some(2));
    assert_eq!(all["resources"][0]["leases"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn a_process_that_lives_and_knows_its_master_is_healthy_and_ready() {
    let server = start().await;
    assert_eq!(page(&server, "/healthz").await.0, 200);
    assert_eq!(page(&server, "/readyz").await.0, 200);
}

#[tokio::test]
async fn the_metrics_tell_of_calls_resources_and_templates() {
    let server = start().await;
    let mut client = capacity(&server).await;
    let asks = vec![
        asked("fair/a\"b\\c", 30.0),
        asked("fair/bad", -1.0),
        asked("nowhere", 1.0),
    ];
    get(&mut client, "a", asks).await;
    let text = crate::running::metrics(&server).await;
    let lines = [
        "doorward_rpcs_total{method=\"doorman.Capacity/GetCapacity\",code=\"OK\"} 1",
        "doorward_rpc_duration_seconds_count{method=\"doorman.Capacity/GetCapacity\"} 1",
        "doorward_resource_capacity{resource=\"fair/a\\\"b\\\\c\"} 100.0",
        "doorward_resource_wants{resource=\"fair/a\\\"b\\\\c\"} 30.0",
        "doorward_resource_granted{resource=\"fair/a\\\"b\\\\c\"} 30.0",
        "doorward_resource_leases{resource=\"fair/a\\\"b\\\\c\"} 1.0",
        "doorward_resources 1.0",
        "doorward_resources_not_listed 0.0",
        "doorward_decisions_total 1",
        "doorward_asks_refused_total 1",
        "doorward_asks_malformed_total 1",
        "doorward_is_master 1.0",
        "doorward_templates 2.0",
        "doorward_templates_refused 0.0",
        "doorward_template_loads_total{outcome=\"ok\"} 1",
        "doorward_template_loads_total{outcome=\"failed\"} 0",
    ];
    check_lines(&text, &lines);
}

#[tokio::test]
async fn no_more_resources_than_the_limit_have_time_series() {
    let server = start().await;
    let mut client = capacity(&server).await;
    for half in 0..2 {
        let asks = (0..600).map(|n| asked(&format!("fair/{half}-{n}"), 1.0));
        get(&mut client, "a", asks.collect()).await;
    }
    let text = crate::running::metrics(&server).await;
    let series = text.matches("\ndoorward_resource_wants{").count();
    assert_eq!(series, 1_000);
    assert!(text.contains("doorward_resources_not_listed 200.0\n"));
}

#[tokio::test]
async fn the_pages_can_be_switched_off() {
    let config = ServerConfig {
        http_listen: None,
        ..config()
    };
    let server = started(config).await;
    assert_eq!(server.http_address(), None);
    let mut client = capacity(&server).await;
    get(&mut client, "a", vec![asked("fair/x", 1.0)]).await;
    server.shutdown().await;
}

#[tokio::test]
async fn names_that_steer_a_reader_are_escaped_in_json() {
    let server = start().await;
    let mut client = capacity(&server).await;
    let (id, holder) = ("fair/a\u{202e}b", "c\u{200b}d");
    get(&mut client, holder, vec![asked(id, 1.0)]).await;
    let (_, _, text) = page(&server, "/status?leases=1").await;
    let (_, _, tree) = page(&server, "/tree?id=fair%2Fa%E2%80%AEb").await;
    for text in [&text, &tree] {
        assert!(text.contains(r"fair/a\u202eb"), "{text}");
        assert!(!text.contains(['\u{202e}', '\u{200b}']), "{text}");
    }
    let status: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(status["resources"][0]["resource_id"], id);
    assert_eq!(status["resources"][0]["leases"][0]["holder"], holder);
}

#[tokio::test]
async fn no_id_breaks_out_of_a_line_of_the_metrics() {
    let server = start().await;
    let mut client = capacity(&server).await;
    let evil = "fair/\"} 1\\ndoorward_is_master{x=\"\\";
    let asks = vec![asked(evil, 2.0), asked("fair/a\nb", 3.0)];
    let reply = get(&mut client, "a", asks).await;
    let granted: Vec<&str> = reply.response.iter().map(|it| &*it.resource_id).collect();
    assert_eq!(granted, [evil], "a newline is no part of an id");
    let text = crate::running::metrics(&server).await;
    let shown = r#"doorward_resource_wants{resource="fair/\"} 1\\ndoorward_is_master{x=\"\\"} 2.0"#;
    assert!(text.lines().any(|line| line == shown), "{text}");
    assert!(!text.contains("} 3.0"), "{text}");
}
