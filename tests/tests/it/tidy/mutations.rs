//! The list of mutations fits the code: each text occurs once, and each test exists.

use std::collections::BTreeSet;
use std::fs;

use doorward_tests::mutations;

use super::{files, root};

#[test]
fn every_mutation_changes_one_place_and_has_a_unique_name() {
    let mut names = BTreeSet::new();
    for mutation in mutations::read().unwrap() {
        let text = fs::read_to_string(root().join(&mutation.file)).unwrap();
        let changed = mutation.apply(&text).unwrap();
        assert_ne!(changed, text, "{} changes nothing", mutation.name);
        assert!(names.insert(mutation.name.clone()), "{}", mutation.name);
    }
}

#[test]
fn every_mutation_names_a_test_that_exists() {
    let sources: Vec<(String, String)> = files(".rs")
        .into_iter()
        .map(|file| {
            (
                file.display().to_string(),
                fs::read_to_string(file).unwrap(),
            )
        })
        .collect();
    for mutation in mutations::read().unwrap() {
        let manifest = format!("name = \"{}\"\n", mutation.package());
        let manifests = files("Cargo.toml").into_iter();
        let mut manifests =
            manifests.filter(|it| fs::read_to_string(it).unwrap().contains(&manifest));
        let package = manifests.next().expect(&mutation.test);
        let folder = package.parent().unwrap().display().to_string();
        let filter = mutation.test.split_whitespace().last().unwrap();
        let name = filter.trim_end_matches("::").rsplit("::").next().unwrap();
        let (test, module) = (format!("fn {name}"), format!("mod {name};"));
        let is_found = sources.iter().any(|(file, text)| {
            file.starts_with(&folder) && (text.contains(&test) || text.contains(&module))
        });
        assert!(is_found, "{}: {}", mutation.name, mutation.test);
    }
}
