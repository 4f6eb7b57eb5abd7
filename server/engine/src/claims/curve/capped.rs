//! Less of a demand curve: up to a level, fewer points, or a part of it.

use crate::claims::{DemandCurve, Point};

impl DemandCurve {
    /// Returns the curve with every claim capped at that level: D(min(w, level)).
    pub(crate) fn cut_at(&self, level: f64) -> Self {
        let below = self.points.iter().take_while(|point| point.level < level);
        let mut points: Vec<Point> = below.copied().collect();
        if points.len() < self.points.len() && level > 0.0 {
            points.push(Point {
                level,
                demand: self.demand_at(level),
            });
        }
        Self::concave(points)
    }

    /// The curve in at most that many of its points, evenly taken; the last one is among them. A chord lies below the
    /// curve.
    pub(crate) fn thinned(&self, points_max: usize) -> Self {
        let len = self.points.len();
        let last_of = |group: usize| self.points.get((group * len / points_max).checked_sub(1)?);
        let kept = (1..=points_max).filter_map(last_of).copied();
        Self {
            points: kept.collect(),
        }
    }

    /// The curve of so large a part of its clients.
    pub fn scaled(&self, part: f64) -> Self {
        let scaled = self.points.iter().map(|point| Point {
            demand: point.demand * part,
            ..*point
        });
        Self {
            points: scaled.collect(),
        }
    }
}
