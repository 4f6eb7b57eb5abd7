//! Several processes under one client id are several holders.

use std::time::Duration;

use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_proto::doorman::release_result::Outcome;
use doorward_server::app::Server;
use serde_json::Value;

use crate::driven_client::{Process, RESOURCE, Told, told};
use crate::logs::Logs;
use crate::running::{
    asked, asked_with, capacity, config, json, request, start, started, template,
};

const CAPACITY: f64 = 100.0;

/// Starts a server with one template, whose leases last 60 s unless `change` changes that.
pub(crate) async fn start_with(change: impl FnOnce(&mut TemplateSpec)) -> Server {
    let mut template = template("fair/*", AlgorithmKind::FairShare, CAPACITY);
    change(&mut template);
    let mut config = config();
    config.templates = Templates::parse(&[template]).expect("in order");
    started(config).await
}

/// Starts a server whose clients refresh so often that it soon notices one that does not.
pub(crate) async fn start_quick(lease_length: Duration) -> Server {
    start_with(|template| {
        template.lease_length = Some(lease_length);
        template.refresh_interval = Some(Duration::from_millis(100));
    })
    .await
}

pub(crate) async fn status(server: &Server) -> Value {
    json(server, "/status").await
}

/// Returns the number of conflicts that the server has counted.
pub(crate) async fn conflicts(server: &Server) -> u64 {
    let text = crate::running::metrics(server).await;
    let mut lines = text.lines();
    let line = lines.find_map(|line| line.strip_prefix("doorward_name_conflicts_total "));
    line.expect("the metric").parse().expect("a number")
}

#[tokio::test]
async fn two_live_processes_of_a_client_are_two_holders_and_share() {
    let server = start().await;
    let mut first = Process::start(&server, "a", 1, 1_000).await;
    let mut second = Process::start(&server, "a", 2, 5).await;
    assert_eq!(first.asks(90.0).await, Told::Gets(90.0));
    assert_eq!(second.asks(90.0).await, Told::Gets(10.0), "what is free");
    assert_eq!(first.asks(90.0).await, Told::Gets(50.0), "it lives");
    let mut other = Process::start(&server, "b", 3, 1).await;
    for _ in 0..5 {
        for process in [&mut first, &mut second, &mut other] {
            process.asks(90.0).await;
        }
        assert!(first.has + second.has + other.has <= CAPACITY);
    }
    let all = [first.has, second.has, other.has];
    assert!(
        all.iter().all(|has| (has - 100.0 / 3.0).abs() < 1e-6),
        "{all:?}"
    );
}

#[tokio::test]
async fn two_live_processes_of_a_client_are_told_in_log_status_and_metrics() {
    let logs = Logs::start();
    let server = start().await;
    assert_eq!(status(&server).await["conflicts"], Value::Array(Vec::new()));
    assert_eq!(conflicts(&server).await, 0);
    let mut first = Process::start(&server, "a<b", 1, 1_000).await;
    let mut second = Process::start(&server, "a<b", 2, 5).await;
    first.asks(60.0).await;
    second.asks(60.0).await;
    assert_eq!(conflicts(&server).await, 0, "it may be a restart");
    for _ in 0..3 {
        first.asks(60.0).await;
        second.asks(60.0).await;
    }
    let status = status(&server).await;
    assert_eq!(status["conflicts"].as_array().map(Vec::len), Some(1));
    assert_eq!(status["conflicts"][0]["holder"], "a<b");
    assert_eq!(status["conflicts"][0]["kind"], "client");
    assert!(status["conflicts"][0]["age_ms"].as_u64().unwrap() < 60_000);
    let counted = conflicts(&server).await;
    assert!(counted > 1, "each time that the first one asks: {counted}");
    assert_eq!(logs.count("two live processes ask under one name"), 1);
    let text = logs.text();
    let line = text.lines().find(|it| it.contains("two live processes"));
    let line = line.unwrap();
    assert!(line.contains("ERROR") && line.contains("a<b"), "{line}");
}

#[tokio::test]
async fn a_late_duplicate_of_the_process_before_changes_nothing() {
    let server = start().await;
    let mut before = Process::start(&server, "a", 1, 1_000).await;
    let duplicate = before.request(90.0);
    before.send(duplicate.clone()).await;
    let mut after = Process::start(&server, "a", 2, 5).await;
    assert_eq!(after.asks(90.0).await, Told::Gets(10.0));
    let late = told(&before.send(duplicate).await);
    assert_eq!(late, Told::Gets(90.0), "its own lease");
    assert_eq!(after.asks(5.0).await, Told::Gets(5.0));
    assert_eq!(conflicts(&server).await, 0);
}

