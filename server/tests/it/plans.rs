//! The plan of a change, by gRPC: at the root, for a child server, and for other requests.

use std::collections::BTreeSet;

use doorward_documents::DOCUMENT_BYTES_MAX;
use doorward_engine::id::ResourceId;
use doorward_engine::messages::LeasesFrom;
use doorward_proto::admin::v1::plans_client::PlansClient;
use doorward_proto::admin::v1::{PlanRequest, PlanResponse, PlannedHolder};
use doorward_proto::doorman::ResourceRequest;
use doorward_server::app::Server;
use doorward_server::status::listing::LEASES_PER_LOOK;
use tonic::{Code, Status};

use crate::running::{asked, capacity, channel, eventually, get, start};
use crate::status_pages;
use crate::upstream::child;

/// Templates of which only `fair/*` differs from the test's: it has this capacity.
fn document(capacity: f64) -> String {
    let terms = "lease_length: 1m, refresh_interval: 5s, learning_mode_duration: 0s";
    format!(
        "resources:\n\
         - {{identifier_glob: fair/*, capacity: {capacity}, algorithm: {{kind: FAIR_SHARE, {terms}}}}}\n\
         - {{identifier_glob: bands, capacity: 100, algorithm: {{kind: PRIORITY_BANDS, {terms}}}}}\n"
    )
}

pub(crate) fn request(capacity: f64) -> PlanRequest {
    PlanRequest {
        templates: Some(document(capacity)),
        ..PlanRequest::default()
    }
}

fn without_templates() -> PlanRequest {
    PlanRequest {
        templates: Some("resources: []".to_owned()),
        ..PlanRequest::default()
    }
}

pub(crate) async fn plan(server: &Server, request: PlanRequest) -> Result<PlanResponse, Status> {
    let mut plans = PlansClient::new(channel(server).await);
    Ok(plans.plan(request).await?.into_inner())
}

fn amounts(holders: &[PlannedHolder]) -> Vec<(&str, f64, f64)> {
    let amounts = holders.iter();
    amounts
        .map(|it| (it.holder.as_str(), it.granted, it.planned))
        .collect()
}

#[tokio::test]
async fn a_plan_names_who_loses_and_who_gains_and_changes_nothing() {
    let server = start().await;
    let mut client = capacity(&server).await;
    for (name, wants) in [("a", 10.0), ("b", 30.0), ("c", 60.0)] {
        get(&mut client, name, vec![asked("fair/x", wants)]).await;
        get(&mut client, name, vec![asked("bands", 1.0)]).await;
    }
    let answer = plan(&server, request(60.0)).await.unwrap();
    assert!(answer.is_master);
    assert_eq!(answer.unchanged_count, 1, "bands");
    let [resource] = answer.resources.as_slice() else {
        panic!("{answer:?}");
    };
    assert_eq!(
        (resource.capacity, resource.planned_capacity),
        (100.0, Some(60.0))
    );
    assert_eq!(
        amounts(&resource.losing),
        [("c", 60.0, 25.0), ("b", 30.0, 25.0)]
    );
    assert_eq!(resource.gaining, []);
    let counts = (
        resource.losing_count,
        resource.gaining_count,
        resource.same_count,
    );
    assert_eq!(counts, (2, 0, 1));
    assert_eq!(resource.shrinks_in_ms, Some(5_000));
    assert!(
        resource
            .shrinks_max_ms
            .is_some_and(|it| it > 5_000 && it <= 60_000)
    );
    let why = "fair share: everyone gets at most 25 per client";
    assert_eq!(resource.losing[0].why, why);
    let again = plan(&server, request(60.0)).await.unwrap();
    assert_eq!(again.resources[0].granted, 100.0, "nothing has changed");
    assert_eq!(plan(&server, request(100.0)).await.unwrap().resources, []);
}

#[tokio::test]
async fn a_resource_that_no_template_matches_any_more_leaves_nothing_to_its_clients() {
    let server = start().await;
    get(
        &mut capacity(&server).await,
        "a",
        vec![asked("bands", 10.0)],
    )
    .await;
    let answer = plan(&server, without_templates()).await.unwrap();
    let resource = &answer.resources[0];
    assert_eq!(
        (&resource.planned_template, &resource.planned_algorithm),
        (&None, &None)
    );
    assert_eq!(amounts(&resource.losing), [("a", 10.0, 0.0)]);
}

