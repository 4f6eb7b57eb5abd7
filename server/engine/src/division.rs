//! Shares and their reasons: the five algorithms as pure functions.
//!
//! An algorithm sees the claims (through the index, never one by one), the capacity and the demand of one holder. It
//! knows nothing of leases, time or the amounts that others still hold. The module [`crate::resource`] bounds the share
//! by those afterwards. `docs/algorithms.md` explains each algorithm with examples.

pub mod algorithms;
mod grant;
mod supply;

pub(crate) use grant::{DecidedBy, Grant, KnownWhy};
pub use supply::*;

use std::fmt;

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::claims::{Bands, ClaimIndex, Demand, Level, ServerDemand};
pub use crate::division::algorithms::BandShare;
use crate::rounding::SHORTFALL;
use crate::templates::{Algorithm, AlgorithmKind};

/// The outcome of an algorithm: how a capacity is divided among the present claims. It gives every holder's share.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// Every holder gets all it wants: the capacity is enough.
    EnoughForAll,
    /// Every holder gets all it wants, even beyond the capacity.
    NoAlgorithm,
    /// At most this much per client.
    PerClient(f64),
    /// An equal share per client, and a part of the wants beyond it.
    Proportional {
        /// Equal share per client.
        equal_share: f64,
        /// Part of the wants beyond the equal share, from 0 to 1.
        top_up: f64,
    },
    /// At most this much per subclient.
    Level(f64),
    /// Bands and their shares, by falling priority. Every other band gets nothing. A client's request needs only one.
    Bands(SmallVec<[(i64, BandShare); 1]>),
}

impl Rule {
    /// Returns the share of a holder with this demand, once all holders have shrunk or grown to theirs: from 0 to what it
    /// wants.
    pub fn share_of(&self, demand: &Demand) -> Amount {
        let amount = match *self {
            Self::EnoughForAll | Self::NoAlgorithm => demand.wants().get(),
            Self::PerClient(level) | Self::Level(level) => demand.at(Level::At(level)),
            Self::Proportional {
                equal_share,
                top_up,
            } => {
                let own = demand.at(Level::At(equal_share));
                own + (demand.wants().get() - own).max(0.0) * top_up
            }
            Self::Bands(_) => match demand {
                Demand::Client { priority, claim } => {
                    let share = self.band(*priority);
                    share.map_or(0.0, |share| share.level.share_of(*claim))
                }
                Demand::Server(server) => self.split(server).map(|(_, amount)| amount).sum(),
            },
        };
        Amount::from_computed(amount).min(demand.wants())
    }

    /// Returns the reason for that share.
    pub fn reason_for(&self, demand: &Demand) -> Reason {
        match *self {
            Self::EnoughForAll => Reason::EnoughForAll,
            Self::NoAlgorithm => Reason::NoAlgorithm,
            Self::PerClient(capacity) => Reason::PerClient { capacity },
            Self::Proportional {
                equal_share,
                top_up,
            } => Reason::Proportional {
                equal_share,
                top_up,
            },
            Self::Level(level) => Reason::FairLevel { level },
            Self::Bands(_) => match demand {
                Demand::Client { priority, .. } => match self.band(*priority) {
                    Some(share) if share.level != Level::AboveAll => Reason::BandLevel(share),
                    _ => Reason::BandSatisfied,
                },
                Demand::Server(server) => {
                    let parts = self.split(server).zip(server.bands());
                    let parts = parts.map(|((priority, gets), band)| (priority, gets, band.wants));
                    Reason::ByBand(parts.rev().collect())
                }
            },
        }
    }

    /// Returns the number of clients whose shares are below both `floor` and their wants. O(bands · log n).
    pub(crate) fn clients_below(&self, floor: f64, bands: &Bands) -> f64 {
        // Clients that want more than a level.
        let above = |index: &ClaimIndex, level: f64| index.line_at(level).subclients;
        let is_below = |level: f64| level < floor * (1.0 - SHORTFALL);
        let below = |(band, index): (i64, &ClaimIndex)| match *self {
            Self::PerClient(level) | Self::Level(level) if is_below(level) => above(index, level),
            Self::Proportional {
                equal_share,
                top_up,
            } if is_below(equal_share) => {
                // Beyond these wants, the part of them reaches the floor.
                let reached = equal_share + (floor - equal_share) / top_up;
                above(index, equal_share) - above(index, reached)
            }
            Self::Bands(_) => match self.band(band).map(|share| share.level) {
                Some(Level::At(level)) if is_below(level) => above(index, level),
                _ => 0.0,
            },
            _ => 0.0,
        };
        bands.iter().map(below).sum()
    }

