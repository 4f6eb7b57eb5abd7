//! Metrics of a server: `docs/metrics.md` has all of them, and no others.
//!
//! Names come from the source, so that a rare metric is not forgotten. A test of the server, which shows all metrics,
//! compares types and labels.

use std::collections::BTreeSet;
use std::fs;

use super::{named_files, root};

/// Returns the names in calls that create a metric, or in lists of metrics: a name, then a help text or a value.
fn named_in(source: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let code = source.split("#[cfg(test)]").next().unwrap();
    let mut rest = code;
    while let Some((_, after)) = rest.split_once('"') {
        let Some((text, after)) = after.split_once('"') else {
            break;
        };
        rest = after;
        let is_name = !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        if is_name && after.starts_with(": ") {
            names.insert(text.to_owned());
        }
        let Some(next) = after.strip_prefix(',').map(str::trim_start) else {
            continue;
        };
        let help = next
            .strip_prefix('"')
            .and_then(|help| help.split('"').next());
        let is_help = help.is_some_and(|help| help.contains(' ') && help.starts_with(is_first));
        if is_name && (is_help || next.starts_with("help,")) {
            names.insert(text.to_owned());
        }
    }
    names
}

/// Returns whether it is the first character of a help text: a capital or a digit.
fn is_first(first: char) -> bool {
    first.is_ascii_uppercase() || first.is_ascii_digit()
}

#[test]
fn the_docs_have_the_metrics_that_are_in_the_source_and_no_others() {
    let mut in_source = BTreeSet::new();
    for (name, path) in named_files(".rs") {
        if name == "server/src/metrics.rs" || name.starts_with("server/src/metrics/") {
            in_source.extend(named_in(&fs::read_to_string(path).unwrap()));
        }
    }
    let docs = fs::read_to_string(root().join("docs/metrics.md")).unwrap();
    let rows = docs.lines().filter_map(|line| {
        let name = line.strip_prefix("| `doorward_")?.split('`').next()?;
        let name = name.strip_suffix("_total").unwrap_or(name);
        let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        is_name.then(|| name.strip_suffix("_info").unwrap_or(name).to_owned())
    });
    let in_docs: BTreeSet<String> = rows.collect();
    let undocumented: Vec<_> = in_source.difference(&in_docs).collect();
    assert!(
        undocumented.is_empty(),
        "not in docs/metrics.md: {undocumented:?}"
    );
    let unknown: Vec<_> = in_docs.difference(&in_source).collect();
    assert!(
        unknown.is_empty(),
        "in docs/metrics.md, and not in the source: {unknown:?}"
    );
    assert!(in_source.len() > 50, "{in_source:?}");
}
