//! The order of requests under overload: first by tier, then by cohort.
//!
//! A caller names the tier in the header [`HEADER`]. Within a tier, each user belongs to one of 32 cohorts, which
//! change every minute. The service refuses the last cohorts and serves the first ones, so within a minute most users
//! have all of their requests served or none. Without cohorts, each user would lose a few requests, and a page that
//! needs many of them would always fail. Source: DAGOR (Zhou et al., "Overload Control for Scaling WeChat
//! Microservices", 2018).

use std::fmt;

use doorward_limits::Moment;

/// Name of the header, and of the key in gRPC metadata.
pub const HEADER: &str = "x-doorward-criticality";

/// Number of tiers.
pub const TIERS: usize = 4;

/// Number of cohorts in a tier.
const COHORTS: u64 = 32;

/// Number of ranks.
pub const RANKS: usize = TIERS * COHORTS as usize;

/// Time after which users change their cohorts.
const COHORT_NANOS: i64 = 60_000_000_000;

/// Importance of a request, the most important first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Criticality {
    /// Its loss is an outage.
    Critical,
    /// Its loss is noticed by users.
    High,
    /// Its loss is hardly noticed.
    Low,
    /// It can be repeated later. Absent and unknown names mean this tier.
    #[default]
    NotCritical,
}

/// Place in the order of requests: a tier and a cohort. The smallest one is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(u8);

impl Criticality {
    /// All tiers, the most critical first.
    pub const ALL: [Self; TIERS] = [Self::Critical, Self::High, Self::Low, Self::NotCritical];

    /// Returns the tier with this name, in letters of any case.
    pub fn parse(name: &[u8]) -> Self {
        let has_name = |tier: &Self| name.eq_ignore_ascii_case(tier.name().as_bytes());
        Self::ALL.into_iter().find(has_name).unwrap_or_default()
    }

    /// Returns the name, as in the header.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Critical => "CRITICAL",
            Self::High => "HIGH",
            Self::Low => "LOW",
            Self::NotCritical => "NOT_CRITICAL",
        }
    }
}

impl fmt::Display for Criticality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Rank {
    /// Returns the rank of a user's request. `user` is a hash of the user's name.
    pub fn new(tier: Criticality, user: u64, now: Moment) -> Self {
        let minute = now.nanos().div_euclid(COHORT_NANOS);
        let cohort = mix(user ^ mix(minute.cast_unsigned())) % COHORTS;
        // At most 3 * 32 + 31.
        Self((tier as u64 * COHORTS + cohort) as u8)
    }

    /// Returns the place among the ranks: 0 is served first.
    pub const fn place(self) -> usize {
        self.0 as usize
    }

    /// Returns the tier.
    pub fn tier(self) -> Criticality {
        let tier = self.place() / COHORTS as usize;
        Criticality::ALL.get(tier).copied().unwrap_or_default()
    }
}

/// Mixes all bits of a number into all others. Source: the finalizer of SplitMix64.
pub(crate) const fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
