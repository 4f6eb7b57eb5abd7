//! Headroom: the amount that a holder may take beyond what it has taken.

use crate::budget::account::{Account, AccountId, Answer};
use crate::budget::granter::{Granter, narrow};
use crate::claims::Demand;
use crate::messages::LimitedBy;

/// Headroom of an account, as far as the mark of the budget allows now.
pub(super) struct Headroom {
    gets: u64,
    limited_by: LimitedBy,
    /// The same, once the mark has risen.
    wanted: u64,
    least: u64,
}

impl Headroom {
    /// Returns what it gets once the mark has risen.
    pub(super) fn missing(&self) -> u64 {
        self.wanted.saturating_sub(self.gets)
    }
}

impl Granter {
    /// Returns the headroom that an account gets.
    pub(super) fn headroom(&self, id: &AccountId) -> Option<Headroom> {
        let account = self.accounts.get(id)?;
        let remains = self.total.saturating_sub(self.base());
        let divided = match account.streams && !self.is_below {
            true => remains.div_ceil(4),
            false => remains,
        };
        let level = self.needs.level_for(divided as f64);
        let need = account.need.wants().get() as u64;
        let share = (account.need.at(level) as u64).min(need);
        let others = self.all_reserved() - u128::from(account.reserved);
        let least = self.least_of(account);
        let of = |out_max: u64| {
            let free = u128::from(out_max).saturating_sub(others + u128::from(account.taken));
            let free = narrow(free);
            let gets = share.min(free);
            match if least <= free { gets.max(least) } else { gets } {
                gets if gets >= need => (gets, LimitedBy::Wants),
                gets if gets < least => (0, LimitedBy::Others),
                gets if gets < share => (gets, LimitedBy::Others),
                gets => (gets, LimitedBy::Share),
            }
        };
        let ((gets, limited_by), (wanted, _)) = (of(self.confirmed), of(self.total));
        Some(Headroom {
            gets,
            limited_by,
            wanted,
            least,
        })
    }

    /// The smallest headroom that is of any use to a holder, as far as it counts: all of it if no other holder needs any.
    /// That of a server is for one call of a client, beside what its other clients have.
    fn least_of(&self, account: &Account) -> u64 {
        let need = account.need.wants().get();
        let is_alone = self.needs.total_wants() <= need;
        let (least, beside) = match &account.need {
            Demand::Client { .. } => (account.least.min(need as u64), 0),
            Demand::Server(_) => (
                account.least,
                account.reserved.saturating_sub(account.taken),
            ),
        };
        match is_alone {
            true => least,
            false => least.min(self.largest_call.saturating_add(beside)),
        }
    }

    /// Sets the headroom of an account, which may raise what is reserved for it.
    pub(super) fn decide(&mut self, id: &AccountId, headroom: Headroom) -> Option<Answer> {
        let Headroom {
            gets,
            limited_by,
            wanted,
            least,
        } = headroom;
        let before = self.all_reserved();
        let own = self.change(id, |account| {
            account.ceiling = account.taken + gets;
            account.rising = wanted.saturating_sub(gets);
            account.reserved = account.reserved.max(account.ceiling);
            account.limited_by = limited_by;
            account.reserved - account.taken
        })?;
        if limited_by != LimitedBy::Wants {
            self.is_waited_for = true;
            let missing = (gets < least).then(|| least.saturating_sub(own));
            self.least = self.least.into_iter().chain(missing).min();
        }
        debug_assert!(
            self.all_reserved() <= before.max(u128::from(self.confirmed)),
            "more than there is"
        );
        self.last_answer(id)
    }

    /// Returns what was decided last, or what is taken if that is more.
    pub(super) fn last_answer(&self, id: &AccountId) -> Option<Answer> {
        let account = self.accounts.get(id)?;
        Some(Answer {
            ceiling: account.ceiling.max(account.taken),
            taken: account.taken,
            share: account.ceiling.max(account.taken) + account.rising,
            sequence: account.newest,
            limited_by: account.limited_by,
        })
    }
}
