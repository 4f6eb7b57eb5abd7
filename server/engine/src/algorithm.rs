//! What a holder should have, and why: the five algorithms as pure functions.
//!
//! An algorithm knows the claims (through the index, never one by one), the capacity, and the
//! claim at hand. It knows nothing of leases, time or what others still hold: that bounds the
//! share afterwards, in [`crate::resource`]. What each one does, with examples, stands in
//! `docs/algorithms.md`.

pub mod fair_share;
pub mod no_algorithm;
pub mod priority_bands;
pub mod proportional_share;
pub mod static_share;

use std::collections::BTreeMap;
use std::fmt;

use crate::algorithm::priority_bands::BandShare;
use crate::amount::Amount;
use crate::bands::Bands;
use crate::claim_index::Level;
use crate::demand::{Demand, ServerDemand};
use crate::supply::Supply;
use crate::template::{Algorithm, AlgorithmKind};

/// What a holder should have once everyone has settled, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// From 0 to what the holder wants.
    pub amount: Amount,
    /// Why it is that number.
    pub reason: Reason,
}

impl Share {
    /// Of a holder that nothing can be decided for yet.
    pub(crate) const WAITING_FOR_PARENT: Self = Self {
        amount: Amount::ZERO,
        reason: Reason::WaitsForParent,
    };
}

/// How a capacity is divided among the claims of the moment: what an algorithm comes to. Tells
/// every holder's share.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// Everyone gets what it wants: there is enough.
    EnoughForAll,
    /// Everyone gets what it wants, whatever there is.
    NoAlgorithm,
    /// At most so much per client.
    PerClient(f64),
    /// An equal share per client, and a part of what is wanted beyond it.
    Proportional {
        /// The one.
        equal_share: f64,
        /// The other, from 0 to 1.
        top_up: f64,
    },
    /// At most so much per subclient.
    Level(f64),
    /// One band and what it gets; every other band gets nothing.
    Band(i64, BandShare),
    /// Bands and what they get; every other band gets nothing.
    Bands(BTreeMap<i64, BandShare>),
}

impl Rule {
    /// What a holder gets by it.
    pub fn share_of(&self, demand: &Demand) -> Share {
        let (amount, reason) = match *self {
            Self::EnoughForAll => (demand.wants().get(), Reason::EnoughForAll),
            Self::NoAlgorithm => (demand.wants().get(), Reason::NoAlgorithm),
            Self::PerClient(capacity) => {
                let level = Level::At(capacity);
                (demand.at(level), Reason::PerClient { capacity })
            }
            Self::Proportional {
                equal_share,
                top_up,
            } => {
                let own = demand.at(Level::At(equal_share));
                let beyond = (demand.wants().get() - own).max(0.0);
                let reason = Reason::Proportional {
                    equal_share,
                    top_up,
                };
                (own + beyond * top_up, reason)
            }
            Self::Level(level) => (demand.at(Level::At(level)), Reason::FairLevel { level }),
            Self::Band(..) | Self::Bands(_) => self.share_of_bands(demand),
        };
        Share {
            amount: Amount::from_computed(amount).min(demand.wants()),
            reason,
        }
    }

