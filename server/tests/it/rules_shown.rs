//! The rules of an agent on its pages, and readiness before they are loaded.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use doorward_edge::asker::Asker;
use doorward_edge::edge::Asked;
use doorward_server::app::ServerConfig;
use doorward_server::edge::EdgeDoors;
use doorward_server::rules::store::RulesPlace;
use serde_json::Value;

use crate::running::{config, eventually, page, started};

const RULES: &str = "
domain: api
descriptors:
- {key: user, rate_limit: {rate: 2/day}}
- {key: path, rate_limit: {rate: 3/day}}
";

/// Interval between two reads of the rules.
const POLL: Duration = Duration::from_millis(20);

/// A file that is cut leaves the domain without a rule.
#[tokio::test]
async fn a_domain_without_valid_rules_since_the_start_is_refused_until_it_has_some() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.d");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("limits.yaml"), "domain: api\ndescriptors:\n").unwrap();
    fs::write(path.join("other.yaml"), RULES.replace("api", "other")).unwrap();
    let server = started(ServerConfig {
        rules: Some(RulesPlace::Directory(path.clone(), POLL)),
        ..config()
    })
    .await;
    let domain = |domain: &'static str| {
        let edge = Arc::clone(server.state().edge().unwrap());
        async move {
            let caller = Asker::new(None, None, None);
            let asked = Asked {
                domain,
                descriptors: &[],
                hits: None,
                caller: &caller,
            };
            edge.is_loaded()
                .then_some(edge.decide(&asked).await.is_allowed)
        }
    };
    eventually("the rules are in force", async || {
        domain("other").await == Some(true)
    })
    .await;
    assert_eq!(domain("api").await, Some(false));
    fs::write(path.join("limits.yaml"), RULES).unwrap();
    eventually("the rules are repaired", async || {
        domain("api").await == Some(true)
    })
    .await;
}

#[tokio::test]
async fn an_agent_is_ready_with_its_rules_and_shows_them_with_refused_versions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.d");
    let server = started(ServerConfig {
        rules: Some(RulesPlace::Directory(path.clone(), POLL)),
        doors: EdgeDoors {
            has_http: true,
            ..EdgeDoors::default()
        },
        ..config()
    })
    .await;
    let ready = async || page(&server, "/readyz").await;
    eventually("the problem of the rules is told", async || {
        let (code, _, why) = ready().await;
        assert_eq!(code, 503, "{why}");
        why.starts_with("the rules are not loaded; ") && why.contains("rules.d")
    })
    .await;
    fs::create_dir(&path).unwrap();
    let file = path.join("api.yaml");
    fs::write(&file, RULES).unwrap();
    eventually("the agent is ready", async || ready().await.0 == 200).await;

    let rules = async || {
        let (_, _, status) = page(&server, "/status").await;
        let status: Value = serde_json::from_str(&status).unwrap();
        assert!(status["rules_problem"].is_null(), "{status}");
        status["rules"][0].clone()
    };
    eventually("the rules are shown", async || {
        rules().await["rules_count"] == 2
    })
    .await;
    let loaded = rules().await;
    assert_eq!(loaded["domain"], "api");
    assert!(loaded["refused_version"].is_null());

    fs::write(&file, "domain: api\nrules: many\n").unwrap();
    eventually("the refused version is shown", async || {
        !rules().await["problem"].is_null()
    })
    .await;
    let refused = rules().await;
    assert_eq!(refused["version"], loaded["version"]);
    assert_ne!(refused["refused_version"], loaded["version"]);
    let (code, _, body) = ready().await;
    assert_eq!(code, 200);
    assert!(
        body.starts_with("ready; rules are refused: api.yaml:2: "),
        "{body}"
    );
}
