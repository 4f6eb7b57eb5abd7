//! Names and texts that try to get out of the page they stand on, in every place where there is one.

use std::collections::BTreeMap;

use axum::body::to_bytes;

use super::*;
use crate::status::conflicts::ConflictStatus;
use crate::status::election::EtcdStatus;
use crate::status::sessions::StatesStatus;
use crate::status::tree::{ChildStatus, OwnLeaseStatus, ParentStatus};
use crate::status::{LeaseStatus, ResourceStatus, Status};

/// Ends attributes, elements, the style sheet and the title; turns the direction; hides.
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
        algorithm: "PRIORITY_BANDS",
        capacity: 10.0,
        safe_capacity: None,
        wants: 20.0,
        granted: 5.0,
        reserved: 15.0,
        leases_count: 9,
        clients_count: 9.0,
        waiting_count: 1,
        learning_remaining_ms: 5_000,
        learning: Some(evil()),
        lease_length_ms: 60_000,
        refresh_interval_ms: 5_000,
        own_lease: Some(OwnLeaseStatus {
            capacity: 1.0,
            share: 2.0,
            outstanding: 3.0,
            expires_in_ms: None,
            is_in_flight: true,
            refused: Some(evil()),
            parent_learns_for_ms: Some(1),
        }),
        children_count: 1,
        children: vec![ChildStatus {
            child: evil(),
            clients: 1.0,
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
        }],
        leases: vec![LeaseStatus {
            holder: evil(),
            kind: "client",
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

fn status(is_master: bool, link: &'static str) -> Status {
    Status {
        node: evil(),
        version: "0",
        is_master,
        master_address: Some(evil()),
        master_pages: Some(evil()),
        unready: Some(evil()),
        epoch: Some(1),
        uptime_ms: 1,
        templates_source: evil(),
        templates: 1,
        templates_problem: Some(evil()),
        learning_remaining_ms: Some(1),
        // Names of ours: nobody else has a say in them.
        states: StatesStatus {
            parent_session: Some("streaming"),
            election: Some("master"),
            child_streams: BTreeMap::from([("open", 1)]),
            learning: "over",
        },
        etcd: Some(EtcdStatus {
            problem: Some(evil()),
            age_ms: 1,
            master_for_ms: Some(1),
        }),
        parent: Some(ParentStatus {
            addresses: vec![evil(), evil()],
            address: evil(),
            link,
            link_age_ms: 1,
            problem: Some(evil()),
        }),
        ancestors: vec![evil(), evil()],
        is_in_cycle: true,
        conflicts: vec![ConflictStatus {
            holder: evil(),
            kind: "client",
            age_ms: 1,
        }],
        resources: Vec::new(),
        limits: None,
    }
}

/// What a browser gets.
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
            page(&pages::Index::new(&empty, &[], 10)),
            page(&pages::Index::new(&full, &[], 10)),
            page(&pages::Resource::new(&full, &resource)),
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
            // All that is left of them is text.
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
            // And what cannot be seen is.
            for hidden in ['\u{1b}', '\u{202e}', '\u{200b}', '\u{7}'] {
                assert!(!html.contains(hidden), "{hidden:?} in\n{html}");
            }
            assert!(html.contains(r"\u{1b}[2J\u{202e}\u{200b}"), "{html}");
        }
    }
}
