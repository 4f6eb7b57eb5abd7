//! The claims on a resource by priority: an index for each, which is a band.
//!
//! Claims are in bands whatever the algorithm is, so another algorithm finds them where they are. An algorithm that
//! does not look at priorities divides among all bands together: their demand curves add up, and the level at which the
//! sum reaches the capacity is found by Newton's method ([`Bands::level_for`]).

use std::cell::Cell;
use std::cmp::Ordering;

use smallvec::SmallVec;

use crate::amount::Amount;
use crate::claims::{BandDemand, Claim, ClaimIndex, Demand, Level, Line, ServerDemand};
use crate::rounding::is_enough;

/// Claim indexes by band. A band without claims has no entry.
#[derive(Clone, Debug, Default)]
pub struct Bands {
    /// By rising priority. Most resources have one.
    bands: SmallVec<[(i64, ClaimIndex); 1]>,
    /// The level for several bands that was found last: the next one is near it.
    level: Cell<f64>,
}

impl Bands {
    /// The priority that most holders have.
    pub(crate) const USUAL: i64 = 0;

    /// Returns the claims in a band, if there are any.
    pub fn get(&self, band: i64) -> Option<&ClaimIndex> {
        let place = self.place_of(band).ok()?;
        self.bands.get(place).map(|(_, index)| index)
    }

    /// Bands by rising priority.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (i64, &ClaimIndex)> {
        self.bands.iter().map(|(band, index)| (*band, index))
    }

    /// Number of bands with claims.
    pub fn len(&self) -> usize {
        self.bands.len()
    }

    /// Whether there are no claims.
    pub fn is_empty(&self) -> bool {
        self.bands.is_empty()
    }

    /// Inserts a claim.
    pub fn insert(&mut self, band: i64, claim: Claim) {
        let place = self.place_of(band).unwrap_or_else(|place| {
            self.bands.insert(place, (band, ClaimIndex::default()));
            place
        });
        if let Some((_, index)) = self.bands.get_mut(place) {
            index.insert(claim);
        }
    }

    /// Removes a claim that was inserted.
    pub fn remove(&mut self, band: i64, claim: Claim) {
        if let Ok(place) = self.place_of(band)
            && let Some((_, index)) = self.bands.get_mut(place)
        {
            index.remove(claim);
            if index.is_empty() {
                self.bands.remove(place);
            }
        }
    }

    /// Replaces a claim that was inserted by another one in the same band.
    pub fn replace(&mut self, band: i64, before: Claim, after: Claim) {
        let place = self.place_of(band);
        if let Some((_, index)) = place.ok().and_then(|place| self.bands.get_mut(place)) {
            index.replace(before, after);
        }
    }

    /// Whether the capacity is enough for all bands together.
    pub(crate) fn are_satisfied_by(&self, capacity: Amount) -> bool {
        is_enough(capacity.get(), self.total_wants())
    }

    /// Σ wants of all bands.
    pub fn total_wants(&self) -> f64 {
        self.indexes().fold(0.0, |sum, it| sum + it.total_wants())
    }

    /// Σ subclients of all bands.
    pub fn total_subclients(&self) -> f64 {
        self.indexes()
            .fold(0.0, |sum, it| sum + it.total_subclients())
    }

    /// Demand of all bands together at a level. O(bands · log n).
    pub(crate) fn demand_at(&self, level: f64) -> f64 {
        self.line_at(level).demand_at(level)
    }

    /// The level at which all bands together get `capacity`. O(log n) of one band.
    ///
    /// Of several bands, it is found by [Newton's method](https://en.wikipedia.org/wiki/Newton%27s_method). The sum of
    /// demand curves is concave, so a tangent is above it, and wherever the search begins, every later level is below
    /// the one looked for and nearer to it. Each step halves the distance to the capacity or the slope at least, so
    /// there are few hundred at most; from the level that was found last, it takes one or two.
    pub(crate) fn level_for(&self, capacity: Amount) -> Level {
        if let [(_, only)] = self.bands.as_slice() {
            return only.level_for(capacity.get());
        }
        if self.are_satisfied_by(capacity) {
            return Level::AboveAll;
        }
        let level = self.search_level(capacity.get(), self.level.get());
        self.level.set(level);
        Level::At(level)
    }

    fn search_level(&self, capacity: f64, first: f64) -> f64 {
        let mut line = self.line_at(first);
        if line.subclients <= 0.0 {
            // It is above all claims, where the curve is flat.
            line = self.line_at(0.0);
        }
        let mut level = line.level_for(capacity);
        loop {
            let next = self.line_at(level);
            if next == line || next.subclients <= 0.0 {
                return level;
            }
            let nearer = next.level_for(capacity);
            if nearer <= level {
                return level;
            }
            (line, level) = (next, nearer);
        }
    }

    fn line_at(&self, level: f64) -> Line {
        let lines = self.indexes().map(|index| index.line_at(level));
        lines.fold(Line::default(), Line::plus)
    }

    fn indexes(&self) -> impl Iterator<Item = &ClaimIndex> {
        self.bands.iter().map(|(_, index)| index)
    }

    /// Returns the place of a band.
    ///
    /// # Errors
    ///
    /// The place where it belongs, if it has no claims.
    fn place_of(&self, band: i64) -> Result<usize, usize> {
        self.bands.binary_search_by_key(&band, |(it, _)| *it)
    }
}

