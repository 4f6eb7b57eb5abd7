//! The demand of a holder: a client's claim, or a child server's demand on behalf of the holders below it.

use std::sync::Arc;

use crate::amount::Amount;
use crate::claims::{Claim, DemandCurve, Level, POINTS_ACCEPTED_MAX, Subclients};

/// The demand of a holder. Cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// The claim of a client.
    Client {
        /// Higher is more important; only PRIORITY_BANDS looks at it.
        priority: i64,
        /// Its wants and subclients.
        claim: Claim,
    },
    /// The demand of a child server, band by band.
    Server(Arc<ServerDemand>),
}

/// The demand of the holders below a child server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerDemand {
    bands: Vec<BandDemand>,
    wants: Amount,
    clients: f64,
}

/// The demand of all holders of one priority together.
#[derive(Clone, Debug, PartialEq)]
pub struct BandDemand {
    /// The priority.
    pub priority: i64,
    /// Number of clients, not below 0.
    pub clients: f64,
    /// Σ wants, as the child sent it.
    pub wants: Amount,
    /// Their demand as a function of the level.
    pub curve: DemandCurve,
}

impl BandDemand {
    pub(super) fn for_each_claim(&self, each: impl FnMut(Claim)) {
        self.curve.claims(self.clients).for_each(each);
    }

    /// Whether it stands for the same claims.
    pub(super) fn has_claims_of(&self, other: &Self) -> bool {
        self.clients.to_bits() == other.clients.to_bits() && self.curve == other.curve
    }

    /// Returns what they take at a water level.
    pub fn at(&self, level: Level) -> f64 {
        match level {
            Level::AboveAll => self.wants.get(),
            Level::At(level) => self.curve.demand_at(level).min(self.wants.get()),
        }
    }
}

impl ServerDemand {
    /// Builds the demand from bands, sorted by priority.
    pub fn new(mut bands: Vec<BandDemand>) -> Self {
        bands.sort_by_key(|band| band.priority);
        Self {
            wants: Amount::from_computed(bands.iter().map(|band| band.wants.get()).sum()),
            clients: bands.iter().map(|band| band.clients).sum(),
            bands,
        }
    }

    /// By rising priority. Several may have the same one.
    pub fn bands(&self) -> &[BandDemand] {
        &self.bands
    }

    /// Σ wants of all bands.
    pub fn wants(&self) -> Amount {
        self.wants
    }

    /// Points of the curves of all bands.
    pub fn points(&self) -> usize {
        self.bands
            .iter()
            .map(|band| band.curve.points().len())
            .sum()
    }

    /// Clients of all bands.
    pub fn clients(&self) -> f64 {
        self.clients
    }

    /// Returns what all bands take together at a water level.
    pub fn at(&self, level: Level) -> f64 {
        match level {
            Level::AboveAll => self.wants.get(),
            Level::At(_) => self.bands.iter().map(|band| band.at(level)).sum(),
        }
    }
}

impl Demand {
    /// Total wants.
    pub fn wants(&self) -> Amount {
        match self {
            Self::Client { claim, .. } => claim.wants,
            Self::Server(demand) => demand.wants,
        }
    }

    /// Number of clients it stands for.
    pub fn clients(&self) -> f64 {
        match self {
            Self::Client { claim, .. } => claim.subclients.get(),
            Self::Server(demand) => demand.clients,
        }
    }

    /// A client's priority, or the highest priority of a child server's bands.
    pub fn priority(&self) -> i64 {
        match self {
            Self::Client { priority, .. } => *priority,
            Self::Server(demand) => demand.bands.last().map_or(0, |band| band.priority),
        }
    }

    /// Returns what it takes at a water level, the same for all priorities.
    pub fn at(&self, level: Level) -> f64 {
        match self {
            Self::Client { claim, .. } => level.share_of(*claim),
            Self::Server(demand) => demand.at(level),
        }
    }

    /// Whether it has claims in that band.
    pub(crate) fn has_band(&self, band: i64) -> bool {
        match self {
            Self::Client { priority, .. } => *priority == band,
            Self::Server(demand) => {
                let bands = &demand.bands;
                bands.binary_search_by_key(&band, |it| it.priority).is_ok()
            }
        }
    }

