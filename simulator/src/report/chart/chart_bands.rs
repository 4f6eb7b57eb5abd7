//! What happened from outside, as it stands behind a chart: times that are shaded because something
//! was wrong, and moments at which something was.

use serde::Serialize;

use crate::recording::{Mark, MarkKind, Nature};

/// So many columns of a screen are enough to distinguish marks.
const COLUMNS: f64 = 1000.0;

/// Marks, sorted into what is drawn alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(in crate::report) struct ChartBands {
    /// From then on averages are taken.
    settled: f64,
    /// From when until when something was wrong.
    wrong: Vec<(f64, f64)>,
    /// When something went wrong at once.
    moments: Vec<f64>,
    /// When something was changed.
    changes: Vec<f64>,
    /// When all that was wrong was over.
    heals: Vec<f64>,
}

impl ChartBands {
    pub(in crate::report) fn new(marks: &[Mark], settled_s: f64, end_s: f64) -> Self {
        let mut bands = Self {
            settled: settled_s,
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
        let column = (end_s / COLUMNS).max(f64::MIN_POSITIVE);
        bands.wrong = joined(bands.wrong, column);
        for moments in [&mut bands.moments, &mut bands.changes, &mut bands.heals] {
            moments.sort_by(f64::total_cmp);
            moments.dedup_by(|later, earlier| *later - *earlier < column);
        }
        bands
    }
}

/// Spans, joined where no gap of a column is between them: thousands become a few.
pub(super) fn joined(mut spans: Vec<(f64, f64)>, column: f64) -> Vec<(f64, f64)> {
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut joined: Vec<(f64, f64)> = Vec::new();
    for (from, until) in spans {
        match joined.last_mut() {
            Some(last) if from < last.1 + column => last.1 = last.1.max(until),
            _ => joined.push((from, until)),
        }
    }
    joined
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
        let bands = ChartBands::new(
            &[
                mark(1.0, Some(3.0), MarkKind::Kill),
                mark(2.0, None, MarkKind::Clock),
                mark(3.0, Some(9.0), MarkKind::Crash),
                mark(4.0, None, MarkKind::Demand),
                mark(5.0, None, MarkKind::Heal),
                mark(f64::NAN, None, MarkKind::Kill),
            ],
            0.0,
            10.0,
        );
        assert_eq!(bands.wrong, [(1.0, 3.0)]);
        assert_eq!(bands.moments, [2.0, 3.0]);
        assert_eq!(bands.changes, [4.0]);
        assert_eq!(bands.heals, [5.0]);
    }

    #[test]
    fn thousands_of_marks_become_a_few() {
        let spans = (0..10_000).map(|i| (f64::from(i) / 20.0, f64::from(i) / 20.0 + 0.01));
        assert_eq!(joined(spans.collect(), 0.5).len(), 1);
        let spans = joined(vec![(5.0, 6.0), (1.0, 2.0)], 0.5);
        assert_eq!(spans, [(1.0, 2.0), (5.0, 6.0)]);
    }
}
