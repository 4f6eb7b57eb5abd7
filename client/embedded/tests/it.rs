//! Groups whose members are in one process, and settings that are refused. `tests/` has groups of real processes.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use doorward::capacity::Capacity;
use doorward::{Client, Resource};
use doorward_embedded::{Embedded, Member, embedded};
use futures_util::StreamExt;
use tokio::time::{sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(30);

fn group(folder: &Path) -> Embedded {
    embedded("test").folder(folder).limit("db/*", "300/s")
}

/// Joins as a client of that name, and wants so much.
async fn join(group: &Embedded, name: &str) -> Member {
    let client = Client::builder().id(name);
    group.clone().join_with(client).await.unwrap()
}

/// Opens the resource, with so much wanted.
fn opened(client: &Client, wants: f64) -> Resource {
    let resource = client.resource("db/orders").wants(wants);
    resource.open().unwrap()
}

async fn until_has(resource: &Resource, has: f64) {
    let mut changes = resource.changes();
    let holds = async {
        while resource.capacity() != Capacity::Limited(has) {
            changes.next().await.unwrap();
        }
    };
    timeout(PATIENCE, holds).await.unwrap();
}

async fn until_serves(member: &Member) {
    let holds = async {
        while !member.is_serving() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, holds).await.unwrap();
}

#[tokio::test]
async fn two_members_of_one_process_share_and_the_second_serves_when_the_first_has_left() {
    let folder = tempfile::tempdir().unwrap();
    let group = group(folder.path()).page("127.0.0.1:0".parse().unwrap());
    let first = join(&group, "a").await;
    until_serves(&first).await;
    assert!(first.page().is_some(), "{first:?}");
    let metrics = first.metrics().unwrap();
    assert!(metrics.contains("doorward_"), "{metrics}");
    let second = join(&group, "b").await;
    assert!(!second.is_serving() && second.metrics().is_none());
    let [of_first, of_second] = [&first, &second].map(|it| opened(it.client(), 200.0));
    until_has(&of_first, 150.0).await;
    until_has(&of_second, 150.0).await;
    first.leave().await;
    until_has(&of_second, 200.0).await;
    until_serves(&second).await;
    assert_eq!(second.problem(), None);
    second.leave().await;
}

#[tokio::test]
async fn a_member_that_is_only_dropped_leaves_the_group_to_others() {
    let folder = tempfile::tempdir().unwrap();
    let group = group(folder.path());
    drop(join(&group, "a").await);
    let second = join(&group, "b").await;
    until_serves(&second).await;
    until_has(&opened(second.client(), 300.0), 300.0).await;
    second.leave().await;
}

#[tokio::test]
async fn limits_may_be_templates_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("templates.yaml");
    let text = "resources: [{identifier_glob: db/orders, capacity: 7, \
                algorithm: {kind: FAIR_SHARE, lease_length: 20s, refresh_interval: 2s}}]";
    fs::write(&file, text).unwrap();
    let group = embedded("test").folder(folder.path()).templates(&file);
    let member = join(&group, "a").await;
    until_has(&opened(member.client(), 10.0), 7.0).await;

    // The next process serves by the templates that it knows, if the file is invalid by then.
    let next = join(&group, "b").await;
    fs::write(&file, "resources: [").unwrap();
    member.leave().await;
    until_serves(&next).await;
    until_has(&opened(next.client(), 10.0), 7.0).await;
    assert!(next.problem().unwrap().contains("templates.yaml"));
    fs::write(&file, text.replace('7', "8")).unwrap();
    until_has(&opened(next.client(), 10.0), 8.0).await;
    next.leave().await;
}

#[tokio::test]
async fn a_page_whose_port_is_taken_stops_no_limit() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let group = group(folder.path()).page(taken.local_addr().unwrap());
    let member = join(&group, "a").await;
    until_has(&opened(member.client(), 300.0), 300.0).await;
    let problem = member.problem().unwrap();
    assert!(problem.contains("choose another address"), "{problem}");
    assert_eq!(member.page(), None);
    member.leave().await;
}

async fn check_refused(group: Embedded, part: &str) {
    let error = group.join().await.unwrap_err().to_string();
    assert!(error.contains(part), "{error}");
}

#[tokio::test]
async fn settings_that_cannot_be_meant_are_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &Path| embedded("test").folder(path).limit("a", "1/s");
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    check_refused(embedded("a/b").limit("a", "1/s"), "use letters").await;
    check_refused(embedded("a").folder(folder.path()), "no limit").await;
    check_refused(group(folder.path()).limit("a", "soon"), "give a rate").await;
    check_refused(group(folder.path()).templates("t.yaml"), "give one of them").await;
    let in_file = embedded("a").folder(folder.path());
    check_refused(in_file.templates("/nowhere/t.yaml"), "/nowhere").await;
    check_refused(at(&file), "cannot be used").await;
    check_refused(at(&folder.path().join("x".repeat(99))), "give a shorter").await;
}
