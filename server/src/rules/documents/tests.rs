//! Documents as they are read, one content after the other.

use std::sync::LazyLock;
use std::time::Duration;

use super::*;
use crate::rules::document::{DOCUMENTS_MAX, TEXTS_BYTES_MAX, check_domain};
use crate::rules::store::RulesPlace;

/// Time of the first read.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn text(domain: &str, rate: &str) -> String {
    let rule = format!("descriptors: [{{key: user, rate_limit: {{rate: {rate}}}}}]");
    format!("domain: {domain}\n{rule}\n")
}

fn found<T: AsRef<[u8]>>(texts: &[(&str, T)]) -> Content {
    let texts = texts.iter();
    let texts = texts.map(|(name, text)| ((*name).to_owned(), text.as_ref().to_vec()));
    Ok(texts.collect())
}

/// Reads a content some seconds after the first one.
fn read<T: AsRef<[u8]>>(documents: &Documents, texts: &[(&str, T)], seconds: u64) -> Documents {
    let now = *START + Duration::from_secs(seconds);
    documents.next(found(texts), &BTreeSet::new(), now)
}

/// Domain, rate in force and first words of the problem of each document.
fn shown(documents: &Documents) -> Vec<String> {
    let all = documents.by_domain.iter().map(|(domain, it)| {
        let rate = it.in_force.as_ref().map_or("nothing", |found| {
            let (_, rate) = found.text.split_once("rate: ").unwrap_or(("", "empty}"));
            rate.split('}').next().unwrap_or_default()
        });
        let problem = it.problem.as_deref().unwrap_or("valid");
        let refused = if it.is_refused { ", refused" } else { "" };
        format!("{domain} {rate}{refused}: {problem}")
    });
    all.collect()
}

#[track_caller]
fn check(documents: &Documents, expected: &[&str]) {
    let shown = shown(documents);
    assert_eq!(shown.len(), expected.len(), "{shown:?}");
    for (shown, expected) in shown.iter().zip(expected) {
        assert!(shown.starts_with(expected), "{shown}, not {expected}");
    }
}

/// Each content follows two valid files, and is read again when a minute has passed.
#[test]
fn all_rules_of_a_domain_go_only_by_a_word() {
    let none = "a 1/s: a.yaml:1: descriptors: there is no rule";
    let gone = "a 1/s: a.yaml: is gone; the rules of a stay";
    let renamed = "a 1/s: a.yaml: domain: is c now, and all rules of a would go";
    let b = ("b.yaml", text("b", "2/s"));
    for (a, at_once, later) in [
        (
            vec![("a.yaml", "domain: a\ndescriptors:\n".to_owned())],
            none,
            vec![none],
        ),
        (
            vec![("a.yaml", "domain: a\ndescriptors: []\n".to_owned())],
            none,
            vec![none],
        ),
        (
            vec![("a.yaml", String::new())],
            "a 1/s: a.yaml:1: ",
            vec!["a 1/s: a.yaml:1: "],
        ),
        (
            vec![("a.yaml", text("a", "much"))],
            "a 1/s: a.yaml:2: ",
            vec!["a 1/s: a.yaml:2: "],
        ),
        (vec![("a.yaml", text("c", "3/s"))], renamed, vec![renamed]),
        (vec![], gone, vec![]),
        (
            vec![("a.yaml", "domain: a\nempty: true\n".to_owned())],
            "a empty: valid",
            vec!["a empty"],
        ),
        (
            vec![("moved.yaml", text("a", "4/s"))],
            "a 4/s: valid",
            vec!["a 4/s: valid"],
        ),
        (
            vec![("moved.yaml", text("a", "much"))],
            "a 1/s: moved.yaml:2: ",
            vec!["a 1/s: moved"],
        ),
    ] {
        let first = [("a.yaml", text("a", "1/s")), b.clone()];
        let first = read(&Documents::default(), &first, 0);
        check(&first, &["a 1/s: valid", "b 2/s: valid"]);
        let next: Vec<_> = a.into_iter().chain([b.clone()]).collect();
        let changed = read(&first, &next, 1);
        check(&changed, &[at_once, "b 2/s: valid"]);
        check(&read(&changed, &next, 60), &[at_once, "b 2/s: valid"]);
        // Otherwise its follower would never read it again.
        let unread = changed.next(Err("away".to_owned()), &BTreeSet::new(), Instant::now());
        assert_eq!(unread.due(), None);
        let later: Vec<_> = later.into_iter().chain(["b 2/s: valid"]).collect();
        check(&read(&changed, &next, 61), &later);
    }
}

#[test]
fn a_folder_that_is_copied_anew_loses_nothing() {
    let files = [("a.yaml", text("a", "1/s")), ("b.yaml", text("b", "2/s"))];
    let first = read(&Documents::default(), &files, 0);
    let without = read::<String>(&first, &[], 1);
    check(
        &without,
        &[
            "a 1/s: a.yaml: is gone; the rules of a stay",
            "b 2/s: b.yaml: is gone",
        ],
    );
    assert_eq!(without.due(), Some(*START + Duration::from_secs(61)));
    assert_eq!(without.versions_in_force(), first.versions_in_force());
    assert_eq!(read(&without, &files, 2), first);
    check(&read::<String>(&without, &[], 61), &[]);
    let removed = BTreeSet::from(["a".to_owned()]);
    check(
        &without.next(found::<String>(&[]), &removed, *START),
        &["b 2/s"],
    );
}

