//! `doorward tree` and `explain` on three levels of real servers, without etcd, also when a region is killed.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, interval};

use doorward_tests::processes::{PATIENCE, Server, doorward, stderr, stdout};
use doorward_tests::template_file::TemplateFile;

fn json(server: &Server, arguments: &[&str]) -> Value {
    let at = ["--server", &server.address, "--output", "json"];
    let output = doorward(&[&at, arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

/// Returns the nodes that the page of a server shows, with their leases.
fn nodes_on_the_page(server: &mut Server) -> Vec<String> {
    let answer = server.get("/tree?id=shared");
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let tree: Vec<Value> = serde_json::from_str(body).unwrap();
    let nodes = tree.iter().map(|it| {
        assert!(it["status"]["resources"][0]["wants"].is_number(), "{it}");
        it["node"].as_str().unwrap().to_owned()
    });
    nodes.collect()
}

/// Waits until the tree below a server is as wanted, and returns it.
async fn tree_until(server: &Server, what: &str, is_it: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let deadline = Instant::now() + PATIENCE;
    let mut looks = interval(Duration::from_millis(50));
    loop {
        looks.tick().await;
        let tree = json(server, &["tree", "shared"]);
        let tree = tree.as_array().unwrap();
        if is_it(tree) {
            return tree.clone();
        }
        assert!(Instant::now() < deadline, "not {what}: {tree:#?}");
    }
}

#[tokio::test]
async fn the_whole_tree_is_shown_and_explained_and_a_killed_region_stays_visible() {
    let templates = TemplateFile::new(
        "resources: [{identifier_glob: shared, capacity: 60, algorithm: {kind: FAIR_SHARE, lease_length: 60s, \
         refresh_interval: 1s, learning_mode_duration: 0s}}]",
    );
    let root = Server::start(&["--templates", &templates.path]);
    let below =
        |parent: &Server, name: &str| Server::start(&["--node", name, "--parent", &parent.address]);
    let eu = below(&root, "eu");
    let pages = ["--http-listen", "127.0.0.1:0"];
    let to_eu = ["--node", "eu-a", "--parent", &eu.address];
    let mut leaf = Server::start(&[&to_eu[..], &pages].concat());
    let other = below(&root, "us");
    for (server, client) in [(&leaf, "web-1"), (&leaf, "web-2"), (&other, "job")] {
        let at = ["--server", server.address.as_str()];
        let ask = ["get", "shared", "50", "--client", client, "--keep"];
        let output = doorward(&[&at[..], &ask[..]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let tree = tree_until(&root, "complete", |tree| {
        let streams = |it: &Value| it["known"]["state"] == "streaming" && it["status"].is_object();
        tree.len() == 4 && tree.iter().skip(1).all(streams)
    })
    .await;
    let nodes: Vec<_> = tree.iter().map(|it| it["node"].as_str().unwrap()).collect();
    assert_eq!(nodes, ["root", "eu", "eu-a", "us"]);
    assert_eq!(tree[1]["address"], *eu.address);
    assert_eq!(tree[2]["above"], serde_json::json!(["root", "eu"]));
    assert_eq!(tree[2]["known"]["clients_count"], 2.0);

    assert_eq!(nodes_on_the_page(&mut leaf), ["root", "eu", "eu-a", "us"]);

    let found = json(&root, &["explain", "shared", "web-2"]);
    let path = found[0]["path"].as_array().unwrap();
    let path: Vec<_> = path.iter().map(|it| it["node"].as_str().unwrap()).collect();
    assert_eq!(path, ["root", "eu", "eu-a"]);
    assert_eq!(found[0]["lease"]["wants"], 50.0);
    let at_eu = doorward(&["--server", &eu.address, "explain", "shared", "web-2"]);
    let said = format!("--server {} explains", root.address);
    assert!(stdout(&at_eu).contains(&said), "{}", stdout(&at_eu));

    let address = eu.address.clone();
    drop(eu);
    let tree = tree_until(&root, "gone", |tree| tree[1]["known"]["state"] == "gone").await;
    assert_eq!(
        (&tree[1]["node"], &tree[1]["address"]),
        (&"eu".into(), &address.into())
    );
    let left = tree[1]["known"]["leases_remaining_ms"].as_u64().unwrap();
    assert!((1_000..=60_000).contains(&left), "{left}");
    assert_eq!(tree[2]["node"], "us");
    // A page asks at most once a second.
    let deadline = Instant::now() + PATIENCE;
    while nodes_on_the_page(&mut leaf) != ["eu-a"] {
        assert!(Instant::now() < deadline, "the leaf is alone");
    }
    let text = stdout(&doorward(&["--server", &root.address, "tree"]));
    assert!(
        text.contains("GONE for ") && text.contains("; its leases last "),
        "{text}"
    );
    let output = doorward(&["--server", &root.address, "explain", "shared", "web-2"]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("not asked: eu: ") && said.contains("; its parent grants it "),
        "{said}"
    );
}
