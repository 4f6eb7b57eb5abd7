//! Accounts of a budget, as status shows them.

use crate::amount::Amount;
use crate::budget::granter::Granter;
use crate::claims::{Claim, Demand, Subclients};
use crate::division::{Bound, Reason, Why};
use crate::messages::{LeaseSnapshot, LimitedBy};

impl Granter {
    /// Returns up to `max` accounts from that place on whose holder's name contains a text.
    pub(crate) fn view(
        &self,
        place: usize,
        holder: &str,
        max: usize,
    ) -> impl Iterator<Item = LeaseSnapshot> {
        let (left, needs) = (
            self.total.saturating_sub(self.base()),
            self.needs.total_wants(),
        );
        let reason = Reason::Headroom {
            left,
            total: self.total,
            needs: needs as u64,
        };
        let places = self.accounts.iter().skip(place).take(max);
        let found = places.filter(move |(id, _)| id.holder.name.as_str().contains(holder));
        found.map(move |(id, account)| {
            let is_present = account.turn == self.turn;
            let [reserved, taken, _] = if is_present {
                account.amounts()
            } else {
                [0; 3]
            };
            let ceiling = if is_present {
                account.ceiling.max(taken)
            } else {
                0
            };
            let claim = Claim {
                wants: Amount::from_computed(account.need.wants().get() + taken as f64),
                subclients: Subclients::new(account.need.clients()).unwrap_or(Subclients::ONE),
            };
            let ends = account.heard_at + self.lease_length;
            LeaseSnapshot {
                holder: id.holder.clone(),
                demand: Demand::Client { priority: 0, claim },
                wants_more: false,
                share: ceiling as f64,
                granted: ceiling as f64,
                reserved: reserved as f64,
                expires_at: ends,
                reserved_until: ends,
                refresh_interval: self.lease_length,
                why: Why {
                    reason: reason.clone(),
                    bound: match account.limited_by {
                        LimitedBy::Others => Bound::OthersHold,
                        _ => Bound::Share,
                    },
                },
                child: None,
            }
        })
    }
}