#[tokio::test]
async fn clients_are_searched_by_name_and_listed_by_pages() {
    let server = start().await;
    let mut client = capacity(&server).await;
    for number in 0..150 {
        get(
            &mut client,
            &format!("c{number}"),
            vec![asked("fair/x", 1.0)],
        )
        .await;
    }
    let listing = PlanRequest {
        resource_id: "fair/x".to_owned(),
        holders_max: 50,
        ..request(75.0)
    };
    let (mut names, mut token) = (Vec::new(), String::new());
    for _page in 0..20 {
        let request = PlanRequest {
            holders_token: token,
            ..listing.clone()
        };
        let mut answer = plan(&server, request).await.unwrap();
        let resource = answer.resources.pop().unwrap();
        assert_eq!(resource.losing.len(), 10);
        assert_eq!(resource.losing_count, 150, "each from 2/3 to 1/2");
        names.extend(resource.holders.into_iter().map(|it| it.holder));
        let Some(next) = resource.next_holders_token else {
            break;
        };
        token = next;
    }
    assert_eq!(names.len(), 150);
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 150, "each once");
    let search = PlanRequest {
        holder: "c14".to_owned(),
        holders_max: 1_000,
        ..listing
    };
    let found = plan(&server, search)
        .await
        .unwrap()
        .resources
        .pop()
        .unwrap();
    // The one whose name is the text comes first, and again where it stands.
    let names: BTreeSet<_> = found.holders.iter().map(|it| &it.holder).collect();
    assert_eq!(names.len(), 11, "c14, c140 to c149");
    assert_eq!(found.holders[0].holder, "c14");
}

#[tokio::test]
async fn a_child_server_says_what_the_planned_lease_gives_its_clients() {
    let root = start().await;
    let leaf = child(&[&root.grpc_address().to_string()]).await;
    let (mut below, mut above) = (capacity(&leaf).await, capacity(&root).await);
    eventually("the leaf has leases", async || {
        let mut answers = Vec::new();
        for (name, wants) in [("a", 10.0), ("b", 60.0)] {
            answers.push(get(&mut below, name, vec![asked("fair/x", wants)]).await);
        }
        let has = |answer: &doorward_proto::doorman::GetCapacityResponse| {
            answer.response.first().map_or(0.0, |it| it.gets.capacity)
        };
        answers.iter().map(has).sum::<f64>() == 70.0
    })
    .await;
    get(&mut above, "c", vec![asked("fair/x", 30.0)]).await;
    let answer = plan(&root, request(60.0)).await.unwrap();
    let resource = &answer.resources[0];
    assert_eq!(amounts(&resource.losing), [("c", 30.0, 25.0)]);
    let [child] = resource.children.as_slice() else {
        panic!("{resource:?}");
    };
    assert_eq!(
        (child.child.as_str(), child.granted, child.planned),
        ("eu", 70.0, 35.0)
    );
    let address = leaf.grpc_address().to_string();
    assert_eq!(child.address.as_ref(), Some(&address));
    let request = PlanRequest {
        leases: vec![child.lease.clone()],
        ..PlanRequest::default()
    };
    let answer = plan(&leaf, request).await.unwrap();
    assert_eq!(answer.node, "eu");
    let resource = &answer.resources[0];
    assert_eq!(amounts(&resource.losing), [("b", 60.0, 25.0)]);
    assert_eq!(resource.same_count, 1);
    let answer = plan(&root, without_templates()).await.unwrap();
    let [child] = answer.resources[0].children.as_slice() else {
        panic!("{answer:?}");
    };
    assert_eq!((child.lease.as_slice(), child.planned), (&[][..], 0.0));
    let request = PlanRequest {
        gone: vec!["fair/x".to_owned()],
        ..PlanRequest::default()
    };
    let answer = plan(&leaf, request).await.unwrap();
    let losing = amounts(&answer.resources[0].losing);
    assert_eq!(losing, [("b", 60.0, 0.0), ("a", 10.0, 0.0)]);
}

