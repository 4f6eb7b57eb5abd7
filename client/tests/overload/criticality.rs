//! Tiers and cohorts.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward::overload::Criticality::{self, Critical, High, Low, NotCritical};
use doorward::overload::criticality::Rank;
use doorward_limits::Moment;

use crate::service::Chance;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn tiers_have_names() {
    for (name, expected) in [
        ("CRITICAL", Critical),
        ("HIGH", High),
        ("LOW", Low),
        ("NOT_CRITICAL", NotCritical),
        ("critical", Critical),
        ("", NotCritical),
        ("CRITICAL ", NotCritical),
        ("VERY_CRITICAL", NotCritical),
    ] {
        assert_eq!(Criticality::parse(name.as_bytes()), expected, "{name:?}");
    }
    for tier in Criticality::ALL {
        assert_eq!(Criticality::parse(tier.name().as_bytes()), tier);
    }
}

#[test]
fn a_tier_goes_before_all_cohorts_of_the_next() {
    let mut chance = Chance(1);
    for _ in 0..1_000 {
        let ranks = Criticality::ALL.map(|tier| Rank::new(tier, chance.number(), Moment::ORIGIN));
        assert!(ranks.is_sorted(), "{ranks:?}");
        assert_eq!(ranks.map(Rank::tier), Criticality::ALL);
    }
}

#[test]
fn a_user_keeps_its_cohort_for_a_minute() {
    let rank = |user, at| Rank::new(High, user, Moment::ORIGIN.after(at));
    let mut moved = 0;
    for user in 0..1_000 {
        let first = rank(user, Duration::ZERO);
        assert_eq!(rank(user, MINUTE - Duration::from_nanos(1)), first);
        moved += u32::from(rank(user, MINUTE) != first);
    }
    // By chance, one of 32 users stays.
    assert!(moved > 900, "{moved}");
}

#[test]
fn cohorts_are_equally_large() {
    let mut sizes = BTreeMap::new();
    for user in 0..32_000 {
        *sizes
            .entry(Rank::new(Low, user, Moment::ORIGIN))
            .or_insert(0) += 1;
    }
    assert_eq!(sizes.len(), 32);
    assert!(
        sizes.values().all(|size| (850..1_150).contains(size)),
        "{sizes:?}"
    );
}
