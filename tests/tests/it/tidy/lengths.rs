//! Lengths of files and functions: each is about one thing, and a longer one is about two.

use std::collections::BTreeSet;
use std::fs;

use super::source;

/// Largest number of lines of a file.
const FILE_LINES_MAX: usize = 500;

/// Largest number of lines of a function of shipped code.
const FUNCTION_LINES_MAX: usize = 70;

/// Files that are still too long. Remove a file after shortening it; add none.
const LONG_FILES: &[&str] = &[];

/// Functions that are still too long, by file and name. Remove a function after shortening it; add none.
const LONG_FUNCTIONS: &[(&str, &str)] = &[];

/// Returns code that is only for tests: files, and folders of modules.
fn tests_only() -> Vec<String> {
    let mut found = Vec::new();
    for (name, path) in super::named_files(".rs") {
        let module = name.trim_end_matches(".rs").trim_end_matches("/lib");
        let module = module.trim_end_matches("/main");
        let bare = source::bare(&fs::read_to_string(path).unwrap());
        let modules = source::test_modules(&bare);
        found.extend(modules.map(|it| format!("{module}/{it}")));
    }
    found
}

/// Returns whether a file ships.
fn ships(name: &str, tests_only: &[String]) -> bool {
    let of = |module: &String| {
        let rest = name.strip_prefix(module.as_str());
        rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    };
    name.contains("src/") && !name.ends_with("_tests.rs") && !tests_only.iter().any(of)
}

#[test]
fn no_file_is_about_two_things() {
    let long = super::named_files(".rs").filter(|(_, path)| {
        let text = fs::read_to_string(path).unwrap();
        text.lines().count() > FILE_LINES_MAX
    });
    let long: BTreeSet<String> = long.map(|(name, _)| name).collect();
    let known = LONG_FILES.iter().map(ToString::to_string).collect();
    assert_eq!(long, known, "files of more than {FILE_LINES_MAX} lines");
}

#[test]
fn no_function_does_two_things() {
    let tests_only = tests_only();
    let mut long = BTreeSet::new();
    for (name, path) in super::named_files(".rs").filter(|(name, _)| ships(name, &tests_only)) {
        let text = fs::read_to_string(path).unwrap();
        let functions = source::functions(&source::without_tests(&source::bare(&text)));
        let too_long = functions
            .into_iter()
            .filter(|it| it.lines > FUNCTION_LINES_MAX);
        long.extend(too_long.map(|it| (name.clone(), it.name)));
    }
    let known = LONG_FUNCTIONS
        .iter()
        .map(|(file, name)| ((*file).to_owned(), (*name).to_owned()));
    let known = known.collect();
    assert_eq!(
        long, known,
        "functions of more than {FUNCTION_LINES_MAX} lines"
    );
}
