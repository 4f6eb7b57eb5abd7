//! A status in several pages lists each resource and lease once, and no page is too large.

use std::sync::Arc;

use doorward_engine::amount::Amount;
use doorward_engine::claims::Subclients;
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::messages::{Ask, GetCapacity};
use doorward_engine::node::Config;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_proto::admin::v1::GetStatusRequest;
use doorward_server::clock::Clock;
use doorward_server::replica_handle::ReplicaHandle;
use doorward_server::status::{LEASES_MAX, Query, RESOURCES_MAX, ServerState, Status};
use prost::Message;
use serde_json::Value;
use tonic::Code;

use crate::running::{self, admin, asked, capacity, get, json, page, start};

/// The largest answer that a gRPC client takes by default.
const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Returns the master of a root, with one template that has this description.
pub(crate) fn root(description: String) -> ServerState {
    let template = TemplateSpec {
        description: Some(description),
        ..running::template("*", AlgorithmKind::FairShare, 1e6)
    };
    let templates = Templates::parse(&[template]).expect("in order");
    let node = ReplicaHandle::new(Config::default(), templates, Clock::start());
    let master = Mastership::Master { epoch: Some(1) };
    node.change(|node, now| node.handle_mastership(master, now));
    let (name, place) = ("root".to_owned(), "root:6970".to_owned());
    ServerState::new(name, place, "a test".to_owned(), Arc::new(node))
}

/// Asks for 1 of each resource, as a client.
pub(crate) fn ask(state: &ServerState, client: &str, resources: impl IntoIterator<Item = String>) {
    let (priority, wants, has) = (0, Amount::new(1.0).unwrap(), None);
    let asks = resources.into_iter().map(|id| Ask {
        budget: None,
        resource: ResourceId::new(&id).unwrap(),
        priority,
        weight: Subclients::ONE,
        wants,
        has,
    });
    let request = GetCapacity {
        caller: None,
        incarnation: None,
        client: HolderName::new(client).unwrap(),
        sequence: None,
        asks: asks.collect(),
    };
    let node = state.node();
    node.change(|node, now| node.handle_get_capacity(&request, now));
}

pub(crate) fn numbered(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| format!("r{number:06}"))
}

/// Returns every page of the status, for a request that `change` has changed.
fn pages(state: &ServerState, change: impl FnOnce(&mut GetStatusRequest)) -> Vec<Status> {
    let mut request = GetStatusRequest::default();
    change(&mut request);
    let mut pages = Vec::new();
    loop {
        let status = state.answer(&Query::of(request.clone()).unwrap());
        assert!(status.encoded_len() < ANSWER_BYTES_MAX, "it is too large");
        let next = status.next_token.clone();
        pages.push(status);
        match next {
            Some(token) => request.token = token,
            None => return pages,
        }
    }
}

/// Returns the number of leases of each resource, by page.
fn leases(pages: &[Status]) -> Vec<Vec<usize>> {
    let of_page = |page: &Status| page.resources.iter().map(|it| it.leases.len()).collect();
    pages.iter().map(of_page).collect()
}

/// Returns all ids, in the order in which they came.
fn ids(pages: &[Status]) -> Vec<String> {
    let resources = pages.iter().flat_map(|page| &page.resources);
    resources.map(|it| it.resource_id.clone()).collect()
}

#[test]
fn every_resource_stands_on_one_page_in_the_order_of_ids() {
    let state = root(String::new());
    ask(&state, "a", numbered(2_500));
    for (limit, sizes) in [
        (1_000, vec![1_000, 1_000, 500]),
        (1_250, vec![1_250, 1_250]),
        (2_500, vec![2_500]),
        (0, vec![2_500]),
        (u32::MAX, vec![2_500]),
    ] {
        let pages = pages(&state, |request| request.limit = limit);
        let listed: Vec<usize> = pages.iter().map(|page| page.resources.len()).collect();
        assert_eq!(listed, sizes, "pages of {limit}");
        assert_eq!(ids(&pages), numbered(2_500).collect::<Vec<_>>());
        for page in &pages {
            assert_eq!(page.resources_count, Some(2_500));
            assert_eq!(page.leases_count, Some(2_500));
            assert_eq!(page.clients_count, Some(2_500.0));
        }
    }
}

#[test]
fn who_asks_for_no_pages_gets_as_many_as_are_ever_listed_at_once() {
    let state = root(String::new());
    ask(&state, "a", numbered(RESOURCES_MAX + 10));
    let pages = pages(&state, |_| {});
    let listed: Vec<usize> = pages.iter().map(|page| page.resources.len()).collect();
    assert_eq!(listed, [RESOURCES_MAX, 10]);
}

