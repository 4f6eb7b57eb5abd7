//! Retrievers of files, directories and real servers.

mod files;
mod server;

use std::fs;
use std::path::Path;
use std::time::Duration;

use doorward::rules::Rules;
use doorward::rules::source::{Retriever, Status};
use tokio::sync::watch::Receiver;

/// Interval between two reads.
const POLL: Duration = Duration::from_millis(20);

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(15);

fn document(domain: &str, rate: &str) -> String {
    format!("domain: {domain}\ndescriptors:\n- key: user\n  rate_limit: {{rate: {rate}}}\n")
}

/// Replaces a file in one step.
fn write(folder: &Path, name: &str, text: &str) {
    let new = folder.join(".new");
    fs::write(&new, text).unwrap();
    fs::rename(&new, folder.join(name)).unwrap();
}

/// Returns the limit of each rule.
fn limits(rules: &Rules) -> Vec<String> {
    let rules = rules.rules().iter();
    rules
        .map(|rule| format!("{} {}", rule.path, rule.limit))
        .collect()
}

/// Waits until these limits are in force.
async fn until(rules: &mut Receiver<Rules>, expected: &[&str]) {
    let are = |rules: &Rules| limits(rules) == expected;
    let waited = tokio::time::timeout(PATIENCE, rules.wait_for(are)).await;
    let waited = waited.map(|it| it.map(drop));
    assert!(
        matches!(waited, Ok(Ok(()))),
        "{:?}, not {expected:?}",
        limits(&rules.borrow())
    );
}

/// Waits until the status is as expected.
async fn until_status(retriever: &Retriever, is: impl Fn(&Status) -> bool) -> Status {
    let mut statuses = retriever.statuses();
    let waiting = statuses.wait_for(is);
    match tokio::time::timeout(PATIENCE, waiting).await {
        Ok(Ok(status)) => status.clone(),
        _ => panic!("{:?}", retriever.status()),
    }
}
