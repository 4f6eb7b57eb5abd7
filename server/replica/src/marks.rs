//! Marks of resources between the node and the candidate: their forms in the engine and in etcd.

use std::collections::BTreeMap;

use doorward_engine::amount::Amount;
use doorward_engine::id::ResourceId;
use doorward_engine::node::Node;
use doorward_engine::node::marks::{FoundMarks, Mark};
use doorward_engine::node::mastership::Term;
use doorward_engine::time::Time;
use doorward_session::candidate::Candidate;
use doorward_session::candidate::store::{MarkRecord, StoredMarks};

/// Begins or goes on with a mastership that keeps marks.
pub(crate) fn begin(candidate: &mut Candidate, node: &mut Node, term: Term, now: Time) {
    let found = candidate.take_found_marks();
    let found = found.as_deref().and_then(from_etcd);
    let is_unknown = found.is_none();
    if node.handle_marked_term(term, found.unwrap_or_default(), now) && is_unknown {
        candidate.forget_marks();
    }
}

/// Begins to write what is due.
pub(crate) fn write(candidate: &mut Candidate, node: &mut Node, now: Time) {
    if let Some(batch) = node.poll_mark_writes(now) {
        let changes = batch.writes.iter();
        let changes = changes.map(|(id, mark)| (id.as_str().into(), mark.map(to_etcd)));
        candidate.write_marks(changes.collect(), batch.count, batch.unmarked_for, now);
    }
}

fn to_etcd(mark: Mark) -> MarkRecord {
    MarkRecord {
        amount: mark.amount.map(Amount::get),
        longest: mark.longest,
    }
}

/// Returns marks from etcd. None: one of them is invalid.
fn from_etcd(stored: &StoredMarks) -> Option<FoundMarks> {
    let marks = stored.marks.iter().map(|(id, record)| {
        let record = record.as_ref()?;
        let amount = match record.amount {
            Some(amount) => Some(Amount::new(amount).ok()?),
            None => None,
        };
        let longest = record.longest;
        Some((ResourceId::new(id).ok()?, Mark { amount, longest }))
    });
    Some(FoundMarks {
        marks: marks.collect::<Option<BTreeMap<_, _>>>()?,
        is_complete: true,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use std::time::Duration;

    use super::*;

    fn stored(id: &str, amount: Option<f64>) -> StoredMarks {
        let longest = Duration::from_secs(60);
        let record = MarkRecord { amount, longest };
        StoredMarks {
            marks: [(id.into(), Some(record))].into(),
            ..StoredMarks::default()
        }
    }

    #[test]
    fn a_mark_is_the_same_after_etcd_and_an_invalid_one_leaves_none() {
        for amount in [Some(0.1 + 0.2), Some(0.0), None] {
            let found = from_etcd(&stored("a", amount)).unwrap();
            let (_, mark) = found.marks.into_iter().next().unwrap();
            assert_eq!(to_etcd(mark).amount, amount);
        }
        for (id, amount) in [
            ("", Some(1.0)),
            ("a", Some(-1.0)),
            ("a", Some(f64::INFINITY)),
        ] {
            assert_eq!(from_etcd(&stored(id, amount)), None, "{id:?} {amount:?}");
        }
        let unreadable = StoredMarks {
            marks: [("a".into(), None)].into(),
            ..StoredMarks::default()
        };
        assert_eq!(from_etcd(&unreadable), None);
    }
}
