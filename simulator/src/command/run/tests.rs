//! Flags of `what-if`, and the scenario that they make.

use std::time::Duration;

use doorward_engine::templates::{AlgorithmKind, TemplateSpec};

use super::*;

fn templates(learning: Option<u64>) -> Templates {
    let spec = TemplateSpec {
        identifier_glob: Some("some/*".to_owned()),
        capacity: Some(100.0),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(Duration::from_secs(60)),
        refresh_interval: Some(Duration::from_secs(5)),
        learning_mode_duration: learning.map(Duration::from_secs),
        parameters: vec![("shrink".to_owned(), Some("immediate".to_owned()))],
        ..TemplateSpec::default()
    };
    Templates::parse(&[spec]).unwrap()
}

fn flags(capacity_factor: f64, lease_length_s: Option<u64>) -> WhatIfFlags {
    WhatIfFlags {
        capacity_factor,
        lease_length: lease_length_s.map(Duration::from_secs),
    }
}

#[test]
fn without_flags_templates_stay_as_they_are() {
    let flags = flags(1.0, None);
    assert!(flags.is_empty());
    for learning in [None, Some(7)] {
        let before = templates(learning);
        let after = flags.changed(before.iter().map(AsRef::as_ref)).unwrap();
        assert!(before.iter().eq(after.iter()));
    }
}

#[test]
fn learning_mode_follows_the_lease_unless_it_is_its_own() {
    let flags = flags(0.5, Some(90));
    for (learning, expected) in [(None, 90), (Some(60), 90), (Some(7), 7)] {
        let before = templates(learning);
        let changed = flags.changed(before.iter().map(AsRef::as_ref)).unwrap();
        let template = changed.iter().next().unwrap();
        assert_eq!(template.capacity.get(), 50.0);
        assert_eq!(template.algorithm.lease_length.as_secs(), 90);
        let learning = template.algorithm.learning_mode_duration;
        assert_eq!(learning.as_secs(), expected);
    }
}

#[test]
fn a_lease_as_short_as_the_refresh_interval_is_refused() {
    let before = templates(None);
    let error = flags(1.0, Some(5)).changed(before.iter().map(AsRef::as_ref));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("template 1"), "{error}");
}