    /// A rule that gives nobody more than either of the two.
    pub(crate) fn stricter(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::EnoughForAll | Self::NoAlgorithm, rule)
            | (rule, Self::EnoughForAll | Self::NoAlgorithm) => rule.clone(),
            (Self::Bands(shares), Self::Bands(others)) => {
                let both = shares.iter().filter_map(|(band, share)| {
                    let other = others.get(band)?;
                    Some((*band, share.stricter(*other)))
                });
                Self::Bands(both.collect())
            }
            _ => match (self.equal_and_top_up(), other.equal_and_top_up()) {
                // Both numbers only ever add to a share.
                (Some((equal, top_up)), Some((other_equal, other_top_up))) => Self::Proportional {
                    equal_share: equal.min(other_equal),
                    top_up: top_up.min(other_top_up),
                },
                // Of two algorithms that cannot be compared: nobody keeps anything by both.
                _ => Self::Level(0.0),
            },
        }
    }

    /// The rule as an equal share per client and a part of what is wanted beyond it.
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

    fn share_of_bands(&self, demand: &Demand) -> (f64, Reason) {
        match demand {
            Demand::Client { priority, claim } => {
                let Some(BandShare { capacity, level }) = self.band(*priority) else {
                    return (0.0, Reason::ByBand);
                };
                let reason = match level {
                    Level::AboveAll => Reason::BandSatisfied,
                    Level::At(level) => Reason::BandLevel {
                        band_capacity: capacity,
                        level,
                    },
                };
                (level.share_of(*claim), reason)
            }
            Demand::Server(server) => {
                let amount = self.split(server).map(|(_, amount)| amount).sum();
                (amount, Reason::ByBand)
            }
        }
    }

    fn band(&self, priority: i64) -> Option<BandShare> {
        match self {
            Self::Band(band, share) if *band == priority => Some(*share),
            Self::Bands(shares) => shares.get(&priority).copied(),
            _ => None,
        }
    }

    /// How a child server's share splits over its bands, in their order.
    pub(crate) fn split<'a>(
        &'a self,
        demand: &'a ServerDemand,
    ) -> impl Iterator<Item = (i64, f64)> + 'a {
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

    /// What a child server needs to know of it besides its own part: see
    /// [`crate::supply::ParentTerms::per_client`].
    pub(crate) fn per_client(&self) -> Option<Amount> {
        match self {
            Self::PerClient(capacity) => Some(Amount::from_computed(*capacity)),
            Self::Proportional { equal_share, .. } => Some(Amount::from_computed(*equal_share)),
            _ => None,
        }
    }
}

/// Why a share is the number it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// The capacity is enough for everyone.
    EnoughForAll,
    /// NO_ALGORITHM: everyone gets what it wants.
    NoAlgorithm,
    /// STATIC: at most so much per client.
    PerClient {
        /// The template's capacity.
        capacity: f64,
    },
    /// PROPORTIONAL_SHARE: an equal share per client, then a part of what is still wanted.
    Proportional {
        /// Capacity divided by the number of clients.
        equal_share: f64,
        /// The part, from 0 to 1, of what is wanted beyond the equal share.
        top_up: f64,
    },
    /// FAIR_SHARE: everyone gets at most the level.
    FairLevel {
        /// Per client.
        level: f64,
    },
    /// PRIORITY_BANDS: at most the level among those of the same priority.
    BandLevel {
        /// What the holder's band gets in total.
        band_capacity: f64,
        /// Per client.
        level: f64,
    },
    /// PRIORITY_BANDS: the holder's band gets all it wants, others do not.
    BandSatisfied,
    /// PRIORITY_BANDS, a child server: each of its bands gets its part.
    ByBand,
    /// As all was divided when the holder last asked. Only in what is shown.
    DividedBefore,
    /// The template is gone: nothing is granted any more, and nothing taken back.
    TemplateGone,
    /// In learning mode nothing is shared out.
    Learning,
    /// This server has no lease itself yet; the holder keeps what it has.
    WaitsForParent,
    /// A child server in learning mode keeps what it has, although it asks for less.
    ChildLearns,
}

/// What kept a grant from being its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Nothing: the grant is the share.
    Share,
    /// Others may still be using what is the holder's by right.
    OthersHold,
    /// Learning mode: what the holder says it has.
    SaysItHas,
    /// Learning mode: the holder says it has more than is left.
    LearningLeft,
    /// The capacity was lowered below what is out.
    CapacityLowered,
    /// Nothing any more: it gets the rest when it asks next. Only in what is shown.
    NotAskedYet,
    /// The grant is above the share, which fell since: it shrinks when it asks next. Only in what is shown.
    ShrinksNext,
}

/// Why a grant is the number it is. `Display` gives a sentence for people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Why {
    /// Why the share is what it is.
    pub reason: Reason,
    /// What kept the grant from being the share.
    pub bound: Bound,
}

/// Divides what there is by the template's algorithm, as far as the holder is concerned whose
/// demand is given. Its claims must be in `bands`.
pub fn solve(algorithm: &Algorithm, bands: &Bands, supply: &Supply, demand: &Demand) -> Rule {
    let asked = || demand.bands();
    solve_for(algorithm, bands, supply, asked)
}

