//! What goes and what comes when another demand of a child server takes the place of one.

use proptest::prelude::*;

use super::*;
use crate::amount::Amount;
use crate::claim_index::ClaimIndex;
use crate::demand::Demand;
use crate::demand_curve::{DemandCurve, POINTS_MAX};

/// A demand of bands: each of a priority, for clients that want as much as that.
fn server(bands: &[(i64, Vec<u8>)]) -> Arc<ServerDemand> {
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
    Arc::new(ServerDemand::new(bands.iter().map(band).collect()))
}

fn claims(demand: &Arc<ServerDemand>, kind: AlgorithmKind) -> Vec<(i64, Claim)> {
    let mut claims = Vec::new();
    let demand = Demand::Server(Arc::clone(demand));
    demand.for_each_claim(kind, |band, claim| claims.push((band, claim)));
    claims
}

fn changes(from: &Arc<ServerDemand>, to: &Arc<ServerDemand>, kind: AlgorithmKind) -> ClaimChanges {
    ClaimChanges::new(Arc::clone(from), Arc::clone(to), kind)
}

#[test]
fn a_band_that_is_the_same_stays() {
    let kind = AlgorithmKind::PriorityBands;
    let before = server(&[(1, vec![1, 2]), (2, vec![3]), (3, vec![4, 5])]);
    let after = server(&[(1, vec![1, 2]), (2, vec![9]), (4, vec![4, 5])]);
    let touched: Vec<i64> = changes(&before, &after, kind)
        .map(|change| match change {
            ClaimChange::Goes(band, _) => -band,
            ClaimChange::Comes(band, _) => band,
        })
        .collect();
    assert_eq!(touched, [2, -2, -3, -3, 4, 4]);
    assert_eq!(changes(&before, &before, kind).count(), 0);
}

fn demand() -> impl Strategy<Value = Arc<ServerDemand>> {
    let band = (0..4_i64, prop::collection::vec(any::<u8>(), 0..4));
    prop::collection::vec(band, 0..6).prop_map(|bands| server(&bands))
}

proptest! {
    /// Also if a priority comes twice.
    #[test]
    fn what_does_not_go_and_what_comes_are_the_claims_of_the_other(
        before in demand(),
        after in demand(),
        kind in prop::sample::select(vec![AlgorithmKind::FairShare, AlgorithmKind::PriorityBands]),
    ) {
        let mut left = claims(&before, kind);
        let expected_growth = claims(&after, kind).len() as isize - left.len() as isize;
        prop_assert_eq!(changes(&before, &after, kind).growth(), expected_growth);
        for change in changes(&before, &after, kind) {
            match change {
                ClaimChange::Goes(band, claim) => {
                    let at = left.iter().position(|it| *it == (band, claim));
                    prop_assert!(at.is_some(), "it was there");
                    left.swap_remove(at.unwrap());
                }
                ClaimChange::Comes(band, claim) => left.push((band, claim)),
            }
        }
        let mut expected = claims(&after, kind);
        let order = |it: &(i64, Claim)| (it.0, it.1.wants, it.1.subclients.get().to_bits());
        left.sort_by_key(order);
        expected.sort_by_key(order);
        prop_assert_eq!(left, expected);
    }
}