    /// Calls `each` with each claim it stands for and the claim's priority. Equal demands give the same claims
    /// in the same order.
    pub(crate) fn for_each_claim(&self, mut each: impl FnMut(i64, Claim)) {
        match self {
            Self::Client { priority, claim } => each(*priority, *claim),
            Self::Server(demand) => {
                for band in &demand.bands {
                    band.for_each_claim(|claim| each(band.priority, claim));
                }
            }
        }
    }
}

/// Limits on the demand that counts.
///
/// A child server's demand, as far as it counts: each client up to what a client can have, no more clients than a child
/// server can stand for, and few enough points that all its claims are put in at once.
///
/// Cut at a level b, a curve D(w) becomes D(min(w, b)): what its clients would take if none could have more than b.
/// That is exact for a curve that was not compressed, and never too much. A demand of too many clients is made smaller
/// as a whole: each level stays, with fewer clients at it. Curves of too many points are thinned, which is never too
/// much, either.
#[derive(Clone, Copy, Debug)]
pub struct DemandBounds {
    /// Limit on a client's wants. None: no limit.
    pub wants_max: Option<Amount>,
    /// Limit on a child server's clients.
    pub subclients_max: f64,
}

impl Demand {
    /// Returns the part of the demand within the bounds. None: all of it is.
    pub fn bounded(&self, bounds: DemandBounds) -> Option<Self> {
        match self {
            Self::Client { priority, claim } => {
                let wants = bounds.wants_max.filter(|most| *most < claim.wants)?;
                Some(Self::Client {
                    priority: *priority,
                    claim: Claim { wants, ..*claim },
                })
            }
            Self::Server(demand) => Some(Self::Server(demand.bounded(bounds)?.into())),
        }
    }
}

impl ServerDemand {
    fn bounded(&self, bounds: DemandBounds) -> Option<Self> {
        let points_max = points_per_band(self.bands.len());
        let is_above = |band: &BandDemand| {
            let highest = band.curve.points().last().map_or(0.0, |last| last.level);
            bounds.wants_max.is_some_and(|most| most.get() < highest)
        };
        let has_many = |band: &BandDemand| band.curve.points().len() > points_max;
        let part = Some(bounds.subclients_max.max(Subclients::ONE.get()) / self.clients);
        let part = part.filter(|part| *part < 1.0);
        let counts = |band: &BandDemand| !is_above(band) && !has_many(band);
        if part.is_none() && self.bands.iter().all(counts) {
            return None;
        }
        let bounded = self.bands.iter().map(|band| {
            let mut band = band.clone();
            if let Some(most) = bounds.wants_max.filter(|_| is_above(&band)) {
                band.curve = band.curve.cut_at(most.get());
                let last = band.curve.points().last().map_or(0.0, |last| last.demand);
                band.wants = band.wants.min(Amount::from_computed(last));
            }
            if has_many(&band) {
                band.curve = band.curve.thinned(points_max);
            }
            if let Some(part) = part {
                band.clients *= part;
                band.wants = Amount::from_computed(band.wants.get() * part);
                band.curve = band.curve.scaled(part);
            }
            band
        });
        Some(Self::new(bounded.collect()))
    }
}

