//! Retrievers of a real server.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use doorward::rules::source::Retriever;
use doorward_proto::admin::v1::rules_client::RulesClient;
use doorward_proto::admin::v1::{ListInstancesRequest, RulesInstance};
use doorward_server::app::{Server, ServerConfig};
use doorward_server::rules::store::RulesPlace;
use tonic::transport::Endpoint;

use super::{PATIENCE, POLL, document, limits, until, until_status, write};

/// Starts a server with the rules of a directory.
async fn serve(folder: &Path, listen: Option<SocketAddr>) -> Server {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let config = ServerConfig {
        listen: listen.unwrap_or(any).into(),
        rules: Some(RulesPlace::Directory(folder.to_owned(), POLL)),
        ..ServerConfig::default()
    };
    Server::start(config).await.unwrap()
}

/// Lists the instances of a server until they are as expected. A list that comes too early is asked for again.
async fn until_listed(server: &Server, is: impl Fn(&[RulesInstance]) -> bool) {
    let endpoint = Endpoint::from_shared(format!("http://{}", server.grpc_address())).unwrap();
    let mut client = RulesClient::new(endpoint.connect().await.unwrap());
    let waiting = async {
        loop {
            let listed = client.list_instances(ListInstancesRequest::default()).await;
            if is(&listed.unwrap().into_inner().instances) {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
}

#[tokio::test]
async fn a_retriever_outlives_its_server_and_goes_on_with_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.yaml", &document("a", "1/s"));
    write(folder.path(), "b.yaml", &document("b", "1/s"));
    let server = serve(folder.path(), None).await;
    let address = server.grpc_address();
    let source = Retriever::server(&[&address.to_string()], "web-1", &["a", "c"]);
    let retriever = source.start().await.unwrap();
    let mut rules = retriever.rules();
    until(&mut rules, &["a.user 1/s"]).await;
    write(folder.path(), "c.yaml", &document("c", "3/s"));
    until(&mut rules, &["a.user 1/s", "c.user 3/s"]).await;
    until_listed(&server, |listed| {
        let running = listed.iter().flat_map(|it| &it.running);
        let running: Vec<_> = running
            .map(|it| (it.domain.clone(), it.version.clone()))
            .collect();
        running == retriever.status().versions.into_iter().collect::<Vec<_>>() && running.len() == 2
    })
    .await;

    server.shutdown().await;
    until_status(&retriever, |it| it.problem.is_some()).await;
    assert_eq!(limits(&rules.borrow()), ["a.user 1/s", "c.user 3/s"]);
    // The next server has never seen a valid document of c.
    write(folder.path(), "a.yaml", &document("a", "2/s"));
    write(folder.path(), "c.yaml", &document("c", "much"));
    let server = serve(folder.path(), Some(address)).await;
    until(&mut rules, &["a.user 2/s", "c.user 3/s"]).await;
    let is_told = |problem: &Option<String>| {
        problem.as_deref() == Some("c: the server has no valid document")
    };
    until_status(&retriever, |it| is_told(&it.problem)).await;
    until_listed(&server, |listed| {
        listed.iter().any(|it| is_told(&it.problem))
    })
    .await;
    write(folder.path(), "c.yaml", &document("c", "4/s"));
    until(&mut rules, &["a.user 2/s", "c.user 4/s"]).await;
    until_status(&retriever, |it| it.problem.is_none()).await;

    drop(retriever);
    until_listed(&server, <[_]>::is_empty).await;
}

#[tokio::test]
async fn rules_that_their_user_refuses_are_reported_as_not_running() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.yaml", &document("a", "1/s"));
    let server = serve(folder.path(), None).await;
    let address = server.grpc_address().to_string();
    let source = Retriever::server(&[&address], "web-1", &[]);
    let retriever = source.start().await.unwrap();
    retriever.accept(|rules| match limits(rules).as_slice() {
        [only] if only == "a.user 2/s" => Err("not this".to_owned()),
        _ => Ok(()),
    });
    let versions = retriever.status().versions;
    write(folder.path(), "a.yaml", &document("a", "2/s"));
    let problem = "the rules do not fit the service: not this";
    until_status(&retriever, |it| it.problem.as_deref() == Some(problem)).await;
    assert_eq!(limits(&retriever.rules().borrow()), ["a.user 1/s"]);
    until_listed(&server, |listed| {
        listed.iter().any(|it| {
            it.problem.as_deref() == Some(problem) && it.running[0].version == versions["a"]
        })
    })
    .await;
    write(folder.path(), "a.yaml", &document("a", "3/s"));
    until(&mut retriever.rules(), &["a.user 3/s"]).await;
    until_status(&retriever, |it| it.problem.is_none()).await;
}

#[tokio::test]
async fn a_server_without_rules_is_left_for_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.yaml", &document("a", "1/s"));
    let without = Server::start(ServerConfig::default()).await.unwrap();
    let server = serve(folder.path(), None).await;
    let addresses = [&without, &server].map(|it| it.grpc_address().to_string());
    let addresses = [&*addresses[0], &*addresses[1]];
    let source = Retriever::server(&addresses, "web-1", &[]);
    let retriever = source.start().await.unwrap();
    until(&mut retriever.rules(), &["a.user 1/s"]).await;
}

#[tokio::test]
async fn a_start_without_a_server_says_why() {
    let without = Server::start(ServerConfig::default()).await.unwrap();
    let address = without.grpc_address().to_string();
    let short = Duration::from_millis(300);
    for (addresses, expected) in [
        (vec![&*address], "start it with --rules DIR"),
        (vec!["127.0.0.1:1"], "onnection refused"),
        (vec![], "give HOST:PORT"),
        (vec!["localhost"], "\"localhost\" is no address"),
        (vec!["::1:6970"], "give HOST:PORT"),
    ] {
        let source = Retriever::server(&addresses, "web-1", &[]).within(short);
        let error = source.start().await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
