//! The rules service of a running server, with a directory and with a real etcd.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use doorward::rules::version_of;
use doorward_door::caller_id::CallerId;
use doorward_proto::admin::v1 as wire;
use doorward_proto::admin::v1::rules_client::RulesClient;
use doorward_proto::admin::v1::rules_server::Rules;
use doorward_server::admin::rules_service::RulesService;
use doorward_server::app::{Server, ServerConfig};
use doorward_server::rules::store::{RuleStore, RulesPlace};
use doorward_tests::etcd::Etcd;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};

use crate::process::{run, text};
use crate::running::{channel, config, eventually, start, started};

/// Interval between two reads of a directory.
const POLL: Duration = Duration::from_millis(20);

fn document(domain: &str, rate: &str) -> String {
    format!("domain: {domain}\ndescriptors:\n- key: user\n  rate_limit: {{rate: {rate}}}\n")
}

fn place(folder: &Path) -> RulesPlace {
    RulesPlace::Directory(folder.to_owned(), POLL)
}

async fn serve(place: RulesPlace) -> (Server, RulesClient<Channel>) {
    let rules = Some(place);
    let server = started(ServerConfig { rules, ..config() }).await;
    let client = RulesClient::new(channel(&server).await);
    (server, client)
}

/// Starts a server with the documents of a directory.
async fn serve_directory(documents: &[(&str, &str)]) -> (TempDir, Server, RulesClient<Channel>) {
    let folder = tempfile::tempdir().unwrap();
    for (domain, rate) in documents {
        let path = folder.path().join(format!("{domain}.yaml"));
        fs::write(path, document(domain, rate)).unwrap();
    }
    let (server, mut client) = serve(place(folder.path())).await;
    let mut list = async || list(&mut client).await.is_ok();
    eventually("the directory is read", &mut list).await;
    (folder, server, client)
}

async fn list(client: &mut RulesClient<Channel>) -> Result<wire::ListRulesResponse, Status> {
    let answer = client.list(wire::ListRulesRequest {}).await;
    answer.map(tonic::Response::into_inner)
}

async fn get(
    client: &mut RulesClient<Channel>,
    domain: &str,
) -> Result<wire::RuleDocument, Status> {
    let domain = domain.to_owned();
    let answer = client.get(wire::GetRulesRequest { domain }).await?;
    Ok(answer.into_inner().document.unwrap())
}

fn applied(domain: &str, rate: &str, seen_version: &str) -> wire::ApplyRulesRequest {
    wire::ApplyRulesRequest {
        domain: domain.to_owned(),
        text: document(domain, rate),
        seen_version: seen_version.to_owned(),
        why: Some("a test".to_owned()),
        ..wire::ApplyRulesRequest::default()
    }
}

fn deleted(domain: &str, seen_version: &str) -> wire::DeleteRulesRequest {
    let (domain, seen_version) = (domain.to_owned(), seen_version.to_owned());
    wire::DeleteRulesRequest {
        domain,
        seen_version,
    }
}

#[tokio::test]
async fn files_that_are_seldom_looked_at_are_read_at_once_when_the_server_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("api.yaml");
    fs::write(&path, document("api", "1/s")).unwrap();
    let day = Duration::from_secs(86_400);
    for place in [
        RulesPlace::Directory(folder.path().to_owned(), day),
        RulesPlace::File(path.clone(), day),
    ] {
        let (server, mut client) = serve(place).await;
        let mut is_there = async |rate: &str| {
            get(&mut client, "api")
                .await
                .is_ok_and(|it| it.text() == document("api", rate))
        };
        eventually("it is read", async || is_there("1/s").await).await;
        fs::write(&path, document("api", "2/s")).unwrap();
        server.rereads().send_replace(());
        eventually("it is read again", async || is_there("2/s").await).await;
        fs::write(&path, document("api", "1/s")).unwrap();
    }
}

/// An open watch of a client.
struct Watch {
    reports: mpsc::Sender<wire::WatchRulesRequest>,
    answers: Streaming<wire::WatchRulesResponse>,
}

