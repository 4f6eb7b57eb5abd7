//! Retrievers of a file and of a directory.

use std::fs;
use std::sync::Arc;

use doorward::rules::source::Retriever;
use doorward::rules::version_of;
use doorward::rules::{Descriptor, Entry, Limiter, Rules};
use doorward_limits::{ManualClock, Moment};

use super::{POLL, document, until, until_status, write};

#[tokio::test]
async fn a_start_without_valid_rules_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("empty")).unwrap();
    fs::create_dir(at("twice")).unwrap();
    write(&at("twice"), "a.yaml", &document("a", "1/s"));
    write(&at("twice"), "b.yml", &document("a", "1/s"));
    write(folder.path(), "bad.yaml", &document("a", "much"));
    for (source, expected) in [
        (Retriever::file(at("none.yaml")), "none.yaml: No such file"),
        (
            Retriever::file(at("bad.yaml")),
            "bad.yaml:4: rate: much is invalid",
        ),
        (Retriever::file(at("empty")), "it is a directory"),
        (
            Retriever::directory(at("none")),
            "cannot read the directory",
        ),
        (
            Retriever::directory(at("empty")),
            "has no file that ends with .yaml",
        ),
        (Retriever::directory(at("twice")), "b.yml:1: domain: "),
    ] {
        let error = source.start().await.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_file_that_becomes_invalid_leaves_the_last_rules_in_force() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.yaml");
    write(folder.path(), "rules.yaml", &document("a", "1/s"));
    let retriever = Retriever::file(&path).every(POLL).start().await.unwrap();
    let mut rules = retriever.rules();
    until(&mut rules, &["a.user 1/s"]).await;
    let name = path.display().to_string();
    let version = version_of(document("a", "1/s").as_bytes());
    assert_eq!(retriever.status().versions[&name], version);

    write(folder.path(), "rules.yaml", &document("a", "much"));
    let status = until_status(&retriever, |it| it.problem.is_some()).await;
    assert!(status.problem.unwrap().contains("rules.yaml:4: "));
    assert_eq!(status.versions[&name], version);
    until(&mut rules, &["a.user 1/s"]).await;

    // As before: nothing is loaded, and the problem is over.
    write(folder.path(), "rules.yaml", &document("a", "1/s"));
    until_status(&retriever, |it| it.problem.is_none()).await;
    fs::remove_file(&path).unwrap();
    until_status(&retriever, |it| it.problem.is_some()).await;
    write(folder.path(), "rules.yaml", &document("a", "2/s"));
    until(&mut rules, &["a.user 2/s"]).await;
    assert_eq!(retriever.status().problem, None);
}

#[tokio::test]
async fn a_limiter_gets_the_rules_of_all_files_of_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.yaml", &document("a", "1/s"));
    write(folder.path(), ".hidden.yaml", "no document");
    let source = Retriever::directory(folder.path()).every(POLL);
    let mut retriever = source.start().await.unwrap();
    let limiter = Arc::new(Limiter::new(Rules::default(), 10, [1, 2]));
    retriever.drive(Arc::clone(&limiter), ManualClock::new(Moment::ORIGIN));
    let entries = [Entry {
        key: "user",
        value: Some(b"ann"),
    }];
    let descriptor = Descriptor {
        entries: &entries,
        hits: None,
    };
    let allow = |domain| limiter.allow(domain, &[descriptor], Moment::ORIGIN);
    assert!(allow("a"));
    assert!(!allow("a"));

    write(folder.path(), "b.yaml", &document("b", "3/s"));
    write(folder.path(), "a.yaml", &document("a", "2/s"));
    until(&mut retriever.rules(), &["a.user 2/s", "b.user 3/s"]).await;
    // The limiter's own task may come later.
    let passed = async {
        while allow("b") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(super::PATIENCE, passed).await.unwrap();
    assert!(!allow("a"), "a limit that grows keeps its ratio");
}