/// Divides what there is by the template's algorithm among everyone.
pub(crate) fn solve_for_all(algorithm: &Algorithm, bands: &Bands, supply: &Supply) -> Rule {
    let rule = solve_for(algorithm, bands, supply, || {
        bands.iter().map(|(band, _)| band)
    });
    match rule {
        // So that rules for everyone can be compared, however many bands there were.
        Rule::Band(band, share) => Rule::Bands(BTreeMap::from([(band, share)])),
        rule => rule,
    }
}

fn solve_for<I: Iterator<Item = i64>>(
    algorithm: &Algorithm,
    bands: &Bands,
    supply: &Supply,
    asked: impl FnOnce() -> I,
) -> Rule {
    match algorithm.kind {
        AlgorithmKind::NoAlgorithm => no_algorithm::solve(),
        AlgorithmKind::Static => static_share::solve(bands, supply),
        AlgorithmKind::ProportionalShare => proportional_share::solve(bands, supply),
        AlgorithmKind::FairShare => fair_share::solve(bands, supply.capacity),
        AlgorithmKind::PriorityBands => {
            priority_bands::solve(bands, &algorithm.min_shares, supply, asked())
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::EnoughForAll => write!(f, "there is enough for everyone"),
            Self::NoAlgorithm => write!(f, "everyone gets what it wants (NO_ALGORITHM)"),
            Self::PerClient { capacity } => {
                write!(f, "at most {} per client (STATIC)", Rounded(capacity))
            }
            Self::Proportional {
                equal_share,
                top_up,
            } => write!(
                f,
                "an equal share of {} per client and {} % of what is wanted beyond it",
                Rounded(equal_share),
                Rounded(top_up * 100.0)
            ),
            Self::FairLevel { level } => {
                write!(
                    f,
                    "fair share: everyone gets at most {} per client",
                    Rounded(level)
                )
            }
            Self::BandLevel {
                band_capacity,
                level,
            } => write!(
                f,
                "higher priorities leave {} for its priority: at most {} per client",
                Rounded(band_capacity),
                Rounded(level)
            ),
            Self::BandSatisfied => write!(f, "there is enough for everyone of its priority"),
            Self::TemplateGone => write!(f, "its template is gone; the lease runs down"),
            Self::ByBand => write!(f, "each of its priorities gets its part"),
            Self::DividedBefore => write!(
                f,
                "by the division when it last asked, whose numbers are not kept"
            ),
            Self::WaitsForParent => {
                write!(
                    f,
                    "this server waits for its own parent, and decides nothing before its answer"
                )
            }
            Self::ChildLearns => {
                write!(
                    f,
                    "it is in learning mode: meanwhile the lease of its node does not shrink"
                )
            }
            Self::Learning => write!(f, "learning mode: a new master only confirms what is out"),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.reason, f)?;
        f.write_str(match self.bound {
            Bound::Share => "",
            Bound::OthersHold => "; the rest is held by others until they have shrunk",
            Bound::SaysItHas => "; it gets as much as it reports to have",
            Bound::LearningLeft => "; it claims more, but no more is left of the capacity",
            Bound::CapacityLowered => {
                "; the capacity was lowered below what is out, so everyone shrinks first"
            }
            Bound::NotAskedYet => "; it gets the rest when it asks next",
            Bound::ShrinksNext => {
                "; it keeps an earlier, larger grant until it refreshes or expires"
            }
        })
    }
}

/// A number for people: at most six significant digits.
struct Rounded(f64);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0;
        if value == 0.0 || !value.is_finite() {
            return write!(f, "{value}");
        }
        let magnitude = value.abs().log10().floor();
        if (-5.0..15.0).contains(&magnitude) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "0 to 10"
            )]
            let decimals = (5.0 - magnitude).clamp(0.0, 10.0) as usize;
            let text = format!("{value:.decimals$}");
            let text = if text.contains('.') {
                text.trim_end_matches('0').trim_end_matches('.')
            } else {
                &text
            };
            f.write_str(text)
        } else {
            write!(f, "{value:.5e}")
        }
    }
}