impl Watch {
    async fn open(client: &mut RulesClient<Channel>, instance: &str, domains: &[&str]) -> Self {
        let (reports, outgoing) = mpsc::channel(4);
        let first = wire::WatchRulesRequest {
            instance: instance.to_owned(),
            domains: domains.iter().map(|it| (*it).to_owned()).collect(),
            ..wire::WatchRulesRequest::default()
        };
        reports.send(first).await.unwrap();
        let answers = client.watch(ReceiverStream::new(outgoing)).await.unwrap();
        let answers = answers.into_inner();
        Self { reports, answers }
    }

    /// Returns the next documents: domain and version.
    async fn next(&mut self) -> Vec<(String, Option<String>)> {
        let answer = self.answers.message().await.unwrap().unwrap();
        let documents = answer.documents.into_iter();
        documents.map(|it| (it.domain, it.version)).collect()
    }
}

fn shown(domain: &str, rate: &str) -> (String, Option<String>) {
    let version = version_of(document(domain, rate).as_bytes());
    (domain.to_owned(), Some(version))
}

/// Checks writes with and without the stored version, in a directory or in etcd.
async fn check_writes(client: &mut RulesClient<Channel>, has_history: bool) {
    let first = client
        .apply(applied("login", "1/s", ""))
        .await
        .unwrap()
        .into_inner();
    let stale = first.version.clone();
    for (request, code) in [
        (applied("login", "2/s", ""), Code::Aborted),
        (applied("login", "2/s", "0123456789abcdef"), Code::Aborted),
        (applied("other", "2/s", &stale), Code::Aborted),
        (applied("login", "much", &stale), Code::InvalidArgument),
        (applied("a/b", "1/s", ""), Code::InvalidArgument),
    ] {
        let refused = client.apply(request.clone()).await.unwrap_err();
        assert_eq!(refused.code(), code, "{request:?}: {refused:?}");
    }
    let second = client
        .apply(applied("login", "2/s", &stale))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(second.revision.is_some(), has_history);
    let document = get(client, "login").await.unwrap();
    assert_eq!(document.text(), self::document("login", "2/s"));
    assert_eq!(
        (&document.version, document.version_in_force()),
        (&second.version, &*second.version)
    );
    for seen in ["", &*stale] {
        let refused = client.delete(deleted("login", seen)).await.unwrap_err();
        assert_eq!(refused.code(), Code::Aborted);
    }
    client
        .delete(deleted("login", &second.version))
        .await
        .unwrap();
    assert_eq!(
        get(client, "login").await.unwrap_err().code(),
        Code::NotFound
    );
}

#[tokio::test]
async fn a_server_without_rules_says_how_to_have_some() {
    let server = start().await;
    let refused = list(&mut RulesClient::new(channel(&server).await))
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("--rules DIR"), "{refused:?}");
}

#[test]
fn a_place_that_cannot_be_used_ends_the_start() {
    for (place, problem) in [
        ("/nowhere/at/all", "is no directory"),
        ("etcd:/doorward/rules", "see --etcd-endpoints"),
    ] {
        let output = run(&["--rules", place]);
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(problem), "{output:?}");
    }
}

#[tokio::test]
async fn a_write_to_a_directory_counts_on_top_of_the_stored_version_only() {
    let (folder, _server, mut client) = serve_directory(&[]).await;
    check_writes(&mut client, false).await;
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let domain = "login".to_owned();
    let history = client
        .history(wire::RulesHistoryRequest {
            domain,
            ..Default::default()
        })
        .await;
    assert_eq!(history.unwrap_err().code(), Code::Unimplemented);
}

