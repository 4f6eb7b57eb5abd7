//! The claims of a holder in [`Bands`]: what its demand puts there, and what another demand changes.
//!
//! Of a child server, bands that are the same stay: most priorities change seldom, and each has dozens of claims. New
//! claims are put in before old ones are taken out, so that no band is emptied that is filled again.

use std::cmp::Ordering;

use crate::claims::{BandDemand, Bands, Demand, EmptiedTree, ServerDemand};

impl Bands {
    /// Puts in the claims of a holder.
    pub(crate) fn insert_all(&mut self, demand: &Demand) {
        demand.for_each_claim(|band, claim| self.insert(band, claim));
    }

    /// Takes out the claims of a holder. Large trees of bands that are empty now are `emptied`.
    pub(crate) fn remove_all(&mut self, demand: &Demand, mut emptied: impl FnMut(EmptiedTree)) {
        demand.for_each_claim(|band, claim| {
            self.remove(band, claim).map(&mut emptied);
        });
    }

    /// Puts the claims of another demand of a holder in the place of those it had. Large trees of bands that are empty now
    /// are `emptied`.
    pub(crate) fn replace_all(
        &mut self,
        before: &Demand,
        after: &Demand,
        emptied: impl FnMut(EmptiedTree),
    ) {
        match (before, after) {
            (
                Demand::Client { priority, claim },
                Demand::Client {
                    priority: same,
                    claim: after,
                },
            ) if priority == same => self.replace(*priority, *claim, *after),
            (Demand::Server(before), Demand::Server(after)) => {
                self.replace_changed(before, after, emptied);
            }
            _ => {
                self.insert_all(after);
                self.remove_all(before, emptied);
            }
        }
    }

    fn replace_changed(
        &mut self,
        before: &ServerDemand,
        after: &ServerDemand,
        mut emptied: impl FnMut(EmptiedTree),
    ) {
        let changed: Vec<_> = changed_bands(before, after).collect();
        for band in changed.iter().filter_map(|(_, comes)| *comes) {
            band.for_each_claim(|claim| self.insert(band.priority, claim));
        }
        for band in changed.iter().filter_map(|(goes, _)| *goes) {
            band.for_each_claim(|claim| {
                self.remove(band.priority, claim).map(&mut emptied);
            });
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
mod tests;