/// Guarantees and priorities reach a leaf by its planned lease.
#[tokio::test]
async fn a_planned_lease_has_the_parts_of_priorities() {
    let root = start().await;
    let leaf = child(&[&root.grpc_address().to_string()]).await;
    let mut below = capacity(&leaf).await;
    eventually("the leaf has leases", async || {
        let mut sum = 0.0;
        for (name, priority) in [("low", 0), ("high", 5)] {
            let ask = ResourceRequest {
                priority,
                ..asked("bands", 50.0)
            };
            let answer = get(&mut below, name, vec![ask]).await;
            sum += answer.response.first().map_or(0.0, |it| it.gets.capacity);
        }
        sum == 100.0
    })
    .await;
    let text = document(100.0).replace(
        "identifier_glob: bands, capacity: 100",
        "identifier_glob: bands, capacity: 60",
    );
    let text = text.replace(
        "kind: PRIORITY_BANDS,",
        "kind: PRIORITY_BANDS, parameters: [{name: min_share.0, value: '0.5'}],",
    );
    let request = PlanRequest {
        templates: Some(text),
        ..PlanRequest::default()
    };
    let answer = plan(&root, request).await.unwrap();
    let lease = answer.resources[0].children[0].lease.clone();
    let request = PlanRequest {
        leases: vec![lease],
        ..PlanRequest::default()
    };
    let answer = plan(&leaf, request).await.unwrap();
    let mut losing = amounts(&answer.resources[0].losing);
    losing.sort_by(|a, b| a.0.cmp(b.0));
    assert_eq!(losing, [("high", 50.0, 30.0), ("low", 50.0, 30.0)]);
}

#[tokio::test]
async fn resources_come_by_pages_and_each_once() {
    let server = start().await;
    let mut client = capacity(&server).await;
    let padding = "x".repeat(100);
    let ids: Vec<String> = (0..40)
        .map(|number| format!("fair/{padding}{number:02}"))
        .collect();
    for number in 0..100 {
        let asks = ids.iter().map(|id| asked(id, 1.0)).collect();
        get(&mut client, &format!("{padding}{number}"), asks).await;
    }
    let (mut seen, mut token, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        pages += 1;
        let page = PlanRequest {
            token,
            ..request(50.0)
        };
        let answer = plan(&server, page).await.unwrap();
        seen.extend(answer.resources.into_iter().map(|it| it.resource_id));
        let Some(next) = answer.next_token else {
            break;
        };
        token = next;
    }
    assert_eq!(seen, ids, "{pages} pages");
}

#[tokio::test]
async fn the_largest_document_is_planned() {
    let server = start().await;
    get(
        &mut capacity(&server).await,
        "a",
        vec![asked("fair/x", 10.0)],
    )
    .await;
    let mut text = document(5.0);
    text += &format!("# {}\n", "x".repeat(DOCUMENT_BYTES_MAX - text.len() - 3));
    let request = PlanRequest {
        templates: Some(text),
        ..PlanRequest::default()
    };
    let answer = plan(&server, request).await.unwrap();
    assert_eq!(answer.resources[0].planned, 5.0);
}

#[tokio::test]
async fn what_cannot_be_planned_is_refused_with_the_reason() {
    let root = start().await;
    let leaf = child(&[&root.grpc_address().to_string()]).await;
    let templates = |text: &str| PlanRequest {
        templates: Some(text.to_owned()),
        ..PlanRequest::default()
    };
    let leases = |lease: &[u8]| PlanRequest {
        leases: vec![lease.to_vec()],
        ..PlanRequest::default()
    };
    let id = PlanRequest {
        resource_id: "\n".to_owned(),
        ..request(1.0)
    };
    let token = PlanRequest {
        holders_token: "x".to_owned(),
        ..request(1.0)
    };
    let (invalid, wrong) = (Code::InvalidArgument, Code::FailedPrecondition);
    for (server, request, code, said) in [
        (&root, templates("resources: 5"), invalid, "templates:1:12"),
        (&root, id, invalid, "resource_id"),
        (&root, token, invalid, "holders_token"),
        (&root, leases(b""), wrong, "has no parent"),
        (&root, PlanRequest::default(), invalid, "nothing to plan"),
        (&leaf, PlanRequest::default(), invalid, "nothing to plan"),
        (&leaf, request(1.0), wrong, "ask the root"),
        (&leaf, leases(b"\xff\xff"), invalid, "leases: "),
        (&leaf, leases(b""), invalid, "leases: "),
    ] {
        let refused = plan(server, request).await.unwrap_err();
        assert_eq!(refused.code(), code, "{refused:?}");
        assert!(refused.message().contains(said), "{refused:?}");
    }
}

#[test]
fn the_leases_of_a_resource_are_read_a_little_at_a_time() {
    let state = status_pages::root(String::new());
    for client in 0..1_000 {
        status_pages::ask(&state, &format!("c{client}"), status_pages::numbered(1));
    }
    let id = ResourceId::new(&status_pages::numbered(1).next().unwrap()).unwrap();
    let looks = state.lease_looks(&id, LeasesFrom::Start, "");
    let read: Vec<usize> = looks.map(|(leases, ..)| leases.len()).collect();
    assert_eq!(read.iter().sum::<usize>(), 1_000);
    assert!(read.iter().all(|read| *read <= LEASES_PER_LOOK), "{read:?}");
}