// The claims of a holder. Bands of a child server that are the same stay: most priorities change seldom, and each has
// dozens of claims. New claims are inserted before old ones are removed, so that no band is emptied and filled again.

impl Bands {
    /// Puts in the claims of a holder.
    pub(crate) fn insert_all(&mut self, demand: &Demand) {
        demand.for_each_claim(|band, claim| self.insert(band, claim));
    }

    /// Takes out the claims of a holder.
    pub(crate) fn remove_all(&mut self, demand: &Demand) {
        demand.for_each_claim(|band, claim| self.remove(band, claim));
    }

    /// Puts the claims of another demand of a holder in the place of those it had.
    pub(crate) fn replace_all(&mut self, before: &Demand, after: &Demand) {
        match (before, after) {
            (
                Demand::Client { priority, claim },
                Demand::Client {
                    priority: same,
                    claim: after,
                },
            ) if priority == same => self.replace(*priority, *claim, *after),
            (Demand::Server(before), Demand::Server(after)) => {
                self.replace_changed(before, after);
            }
            _ => {
                self.insert_all(after);
                self.remove_all(before);
            }
        }
    }

    fn replace_changed(&mut self, before: &ServerDemand, after: &ServerDemand) {
        let changed: Vec<_> = changed_bands(before, after).collect();
        for band in changed.iter().filter_map(|(_, comes)| *comes) {
            band.for_each_claim(|claim| self.insert(band.priority, claim));
        }
        for band in changed.iter().filter_map(|(goes, _)| *goes) {
            band.for_each_claim(|claim| self.remove(band.priority, claim));
        }
    }
}

