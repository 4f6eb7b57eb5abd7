//! The HTTP port.

use std::time::Duration;

use doorward_server::app::ServerConfig;
use serde_json::Value;

use crate::logs::Logs;
use crate::processes::start_with;
use crate::running::{asked, capacity, check_lines, config, get, json, page, start, started};
use crate::upstream::check_count;

#[tokio::test]
async fn the_front_page_lists_resources_and_escapes_their_ids() {
    let server = start().await;
    let (code, _, empty) = page(&server, "/").await;
    assert_eq!(code, 200);
    assert!(empty.contains("Nobody holds anything yet"));
    let mut client = capacity(&server).await;
    get(&mut client, "a", vec![asked("fair/<b>&\"'", 1234.5)]).await;
    let (_, head, full) = page(&server, "/").await;
    assert!(head.contains("content-security-policy: default-src 'none'"));
    assert!(full.contains("1,234.5"), "{full}");
    assert!(!full.contains("<b>&"), "{full}");
    let link = "/resource?id=fair%2F%3Cb%3E%26%22%27";
    assert!(full.contains(link), "{full}");
}

#[tokio::test]
async fn learning_mode_is_shown_on_every_page_and_in_the_log() {
    let logs = Logs::start();
    let server = start_with(|template| {
        template.lease_length = Some(Duration::from_secs(100));
        template.learning_mode_duration = None;
    })
    .await;
    let mut client = capacity(&server).await;
    get(&mut client, "a", vec![asked("fair/r", 5.0)]).await;
    let (_, _, front) = page(&server, "/").await;
    assert!(front.contains("learning mode, 1 min "), "{front}");
    let (_, _, resource) = page(&server, "/resource?id=fair%2Fr").await;
    let advice = "`doorward learning end` ends it now";
    assert!(resource.contains(advice), "{resource}");
    let status = json(&server, "/status").await;
    let text = status["resources"][0]["learning"].as_str();
    let text = text.expect("it learns");
    assert!(text.starts_with("learning mode, "), "{text}");
    assert!(text.contains(advice), "{text}");
    check_count(&logs, "learning mode began", 1);
    check_count(&logs, "lasts=\"1 min ", 1);
}

#[tokio::test]
async fn the_page_of_a_resource_tells_why_each_lease_is_what_it_is() {
    let server = start().await;
    let mut client = capacity(&server).await;
    get(&mut client, "first", vec![asked("fair/x", 90.0)]).await;
    get(&mut client, "<second>", vec![asked("fair/x", 90.0)]).await;
    let (code, _, text) = page(&server, "/resource?id=fair%2Fx").await;
    assert_eq!(code, 200);
    assert!(text.contains("for fair/*"), "the description");
    assert!(text.contains("&#60;second&#62;"), "{text}");
    let why = "held by others until they have shrunk";
    assert!(text.contains(why), "{text}");
}

#[tokio::test]
async fn a_resource_that_nobody_holds_is_not_found() {
    let server = start().await;
    let (code, _, text) = page(&server, "/resource?id=fair%2Fx").await;
    assert_eq!(code, 404);
    assert!(text.contains("Nobody holds this resource"));
    assert_eq!(page(&server, "/resource?id=").await.0, 400);
    assert_eq!(page(&server, "/resource").await.0, 400);
    assert_eq!(page(&server, "/nowhere").await.0, 404);
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
async fn names_that_steer_a_reader_are_shown_by_their_numbers_and_mean_the_same_in_json() {
    let server = start().await;
    let mut client = capacity(&server).await;
    let (id, holder) = ("fair/a\u{202e}b", "c\u{200b}d");
    get(&mut client, holder, vec![asked(id, 1.0)]).await;
    let (_, _, front) = page(&server, "/").await;
    assert!(front.contains(r">fair/a\u{202e}b</a>"), "{front}");
    // The link leads to the same resource.
    let (code, _, resource) = page(&server, "/resource?id=fair%2Fa%E2%80%AEb").await;
    assert_eq!(code, 200);
    assert!(resource.contains(r"c\u{200b}d"), "{resource}");
    let (_, _, text) = page(&server, "/status?leases=1").await;
    assert!(text.contains(r"fair/a\u202eb"), "{text}");
    for text in [&front, &resource, &text] {
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