/// Points that count of the curve of each of so many bands: as many as of one curve, together.
pub(crate) fn points_per_band(bands: usize) -> usize {
    (POINTS_ACCEPTED_MAX / bands.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::{DemandCurve, Level};

    fn amount(n: f64) -> Amount {
        Amount::new(n).unwrap()
    }

    /// A band of so many clients, with a curve or by counts and sums only.
    fn band(clients: f64, wants: f64, curve: &[(f64, f64)]) -> BandDemand {
        let (levels, demands): (Vec<f64>, Vec<f64>) = curve.iter().copied().unzip();
        BandDemand {
            priority: 0,
            clients,
            wants: amount(wants),
            curve: if curve.is_empty() {
                DemandCurve::of_equals(amount(wants), clients)
            } else {
                DemandCurve::parse(&levels, &demands, amount(wants), clients).unwrap()
            },
        }
    }

    fn bounds(wants_max: Option<f64>, subclients_max: f64) -> DemandBounds {
        DemandBounds {
            wants_max: wants_max.map(amount),
            subclients_max,
        }
    }

    /// Checks the bounded demand of a child: its clients, its wants, and its demand at some levels.
    #[track_caller]
    fn check(band: BandDemand, bounds: DemandBounds, clients: f64, wants: f64, at: &[(f64, f64)]) {
        let demand = Demand::Server(ServerDemand::new(vec![band]).into());
        let bounded = demand.bounded(bounds).unwrap_or(demand);
        assert_eq!((bounded.clients(), bounded.wants().get()), (clients, wants));
        for (level, expected) in at {
            let takes = bounded.at(Level::At(*level));
            let close = (takes - expected).abs() <= 1e-9 * expected;
            assert!(close, "{takes} at {level}, not {expected}");
        }
    }

    #[test]
    fn wants_of_a_client_count_up_to_the_limit_of_a_client() {
        let of = |wants: f64| Demand::Client {
            priority: 3,
            claim: Claim::of_client(amount(wants)),
        };
        assert_eq!(of(50.0).bounded(bounds(Some(20.0), 1.0)), Some(of(20.0)));
        assert_eq!(of(20.0).bounded(bounds(Some(20.0), 1.0)), None);
        assert_eq!(of(1e15).bounded(bounds(None, 1.0)), None);
    }

    #[test]
    fn a_curve_ends_at_what_a_client_can_have() {
        // Nine that want 1, and one that wants 1000.
        let curve = [(1.0, 10.0), (1000.0, 1009.0)];
        let of = || band(10.0, 1009.0, &curve);
        let at = [(0.5, 5.0), (1.0, 10.0), (3.0, 12.0), (1000.0, 29.0)];
        check(of(), bounds(Some(20.0), 100.0), 10.0, 29.0, &at);
        let at = [(0.5, 5.0), (1.0, 5.0)];
        check(of(), bounds(Some(0.5), 100.0), 10.0, 5.0, &at);
        check(
            of(),
            bounds(Some(1000.0), 100.0),
            10.0,
            1009.0,
            &[(1000.0, 1009.0)],
        );
    }

    #[test]
    fn demand_of_counts_and_sums_counts_up_to_the_limit_for_each_client() {
        let at = [(10.0, 40.0), (30.0, 80.0)];
        check(
            band(4.0, 400.0, &[]),
            bounds(Some(20.0), 100.0),
            4.0,
            80.0,
            &at,
        );
        check(
            band(4.0, 60.0, &[]),
            bounds(Some(20.0), 100.0),
            4.0,
            60.0,
            &[(15.0, 60.0)],
        );
    }

    #[test]
    fn too_many_clients_count_as_fewer_with_the_same_wants_each() {
        let crowd = || band(1e12, 3e12, &[]);
        let at = [(1.0, 2e6), (3.0, 6e6), (9.0, 6e6)];
        check(crowd(), bounds(None, 2e6), 2e6, 6e6, &at);
        check(crowd(), bounds(Some(1.0), 2e6), 2e6, 2e6, &[(9.0, 2e6)]);
        check(crowd(), bounds(None, 1e12), 1e12, 3e12, &[(3.0, 3e12)]);
    }

    #[test]
    fn all_bands_together_have_no_more_points_than_one_curve() {
        // Levels 1 to 100, each wanted by one client.
        let demand_at = |level: u32| f64::from(level) * (100.0 - f64::from(level - 1) / 2.0);
        let curve: Vec<_> = (1..=100)
            .map(|level| (f64::from(level), demand_at(level)))
            .collect();
        for (bands, points) in [(1, 100), (10, 100), (11, 93), (1_000, 1)] {
            let bands = (0..bands).map(|priority| BandDemand {
                priority,
                ..band(100.0, demand_at(100), &curve)
            });
            let demand = Demand::Server(ServerDemand::new(bands.collect()).into());
            let bounded = demand.bounded(bounds(None, 1e9));
            let counts = bounded.as_ref().unwrap_or(&demand);
            assert_eq!(counts.wants(), demand.wants());
            assert_eq!(counts.clients(), demand.clients());
            let Demand::Server(counts) = counts else {
                panic!("a server's")
            };
            for counted in counts.bands() {
                assert_eq!(counted.curve.points().len(), points);
                for (level, demand) in &curve {
                    assert!(counted.at(Level::At(*level)) <= *demand);
                }
            }
        }
    }
}
