//! Every metric of a server stands in `docs/metrics.md`, and nothing else does.
//!
//! Here names are read from the source, so that a metric that is rarely there is not forgotten. Types and labels are
//! compared by a test of the server, which shows all metrics.

use std::collections::BTreeSet;
use std::fs;

use super::{named_files, root};

/// What a call that makes a metric, or an entry of a list of metrics, begins with: a name, then a help in words.
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

/// A help begins with a capital or a digit.
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
