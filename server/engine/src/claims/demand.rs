//! The demand of a holder: a client's claim, or a child server's demand on behalf of the holders below it.

pub mod bounded;
pub(crate) mod changes;

use std::sync::Arc;

use crate::amount::Amount;
use crate::claims::{Claim, DemandCurve, Level};

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
    fn for_each_claim(&self, each: impl FnMut(Claim)) {
        self.curve.claims(self.clients).for_each(each);
    }

    /// Whether it stands for the same claims.
    fn has_claims_of(&self, other: &Self) -> bool {
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

    /// The bands it has claims in.
    pub fn bands(&self) -> impl Iterator<Item = i64> {
        let (client, server) = match self {
            Self::Client { priority, .. } => (Some(*priority), &[][..]),
            Self::Server(demand) => (None, demand.bands.as_slice()),
        };
        client
            .into_iter()
            .chain(server.iter().map(|band| band.priority))
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
