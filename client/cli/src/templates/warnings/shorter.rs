//! Whether a change makes leases shorter in a way that a restarted server cannot know of. Pure.
//!
//! A server that is restarted learns for as long as leases last by its templates. Candidates of an
//! election note for each other in etcd whether leases were longer before. A server without one cannot know
//! after a restart, so the operator has to say it for as long as the old leases last: that is what
//! `learning_mode_duration` is for.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_engine::templates::{Field, Templates};

use super::{TemplateWarning, WarningKind};
use doorward_pages::numbers::typed_span as span;

/// Returns the warnings about shorter leases of templates in a file. None: a restarted server learns for long enough,
/// or the operator has switched learning off.
pub(super) fn findings(old: &Templates, new: &Templates) -> Vec<TemplateWarning> {
    let outlasts = old.outlasts(new);
    let before: BTreeMap<&str, Duration> = old
        .iter()
        .map(|it| (&*it.identifier_glob, it.algorithm.lease_length))
        .collect();
    // If not, it is not known which templates resources took before.
    let has_same_globs = old
        .iter()
        .map(|it| &it.identifier_glob)
        .eq(new.iter().map(|it| &it.identifier_glob));
    let short = new.iter().enumerate().filter_map(|(index, template)| {
        let glob = template.identifier_glob.as_str();
        let former = if has_same_globs {
            before.get(glob).copied()?
        } else {
            outlasts
        };
        let algorithm = &template.algorithm;
        let is_chosen = algorithm.learning_mode_duration < algorithm.lease_length;
        let learns = algorithm.kind.promises_total() && !is_chosen;
        let is_short = learns && algorithm.learning_mode_duration < former;
        is_short.then_some((index, former))
    });
    let findings = short.map(|(index, former)| {
        let length = span(former);
        let message = format!(
            "leases become shorter: a server without an election that is restarted within {length} does \
             not know that longer ones are out, and may grant what they still use. To be safe, set \
             learning_mode_duration: {length} until that time has passed"
        );
        TemplateWarning::new(WarningKind::ShorterLease, index, Field::LeaseLength, message)
    });
    findings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn templates(list: &[(&str, &str)]) -> Templates {
        let mut text = String::from("resources:\n");
        for (glob, rest) in list {
            text += &format!(
                "- {{identifier_glob: {glob:?}, capacity: 100, algorithm: {{kind: FAIR_SHARE, \
                 refresh_interval: 1, {rest}}}}}\n"
            );
        }
        doorward_documents::parse_yaml(&text, "test").unwrap()
    }

    #[test]
    fn who_makes_leases_shorter_learns_what_to_set() {
        let forty = [("a", "lease_length: 40")];
        for (what, old, new, warns) in [
            ("nothing changes", &forty[..], &forty[..], false),
            ("longer", &forty, &[("a", "lease_length: 60")], false),
            ("shorter", &forty, &[("a", "lease_length: 5")], true),
            (
                "shorter, and it learns for long enough",
                &forty,
                &[("a", "lease_length: 5, learning_mode_duration: 40")],
                false,
            ),
            (
                "shorter, and it is not to learn",
                &forty,
                &[("a", "lease_length: 5, learning_mode_duration: 0")],
                false,
            ),
            (
                "a shorter one comes between",
                &[("*", "lease_length: 40")],
                &[("a", "lease_length: 5"), ("*", "lease_length: 40")],
                true,
            ),
        ] {
            let said = findings(&templates(old), &templates(new));
            assert_eq!(!said.is_empty(), warns, "{what}: {said:?}");
        }
    }

    #[test]
    fn it_is_said_for_how_long_and_for_which_templates() {
        let two = |a, b| templates(&[("a", a), ("b", b)]);
        let said = findings(
            &two("lease_length: 40", "lease_length: 60"),
            &two("lease_length: 5", "lease_length: 50"),
        );
        let globs: Vec<usize> = said.iter().filter_map(|it| Some(it.about?.0)).collect();
        assert_eq!(globs, [0, 1], "{said:?}");
        for (finding, length) in said.iter().zip(["40s", "1m"]) {
            let message = &finding.message;
            let within = format!("restarted within {length}");
            let set = format!("set learning_mode_duration: {length} until");
            assert!(message.contains(&within), "{message}");
            assert!(message.contains(&set), "{message}");
        }
    }
}