/// A domain without any valid text is refused from the start. A new invalid file changes nothing later.
#[test]
fn the_domain_of_a_text_that_was_never_valid_is_refused() {
    let bad = "domain: api\nrules: {\n";
    let first = read(&Documents::default(), &[("limits.yaml", bad)], 0);
    check(&first, &["api nothing, refused: limits.yaml:"]);
    check(
        &read(&first, &[("limits.yaml", "")], 1),
        &["api nothing, refused"],
    );
    check(
        &read(&first, &[("limits.yaml", text("api", "1/s"))], 1),
        &["api 1/s: valid"],
    );
    // It does not pass because the file is copied anew.
    let gone = read::<String>(&first, &[], 1);
    check(
        &gone,
        &["api nothing, refused: limits.yaml: is gone; requests of api"],
    );
    check(
        &read(&gone, &[("limits.yaml", bad)], 2),
        &["api nothing, refused: limits.yaml:"],
    );
    check(&read::<String>(&gone, &[], 61), &[]);
    let later = read(
        &read::<String>(&Documents::default(), &[], 0),
        &[("limits.yaml", bad)],
        1,
    );
    check(&later, &["api nothing: limits.yaml:"]);
}

#[test]
fn the_domain_is_what_the_text_says_and_has_one_document() {
    let own = ("limits.yml", text("api", "1/s"));
    let first = read(&Documents::default(), std::slice::from_ref(&own), 0);
    check(&first, &["api 1/s: valid"]);
    let copy = ("a-copy.yaml", text("api", "2/s"));
    let both = read(&first, &[copy.clone(), own], 1);
    let twice = "api in a-copy.yaml nothing: a-copy.yaml: domain: api is in limits.yml too";
    check(&both, &["api 1/s: valid", twice]);
    check(&read(&both, &[copy], 2), &["api 2/s: valid"]);
}

#[test]
fn a_place_that_cannot_be_read_and_documents_beyond_the_bounds_change_nothing() {
    let first = read(&Documents::default(), &[("a.yaml", text("a", "1/s"))], 0);
    let names: Vec<String> = (0..=DOCUMENTS_MAX).map(|n| format!("d{n}")).collect();
    let named = names.iter().map(|name| (&**name, text(name, "1/s")));
    let many: Vec<_> = named.collect();
    let large = [("a.yaml", "\n".repeat(TEXTS_BYTES_MAX + 1))];
    for beyond in [found(&many), found(&large), Err("gone".to_owned())] {
        let next = first.next(beyond, &BTreeSet::new(), *START);
        assert_eq!(next.by_domain, first.by_domain);
        assert!(next.problem.is_some());
    }
    assert_eq!(
        read(&Documents::default(), &many[1..], 0).by_domain.len(),
        DOCUMENTS_MAX
    );
}

/// Each watch sends the same bytes, and so do later versions of the documents.
#[test]
fn the_encoded_text_in_force_is_shared() {
    let files = |a, b| [("a.yaml", text("a", a)), ("b.yaml", text("b", b))];
    let first = read(&Documents::default(), &files("1/s", "2/s"), 0);
    let next = read(&first, &files("much", "3/s"), 1);
    let bytes = |of: &Documents, domain| of.by_domain[domain].encoded(domain).as_ptr();
    assert_eq!(bytes(&first, "a"), bytes(&first, "a"));
    assert_eq!(bytes(&first, "a"), bytes(&next, "a"));
    assert_ne!(bytes(&first, "b"), bytes(&next, "b"));
}

#[test]
fn a_name_that_is_no_file_name_is_invalid() {
    for (name, is_valid) in [
        ("login", true),
        ("a.b_c-1", true),
        ("", false),
        (".a", false),
        ("a/b", false),
        ("ä", false),
        (&"a".repeat(101), false),
    ] {
        assert_eq!(check_domain(name).is_ok(), is_valid, "{name:?}");
    }
}

#[test]
fn an_agent_does_not_start_with_rules_that_cannot_be_used() {
    let good = text("api", "1/s");
    for (file, text, problem) in [
        ("limits.yaml", &*good, None),
        ("other.yml", &*good, None),
        ("limits.yaml", "domain: api\nempty: true\n", None),
        (
            "limits.yaml",
            "domain: api\ndescriptors:\n",
            Some("limits.yaml:1: descriptors: there is no rule"),
        ),
        (
            "limits.yaml",
            "domain: api\nrules: 1\n",
            Some("limits.yaml:2: "),
        ),
        (
            "copy.yaml",
            &*good,
            Some("limits.yaml: domain: api is in copy.yaml too"),
        ),
        ("limits.txt", &*good, Some(" has no rules")),
        (
            "large.yaml",
            &*"#".repeat(TEXTS_BYTES_MAX + 1),
            Some("there are 1 documents of"),
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        std::fs::write(&path, text).unwrap();
        if file == "copy.yaml" {
            std::fs::write(folder.path().join("limits.yaml"), text).unwrap();
        }
        let of_folder = RulesPlace::of_files(folder.path().to_owned());
        for (place, told) in [
            (of_folder, problem),
            (
                RulesPlace::of_files(path),
                problem.filter(|_| !["copy.yaml", "limits.txt"].contains(&file)),
            ),
        ] {
            let said = place.err().unwrap_or_default();
            assert_eq!(said.is_empty(), told.is_none(), "{file}: {said}");
            assert!(said.contains(told.unwrap_or_default()), "{file}: {said}");
        }
    }
}
