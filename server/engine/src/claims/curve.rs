//! A demand curve in compressed form, which a child server sends to its parent.
//!
//! D(w) = Σ min(q, w·s) over all claims below is concave, non-decreasing and piecewise linear. A
//! compressed curve keeps some of its corners and joins them by straight lines. A chord of a
//! concave curve lies below it, so a compressed curve may claim too little but never too much.
//!
//! **Choice of corners** (the chord rule for convex functions, as in Rote, *The convergence rate of
//! the sandwich algorithm*, 1992): start with the first and the last corner. Then repeatedly take
//! the chord that is farthest below the curve, relative to the curve, and add the corner that is
//! farthest above it. The curve's slope falls below the chord's at that corner, and the claim index
//! finds it in O(log n). So a curve of K points costs O(K log n) and not O(n). A curve with at most
//! K corners comes out exactly.
//!
//! The sum of curves is the sum of their pieces: each corner becomes one claim (see
//! [`DemandCurve::claims`]) in the parent's index, and the curve of that index is the sum of all.

use thiserror::Error;

use crate::amount::{Amount, AmountError};
use crate::claims::{Claim, ClaimIndex, Subclients};
use crate::rounding::{BEND, FROM_OUTSIDE, IDLE, ON_THE_CURVE, ROUNDED_AWAY};

/// Largest number of corners in a curve that a server sends. On random trees of up to four levels
/// the worst client is then within 0.4 % of flat max-min (`docs/algorithms.md`). It is 1 KiB a
/// band.
pub const POINTS_MAX: usize = 64;

/// Number of holders of a resource from which on their curve has [`POINTS_MAX`] points.
pub const FEW: usize = 100;

/// Corners in a curve, at most, that a server takes from a child; and in all curves of a child's demand together, that
/// count.
pub(crate) const POINTS_ACCEPTED_MAX: usize = 1024;

/// A corner of the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Level per subclient.
    pub level: f64,
    /// Demand of all claims together at that level.
    pub demand: f64,
}

impl Point {
    const ORIGIN: Self = Self {
        level: 0.0,
        demand: 0.0,
    };

    /// Returns the slope of the line from another corner to this one.
    fn slope_from(self, before: Self) -> f64 {
        (self.demand - before.demand) / (self.level - before.level)
    }
}

/// A concave, non-decreasing curve through the origin that is flat beyond its last point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DemandCurve {
    /// Both numbers rise and are above zero. The slopes fall.
    points: Box<[Point]>,
}

/// Reason why numbers from outside are no demand curve.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DemandCurveError {
    /// The numbers of levels and demands differ.
    #[error("has {levels} levels and {demands} demands; give one demand for each level")]
    Lengths {
        /// Number of levels.
        levels: usize,
        /// Number of demands.
        demands: usize,
    },
    /// More than [`POINTS_ACCEPTED_MAX`].
    #[error("has {0} points; at most {POINTS_ACCEPTED_MAX}")]
    TooManyPoints(usize),
    /// A number is no amount.
    #[error("point {point}: {problem}")]
    Number {
        /// Position, counted from 0.
        point: usize,
        /// Reason.
        problem: AmountError,
    },
    /// No claims can have this curve.
    #[error("point {0}: levels must rise, demands must not fall, and the slope must not rise")]
    NotConcave(usize),
    /// The last demand differs from the total wants.
    #[error("ends at {last}, but {wants} is wanted in total")]
    NotTheTotal {
        /// The last demand.
        last: f64,
        /// Total wants.
        wants: f64,
    },
    /// At a low level, each client takes at most the level.
    #[error("takes {demand} at level {level}, more than {clients} clients can")]
    TooFewClients {
        /// Demand at the first point.
        demand: f64,
        /// Level of the first point.
        level: f64,
        /// Number of clients.
        clients: f64,
    },
}