#[tokio::test]
async fn a_write_to_etcd_counts_on_top_of_the_stored_version_only_and_has_a_history() {
    let etcd = Etcd::start().await;
    let config = Arc::new(etcd.config());
    let (_server, mut client) = serve(RulesPlace::Etcd("/rules".to_owned(), config)).await;
    eventually("etcd is read", async || list(&mut client).await.is_ok()).await;
    check_writes(&mut client, true).await;

    let mut watch = Watch::open(&mut client, "a", &[]).await;
    assert_eq!(watch.next().await, []);
    // A write past the server, with a name that sorts between a document and its history.
    etcd.put("/rules/login-2", &document("login-2", "3/s"))
        .await;
    assert_eq!(watch.next().await, [shown("login-2", "3/s")]);
    client.apply(applied("login", "4/s", "")).await.unwrap();
    assert_eq!(
        watch.next().await,
        [shown("login", "4/s"), shown("login-2", "3/s")]
    );

    let mut request = wire::RulesHistoryRequest {
        domain: "login".to_owned(),
        texts: true,
        ..wire::RulesHistoryRequest::default()
    };
    let history = client.history(request.clone()).await.unwrap().into_inner();
    let shown: Vec<_> = history
        .revisions
        .iter()
        .map(|it| (it.number, &*it.kind, it.text(), it.why()))
        .collect();
    let texts = ["4/s", "2/s", "1/s"].map(|rate| document("login", rate));
    let expected = [3, 2, 1].into_iter().zip(&texts);
    let expected: Vec<_> = expected
        .map(|(number, text)| (number, "apply", &**text, "a test"))
        .collect();
    assert_eq!(shown, expected);
    request.before = 2;
    let history = client.history(request).await.unwrap().into_inner();
    assert_eq!(history.revisions.len(), 1);

    // The server does not delete a text that the history does not have.
    let seen = version_of(document("login-2", "3/s").as_bytes());
    let refused = client.delete(deleted("login-2", &seen)).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused:?}");
}

#[tokio::test]
async fn only_loopback_may_write() {
    let folder = tempfile::tempdir().unwrap();
    let store = RuleStore::new(place(folder.path()));
    let service = RulesService::new(Some(store));
    for (peer, code) in [
        (Some("192.0.2.1"), Code::PermissionDenied),
        (Some("2001:db8::1"), Code::PermissionDenied),
        (None, Code::PermissionDenied),
        (Some("127.0.0.1"), Code::Aborted),
        (Some("::1"), Code::Aborted),
    ] {
        let mut apply = Request::new(applied("login", "1/s", "0123456789abcdef"));
        let mut delete = Request::new(deleted("login", "0123456789abcdef"));
        if let Some(peer) = peer {
            let address = CallerId::of(peer.parse().unwrap());
            apply.extensions_mut().insert(address);
            delete.extensions_mut().insert(address);
        }
        assert_eq!(
            service.apply(apply).await.unwrap_err().code(),
            code,
            "{peer:?}"
        );
        assert_eq!(
            service.delete(delete).await.unwrap_err().code(),
            code,
            "{peer:?}"
        );
    }
}

#[tokio::test]
async fn an_invalid_file_is_reported_and_the_last_valid_document_stays_in_force() {
    let (folder, _server, mut client) = serve_directory(&[("login", "1/s")]).await;
    let mut watch = Watch::open(&mut client, "a", &["login"]).await;
    assert_eq!(watch.next().await, [shown("login", "1/s")]);
    let file = folder.path().join("login.yaml");
    fs::write(&file, document("login", "much")).unwrap();
    fs::write(folder.path().join("new.yaml"), "domain: new").unwrap();
    let problems = async || {
        let listed = list(&mut client).await.unwrap().documents;
        listed.len() == 2 && listed.iter().all(|it| it.problem.is_some())
    };
    eventually("both problems are told", problems).await;
    let document = get(&mut client, "login").await.unwrap();
    assert!(
        document.problem().starts_with("login.yaml:4: "),
        "{document:?}"
    );
    assert_eq!(document.text(), self::document("login", "much"));
    assert_eq!(document.version_in_force, shown("login", "1/s").1);
    let mut all = Watch::open(&mut client, "b", &[]).await;
    assert_eq!(
        all.next().await,
        [shown("login", "1/s"), ("new".to_owned(), None)]
    );

    fs::write(&file, self::document("login", "2/s")).unwrap();
    assert_eq!(watch.next().await, [shown("login", "2/s")]);
    fs::remove_file(&file).unwrap();
    let gone = async || {
        let document = get(&mut client, "login").await.unwrap();
        document.problem().contains("is gone")
            && document.version_in_force == shown("login", "2/s").1
    };
    eventually("the rules of a file that is gone stay for a minute", gone).await;
    fs::remove_dir_all(folder.path()).unwrap();
    let unread = async || list(&mut client).await.unwrap().problem.is_some();
    eventually("the directory cannot be read", unread).await;
}

