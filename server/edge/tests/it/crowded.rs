//! An identity that fills what is its own, or asks for all of a limit: others keep their part.

use std::sync::Arc;

use doorward::rules::{Descriptor, Entry, Limiter, Rules};
use doorward::time::Time;
use doorward_door::caller_id::CallerId;
use doorward_edge::asker::Asker;
use doorward_edge::caller::{By, Caller};
use doorward_edge::edge::Asked;
use doorward_edge::holder::Holder;
use doorward_edge::ids;
use doorward_edge::room::Room;
use doorward_engine::id::{HolderName, Incarnation, ResourceId};
use doorward_engine::templates::glob::Glob;
use doorward_limits::Decision;
use serde_json::json;

use crate::http::{Answering, FakeNode, Site, request};

const BY: By<'_> = By {
    name: "a",
    weight: 1,
    is_safe: true,
    whole: None,
};

fn caller(room: &Arc<Room>) -> Caller {
    let name = HolderName::new("caller:a").unwrap();
    let holder = Holder::new(name, 0, Incarnation::new(1).unwrap(), 1);
    Caller::new("a", holder, Arc::clone(room), Arc::default())
}

#[test]
fn an_identity_without_room_is_refused_and_keeps_what_it_has() {
    // The room of an identity is a quarter: one resource.
    let caller = caller(&Arc::new(Room::new(16 << 10)));
    let take = |resource: &str| caller.take(resource, &BY, 1, Time::from_secs(60));
    assert_eq!(take("shared/api/user=ann"), None, "there is no lease yet");
    let refused = take("shared/api/user=bob");
    assert!(
        matches!(refused, Some(Err(Decision::After(_)))),
        "{refused:?}"
    );
    assert_eq!(take("shared/api/user=ann"), None);
}

#[test]
fn a_long_value_makes_a_short_id_that_matches_the_glob_of_its_rule() {
    let text = "
domain: a/b
descriptors:
- {key: user, scope: shared, rate_limit: {rate: 1/s}}
- {key: user, value: 'x*ü*z', scope: shared, rate_limit: {rate: 1/s}}
- key: tenant
  value: acme
  descriptors:
  - key: token
    hash: true
    descriptors: [{key: path, scope: shared, rate_limit: {rate: 1/s}}]
";
    let limiter = Limiter::new(Rules::load(&[("rules.yaml", text)]).unwrap(), 100, [1, 2]);
    let long = |end: &str| format!("{}{end}", "ü".repeat(4_000));
    let (one, other) = (long("z"), long("yz"));
    let with_x = format!("x{one}");
    let mut ids = Vec::new();
    for entries in [
        vec![("user", &*one)],
        vec![("user", &other)],
        vec![("user", &with_x)],
        vec![("tenant", "acme"), ("token", "t"), ("path", &one)],
        vec![("tenant", "acme"), ("token", &one), ("path", "t")],
        vec![("tenant", "acme"), ("token", "t"), ("path", &other)],
    ] {
        let entries = entries.iter().map(|(key, value)| Entry {
            key,
            value: Some(value.as_bytes()),
        });
        let entries: Vec<_> = entries.collect();
        let descriptors = [Descriptor {
            entries: &entries,
            hits: None,
        }];
        let (descriptor, rule, _) = limiter.shared("a/b", &descriptors, None).remove(0);
        let id = ids::resource("a/b", &descriptor);
        let resource = ResourceId::new(&id).unwrap();
        let glob = ids::glob(&rule);
        assert!(
            Glob::parse(&glob).unwrap().matches(resource.as_str()),
            "{id} {glob}"
        );
        assert!(!ids.contains(&id), "{id}");
        ids.push(id);
    }
    let text = format!(
        "domain: d\ndescriptors:\n- {{key: {}, scope: shared, rate_limit: {{rate: 1/s}}}}\n",
        "k".repeat(250)
    );
    let problems = Rules::load(&[("rules.yaml", &text)]).unwrap_err();
    assert!(
        problems[0].message.contains("needs an id of"),
        "{problems:?}"
    );
}

/// Answers of a site without a lease.
async fn passes(site: &Site, address: u8, path: &str, cost: i64) -> bool {
    let body = json!({"domain": "api", "entries": {"user": "ann"}, "cost": cost});
    let mut request = request("POST", path, body.to_string());
    let address = CallerId::of([192, 0, 2, address].into());
    request.extensions_mut().insert(address);
    site.send(request).await.status.is_success()
}

#[tokio::test]
async fn a_caller_without_a_lease_uses_up_nothing_of_a_shared_limit_by_what_is_refused() {
    for head in ["", "count: attempts\n"] {
        let rules = format!(
            "domain: api\n{head}descriptors:\n- {{key: user, scope: shared, rate_limit: {{rate: 100/day}}}}\n"
        );
        let site = Site::with_rules(&rules);
        assert!(passes(&site, 1, "/v1/charge", i64::MAX).await);
        assert!(!passes(&site, 1, "/v1/check", i64::MAX).await);
        assert!(passes(&site, 2, "/v1/check", 1).await, "{head}");
    }
}

#[tokio::test]
async fn one_request_or_charge_takes_a_quarter_of_what_others_share_at_most() {
    let rules = "domain: api\ndescriptors:\n- {key: user, scope: shared, max_wait: 1min, rate_limit: {rate: 1000/day}}\n";
    let site = || Site::new(rules, FakeNode::new(Answering::Grants(0.001)));
    let alone = site();
    assert!(
        passes(&alone, 1, "/v1/check", 1_000).await,
        "nobody else is there"
    );
    let site = site();
    assert!(passes(&site, 1, "/v1/check", 1).await);
    assert!(passes(&site, 2, "/v1/check", 0).await);
    assert!(!passes(&site, 2, "/v1/check", 251).await);
    assert!(passes(&site, 2, "/v1/check", 250).await);
    assert!(passes(&site, 3, "/v1/check", 0).await);
    for _ in 0..10 {
        assert!(passes(&site, 3, "/v1/charge", 1_000).await);
    }
    for address in 4..6 {
        assert!(passes(&site, address, "/v1/check", 230).await, "{address}");
    }
}

#[tokio::test]
async fn requests_with_many_descriptors_of_one_identity_wait_and_others_go_on() {
    let site =
        Site::with_rules("domain: api\ndescriptors:\n- {key: user, rate_limit: {rate: 1/s}}\n");
    let entries = [Entry {
        key: "path",
        value: None,
    }];
    let descriptors = [Descriptor {
        entries: &entries,
        hits: None,
    }; 100];
    // Whether the decision comes at once.
    let decides = async |address: u8, count: usize| {
        let address = CallerId::of([192, 0, 2, address].into());
        let asked = Asked {
            domain: "api",
            descriptors: &descriptors[..count],
            hits: None,
            caller: &Asker::new(None, None, Some(&address)),
        };
        tokio::select! {
            biased;
            _ = site.edge.decide(&asked) => true,
            () = std::future::ready(()) => false,
        }
    };
    let mut decided = 0;
    while decides(1, 100).await {
        decided += 1;
        assert!(decided < 10_000, "it never waits");
    }
    assert!(decided >= 100, "{decided}");
    assert!(decides(1, 4).await, "few descriptors");
    assert!(decides(2, 100).await, "another identity");
}
