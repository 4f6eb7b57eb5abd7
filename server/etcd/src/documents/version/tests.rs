//! Versions as JSON, also those of other programs.

use super::*;

#[test]
fn a_version_is_readable_json_and_comes_back_as_it_was() {
    let version = Version {
        number: 12,
        kind: VersionKind::Rollback { to: 7 },
        who: Some("ann@there".to_owned()),
        when: "2026-11-21T03:04:05Z".to_owned(),
        when_unix_ms: 1_795_230_245_000,
        why: None,
        document: Some("resources: []\n".to_owned()),
    };
    let json = version.to_json();
    assert_eq!(
        json,
        "{\"number\":12,\"kind\":\"rollback\",\"to\":7,\"who\":\"ann@there\",\
             \"when\":\"2026-11-21T03:04:05Z\",\"when_unix_ms\":1795230245000,\"why\":null,\
             \"document\":\"resources: []\\n\"}"
    );
    assert_eq!(
        Recorded::parse(12, json.as_bytes()).version.unwrap(),
        version
    );
}

#[test]
fn versions_of_other_programs_are_read_as_far_as_they_go() {
    let newer = r#"{"number":3,"kind":"copied","of":"x","who":null,"when":"","when_unix_ms":0,
                        "why":null,"document":"d","more":1}"#;
    let read = Recorded::parse(3, newer.as_bytes()).version.unwrap();
    assert_eq!(
        (read.kind, read.document.as_deref()),
        (VersionKind::Other, Some("d"))
    );
    for bad in ["", "{", "[]", "resources: []", "{\"number\":3}"] {
        let error = Recorded::parse(3, bad.as_bytes()).version.unwrap_err();
        assert!(error.starts_with("it cannot be read: "), "{error}");
    }
}

#[test]
fn the_text_of_an_invalid_document_is_recorded_as_far_as_it_goes() {
    let version = Version::found(1, b"a\xffb", UNIX_EPOCH);
    assert_eq!(version.document.as_deref(), Some("a\u{fffd}b"));
    assert!(version.is_of(b"a\xffb"));
    assert!(!version.is_of(b"a"));
}