#[tokio::test]
async fn the_largest_number_sent_in_a_clients_name_does_not_stop_the_client() {
    let server = start().await;
    let mut real = Process::start(&server, "a", 1, 1_000).await;
    assert_eq!(real.asks(60.0).await, Told::Gets(60.0));
    let mut other = Process::start(&server, "a", 2, u64::MAX - 1).await;
    assert_eq!(other.asks(60.0).await, Told::Gets(40.0));
    assert_eq!(real.asks(60.0).await, Told::Gets(50.0), "it shares");
    assert_eq!(real.asks(30.0).await, Told::Gets(30.0), "and is heard");
    assert_eq!(real.asks(30.0).await, Told::Gets(30.0), "and acknowledges");
    // Nor does it stop a process that is started after that.
    let mut other = Process::start(&server, "b", 3, u64::MAX - 1).await;
    assert_eq!(other.asks(10.0).await, Told::Gets(10.0));
    let mut real = Process::start(&server, "b", 4, 1_000).await;
    assert_eq!(real.asks(20.0).await, Told::Gets(20.0));
    // Nor does it if the other process does not say which process it is.
    let mut other = Process::start(&server, "b", None, u64::MAX - 1).await;
    other.asks(10.0).await;
    assert_eq!(real.asks(5.0).await, Told::Gets(5.0));
}

#[tokio::test]
async fn a_release_tells_what_became_of_it() {
    let server = start().await;
    let mut holder = Process::start(&server, "a", 1, 1_000).await;
    let nothing = Outcome::NotHeld;
    assert_eq!(holder.releases(Some(1_000)).await, [nothing, nothing]);
    holder.asks(60.0).await;
    let late = Some(holder.sequence);
    assert_eq!(holder.releases(late).await, [Outcome::OutOfOrder, nothing]);
    let next = Some(holder.sequence + 1);
    assert_eq!(holder.releases(next).await, [Outcome::Released, nothing]);
    assert_eq!(holder.releases(next).await, [nothing, nothing]);
}

#[tokio::test]
async fn a_release_by_another_program_frees_nothing_of_a_process_that_lives() {
    let server = start().await;
    let mut holder = Process::start(&server, "a", 1, 2_000).await;
    holder.asks(60.0).await;
    // A process that never asked for anything releases only what it has.
    let mut stranger = Process::start(&server, "a", 9, 5_000).await;
    let released = stranger.releases(Some(5_001)).await;
    assert_eq!(released, [Outcome::NotHeld, Outcome::NotHeld]);
    // An operator's release names no process, and the clock of its machine shows a time long past.
    let mut operator = Process::start(&server, "a", None, 0).await;
    let released = operator.releases(Some(1)).await;
    assert_eq!(released, [Outcome::UnlessHeard, Outcome::NotHeld]);
    let mut other = Process::start(&server, "b", 3, 1).await;
    assert_eq!(other.asks(41.0).await, Told::Gets(40.0), "nothing is free");
    let fair = Told::Gets(59.0);
    assert_eq!(holder.asks(60.0).await, fair, "it is heard, and shares");
    assert_eq!(conflicts(&server).await, 0, "nobody else has the name");
}

#[tokio::test]
async fn what_has_no_number_changes_nothing_of_a_holder_that_numbers_its_requests() {
    let server = start().await;
    let mut holder = Process::start(&server, "a", 1, 1_000).await;
    holder.asks(90.0).await;
    let released = holder.releases(None).await;
    assert_eq!(released, [Outcome::OutOfOrder, Outcome::NotHeld]);
    // A process without an incarnation is a holder of its own.
    let mut stranger = capacity(&server).await;
    for has in [None, Some(1.0)] {
        let resource = has.map_or(asked(RESOURCE, 1.0), |has| asked_with(RESOURCE, 1.0, has));
        let answer = stranger.get_capacity(request("a", vec![resource])).await;
        let answer = told(&answer.expect("served").into_inner());
        assert_eq!(answer, Told::Gets(1.0));
    }
    let mut other = Process::start(&server, "b", 3, 1).await;
    assert_eq!(other.asks(100.0).await, Told::Gets(9.0), "a has 91");
}