    /// Returns a rule that gives no holder more than either of the two.
    pub(crate) fn stricter(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::EnoughForAll | Self::NoAlgorithm, rule)
            | (rule, Self::EnoughForAll | Self::NoAlgorithm) => rule.clone(),
            (Self::Bands(shares), Self::Bands(_)) => {
                let both = shares.iter().filter_map(|(band, share)| {
                    let other = other.band(*band)?;
                    Some((*band, share.stricter(other)))
                });
                Self::Bands(both.collect())
            }
            _ => match (self.equal_and_top_up(), other.equal_and_top_up()) {
                // A smaller equal share and a smaller top-up each only lower a share.
                (Some((equal, top_up)), Some((other_equal, other_top_up))) => Self::Proportional {
                    equal_share: equal.min(other_equal),
                    top_up: top_up.min(other_top_up),
                },
                // The two algorithms cannot be compared: no holder gets anything.
                _ => Self::Level(0.0),
            },
        }
    }

    /// Returns the equal share per client and the part of the wants beyond it, if the rule has them.
    fn equal_and_top_up(&self) -> Option<(f64, f64)> {
        match *self {
            Self::PerClient(level) | Self::Level(level) => Some((level, 0.0)),
            Self::Proportional {
                equal_share,
                top_up,
            } => Some((equal_share, top_up)),
            _ => None,
        }
    }

    /// Returns the present levels of a client's band: see [`Levels`].
    pub(crate) fn levels(&self, priority: i64) -> Levels {
        let (satisfied, short) = match *self {
            Self::EnoughForAll | Self::NoAlgorithm => (f64::INFINITY, f64::INFINITY),
            Self::PerClient(level) | Self::Level(level) => (level, level),
            Self::Proportional {
                equal_share,
                top_up,
            } => (equal_share, equal_share * (1.0 + top_up)),
            Self::Bands(_) => match self.band(priority).map(|share| share.level) {
                Some(Level::AboveAll) => (f64::INFINITY, f64::INFINITY),
                Some(Level::At(level)) => (level, level),
                None => (0.0, 0.0),
            },
        };
        Levels { satisfied, short }
    }

    fn band(&self, priority: i64) -> Option<BandShare> {
        let Self::Bands(shares) = self else {
            return None;
        };
        let place = shares.binary_search_by(|(band, _)| priority.cmp(band));
        shares.get(place.ok()?).map(|(_, share)| *share)
    }

    /// Splits a child server's share over its bands, in their order.
    pub(crate) fn split<'a>(
        &'a self,
        demand: &'a ServerDemand,
    ) -> impl DoubleEndedIterator<Item = (i64, f64)> + ExactSizeIterator + 'a {
        demand.bands().iter().map(|band| {
            let amount = match self {
                Self::EnoughForAll => band.wants.get(),
                _ => self
                    .band(band.priority)
                    .map_or(0.0, |share| band.at(share.level)),
            };
            (band.priority, amount)
        })
    }

    /// Divides the capacity of a child server among its bands as the rule divides its share. Empty if that is 0.
    pub(crate) fn bands_of(&self, demand: &ServerDemand, capacity: Amount) -> Vec<(i64, Amount)> {
        let total: f64 = self.split(demand).map(|(_, amount)| amount).sum();
        let part = capacity.get() / total.max(f64::MIN_POSITIVE);
        let bands = self.split(demand).filter(|_| total > 0.0);
        bands
            .map(|(band, amount)| (band, Amount::from_computed(amount * part)))
            .collect()
    }

    /// Returns the capacity per client that a child server needs besides its own part: see
    /// [`crate::division::ParentTerms::per_client`].
    pub(crate) fn per_client(&self) -> Option<Amount> {
        match self {
            Self::PerClient(capacity) => Some(Amount::from_computed(*capacity)),
            Self::Proportional { equal_share, .. } => Some(Amount::from_computed(*equal_share)),
            _ => None,
        }
    }
}

