//! Names and texts that try to break out of the page, in every place that shows one.

use std::collections::BTreeMap;

use axum::body::to_bytes;

use super::*;
use crate::status::{
    ChildServerStatus, ChildStatus, ConflictStatus, EtcdStatus, LeaseStatus, LimitStatus,
    OwnLeaseStatus, ParentStatus, ResourceStatus, RuleDecisions, RulesStatus, States, Status,
    TemplateMatch,
};

/// A text that ends attributes, elements, the style sheet and the title, reverses the direction of writing, and hides.
const EVIL: &str = "javascript:x\"'`><script>alert(1)</script></style></title></pre><img src=x \
                    onerror=alert(2)>\u{1b}[2J\u{202e}\u{200b}&lt;\u{7}";

fn evil() -> String {
    EVIL.to_owned()
}

fn resource() -> ResourceStatus {
    ResourceStatus {
        resource_id: evil(),
        template: Some(evil()),
        description: evil(),
        algorithm: Some("PRIORITY_BANDS".to_owned()),
        capacity: 10.0,
        safe_capacity: None,
        wants: 20.0,
        granted: 5.0,
        reserved: 15.0,
        leases_count: 9,
        clients_count: 9,
        waiting_count: 1,
        clients_below_floor: Some(1.0),
        learning_remaining_ms: Some(5_000),
        learning: Some(evil()),
        lease_length_ms: 60_000,
        refresh_interval_ms: 5_000,
        own_lease: Some(OwnLeaseStatus {
            capacity: 1.0,
            share: 2.0,
            outstanding: 3.0,
            expires_in_ms: None,
            is_in_flight: true,
            refusal: Some(evil()),
            parent_learning_remaining_ms: Some(1),
        }),
        children_count: 1,
        children: vec![ChildStatus {
            child: evil(),
            clients_count: 1.0,
            wants: 2.0,
            share: 3.0,
            granted: 1.0,
            reserved: 2.0,
            has: None,
            outstanding: Some(9.0),
            is_learning: true,
            height: 2,
            curve_points: 0,
            expires_in_ms: 1,
            refresh_interval_ms: 1,
            why: evil(),
            wants_more: true,
        }],
        leases: vec![LeaseStatus {
            wants_more: true,
            holder: evil(),
            kind: "client".to_owned(),
            priority: -1,
            subclients: 1.0,
            wants: 2.0,
            share: 1.0,
            granted: 1.0,
            reserved: 2.0,
            expires_in_ms: 1,
            refresh_interval_ms: 1,
            why: evil(),
        }],
    }
}

fn decisions(rule: &str) -> RuleDecisions {
    RuleDecisions {
        domain: evil(),
        rule: rule.to_owned(),
        refused_count: 1,
        ..RuleDecisions::default()
    }
}

fn rules() -> RulesStatus {
    RulesStatus {
        domain: evil(),
        version: Some(evil()),
        rules_count: 1,
        age_ms: 1,
        refused_version: Some(evil()),
        problem: Some(evil()),
    }
}

fn child_server() -> ChildServerStatus {
    ChildServerStatus {
        child: evil(),
        address: Some(evil()),
        state: evil(),
        ..ChildServerStatus::default()
    }
}

fn status(is_master: bool, link: &'static str) -> Status {
    Status {
        templates: Vec::new(),
        node: evil(),
        schema_version: 1,
        version: evil(),
        is_master,
        master_address: Some(evil()),
        master_pages_address: Some(evil()),
        unready: Some(evil()),
        epoch: Some(1),
        uptime_ms: 1,
        templates_source: evil(),
        templates_count: 1,
        templates_problem: Some(evil()),
        learning_remaining_ms: Some(1),
        states: Some(States {
            parent_session: Some(evil()),
            election: Some(evil()),
            child_streams: BTreeMap::from([(evil(), 1)]),
            learning: evil(),
        }),
        etcd: Some(EtcdStatus {
            problem: Some(evil()),
            age_ms: 1,
            mastership_remaining_ms: Some(1),
            mastership_confirmed_ms: Some(1),
        }),
        parent: Some(ParentStatus {
            addresses: vec![evil(), evil()],
            address: evil(),
            link: link.to_owned(),
            link_age_ms: 1,
            problem: Some(evil()),
        }),
        ancestors: vec![evil(), evil()],
        is_in_cycle: true,
        conflicts: vec![ConflictStatus {
            holder: evil(),
            kind: "client".to_owned(),
            age_ms: 1,
        }],
        limits: vec![LimitStatus {
            name: evil(),
            description: evil(),
            flag: evil(),
            unit: 0,
            used: Some(1),
            max: Some(1),
            refused_count: 1,
        }],
        resources_count: Some(1),
        leases_count: Some(1),
        clients_count: Some(1.0),
        waiting_count: Some(1),
        resources: Vec::new(),
        rules: vec![rules()],
        rules_problem: Some(evil()),
        tls_problem: Some(evil()),
        is_exposed: true,
        rule_decisions: vec![decisions("unmatched"), decisions(&evil())],
        template_match: Some(TemplateMatch { glob: Some(evil()) }),
        next_token: Some(evil()),
        address: evil(),
        children: vec![child_server()],
    }
}

/// Returns the text that a browser gets.
async fn text_of(response: Response) -> String {
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn no_name_and_no_text_gets_out_of_its_place_on_any_page() {
    let resource = resource();
    for (is_master, link) in [(true, "stream"), (true, "down"), (false, "poll")] {
        let empty = status(is_master, link);
        let full = Status {
            resources: vec![resource.clone()],
            ..empty.clone()
        };
        for response in [
            page(&pages::Index::new(&empty, true)),
            page(&pages::Index::new(&full, false)),
            page(&pages::LimitsPage::new(&full)),
            page(&pages::ResourcePage::new(&full, &resource)),
            page(&pages::Missing::new(&empty, EVIL)),
        ] {
            let policy = response.headers().get(header::CONTENT_SECURITY_POLICY);
            assert!(
                policy
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .starts_with("default-src 'none'")
            );
            let html = text_of(response).await;
            // Only text is left of them.
            for tag in [
                "<script",
                "<img",
                "onerror=alert(2)>",
                "\"'`",
                "href=\"javascript",
            ] {
                assert!(!html.contains(tag), "{tag} in\n{html}");
            }
            for (element, count) in [("</style>", 1), ("</title>", 1), ("</main>", 1)] {
                assert_eq!(html.matches(element).count(), count, "{element} in\n{html}");
            }
            assert!(html.contains("&#60;script&#62;alert(1)"), "{html}");
            // Invisible characters become visible.
            for hidden in ['\u{1b}', '\u{202e}', '\u{200b}', '\u{7}'] {
                assert!(!html.contains(hidden), "{hidden:?} in\n{html}");
            }
            assert!(html.contains(r"\u{1b}[2J\u{202e}\u{200b}"), "{html}");
        }
    }
}