/// A chord between two corners, and the corner of the true curve that is farthest above it.
struct Chord {
    from: Point,
    to: Point,
    farthest: Point,
    /// Distance of that corner above the chord, relative to the curve there.
    gap: f64,
}

impl Chord {
    /// Returns nothing if no corner of the curve is above the chord.
    fn between(from: Point, to: Point, index: &ClaimIndex) -> Option<Self> {
        if to.level <= from.level {
            return None;
        }
        let slope = to.slope_from(from);
        let (level, demand) = index.vertex(slope)?;
        if level <= from.level || level >= to.level || demand <= 0.0 {
            return None;
        }
        let gap = (demand - (from.demand + slope * (level - from.level))) / demand;
        (gap > ON_THE_CURVE).then_some(Self {
            from,
            to,
            farthest: Point { level, demand },
            gap,
        })
    }
}

impl DemandCurve {
    /// Returns the curve of all claims in an index, in at most `points_max` points. O(K log n).
    pub fn of(index: &ClaimIndex, points_max: usize) -> Self {
        let wants = index.total_wants();
        let Some(highest) = index.highest_ratio().filter(|_| wants > 0.0) else {
            return Self::default();
        };
        let last = Point {
            level: highest,
            demand: wants,
        };
        let mut points = Vec::with_capacity(points_max);
        points.push(last);
        // Of equal gaps, the one at the lower level counts as larger.
        let by_gap = |(_, a): &(usize, &Chord), (_, b): &(usize, &Chord)| {
            let order = a.gap.total_cmp(&b.gap);
            order.then(b.from.level.total_cmp(&a.from.level))
        };
        let mut chords = Vec::from_iter(Chord::between(Point::ORIGIN, last, index));
        while points.len() < points_max {
            let Some((worst, _)) = chords.iter().enumerate().max_by(by_gap) else {
                break;
            };
            let Chord {
                from, to, farthest, ..
            } = chords.swap_remove(worst);
            points.push(farthest);
            chords.extend(Chord::between(from, farthest, index));
            chords.extend(Chord::between(farthest, to, index));
        }
        points.sort_by(|a, b| a.level.total_cmp(&b.level));
        // The largest amount bounds each number, which under-estimates. The total bounds each
        // demand: it is a separate sum, and a demand that is a rounding above it would be no valid
        // curve to the parent.
        let most = wants.min(Amount::MAX.get());
        for point in &mut points {
            point.level = point.level.min(Amount::MAX.get());
            point.demand = point.demand.min(most);
        }
        points.dedup_by(|later, earlier| later.level <= earlier.level);
        Self::concave(points)
    }

    /// Returns the curve of equal claims: `wants` in total by `clients` together.
    pub fn of_equals(wants: Amount, clients: f64) -> Self {
        if wants.is_zero() || clients <= 0.0 {
            return Self::default();
        }
        Self {
            points: Box::new([Point {
                level: wants.get() / clients,
                demand: wants.get(),
            }]),
        }
    }

