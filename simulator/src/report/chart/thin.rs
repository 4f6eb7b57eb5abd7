//! Thinning: of all samples that fall into one column of the screen only those are kept at which some line has its
//! least or its most there, and the first and the last. What is drawn is the same, and no extreme is lost.

use std::collections::BTreeSet;

use crate::report::chart::Series;

/// So many columns a chart has at most.
const COLUMNS: f64 = 700.0;

/// The samples that are kept, by their places.
pub(super) fn kept(times: &[f64], series: &[Series], end_s: f64) -> Vec<usize> {
    let column = |time: &f64| (time / end_s * COLUMNS).floor();
    let mut kept = BTreeSet::new();
    let mut start = 0;
    while let Some(first) = times.get(start) {
        let rest = times.iter().skip(start);
        let same =
            rest.take_while(|time| end_s > 0.0 && column(time).total_cmp(&column(first)).is_eq());
        let end = start + same.count().max(1);
        kept.extend([start, end - 1]);
        for series in series {
            let values = series.values.iter().enumerate().take(end).skip(start);
            let numbers = values.clone().filter(|(_, value)| value.is_finite());
            kept.extend(
                numbers
                    .clone()
                    .map(|it| (it.1, it.0))
                    .min_by(|a, b| a.0.total_cmp(b.0))
                    .map(|it| it.1),
            );
            kept.extend(
                numbers
                    .map(|it| (it.1, it.0))
                    .max_by(|a, b| a.0.total_cmp(b.0))
                    .map(|it| it.1),
            );
            // A gap stays one.
            let mut gaps = values.filter(|(_, value)| !value.is_finite());
            kept.extend(gaps.next().map(|(place, _)| place));
        }
        start = end;
    }
    kept.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::chart::Look;

    fn series(values: Vec<f64>) -> [Series; 1] {
        [Series {
            look: Look::Granted,
            values,
        }]
    }

    #[test]
    fn of_a_hundred_thousand_samples_a_screen_is_kept_and_every_extreme() {
        let times: Vec<f64> = (0..100_000).map(f64::from).collect();
        let mut values: Vec<f64> = times.iter().map(|time| (time / 100.0).sin()).collect();
        (values[77_777], values[12_345]) = (50.0, -50.0);
        let kept = kept(&times, &series(values), 100_000.0);
        assert!(kept.len() < 3_500, "{}", kept.len());
        assert!(kept.contains(&77_777) && kept.contains(&12_345));
        assert!(kept.contains(&0) && kept.contains(&99_999));
    }

    #[test]
    fn a_gap_stays_and_few_samples_all_do() {
        let times: Vec<f64> = (0..5).map(f64::from).collect();
        let values = vec![1.0, f64::NAN, 2.0, 2.0, 2.0];
        assert_eq!(kept(&times, &series(values.clone()), 5.0), [0, 1, 2, 3, 4]);
        let crowded: Vec<f64> = times.iter().map(|time| time / 1e6).collect();
        assert!(kept(&crowded, &series(values), 5.0).contains(&1));
        assert_eq!(kept(&[0.0], &series(vec![1.0]), 0.0), [0]);
    }
}
