//! What happened from outside, as it stands behind a chart: times that are shaded because something
//! was wrong, and moments at which something was.

use crate::recording::{Mark, MarkKind, Nature};

/// Marks, sorted into what is drawn alike.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::report) struct Bands {
    /// From then on averages are taken.
    pub(super) settled_s: f64,
    /// From when until when something was wrong.
    pub(super) wrong: Vec<(f64, f64)>,
    /// When something went wrong at once.
    pub(super) moments: Vec<f64>,
    /// When something was changed.
    pub(super) changes: Vec<f64>,
    /// When all that was wrong was over.
    pub(super) heals: Vec<f64>,
}

impl Bands {
    pub(in crate::report) fn new(marks: &[Mark], settled_s: f64) -> Self {
        let mut bands = Self {
            settled_s,
            ..Self::default()
        };
        for mark in marks.iter().filter(|mark| mark.at_s.is_finite()) {
            match mark.until_s.filter(|until| *until > mark.at_s) {
                _ if mark.kind.nature() == Nature::Heal => bands.heals.push(mark.at_s),
                _ if mark.kind.nature() != Nature::Fault => bands.changes.push(mark.at_s),
                // Some clients are gone for a while: what matters is when, and it would shade much.
                _ if mark.kind == MarkKind::Crash => bands.moments.push(mark.at_s),
                Some(until) => bands.wrong.push((mark.at_s, until)),
                None => bands.moments.push(mark.at_s),
            }
        }
        bands
    }
}

/// Spans on a screen, joined where no gap of a pixel is between them: thousands become a few.
pub(super) fn joined(mut spans: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut joined: Vec<(f64, f64)> = Vec::new();
    for (from, to) in spans {
        // What is shorter than a pixel is shown as one.
        let to = to.max(from + 1.0);
        match joined.last_mut() {
            Some(last) if from < last.1 + 0.5 => last.1 = last.1.max(to),
            _ => joined.push((from, to)),
        }
    }
    joined
}

/// Moments on a screen: one a column.
pub(super) fn columns(moments: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut columns: Vec<f64> = moments.map(f64::round).collect();
    columns.sort_by(f64::total_cmp);
    columns.dedup();
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_sorted_by_how_they_are_drawn() {
        let mark = |at_s, until_s, kind| Mark {
            at_s,
            until_s,
            kind,
            text: String::new(),
        };
        let bands = Bands::new(
            &[
                mark(1.0, Some(3.0), MarkKind::Kill),
                mark(2.0, None, MarkKind::Clock),
                mark(3.0, Some(9.0), MarkKind::Crash),
                mark(4.0, None, MarkKind::Demand),
                mark(5.0, None, MarkKind::Heal),
                mark(f64::NAN, None, MarkKind::Kill),
            ],
            0.0,
        );
        assert_eq!(bands.wrong, [(1.0, 3.0)]);
        assert_eq!(bands.moments, [2.0, 3.0]);
        assert_eq!(bands.changes, [4.0]);
        assert_eq!(bands.heals, [5.0]);
    }

    #[test]
    fn thousands_of_marks_become_a_few() {
        let spans = (0..10_000).map(|i| (f64::from(i) / 20.0, f64::from(i) / 20.0 + 0.01));
        assert_eq!(joined(spans.collect()).len(), 1);
        assert_eq!(
            joined(vec![(5.0, 6.0), (1.0, 2.0)]),
            [(1.0, 2.0), (5.0, 6.0)]
        );
        assert_eq!(columns([3.2, 1.0, 2.9].into_iter()), [1.0, 3.0]);
    }
}
