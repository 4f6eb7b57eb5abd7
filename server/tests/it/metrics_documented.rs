//! `docs/metrics.md` lists every metric with its type and its labels, and no others.
//!
//! A test in `tests/tests/it/tidy` compares the names with the source, so that no test misses a metric that is rarely
//! present.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use doorward_server::metrics::format::Format;

use crate::metrics_formats::everything;

/// Returns the type and the labels of every metric by its name, as the docs list them.
fn documented() -> BTreeMap<String, (String, Vec<String>)> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md");
    let text = fs::read_to_string(docs).unwrap();
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let Some(row) = line.strip_prefix("| `doorward_") else {
            continue;
        };
        let row = row.trim_end_matches('|').split('|').map(str::trim);
        let cells: Vec<&str> = row.collect();
        // Other tables have other columns.
        let &[name, kind, labels, means] = cells.as_slice() else {
            continue;
        };
        assert!(!means.trim().is_empty(), "{line}");
        let labels = labels.split(',').map(|it| it.trim().replace('`', ""));
        let mut labels: Vec<String> = labels.filter(|it| !it.is_empty()).collect();
        labels.sort();
        let name = format!("doorward_{}", name.trim_end_matches('`'));
        let row = (kind.to_owned(), labels);
        assert!(found.insert(name.clone(), row).is_none(), "{name} twice");
    }
    found
}

#[test]
fn the_docs_have_every_metric_with_its_type_and_labels() {
    let mut shown = BTreeMap::new();
    for (name, family) in everything(Format::Plain) {
        let kind = match name.ends_with("_info") {
            true => "info".to_owned(),
            false => family.kind,
        };
        shown.insert(name, (kind, family.labels.into_iter().collect::<Vec<_>>()));
    }
    let documented = documented();
    for (name, of_server) in &shown {
        assert_eq!(documented.get(name), Some(of_server), "docs of {name}");
    }
    let unknown: Vec<_> = documented
        .keys()
        .filter(|it| !shown.contains_key(*it))
        .collect();
    assert!(
        unknown.is_empty(),
        "the docs have {unknown:?}, and no server"
    );
}
