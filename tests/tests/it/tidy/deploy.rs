//! Dashboards and alerts name metrics that servers export, and runbooks that exist.
//!
//! Other tests compare `docs/metrics.md` with the metrics of a server and of an agent.

use std::fs;

use super::{leads_somewhere, named_files, root};

/// Returns the files of dashboards and alerts, each with its name.
fn texts() -> Vec<(String, String)> {
    let of_deploy = |(name, path): (String, _)| {
        let is_one = name.starts_with("server/deploy/prometheus/")
            || name.starts_with("server/deploy/grafana/");
        is_one.then(|| (name, fs::read_to_string(path).unwrap()))
    };
    let files = named_files(".json").chain(named_files(".yaml"));
    files.filter_map(of_deploy).collect()
}

#[test]
fn dashboards_and_alerts_name_metrics_that_servers_export() {
    let docs = fs::read_to_string(root().join("docs/metrics.md")).unwrap();
    let mut count = 0;
    for (file, text) in texts() {
        let ends = |c: char| !c.is_ascii_lowercase() && c != '_';
        for (at, _) in text.match_indices("doorward_") {
            // A recorded series is named level:metric:operation.
            let word = text[at..].split(ends).next().unwrap();
            let is = |name: &str| docs.contains(&format!("\n| `{name}` | "));
            let of_histogram = ["_bucket", "_sum", "_count"].iter().any(|end| {
                let name = word.strip_suffix(end);
                name.is_some_and(|name| docs.contains(&format!("\n| `{name}` | histogram")))
            });
            let is_recorded = text[..at].ends_with(':');
            let is_known = is(word) || of_histogram;
            assert!(is_known || is_recorded, "{file}: {word}");
            count += 1;
        }
    }
    assert!(count > 80, "{count}");
}

#[test]
fn every_alert_has_a_runbook_that_exists_and_tests() {
    let rules = root().join("server/deploy/prometheus/doorward.rules.yaml");
    let rules = fs::read_to_string(rules).unwrap();
    let alerts: Vec<&str> = rules.split("- alert: ").skip(1).collect();
    assert!(alerts.len() > 20);
    let tests = root().join("server/deploy/prometheus/doorward.rules_test.yaml");
    let tests = fs::read_to_string(tests).unwrap();
    for alert in alerts {
        let name = alert.lines().next().unwrap();
        let cases = tests
            .split("- alertname: ")
            .filter(|it| it.lines().next() == Some(name));
        let silent = cases
            .clone()
            .filter(|it| it.contains("exp_alerts: []"))
            .count();
        assert!(silent > 0, "{name}: no test in which it is silent");
        assert!(silent < cases.count(), "{name}: no test in which it fires");
        assert!(alert.contains("      runbook: "), "{name}");
        let url = alert.split("      runbook_url: ").nth(1).expect(name);
        let (_, link) = url.lines().next().unwrap().split_once("/main/").unwrap();
        assert!(
            leads_somewhere(&root().join("README.md"), link),
            "{name}: {link}"
        );
    }
}

#[test]
fn containers_mount_folders_and_no_files() {
    let deploy = root().join("server/deploy");
    let compose = fs::read_to_string(deploy.join("compose.yaml")).unwrap();
    let mounts = compose
        .split('"')
        .filter(|it| it.starts_with('.') && it.ends_with(":ro"));
    let sources: Vec<_> = mounts.filter_map(|it| it.split(':').next()).collect();
    assert!(sources.len() >= 6, "{sources:?}");
    for source in sources {
        assert!(deploy.join(source).is_dir(), "{source}");
    }
    for (name, path) in named_files(".yaml").filter(|(name, _)| name.contains("/kubernetes/")) {
        // It mounts one file of a volume.
        assert!(
            !fs::read_to_string(path).unwrap().contains("subPath"),
            "{name}"
        );
    }
}
