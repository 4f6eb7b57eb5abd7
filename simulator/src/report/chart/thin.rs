//! Thinning: of all points that fall into one column of the screen only the first, the least, the
//! most and the last are kept. What is drawn is the same, to the pixel, and no extreme is lost.

/// A point of a drawing: across, and a value.
pub(super) type Point = (f64, f64);

/// The points of a series, thinned, in runs: a value that is no number interrupts the line.
pub(super) fn runs(points: impl Iterator<Item = Point>) -> Vec<Vec<Point>> {
    let mut runs = Vec::new();
    let mut run = Run::default();
    for (x, value) in points {
        if x.is_finite() && value.is_finite() {
            run.add((x, value));
        } else {
            runs.extend(std::mem::take(&mut run).finish());
        }
    }
    runs.extend(run.finish());
    runs
}

#[derive(Default)]
struct Run {
    kept: Vec<Point>,
    column: Option<Column>,
}

/// What is known of a column; each with its place in the order of points.
struct Column {
    number: f64,
    points: usize,
    first: (usize, Point),
    least: (usize, Point),
    most: (usize, Point),
    last: (usize, Point),
}

impl Run {
    fn add(&mut self, point: Point) {
        let number = point.0.floor();
        match &mut self.column {
            // A whole number, made the same way each time: equal is equal.
            Some(column) if column.number.total_cmp(&number).is_eq() => column.add(point),
            _ => {
                self.flush();
                let at = (0, point);
                self.column = Some(Column {
                    number,
                    points: 1,
                    first: at,
                    least: at,
                    most: at,
                    last: at,
                });
            }
        }
    }

    fn flush(&mut self) {
        if let Some(column) = self.column.take() {
            let mut points = [column.first, column.least, column.most, column.last];
            points.sort_by_key(|(place, _)| *place);
            let mut before = None;
            for (place, point) in points {
                if before != Some(place) {
                    self.kept.push(point);
                }
                before = Some(place);
            }
        }
    }

    fn finish(mut self) -> Option<Vec<Point>> {
        self.flush();
        (!self.kept.is_empty()).then_some(self.kept)
    }
}

impl Column {
    fn add(&mut self, point: Point) {
        let at = (self.points, point);
        self.points += 1;
        if point.1 < self.least.1.1 {
            self.least = at;
        }
        if point.1 > self.most.1.1 {
            self.most = at;
        }
        self.last = at;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_survive() {
        let points = (0..1_000).map(|i| {
            let value = match i {
                333 => 100.0,
                334 => -100.0,
                _ => 1.0,
            };
            (f64::from(i) / 100.0, value)
        });
        let runs = runs(points);
        let [run] = runs.as_slice() else {
            panic!("{runs:?}");
        };
        assert!(run.len() <= 40, "{}", run.len());
        assert!(run.contains(&(3.33, 100.0)) && run.contains(&(3.34, -100.0)));
        assert_eq!(run.first(), Some(&(0.0, 1.0)));
        assert_eq!(run.last(), Some(&(9.99, 1.0)));
        assert!(run.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn what_is_no_number_interrupts() {
        let values = [1.0, f64::NAN, 2.0, 3.0, f64::INFINITY];
        let points = values.into_iter().enumerate();
        let runs = runs(points.map(|(i, value)| (i as f64, value)));
        assert_eq!(runs, [vec![(0.0, 1.0)], vec![(2.0, 2.0), (3.0, 3.0)]]);
        assert!(super::runs(std::iter::empty()).is_empty());
    }
}