    /// Parses a curve from outside, for this number of clients and their total wants.
    ///
    /// # Errors
    ///
    /// If no such claims can have this curve.
    pub fn parse(
        levels: &[f64],
        demands: &[f64],
        wants: Amount,
        clients: f64,
    ) -> Result<Self, DemandCurveError> {
        if levels.len() != demands.len() {
            return Err(DemandCurveError::Lengths {
                levels: levels.len(),
                demands: demands.len(),
            });
        }
        if levels.len() > POINTS_ACCEPTED_MAX {
            return Err(DemandCurveError::TooManyPoints(levels.len()));
        }
        let mut points: Vec<Point> = Vec::with_capacity(levels.len());
        let (mut before, mut slope_before) = (Point::ORIGIN, f64::INFINITY);
        for (number, (level, demand)) in levels.iter().zip(demands).enumerate() {
            let problem = |problem| DemandCurveError::Number {
                point: number,
                problem,
            };
            // The numbers must be in the range of amounts, but are not rounded like one. A level is
            // a part of an amount, and may be smaller than the smallest.
            Amount::new(*level).map_err(problem)?;
            Amount::new(*demand).map_err(problem)?;
            let point = Point {
                level: *level,
                demand: *demand,
            };
            let slope = point.slope_from(before);
            // The slope of a short chord is only as precise as the demands at its ends.
            let noise = FROM_OUTSIDE * point.demand / (point.level - before.level);
            let rises = point.level > before.level && point.demand >= before.demand;
            if !rises || !slope.is_finite() || slope > slope_before * (1.0 + FROM_OUTSIDE) + noise {
                return Err(DemandCurveError::NotConcave(number));
            }
            (before, slope_before) = (point, slope);
            points.push(point);
        }
        if (before.demand - wants.get()).abs() > FROM_OUTSIDE * wants.get() + ROUNDED_AWAY {
            return Err(DemandCurveError::NotTheTotal {
                last: before.demand,
                wants: wants.get(),
            });
        }
        if let Some(first) = points.first()
            && first.demand > first.level * clients * (1.0 + FROM_OUTSIDE)
        {
            return Err(DemandCurveError::TooFewClients {
                demand: first.demand,
                level: first.level,
                clients,
            });
        }
        Ok(Self::concave(points))
    }

    /// Builds a curve from points whose slopes fall except for roundings. Drops points that do not
    /// bend the curve downwards.
    fn concave(points: Vec<Point>) -> Self {
        let mut kept: Vec<Point> = Vec::with_capacity(points.len());
        for point in points {
            while let Some(last) = kept.last() {
                let before = kept.len().checked_sub(2).and_then(|at| kept.get(at));
                let slope_in = last.slope_from(before.copied().unwrap_or(Point::ORIGIN));
                let slope_out = point.slope_from(*last);
                // A bend may be smaller than the smallest part of a client.
                if slope_in - slope_out > slope_in * BEND {
                    break;
                }
                kept.pop();
            }
            kept.push(point);
        }
        Self {
            points: kept.into_boxed_slice(),
        }
    }

    /// Returns the corners, by rising level.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Returns the demand of all claims together at a level.
    pub fn demand_at(&self, level: f64) -> f64 {
        let position = self.points.partition_point(|point| point.level <= level);
        let before = position.checked_sub(1).and_then(|at| self.points.get(at));
        let from = before.copied().unwrap_or(Point::ORIGIN);
        match self.points.get(position) {
            Some(to) => from.demand + to.slope_from(from) * (level - from.level).max(0.0),
            None => from.demand,
        }
    }

    /// Returns claims that have this curve, `clients` subclients in total. Each corner gives one
    /// claim, with the corner's level as its ratio and the fall of the slope there as its
    /// subclients. One more claim wants nothing, for the clients that the first slope does not
    /// account for.
    pub fn claims(&self, clients: f64) -> impl Iterator<Item = Claim> {
        let mut before = Point::ORIGIN;
        let mut slopes = Vec::with_capacity(self.points.len() + 1);
        for point in &self.points {
            slopes.push(point.slope_from(before));
            before = *point;
        }
        slopes.push(0.0);
        let idle = clients - slopes.first().copied().unwrap_or_default();
        let idle = Subclients::new(idle)
            .ok()
            .filter(|idle| idle.get() > clients * IDLE)
            .map(|subclients| Claim {
                wants: Amount::ZERO,
                subclients,
            });
        let corners: Vec<Claim> = self
            .points
            .iter()
            .zip(slopes.iter().zip(slopes.iter().skip(1)))
            .filter_map(|(point, (slope, after))| {
                let subclients = Subclients::new(slope - after).ok()?;
                let wants = Amount::from_computed(point.level * subclients.get());
                Some(Claim { wants, subclients })
            })
            .collect();
        corners.into_iter().chain(idle)
    }
}

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

#[cfg(test)]
mod tests;