#[test]
fn a_page_of_long_texts_ends_before_it_is_too_large() {
    let state = root("x".repeat(4_000));
    ask(&state, "a", numbered(3_000));
    let pages = pages(&state, |_| {});
    assert!(pages.len() > 1);
    assert_eq!(ids(&pages), numbered(3_000).collect::<Vec<_>>());
}

#[test]
fn a_page_ends_before_the_resource_whose_leases_would_be_too_many() {
    let state = root(String::new());
    for client in 0..4_000 {
        ask(&state, &format!("c{client}"), numbered(3));
    }
    let pages = pages(&state, |request| request.leases_max = 5_000);
    assert_eq!(leases(&pages), [vec![4_000, 4_000], vec![4_000]]);
    const { assert!(8_000 < LEASES_MAX && 12_000 > LEASES_MAX) };
}

#[test]
fn leases_with_long_names_do_not_make_a_page_too_large() {
    let state = root(String::new());
    for client in 0..9_900 {
        ask(&state, &format!("{client:0250}"), numbered(1));
    }
    ask(&state, "a", numbered(3));
    for client in 0..3_000 {
        ask(&state, &format!("{client:0250}"), ["r000001".to_owned()]);
    }
    let pages = pages(&state, |request| request.leases_max = u32::MAX);
    assert_eq!(ids(&pages), numbered(3).collect::<Vec<_>>());
    let listed = leases(&pages);
    assert_eq!(listed.len(), 2, "{listed:?}");
    let (first, counted) = (listed[0][0], pages[0].resources[0].leases_count);
    assert!((8_000..9_901).contains(&first), "{first}");
    assert_eq!(counted, 9_901);
    assert_eq!(listed[1], [3_001, 1], "the rest stands on the next page");
}

#[test]
fn pages_go_on_after_a_resource_that_is_gone() {
    let state = root(String::new());
    ask(&state, "a", ["a", "b", "d"].map(str::to_owned));
    let pages = pages(&state, |request| request.token = "c".to_owned());
    assert_eq!(ids(&pages), ["d"]);
}

#[tokio::test]
async fn a_token_that_is_none_is_refused_by_name() {
    let server = start().await;
    let request = GetStatusRequest {
        token: "x".repeat(257),
        ..GetStatusRequest::default()
    };
    let error = admin(&server).await.get_status(request).await;
    let error = error.expect_err("refused");
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().starts_with("token "), "{error}");
    let path = format!("/status?token={}", "x".repeat(257));
    let (code, _, text) = page(&server, &path).await;
    assert!(code == 400 && text.starts_with("token "), "{code} {text}");
}

#[tokio::test]
async fn the_json_has_pages() {
    let server = start().await;
    let mut client = capacity(&server).await;
    for part in 0..5 {
        let asks = (0..500).map(|number| asked(&format!("fair/{part}-{number:03}"), 1.0));
        get(&mut client, "a", asks.collect()).await;
    }
    let (mut path, mut listed) = ("/status".to_owned(), Vec::new());
    loop {
        let status = json(&server, &path).await;
        assert_eq!(status["resources_count"], 2_500);
        listed.push(status["resources"].as_array().unwrap().len());
        let Some(token) = status["next_token"].as_str() else {
            break;
        };
        path = format!("/status?token={}", token.replace('/', "%2F"));
    }
    assert_eq!(listed, [1_000, 1_000, 500]);
    let short = json(&server, "/status?resources=false").await;
    assert_eq!(short["resources"], Value::Array(Vec::new()));
    assert_eq!(short["resources_count"], 2_500);
}

#[test]
fn a_holder_is_searched_over_all_resources_by_a_part_of_its_name() {
    let state = root(String::new());
    // More leases than one page searches.
    for part in 0..16 {
        ask(&state, "other", numbered(8_000).skip(part * 500).take(500));
    }
    let held = ["r000007", "r007999"];
    for client in ["web-1", "web-2"] {
        ask(&state, client, held.map(str::to_owned));
    }
    let search = |holder: &str| {
        let pages = pages(&state, |request| {
            request.holder = holder.to_owned();
            request.leases_max = 10;
        });
        let found = pages.iter().flat_map(|page| &page.resources);
        let found = found.flat_map(|it| it.leases.iter().map(|it| it.holder.clone()));
        (pages.len(), found.collect::<Vec<_>>())
    };
    assert_eq!(
        search("eb-2"),
        (2, ["web-2"; 2].map(str::to_owned).to_vec())
    );
    assert_eq!(search("web").1.len(), 4);
    assert_eq!(search("nobody"), (2, Vec::new()));
    let request = GetStatusRequest {
        resource_id: "r000001".to_owned(),
        holder: "web-1".to_owned(),
        leases_max: 10,
        ..GetStatusRequest::default()
    };
    let status = state.answer(&Query::of(request).unwrap());
    assert_eq!(status.resources[0].leases, []);
}