#[tokio::test]
async fn a_document_without_room_is_not_written() {
    let names: Vec<String> = (0..256).map(|number| format!("d{number}")).collect();
    let documents: Vec<_> = names.iter().map(|name| (&**name, "1/s")).collect();
    let (folder, _server, mut client) = serve_directory(&documents).await;
    let refused = client.apply(applied("login", "1/s", "")).await.unwrap_err();
    let expected = "nothing was written: there are 257 documents";
    assert!(refused.message().starts_with(expected), "{refused:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 256);
    let seen = version_of(document("d0", "1/s").as_bytes());
    client.apply(applied("d0", "2/s", &seen)).await.unwrap();
}

#[tokio::test]
async fn a_document_of_another_file_name_is_written_in_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("limits.yml");
    fs::write(&file, document("login", "1/s")).unwrap();
    let (_server, mut client) = serve(place(folder.path())).await;
    eventually("it is read", async || {
        get(&mut client, "login").await.is_ok()
    })
    .await;
    let seen = version_of(document("login", "1/s").as_bytes());
    client.apply(applied("login", "2/s", &seen)).await.unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), document("login", "2/s"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let seen = version_of(document("login", "2/s").as_bytes());
    client.delete(deleted("login", &seen)).await.unwrap();
    assert_eq!(
        get(&mut client, "login").await.unwrap_err().code(),
        Code::NotFound
    );
}

#[tokio::test]
async fn a_check_tells_all_problems_and_writes_nothing() {
    let (folder, _server, mut client) = serve_directory(&[]).await;
    for (text, lines) in [
        (document("login", "1/s"), vec![]),
        (
            document("login", "much").replace("key: user", "key: user\n  action: no"),
            vec![4, 5],
        ),
        (document("other", "1/s"), vec![1]),
    ] {
        let domain = "login".to_owned();
        let checked = client
            .check(wire::CheckRulesRequest { domain, text })
            .await
            .unwrap();
        let problems = checked.into_inner().problems;
        let found: Vec<u64> = problems.iter().map(|it| it.line).collect();
        assert_eq!(found, lines, "{problems:?}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn instances_are_listed_while_they_watch() {
    let (_folder, _server, mut client) = serve_directory(&[("login", "1/s")]).await;
    let mut listing = client.clone();
    let mut instances = async || {
        let listed = listing
            .list_instances(wire::ListInstancesRequest::default())
            .await;
        listed.unwrap().into_inner().instances
    };
    let mut first = Watch::open(&mut client, "first", &[]).await;
    let mut second = Watch::open(&mut client, "second", &["login"]).await;
    first.next().await;
    second.next().await;
    let listed = instances().await;
    let names: Vec<_> = listed
        .iter()
        .map(|it| (&*it.name, &*it.peer, it.domains.len()))
        .collect();
    assert_eq!(
        names,
        [("first", "127.0.0.1", 0), ("second", "127.0.0.1", 1)]
    );
    assert_eq!(listed[1].running, []);

    let (domain, version) = ("login".to_owned(), "v".to_owned());
    let report = wire::WatchRulesRequest {
        running: vec![wire::RunningRules { domain, version }],
        problem: Some("it is too new".to_owned()),
        ..wire::WatchRulesRequest::default()
    };
    second.reports.send(report.clone()).await.unwrap();
    let reported = async || {
        let listed = instances().await;
        (&listed[1].running, &listed[1].problem) == (&report.running, &report.problem)
    };
    eventually("the report is listed", reported).await;
    drop(first);
    eventually("the first is gone", async || instances().await.len() == 1).await;
}

#[tokio::test]
async fn a_watch_with_an_invalid_message_ends() {
    let (_folder, _server, mut client) = serve_directory(&[("login", "1/s")]).await;
    let long = "x".repeat(40_000);
    for (instance, domains) in [
        ("", vec!["a"]),
        ("a\n", vec![]),
        ("a", vec!["a"; 257]),
        ("a", vec![&*long]),
    ] {
        let mut watch = Watch::open(&mut client, instance, &domains).await;
        let refused = watch.answers.message().await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    }
    // Each entry takes two bytes, and many more in memory.
    let mut watch = Watch::open(&mut client, "a", &[]).await;
    watch.next().await;
    let report = wire::WatchRulesRequest {
        running: vec![wire::RunningRules::default(); 257],
        ..wire::WatchRulesRequest::default()
    };
    watch.reports.send(report).await.unwrap();
    let refused = watch.answers.message().await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
}
