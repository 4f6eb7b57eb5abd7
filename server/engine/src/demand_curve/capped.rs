//! Reduced demand curves: up to a level, or a part of the clients.

use crate::demand_curve::{DemandCurve, Point};

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

    /// Returns the curve of this part of its clients.
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
