//! Amounts that rules take from budgets. They count when they are taken, since no door tells the end of such a request.

use doorward::time::Time;
use doorward_engine::messages::AMOUNT_MAX;
use doorward_limits::Decision;

use super::{Account, Amounts, Kind, Refused};
use crate::caller::{Caller, RETRY_IN};
use crate::clock::Clock;

impl Account {
    /// Returns what rules took in the present window.
    fn counted(&self) -> u64 {
        let (of, amount) = self.counted;
        if of == self.window() { amount } else { 0 }
    }

    /// Returns the number of the window. A use before the first answer counts in the first one.
    fn window(&self) -> u64 {
        self.holder.turn().max(1)
    }

    /// Adds what a rule took of the present window.
    fn count(&mut self, cost: u64) {
        self.counted = (self.window(), self.counted().saturating_add(cost));
    }
}

impl Caller {
    /// Opens a budget. Its first take refuses if there is no room.
    pub(crate) fn open_for_rule(&self, id: &str, now: Time) {
        let (mut holder, mut budgets) = (self.holder.lock(), self.budgets.lock());
        let _ = self.open_budget(id, &mut holder, &mut budgets, now);
    }

    /// Takes an amount. None: the node has said nothing of the present window. 0 only looks whether anything is left.
    pub(crate) fn take_of_budget(
        &self,
        id: &str,
        cost: u64,
        now: Time,
    ) -> Option<Result<(), Decision>> {
        let Err(refused) = self.take_amount(id, cost, now) else {
            return Some(Ok(()));
        };
        let is_present = |account: &Account| {
            let holder = &account.holder;
            holder.answered() > 0 && holder.ends_at().is_none_or(|ends| ends > now)
        };
        let decides = self.budgets.lock().accounts.get(id).is_none_or(is_present);
        let wait = refused.retry_in.unwrap_or(RETRY_IN);
        decides.then_some(Err(Decision::After(wait)))
    }

    /// Waits until a budget has an amount, or the node says that it has not.
    pub(crate) async fn await_budget(&self, id: &str, cost: u64, until: Time, clock: Clock) {
        loop {
            let changed = self.budgets_changed.notified();
            let now = clock.now();
            let left = self.left_of_budget(id, now);
            if now >= until || left.is_some_and(|left| left >= cost.max(1)) {
                return;
            }
            match self.take_amount(id, cost, now) {
                Err(refused) if refused.kind == Kind::NotYet => tokio::select! {
                    () = changed => {}
                    () = clock.sleep_until(until) => {}
                },
                answer => {
                    if answer.is_ok() {
                        self.give_back_to_budget(id, cost);
                    }
                    return;
                }
            }
        }
    }

    fn take_amount(&self, id: &str, cost: u64, now: Time) -> Result<(), Refused> {
        let (mut holder, mut budgets) = (self.holder.lock(), self.budgets.lock());
        let amounts = Amounts::from([(id.to_owned(), cost.max(1))]);
        let turns = self.reserve_all(&amounts, &mut holder, &mut budgets, now)?;
        budgets.settle(&amounts, &turns, &|_, _| cost);
        if let Some(account) = budgets.accounts.get_mut(id) {
            account.count(cost);
        }
        Ok(())
    }

    /// Returns what may be taken at once.
    pub(crate) fn left_of_budget(&self, id: &str, now: Time) -> Option<u64> {
        let budgets = self.budgets.lock();
        Some(budgets.accounts.get(id)?.holder.left(now))
    }

    /// Gives back an amount, at most what rules took of the window. Returns what was given back.
    pub(crate) fn give_back_to_budget(&self, id: &str, cost: u64) -> u64 {
        let mut budgets = self.budgets.lock();
        let Some(account) = budgets.accounts.get_mut(id) else {
            return 0;
        };
        let counted = account.counted();
        let cost = cost.min(counted);
        account.counted = (account.window(), counted - cost);
        account.holder.settle(account.holder.turn(), cost, 0);
        drop(budgets);
        self.budgets_changed.notify_waiters();
        cost
    }

    /// Counts a use of up to `cost_max`, also where less is left. Returns what counts.
    pub(crate) fn charge_budget(&self, id: &str, cost: u64, cost_max: u64, now: Time) -> u64 {
        self.open_for_rule(id, now);
        let mut budgets = self.budgets.lock();
        let Some(account) = budgets.accounts.get_mut(id) else {
            return 0;
        };
        let cost = cost.min(cost_max).min(AMOUNT_MAX);
        if account.holder.reserve(cost, now).is_err() {
            account.holder.settle(account.holder.turn(), 0, cost);
        }
        account.is_used = true;
        account.count(cost);
        cost
    }
}
