//! A plan through a tree of real servers: who loses and gains is named by the command line, and what it says happens.

use std::collections::BTreeMap;

use doorward::Mode;
use doorward_tests::candidates::Candidate;
use doorward_tests::crowd::Crowd;
use doorward_tests::processes::{doorward, stdout};
use doorward_tests::template_file::TemplateFile;
use serde_json::Value;

fn document(capacity: f64) -> String {
    format!(
        "resources: [{{identifier_glob: shared, capacity: {capacity}, algorithm: {{kind: FAIR_SHARE, \
         lease_length: 8s, refresh_interval: 1s, learning_mode_duration: 0s}}}}]"
    )
}

fn started(flags: &[&str]) -> Candidate {
    let mut server = Candidate::new(&[flags, &["--refresh-floor", "50ms"]].concat());
    server.start();
    server
}

/// Compares a file with the templates in force, and returns the plan for the resource.
fn planned(root: &Candidate, in_force: &TemplateFile, new: &TemplateFile) -> Value {
    let output = doorward(&[
        "templates",
        "--server",
        &root.address,
        "--at",
        &in_force.path,
        "diff",
        &new.path,
        "--resource",
        "shared",
        "-o",
        "json",
    ]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let shown: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(shown["resources_problem"], Value::Null, "{shown:#}");
    shown["resources"][0].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_plan_of_a_change_names_clients_three_levels_down_and_happens() {
    let templates = TemplateFile::new(&document(100.0));
    let root = started(&["--templates", &templates.path]);
    let region = started(&["--node", "eu", "--parent", &root.address]);
    let leaves = ["eu1", "eu2"].map(|name| started(&["--node", name, "--parent", &region.address]));
    let mut crowd = Crowd::new("shared", 100.0);
    let wants = [5.0, 20.0, 40.0, 60.0, 80.0];
    for (index, wants) in wants.into_iter().enumerate() {
        let server = [&root, &leaves[0], &leaves[1]][index % 3];
        let address = [server.address.clone()];
        crowd.join_as(&format!("c{index}"), &address, wants, Mode::Optimistic);
    }
    let fair = crowd.fair(100.0, |_| true);
    crowd
        .until("all have their shares", || crowd.check(&fair))
        .await;

    for (capacity, loses) in [(60.0, 4), (90.0, 0)] {
        let new = TemplateFile::new(&document(capacity));
        let plan = planned(&root, &templates, &new);
        assert_eq!(plan["clients_count"], 5, "{plan:#}");
        let named: BTreeMap<&str, (&str, f64)> = plan["holders"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| {
                let server = it["server"].as_str().unwrap();
                (
                    it["holder"].as_str().unwrap(),
                    (server, it["planned"].as_f64().unwrap()),
                )
            })
            .collect();
        let servers = ["root", "eu1", "eu2", "root", "eu1"];
        let fair = crowd.fair(capacity, |_| true);
        for (index, (server, share)) in servers.into_iter().zip(&fair).enumerate() {
            let (at, planned) = named[&*format!("c{index}")];
            assert_eq!(at, server);
            assert!((planned - share).abs() <= 1e-3 * share, "{plan:#}");
        }
        let losing = plan["losing"].as_array().unwrap();
        assert_eq!(losing.len(), loses, "{plan:#}");
        templates.write(&document(capacity));
        crowd
            .until("the plan has happened", || crowd.check(&fair))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_server_that_cannot_be_asked_is_named_with_the_reason() {
    let templates = TemplateFile::new(&document(100.0));
    let root = started(&["--templates", &templates.path]);
    let mut leaf = started(&["--node", "eu", "--parent", &root.address]);
    let mut crowd = Crowd::new("shared", 100.0);
    crowd.join(&leaf.address, 80.0, Mode::Optimistic);
    crowd
        .until("it has its share", || crowd.check(&[80.0]))
        .await;
    leaf.kill();
    let new = TemplateFile::new(&document(50.0));
    let plan = planned(&root, &templates, &new);
    assert_eq!(plan["children"][0]["planned"], 50.0, "{plan:#}");
    let unnamed = &plan["unnamed"][0];
    assert_eq!(unnamed[0], "eu");
    let problem = unnamed[1].as_str().unwrap();
    assert!(problem.contains("refused"), "{problem}");
}