/// The present levels of a band: a client's lease is to shrink if its level is above them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Levels {
    /// Largest wants per subclient of a client that has all it wants.
    pub(crate) satisfied: f64,
    /// Level of the clients that have less: an amount per subclient, which for PROPORTIONAL_SHARE grows with the part of
    /// the wants.
    pub(crate) short: f64,
}

/// Reason for the amount of a share.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// The capacity is enough for all holders.
    EnoughForAll,
    /// NO_ALGORITHM: every holder gets all it wants.
    NoAlgorithm,
    /// STATIC: at most the capacity per client.
    PerClient {
        /// The template's capacity.
        capacity: f64,
    },
    /// PROPORTIONAL_SHARE: an equal share per client, then a part of the wants beyond it.
    Proportional {
        /// Capacity divided by the number of clients.
        equal_share: f64,
        /// Part of the wants beyond the equal share, from 0 to 1.
        top_up: f64,
    },
    /// FAIR_SHARE: every holder gets at most the level.
    FairLevel {
        /// Per client.
        level: f64,
    },
    /// PRIORITY_BANDS: at most the level among the clients of the same priority.
    BandLevel(BandShare),
    /// PRIORITY_BANDS: the holder's band gets all it wants, other bands do not.
    BandSatisfied,
    /// PRIORITY_BANDS, a child server: each of its bands gets its own part. From the highest priority down: priority,
    /// part and wants.
    ByBand(Vec<(i64, f64, Amount)>),
    /// The division at the holder's last ask. Only on status pages.
    DividedBefore,
    /// BUDGET: what is left is divided by need, and a holder with a stream gets its share of a quarter of it.
    Headroom {
        /// Amount that is neither taken nor may be taken by silent holders.
        left: u64,
        /// Whole amount of the window.
        total: u64,
        /// Needs of all holders.
        needs: u64,
    },
    /// The template is gone: the server grants nothing more and takes nothing back.
    TemplateGone,
    /// The server is in learning mode and divides nothing.
    Learning,
    /// This server has no lease itself. The holder keeps its lease.
    WaitsForParent,
    /// The root has no mark in its store yet. The holder keeps its lease.
    WaitsForMark,
    /// A child server in learning mode keeps its lease, although it asks for less.
    ChildLearns,
    /// A later process of the client's name has asked, and this one has not since.
    Replaced,
}

/// Reason why a grant differs from its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Nothing: the grant is the share.
    Share,
    /// Other holders may still use a part of the holder's share.
    OthersHold,
    /// Holders that have not reported to this master of the root may still use a part of the holder's share.
    Unreported,
    /// Learning mode: the grant is the amount that the holder reports.
    SaysItHas,
    /// Learning mode: the holder reports more than is left of the capacity.
    LearningLeft,
    /// The capacity was lowered below the sum of the leases.
    CapacityLowered,
    /// The rest comes once a larger mark is stored. Only on status pages.
    MarkRises,
    /// No bound any more: the holder gets the rest when it next asks. Only on status pages.
    NotAskedYet,
    /// The share fell below the grant: the grant shrinks when the holder next asks. Only on status pages.
    ShrinksNext,
}

/// Reason for the amount of a grant. `Display` gives a sentence for people.
#[derive(Clone, Debug, PartialEq)]
pub struct Why {
    /// Reason for the share.
    pub reason: Reason,
    /// Reason why the grant differs from the share.
    pub bound: Bound,
}

/// Divides the supply by the template's algorithm, as far as it concerns the holder with that demand. Its claims must
/// be in `bands`.
pub fn solve(algorithm: &Algorithm, bands: &Bands, supply: &Supply, demand: &Demand) -> Rule {
    solve_for(algorithm, bands, supply, |band| demand.has_band(band))
}

/// Divides the supply by the template's algorithm among all holders.
pub(crate) fn solve_for_all(algorithm: &Algorithm, bands: &Bands, supply: &Supply) -> Rule {
    solve_for(algorithm, bands, supply, |_| true)
}

