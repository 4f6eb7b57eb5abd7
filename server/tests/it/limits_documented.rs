//! The docs describe every limit as the table of limits does.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use doorward_server::limits::{DefaultBound, REMOVED, ServerLimit};

fn read(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    fs::read_to_string(docs.join(name)).unwrap()
}

#[test]
fn the_docs_have_the_table_of_limits() {
    let mut rows = String::new();
    for limit in ServerLimit::ALL {
        let (DefaultBound::Fixed(default) | DefaultBound::Computed(default)) =
            limit.default_bound();
        let (flag, name, help) = (limit.texts().flag, limit.texts().name, limit.help());
        writeln!(rows, "| `{flag}` | {default} | `{name}` | {help} |").unwrap();
    }
    let text = read("configuration.md");
    let section = text.split("\n### Limits\n").nth(1).expect("a section");
    let table = section.split_once("| --- | --- | --- | --- |\n").unwrap().1;
    let table = table.split("\n\n").next().unwrap();
    assert_eq!(
        table,
        rows.trim_end(),
        "docs/configuration.md, the table of limits"
    );
}

#[test]
fn what_is_said_of_security_names_every_limit() {
    let text = read("security.md");
    let missing: Vec<&str> = ServerLimit::ALL
        .iter()
        .map(|limit| limit.texts().flag)
        .filter(|flag| !text.contains(&format!("`{flag}`")))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/security.md does not name {missing:?}"
    );
}

#[test]
fn no_page_of_the_docs_names_a_removed_flag() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    for page in fs::read_dir(docs).unwrap() {
        let path = page.unwrap().path();
        if path.extension().is_some_and(|it| it == "md") {
            let text = fs::read_to_string(&path).unwrap();
            for removed in REMOVED {
                let flag = format!("`{}`", removed.0);
                assert!(!text.contains(&flag), "{}: {flag}", path.display());
            }
        }
    }
}