/// The bands with other claims than before: what goes, and what comes.
fn changed_bands<'a>(
    before: &'a ServerDemand,
    after: &'a ServerDemand,
) -> impl Iterator<Item = (Option<&'a BandDemand>, Option<&'a BandDemand>)> {
    let (mut before, mut after) = (
        before.bands().iter().peekable(),
        after.bands().iter().peekable(),
    );
    let all = std::iter::from_fn(move || {
        let order = match (before.peek(), after.peek()) {
            (Some(before), Some(after)) => before.priority.cmp(&after.priority),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        let goes = before.next_if(|_| order.is_le());
        Some((goes, after.next_if(|_| order.is_ge())))
    });
    all.filter(|(goes, comes)| {
        let both = goes.zip(*comes);
        both.is_none_or(|(goes, comes)| !goes.has_claims_of(comes))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::claims::Subclients;

    fn bands(wants: &[(i64, f64)]) -> Bands {
        let mut bands = Bands::default();
        for (band, wants) in wants {
            bands.insert(*band, Claim::of_client(Amount::new(*wants).unwrap()));
        }
        bands
    }

    #[test]
    fn a_capacity_a_rounding_below_the_wants_is_enough_and_a_lower_one_is_not() {
        let cases: [&[(i64, f64)]; 5] = [
            &[(0, 0.3)],
            &[(-3, 0.3)],
            &[(1, 0.1), (2, 0.2)],
            &[(-1, 0.1), (0, 0.2)],
            &[(-1, 3.0), (0, 1e6), (0, 7.0), (5, 0.1)],
        ];
        for wants in cases {
            let bands = bands(wants);
            let total: f64 = wants.iter().map(|(_, wants)| wants).sum();
            for (capacity, is_enough) in [
                (2.0 * total, true),
                (total, true),
                (total.next_down().next_down(), true),
                (total * (1.0 - 1e-12), false),
                (0.0, false),
            ] {
                let capacity = Amount::new(capacity).unwrap();
                let found = bands.are_satisfied_by(capacity);
                assert_eq!(found, is_enough, "{capacity:?} for {wants:?}");
            }
        }
        assert!(bands(&[]).are_satisfied_by(Amount::ZERO), "no claims");
    }

    #[test]
    fn bands_come_in_order_for_every_set_of_bands() {
        for present in [
            &[][..],
            &[0],
            &[-5],
            &[3],
            &[-5, -2, 0, 3],
            &[-5, 3],
            &[0, 3],
            &[-2, 0],
        ] {
            let claims: Vec<_> = present.iter().map(|band| (*band, 1.0)).collect();
            let bands = bands(&claims);
            let rising: Vec<i64> = bands.iter().map(|(band, _)| band).collect();
            assert_eq!(rising, present);
            let falling = bands.iter().rev().map(|(band, _)| band);
            assert!(falling.eq(present.iter().copied().rev()), "{present:?}");
        }
    }

    #[test]
    fn the_clients_of_all_bands_are_counted() {
        let bands = bands(&[(-2, 1.0), (0, 1.0), (0, 2.0), (7, 1.0)]);
        assert_eq!(bands.total_subclients(), 4.0);
        assert_eq!(Bands::default().total_subclients(), 0.0);
    }

    #[test]
    fn all_bands_together_get_the_capacity_whatever_was_found_before() {
        let wants = [
            (-2, 1.0),
            (0, 0.0),
            (0, 5.0),
            (3, 9.0),
            (3, 5.0),
            (7, 100.0),
        ];
        let bands = bands(&wants);
        assert_eq!(
            bands.level_for(Amount::new(120.0).unwrap()),
            Level::AboveAll
        );
        // Each after the others, so that the search begins below the level, above it, and above all.
        let levels = [0.0, 0.5, 5.0, 99.0, 1.0, 7.0, 60.0, 9.0, 0.1];
        for level in levels.into_iter().chain(levels.into_iter().rev()) {
            let takes = |(_, wants): &(i64, f64)| wants.min(level);
            let capacity: f64 = wants.iter().map(takes).sum();
            let found = bands.level_for(Amount::new(capacity).unwrap());
            let Level::At(found) = found else {
                panic!("{capacity} is not enough for all");
            };
            assert!(
                (found - level).abs() <= 1e-12 * level,
                "{found}, not {level}"
            );
            assert!((bands.demand_at(found) - capacity).abs() <= 1e-12 * capacity);
        }
    }

    proptest! {
        #[test]
        fn a_level_for_all_bands_is_that_of_one_index_with_all_claims(
            claims in prop::collection::vec((-2..6_i64, -6.0..6.0f64, -4.0..4.0f64), 1..200),
            capacities in prop::collection::vec(0.0..1.1f64, 1..8),
        ) {
            let (mut bands, mut all) = (Bands::default(), ClaimIndex::default());
            for (band, wants, subclients) in claims {
                let claim = Claim {
                    wants: Amount::new(10f64.powf(wants)).unwrap(),
                    subclients: Subclients::new(10f64.powf(subclients)).unwrap(),
                };
                bands.insert(band, claim);
                all.insert(claim);
            }
            for part in capacities {
                let capacity = Amount::new(part * all.total_wants()).unwrap();
                match (bands.level_for(capacity), all.level_for(capacity.get())) {
                    (Level::At(found), Level::At(_)) => {
                        // A small part of a client moves a level far: it is right if it gives the capacity away.
                        let given = all.demand_at(found);
                        prop_assert!((given - capacity.get()).abs() <= 1e-12 * capacity.get());
                    }
                    (found, expected) => prop_assert_eq!(found, expected),
                }
            }
        }
    }
}

#[cfg(test)]
mod change_tests {

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
                bands.replace_all(&both[0], &both[1]);
            }
            let last = &demands[demands.len() - 1];
            let mut anew = Bands::default();
            anew.insert_all(last);
            prop_assert_eq!(seen(&bands), seen(&anew));
            bands.remove_all(last);
            prop_assert!(bands.is_empty());
        }
    }
}