fn solve_for(
    algorithm: &Algorithm,
    bands: &Bands,
    supply: &Supply,
    is_asked: impl Fn(i64) -> bool,
) -> Rule {
    match algorithm.kind {
        AlgorithmKind::NoAlgorithm => Rule::NoAlgorithm,
        AlgorithmKind::Static => algorithms::static_share(bands, supply),
        AlgorithmKind::ProportionalShare => algorithms::proportional_share(bands, supply),
        // A budget divides headroom, and is no resource of leases.
        AlgorithmKind::FairShare | AlgorithmKind::Budget => {
            algorithms::fair_share(bands, supply.capacity)
        }
        AlgorithmKind::PriorityBands => {
            algorithms::priority_bands(bands, &algorithm.min_shares, supply, is_asked)
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EnoughForAll => "there is enough for everyone",
            Self::NoAlgorithm => "everyone gets what it wants (NO_ALGORITHM)",
            Self::PerClient { capacity } => {
                return write!(f, "at most {} per client (STATIC)", Rounded(*capacity));
            }
            Self::Proportional {
                equal_share,
                top_up,
            } => {
                let (share, part) = (Rounded(*equal_share), Rounded(top_up * 100.0));
                return write!(
                    f,
                    "an equal share of {share} per client and {part} % of what is wanted beyond it"
                );
            }
            Self::FairLevel { level } => {
                let level = Rounded(*level);
                return write!(f, "fair share: everyone gets at most {level} per client");
            }
            Self::BandLevel(share) => return share.fmt(f),
            Self::BandSatisfied => "there is enough for everyone of its priority",
            Self::Headroom { left, total, needs } => {
                return write!(f, "{left} of {total} left in this window; holders need {needs} more");
            }
            Self::TemplateGone => "its template is gone; the lease runs down",
            Self::ByBand(parts) => {
                for (place, (priority, gets, wants)) in parts.iter().enumerate() {
                    let before = if place == 0 { "" } else { ", " };
                    let (gets, wants) = (Rounded(*gets), Rounded(wants.get()));
                    write!(f, "{before}priority {priority} gets {gets} of {wants}")?;
                }
                return Ok(());
            }
            Self::DividedBefore => {
                "by the division when it last asked, whose numbers are not kept"
            }
            Self::WaitsForParent => {
                "this server waits for its parent, and decides nothing before"
            }
            Self::WaitsForMark => "this server waits for its mark to be stored",
            Self::Replaced => {
                "a later process of its name has asked, and this one has not since; its lease counts until it ends"
            }
            Self::ChildLearns => {
                "it is in learning mode: meanwhile the lease of its node does not shrink"
            }
            Self::Learning => "learning mode: the server only confirms what is out",
        })
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.reason, f)?;
        f.write_str(match self.bound {
            Bound::Share => "",
            Bound::OthersHold => "; the rest is held by others until they have shrunk",
            Bound::Unreported => {
                "; holders that have not reported since the master changed may use the rest"
            }
            Bound::SaysItHas => "; it gets as much as it reports to have",
            Bound::LearningLeft => "; it claims more, but no more is left of the capacity",
            Bound::CapacityLowered => {
                "; the capacity was lowered below what is out, so everyone shrinks first"
            }
            Bound::MarkRises => "; the rest comes once a larger mark is stored",
            Bound::NotAskedYet => "; it gets the rest when it asks next",
            Bound::ShrinksNext => {
                "; it keeps an earlier, larger grant until it refreshes or expires"
            }
        })
    }
}

/// A number for people, with at most six significant digits.
struct Rounded(f64);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        if value == 0.0 || !value.is_finite() {
            return write!(f, "{value}");
        }
        let magnitude = value.abs().log10().floor();
        if (-5.0..15.0).contains(&magnitude) {
            // 0 to 10.
            let decimals = (5.0 - magnitude).clamp(0.0, 10.0) as usize;
            let text = format!("{value:.decimals$}");
            let text = match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.'),
                false => &text,
            };
            f.write_str(text)
        } else {
            write!(f, "{value:.5e}")
        }
    }
}
