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

use std::fmt;

use crate::amount::Amount;
use crate::bands::Bands;
use crate::claim::Claim;
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
    /// A share out of an algorithm's arithmetic; never above what the holder wants.
    fn of(claim: Claim, amount: f64, reason: Reason) -> Self {
        Self {
            amount: Amount::from_computed(amount).min(claim.wants),
            reason,
        }
    }

    /// All that the holder wants.
    fn all(claim: Claim, reason: Reason) -> Self {
        Self {
            amount: claim.wants,
            reason,
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
    /// In learning mode nothing is shared out.
    Learning,
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
}

/// Why a grant is the number it is. `Display` gives a sentence for people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Why {
    /// Why the share is what it is.
    pub reason: Reason,
    /// What kept the grant from being the share.
    pub bound: Bound,
}

/// Divides the capacity by the template's algorithm and tells one holder's part.
///
/// `priority` and `claim` must be in `bands`, under the band that [`band_of`] gives.
pub fn share(
    algorithm: &Algorithm,
    bands: &Bands,
    capacity: Amount,
    priority: i64,
    claim: Claim,
) -> Share {
    let all = || bands.only();
    match algorithm.kind {
        AlgorithmKind::NoAlgorithm => no_algorithm::share(claim),
        AlgorithmKind::Static => static_share::share(capacity, claim),
        AlgorithmKind::ProportionalShare => proportional_share::share(all(), capacity, claim),
        AlgorithmKind::FairShare => fair_share::share(all(), capacity, claim),
        AlgorithmKind::PriorityBands => {
            priority_bands::share(bands, &algorithm.min_shares, capacity, priority, claim)
        }
    }
}

/// The band a claim of that priority is kept in: its own for PRIORITY_BANDS, one for all else.
pub const fn band_of(kind: AlgorithmKind, priority: i64) -> i64 {
    match kind {
        AlgorithmKind::PriorityBands => priority,
        _ => Bands::ONLY,
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
                "its priority gets {}, which gives at most {} per client",
                Rounded(band_capacity),
                Rounded(level)
            ),
            Self::BandSatisfied => write!(f, "there is enough for everyone of its priority"),
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
            Bound::SaysItHas => "; it has this by its own word",
            Bound::LearningLeft => "; it claims more, but no more is left of the capacity",
            Bound::CapacityLowered => {
                "; the capacity was lowered below what is out, so everyone shrinks first"
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
