//! Claims in bands after other demands of a holder.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::amount::Amount;
use crate::claims::{Claim, ClaimIndex, DemandCurve, POINTS_MAX};

/// A demand of bands: each of a priority, for clients that want as much as that.
fn server(bands: &[(i64, Vec<u8>)]) -> ServerDemand {
    let band = |(priority, wants): &(i64, Vec<u8>)| {
        let mut index = ClaimIndex::default();
        for wants in wants {
            let wants = Amount::new(f64::from(*wants)).unwrap();
            index.insert(Claim::of_client(wants));
        }
        BandDemand {
            priority: *priority,
            clients: index.total_subclients(),
            wants: Amount::new(index.total_wants()).unwrap(),
            curve: DemandCurve::of(&index, POINTS_MAX),
        }
    };
    ServerDemand::new(bands.iter().map(band).collect())
}

#[test]
fn a_band_that_is_the_same_stays() {
    let before = server(&[(1, vec![1, 2]), (2, vec![3]), (3, vec![4, 5])]);
    let after = server(&[(1, vec![1, 2]), (2, vec![9]), (4, vec![4, 5])]);
    let changed: Vec<_> = changed_bands(&before, &after)
        .map(|(goes, comes)| (goes.map(|it| it.priority), comes.map(|it| it.priority)))
        .collect();
    let expected = [(Some(2), Some(2)), (Some(3), None), (None, Some(4))];
    assert_eq!(changed, expected);
    assert_eq!(changed_bands(&before, &before).count(), 0);
}

fn demand() -> impl Strategy<Value = Demand> {
    let band = (0..4_i64, prop::collection::vec(any::<u8>(), 0..4));
    let bands = prop::collection::vec(band, 0..6);
    prop_oneof![
        3 => bands.prop_map(|bands| Demand::Server(Arc::new(server(&bands)))),
        1 => (0..4_i64, any::<u8>()).prop_map(|(priority, wants)| Demand::Client {
            priority,
            claim: Claim::of_client(Amount::new(f64::from(wants)).unwrap()),
        }),
    ]
}

/// Number of claims by priority, and their wants.
fn seen(bands: &Bands) -> Vec<(i64, usize, f64)> {
    let of = |(band, index): (i64, &ClaimIndex)| (band, index.len(), index.total_wants());
    bands.iter().map(of).collect()
}

proptest! {
    /// Also if a priority comes twice.
    #[test]
    fn after_any_changes_there_are_the_claims_of_the_last_demand(
        demands in prop::collection::vec(demand(), 1..6),
    ) {
        let mut bands = Bands::default();
        bands.insert_all(&demands[0]);
        for both in demands.windows(2) {
            bands.replace_all(&both[0], &both[1], drop);
        }
        let last = &demands[demands.len() - 1];
        let mut anew = Bands::default();
        anew.insert_all(last);
        prop_assert_eq!(seen(&bands), seen(&anew));
        bands.remove_all(last, drop);
        prop_assert!(bands.is_empty());
    }
}
