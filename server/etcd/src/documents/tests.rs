//! Versions of a document when another program has written meanwhile.

use std::time::UNIX_EPOCH;

use super::*;

fn change(document: &str) -> DocumentEdit<'_> {
    DocumentEdit {
        document,
        kind: VersionKind::Apply,
        who: "ann@there",
        why: Some("more"),
        when: UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
    }
}

fn standing(document: Option<&str>, versions: &[&str]) -> StoredDocument {
    let mut recorded = versions.iter().enumerate().map(|(index, document)| {
        let number = index as u64 + 1;
        Recorded {
            number,
            version: Ok(Version::of(number, &change(document))),
        }
    });
    StoredDocument {
        document: document.map(|document| document.as_bytes().to_vec()),
        mod_revision: 7,
        numbers: (1..=versions.len() as u64).rev().collect(),
        newest: recorded.next_back(),
    }
}

#[test]
fn an_unrecorded_document_becomes_a_version_before_it_is_overwritten() {
    for (document, versions, recorded, added) in [
        (None, &[][..], true, &[(1, "new")][..]),
        (Some("a"), &[], false, &[(1, "a"), (2, "new")]),
        (Some("b"), &["a", "b"], true, &[(3, "new")]),
        (Some("a"), &["a", "b"], false, &[(3, "a"), (4, "new")]),
        (None, &["a"], false, &[(2, "new")]),
    ] {
        let standing = standing(document, versions);
        assert_eq!(standing.is_recorded(), recorded, "{document:?}");
        let versions = standing.versions_for(&change("new")).unwrap();
        let versions: Vec<(u64, &str)> = versions
            .iter()
            .map(|v| (v.number, v.document.as_deref().unwrap()))
            .collect();
        assert_eq!(versions, added, "{document:?}");
    }
}

#[test]
fn a_newest_version_that_cannot_be_read_records_nothing() {
    let mut standing = standing(Some("a"), &["a"]);
    standing.newest = Some(Recorded::parse(1, b"{"));
    assert!(!standing.is_recorded());
    assert_eq!(standing.versions_for(&change("new")).unwrap().len(), 2);
}

#[test]
fn a_history_that_has_come_to_its_last_number_takes_no_version() {
    for (newest, is_full) in [
        (VERSION_MAX - 2, false),
        (VERSION_MAX - 1, true),
        (VERSION_MAX, true),
        (u64::MAX, true),
    ] {
        let mut standing = standing(Some("a"), &["b"]);
        standing.numbers = vec![newest];
        match standing.versions_for(&change("new")) {
            Ok(versions) => assert_eq!((versions.len(), is_full), (2, false)),
            Err(error) => assert_eq!(error, WriteError::NoNumber { newest }, "{is_full}"),
        }
    }
}

#[test]
fn a_small_request_needs_fewer_bytes_than_the_spare_ones() {
    let keys = DocumentKeys::new("/t");
    let version = Version::of(1, &change("x"));
    let bytes = request_bytes(&keys, Some("x"), &[version]);
    assert!(bytes > REQUEST_BYTES_SPARE && bytes < 2 * REQUEST_BYTES_SPARE);
}
