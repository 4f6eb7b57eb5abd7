//! A handover between two masters of a node: its forms in the engine and in etcd.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::id::ResourceId;
use doorward_engine::node::mastership;
use doorward_session::candidate::store::{Handover, Mark};

/// Largest size of the marks in etcd, in bytes: less than that of a request.
const BYTES_MAX: usize = 1_000_000;

/// Bytes of a mark besides the name of its resource.
const MARK_BYTES: usize = 70;

/// Returns a time that is no shorter after etcd, where times are rounded down to a millisecond.
fn rounded(lasts: Duration) -> Duration {
    match lasts {
        Duration::ZERO => lasts,
        _ => lasts + Duration::from_millis(1),
    }
}

/// Returns a handover for etcd. None: it is too large.
pub(crate) fn to_etcd(handover: &mastership::Handover) -> Option<Handover> {
    // A character of a name needs at most six bytes in JSON.
    let bytes = |id: &ResourceId| 6 * id.as_str().len() + MARK_BYTES;
    if handover.marks.keys().map(bytes).sum::<usize>() > BYTES_MAX {
        return None;
    }
    let marks = handover.marks.iter().map(|(id, mark)| {
        let (amount, lasts) = (mark.amount.get(), rounded(mark.lasts));
        (id.as_str().into(), Mark { amount, lasts })
    });
    Some(Handover {
        marks: marks.collect(),
        others_last: rounded(handover.others_last),
        ..Handover::default()
    })
}

/// Returns a handover from etcd. None: it is invalid.
pub(crate) fn from_etcd(handover: &Handover) -> Option<mastership::Handover> {
    let marks = handover.marks.iter().map(|(id, mark)| {
        let amount = Amount::new(mark.amount).ok()?;
        let lasts = mark.lasts;
        Some((
            ResourceId::new(id).ok()?,
            mastership::Mark { amount, lasts },
        ))
    });
    let marks = marks.collect::<Option<BTreeMap<_, _>>>()?;
    let others_last = handover.others_last;
    Some(mastership::Handover { marks, others_last })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    fn handover(resources: usize, amount: f64, millis: u64) -> mastership::Handover {
        let mark = |number: usize| {
            let id = ResourceId::new(&format!("resource-{number}")).unwrap();
            let (amount, lasts) = (Amount::new(amount).unwrap(), Duration::from_millis(millis));
            (id, mastership::Mark { amount, lasts })
        };
        mastership::Handover {
            marks: (0..resources).map(mark).collect(),
            others_last: Duration::from_millis(millis),
        }
    }

    #[test]
    fn a_handover_is_the_same_after_etcd_and_one_that_is_too_large_is_none() {
        let stored = to_etcd(&handover(100, 0.1 + 0.2, 9_000)).unwrap();
        assert_eq!(from_etcd(&stored), Some(handover(100, 0.1 + 0.2, 9_001)));
        assert_eq!(to_etcd(&handover(10_000, 1.0, 9_000)), None);
    }

    #[test]
    fn an_invalid_handover_is_none() {
        for (id, amount) in [("", 1.0), ("a", -1.0), ("a", f64::INFINITY)] {
            let lasts = Duration::ZERO;
            let marks = [(id.into(), Mark { amount, lasts })].into();
            let handover = Handover {
                marks,
                ..Handover::default()
            };
            assert_eq!(from_etcd(&handover), None, "{id:?} {amount}");
        }
    }
}
