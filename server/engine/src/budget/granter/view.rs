//! Accounts of a budget, as status shows them.

use crate::amount::Amount;
use crate::budget::account::{Account, AccountId};
use crate::budget::granter::Granter;
use crate::claims::{Claim, Demand, Subclients};
use crate::division::{Bound, Reason, Why};
use crate::id::HolderKind;
use crate::messages::{ChildSnapshot, LeaseSnapshot, LimitedBy};

impl Granter {
    /// Returns the holders of up to `max` accounts from that place on whose name contains a text, child servers first. All
    /// accounts of a holder there are one row.
    pub(crate) fn view(&self, place: usize, holder: &str, max: usize) -> Vec<LeaseSnapshot> {
        let reason = Reason::Headroom {
            left: self.total.saturating_sub(self.base()),
            total: self.total,
            needs: self.needs.total_wants() as u64,
        };
        let mut rows: Vec<LeaseSnapshot> = Vec::new();
        for (id, account) in self.accounts.iter().rev().skip(place).take(max) {
            match rows.last_mut() {
                Some(row) if row.holder == id.holder => add(row, self.row(id, account, &reason)),
                _ if !id.holder.name.as_str().contains(holder) => {}
                _ => rows.push(self.row(id, account, &reason)),
            }
        }
        rows
    }

    fn row(&self, id: &AccountId, account: &Account, reason: &Reason) -> LeaseSnapshot {
        let (reserved, taken, ceiling) = match account.turn == self.turn {
            true => (
                account.reserved,
                account.taken,
                account.ceiling.max(account.taken),
            ),
            false => (0, 0, 0),
        };
        let (need, ends) = (&account.need, account.heard_at + self.lease_length);
        LeaseSnapshot {
            holder: id.holder.clone(),
            demand: demand(need.wants().get() + taken as f64, need.clients()),
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
            child: (id.holder.kind == HolderKind::Server).then(|| ChildSnapshot {
                height: 1,
                learning: false,
                has: Some(ceiling as f64),
                outstanding: Some(reserved as f64),
                curve_points: match need {
                    Demand::Client { .. } => 1,
                    Demand::Server(demand) => demand.points().max(1),
                },
            }),
        }
    }
}

/// Adds another account of the same holder.
fn add(row: &mut LeaseSnapshot, other: LeaseSnapshot) {
    let clients = row.demand.clients().max(other.demand.clients());
    row.demand = demand(row.wants() + other.wants(), clients);
    row.share += other.share;
    row.granted += other.granted;
    row.reserved += other.reserved;
    if row.expires_at < other.expires_at {
        (row.expires_at, row.reserved_until) = (other.expires_at, other.reserved_until);
        row.why = other.why;
    }
    if let Some(child) = &mut row.child {
        child.has = Some(row.granted);
        child.outstanding = Some(row.reserved);
    }
}

fn demand(wants: f64, clients: f64) -> Demand {
    let claim = Claim {
        wants: Amount::from_computed(wants),
        subclients: Subclients::new(clients).unwrap_or(Subclients::ONE),
    };
    Demand::Client { priority: 0, claim }
}
