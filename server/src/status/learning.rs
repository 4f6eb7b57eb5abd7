//! Learning mode in words: the resource is in it, the remaining time, and the remedy.
//!
//! Clients without a lease get nothing meanwhile. That looks like a fault to people who do not know learning mode.

use doorward_engine::messages::ResourceSnapshot;
use doorward_pages::numbers::{self, span};
use doorward_session::time::millis;

/// Returns the remedy. `is_root`: the templates that set the length of learning mode are this node's.
const fn advice(is_root: bool) -> &'static str {
    if is_root {
        "It ends by itself. If nobody held anything before, or if more than the capacity may be in use for a lease \
         length, `doorward learning end` ends it now."
    } else {
        "It ends by itself. How long it lasts, the templates of the root say."
    }
}

/// Returns the text for a resource: in learning mode here, or else in a server above, or with leases that are not
/// reported. Absent: none of that.
pub(super) fn of(resource: &ResourceSnapshot) -> Option<String> {
    let upstream = resource.upstream.as_ref();
    let (is_root, advice) = (upstream.is_none(), advice(upstream.is_none()));
    if let Some(left) = resource.learning_remaining {
        let left = remaining(millis(left), is_root);
        let newcomers = match resource.grows {
            true => "get what that leaves",
            false => "wait",
        };
        return Some(format!(
            "learning mode, {left}: holders keep what they say they have, and newcomers {newcomers}. {advice}"
        ));
    }
    if let Some(left) = upstream.and_then(|upstream| upstream.learning_remaining) {
        let left = remaining(millis(left), is_root);
        return Some(format!(
            "learning mode of a server above, {left}: while it only confirms what is out, newcomers wait here, too. \
             {advice}"
        ));
    }
    let left = (resource.unreported_for).filter(|_| resource.unreported > 0.0)?;
    let (amount, left) = (numbers::amount(resource.unreported), span(millis(left)));
    Some(format!(
        "{amount} may be in use by holders that have not reported since the master changed: that much is kept for them \
         until they report, at most {left} more, and everything else is divided.",
    ))
}

/// Returns the remaining time. It is exact at the root; below it, learning mode may end earlier.
pub fn remaining(left_ms: u64, is_root: bool) -> String {
    let bound = if is_root { "" } else { "at most " };
    format!("{bound}{} left", span(left_ms))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use doorward_engine::id::ResourceId;
    use doorward_engine::messages::UpstreamSnapshot;
    use doorward_engine::templates::{AlgorithmKind, Shrink};

    use super::*;

    /// A resource at the root that learns for 41 s.
    fn at_root() -> ResourceSnapshot {
        ResourceSnapshot {
            resource: ResourceId::new("r").unwrap(),
            template: None,
            kind: AlgorithmKind::FairShare,
            shrink: Shrink::Acknowledged,
            lease_length: Duration::from_secs(60),
            refresh_interval: Duration::from_secs(5),
            capacity: 100.0,
            safe_capacity: None,
            wants: 0.0,
            granted: 0.0,
            reserved: 0.0,
            leases: 1,
            children: 0,
            clients: 1.0,
            waiting: 0,
            below_floor: None,
            learning_remaining: Some(Duration::from_secs(41)),
            grows: false,
            unreported: 2.5,
            unreported_for: None,
            mark: None,
            upstream: None,
            budget: None,
        }
    }

    /// The same below the root, where a server above learns for 21 s.
    fn below_it() -> ResourceSnapshot {
        ResourceSnapshot {
            upstream: Some(UpstreamSnapshot {
                expires_in: None,
                share: 0.0,
                knows_algorithm: true,
                in_flight: false,
                refused: None,
                learning_remaining: Some(Duration::from_secs(21)),
            }),
            ..at_root()
        }
    }

    /// The resource without learning mode of its own.
    fn knows(resource: ResourceSnapshot) -> ResourceSnapshot {
        ResourceSnapshot {
            learning_remaining: None,
            ..resource
        }
    }

    #[test]
    fn each_situation_has_its_text() {
        let grows = ResourceSnapshot {
            grows: true,
            ..below_it()
        };
        let unreported = ResourceSnapshot {
            unreported_for: Some(Duration::from_millis(21_000)),
            ..knows(at_root())
        };
        let keeps = "holders keep what they say they have, and newcomers";
        for (resource, expected, also) in [
            (
                at_root(),
                format!("learning mode, 41 s left: {keeps} wait. "),
                "`doorward learning end`",
            ),
            (
                below_it(),
                format!("learning mode, at most 41 s left: {keeps} wait. "),
                "templates of the root",
            ),
            (
                grows,
                format!("learning mode, at most 41 s left: {keeps} get what that leaves. "),
                "templates of the root",
            ),
            (
                knows(below_it()),
                "learning mode of a server above, at most 21 s left: ".to_owned(),
                "newcomers wait here, too",
            ),
            (
                unreported,
                "2.5 may be in use by holders that have not reported".to_owned(),
                "until they report, at most 21 s more",
            ),
        ] {
            let text = of(&resource).unwrap();
            assert!(text.starts_with(&expected) && text.contains(also), "{text}");
        }
        assert_eq!(of(&knows(at_root())), None);
    }
}
