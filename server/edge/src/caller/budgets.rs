//! An identity's accounts of budgets, and what its programs have reserved of them.
//!
//! A reservation has a key. A repeated call with the key changes nothing, and has the answer of the first one. A
//! reservation without an end counts as estimated.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use doorward::limiter::budget::{BudgetHolder, Short};
use doorward::state::{BudgetAsk, RefusalKind};
use doorward::time::Time;
use doorward_engine::id::ResourceId;
use doorward_engine::messages::AMOUNT_MAX;
use doorward_engine::messages::BudgetWord;

use super::{Caller, RESOURCES_MAX, USE_BYTES};
use crate::clock::{self, Clock};
use crate::holder::Holder;

/// Time for which an ended reservation is remembered.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Estimated bytes of a reservation without its names.
const RESERVATION_BYTES: usize = 300;

/// Amounts of budgets, by their ids.
pub type Amounts = BTreeMap<String, u64>;

/// The accounts and reservations of an identity.
#[derive(Debug, Default)]
pub(super) struct Budgets {
    accounts: BTreeMap<Box<str>, Account>,
    reservations: HashMap<Box<str>, Reservation>,
    last_words: BTreeMap<ResourceId, BudgetWord>,
}

#[derive(Debug)]
struct Account {
    holder: BudgetHolder,
    /// Whether a call used it since the last look for idle ones.
    is_used: bool,
}

#[derive(Debug)]
struct Reservation {
    amounts: Amounts,
    /// The window of each amount, in their order.
    turns: Vec<u64>,
    /// Amounts that count in the end. None: the call is under way.
    counted: Option<Amounts>,
    /// It is forgotten then.
    until: Time,
}

/// Why nothing was reserved.
#[derive(Debug)]
pub(crate) enum Unreserved {
    /// A budget has too little, and the rest of its window if it is used up.
    Short {
        budget: String,
        why: Short,
        window_ends_in: Option<Duration>,
    },
    /// The node does not give it out as a budget, for that reason.
    Refused {
        budget: String,
        is_unknown: bool,
        reason: String,
    },
    /// The key has reserved other amounts.
    OtherAmounts,
    NoRoom,
}

/// Why a reservation was not ended.
#[derive(Debug)]
pub(crate) enum Unended {
    /// There is none of that key any more.
    UnknownKey,
    /// It has nothing of that budget.
    NotReserved(String),
}

/// The rest of a budget for this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub(crate) amount: u64,
    pub(crate) window_ends_in: Option<Duration>,
    pub(crate) is_soft: bool,
}

impl Budgets {
    pub(super) fn is_empty(&self) -> bool {
        self.accounts.is_empty() && self.reservations.is_empty()
    }

    /// Returns the word to the node about a budget. None: the resource is none.
    pub(super) fn say(
        &mut self,
        id: &str,
        (interval, streams): (Duration, bool),
        now: Time,
    ) -> Option<BudgetAsk> {
        let account = self.accounts.get_mut(id)?;
        Some(account.holder.say(interval, streams, now))
    }

    pub(super) fn take_last_words(&mut self) -> BTreeMap<ResourceId, BudgetWord> {
        std::mem::take(&mut self.last_words)
    }

    /// Reserves all amounts, or none.
    fn reserve(&mut self, amounts: &Amounts, now: Time) -> Result<Vec<u64>, (String, Short)> {
        let mut turns = Vec::with_capacity(amounts.len());
        for (id, amount) in amounts {
            let account = self.accounts.get_mut(&**id);
            let reserved = account.map_or(Err(Short::NoCeiling), |account| {
                account.is_used = true;
                account.holder.reserve(*amount, now)?;
                Ok(account.holder.turn())
            });
            match reserved {
                Ok(turn) => turns.push(turn),
                Err(short) => {
                    self.settle(amounts, &turns, &|_, _| 0);
                    return Err((id.clone(), short));
                }
            }
        }
        Ok(turns)
    }

    /// Settles the amounts that have a window. Returns what counts.
    fn settle(
        &mut self,
        amounts: &Amounts,
        turns: &[u64],
        used: &dyn Fn(&str, u64) -> u64,
    ) -> Amounts {
        let settled = amounts.iter().zip(turns).map(|((id, reserved), turn)| {
            let used = used(id, *reserved).min(AMOUNT_MAX);
            if let Some(account) = self.accounts.get_mut(&**id) {
                account.holder.settle(*turn, *reserved, used);
            }
            (id.clone(), used)
        });
        settled.collect()
    }
}

impl Caller {
    /// Reserves amounts of budgets under a key for a time: all of them, or none. Waits for the node up to `wait`, but not
    /// for another window.
    pub(crate) async fn reserve(
        &self,
        key: &str,
        amounts: &Amounts,
        (wait, lasts): (Duration, Duration),
        clock: Clock,
    ) -> Result<BTreeMap<String, Left>, Unreserved> {
        let until = clock.now() + wait;
        loop {
            let changed = self.budgets_changed.notified();
            let now = clock.now();
            let may_come = match self.try_reserve(key, amounts, lasts, now) {
                Err(Unreserved::Short { why, .. }) => why != Short::Exhausted,
                _ => false,
            };
            if !may_come || now >= until {
                return self.try_reserve(key, amounts, lasts, now);
            }
            tokio::select! {
                () = changed => {}
                () = clock.sleep_until(until) => {}
            }
        }
    }

    fn try_reserve(
        &self,
        key: &str,
        amounts: &Amounts,
        lasts: Duration,
        now: Time,
    ) -> Result<BTreeMap<String, Left>, Unreserved> {
        let (mut holder, mut budgets) = (self.holder.lock(), self.budgets.lock());
        let known = budgets.reservations.get(key).filter(|it| it.until > now);
        if known.is_some_and(|it| it.amounts != *amounts) {
            return Err(Unreserved::OtherAmounts);
        }
        if known.is_none() {
            for id in amounts.keys() {
                self.open_budget(id, &mut holder, &mut budgets, now)?;
            }
            let reserved = budgets.reserve(amounts, now);
            for id in amounts.keys() {
                let account = budgets.accounts.get_mut(&**id);
                if account.is_some_and(|it| it.holder.asks_early(now)) {
                    holder.state.ask_anew(id);
                    self.wake.notify_one();
                }
            }
            let turns = reserved.map_err(|(budget, why)| {
                let trouble = holder.state.resource(&budget).and_then(|it| it.trouble());
                match trouble.filter(|it| it.kind != RefusalKind::NotReady) {
                    Some(trouble) => Unreserved::Refused {
                        is_unknown: trouble.kind == RefusalKind::Unknown,
                        reason: trouble.message.to_string(),
                        budget,
                    },
                    None => Unreserved::Short {
                        why,
                        window_ends_in: budgets.left(&budget, now).window_ends_in,
                        budget,
                    },
                }
            })?;
            let reservation = Reservation {
                amounts: amounts.clone(),
                turns,
                counted: None,
                until: now + lasts,
            };
            if !self.room.take(&self.identity, reservation.bytes(key)) {
                budgets.settle(amounts, &reservation.turns, &|_, _| 0);
                return Err(Unreserved::NoRoom);
            }
            budgets.reservations.insert(key.into(), reservation);
        }
        let left = |id: &String| (id.clone(), budgets.left(id, now));
        Ok(amounts.keys().map(left).collect())
    }

    fn open_budget(
        &self,
        id: &str,
        holder: &mut Holder,
        budgets: &mut Budgets,
        now: Time,
    ) -> Result<(), Unreserved> {
        if budgets.accounts.contains_key(id) {
            return Ok(());
        }
        let is_full = budgets.accounts.len() >= RESOURCES_MAX;
        // A limit by rate or in flight has the place.
        if holder.state.resource(id).is_some() {
            return Err(Unreserved::Refused {
                budget: id.to_owned(),
                is_unknown: false,
                reason: "it is in use as a limit that is no budget".to_owned(),
            });
        }
        if is_full || !self.room.take(&self.identity, USE_BYTES) {
            return Err(Unreserved::NoRoom);
        }
        holder.open(id, 0.0, now);
        let account = Account {
            holder: BudgetHolder::new(clock::incarnation().get()),
            is_used: true,
        };
        budgets.accounts.insert(id.into(), account);
        self.wake.notify_one();
        Ok(())
    }

    /// Ends a reservation: what was used counts, of budgets without a word what was reserved. Without amounts, nothing
    /// counts. Returns what counts by the first such call.
    pub(crate) fn end(
        &self,
        key: &str,
        used: Option<&Amounts>,
        now: Time,
    ) -> Result<Amounts, Unended> {
        let mut budgets = self.budgets.lock();
        let known = budgets.reservations.get_mut(key);
        let known = known
            .filter(|it| it.until > now)
            .ok_or(Unended::UnknownKey)?;
        let is_strange = |id: &&String| !known.amounts.contains_key(*id);
        if let Some(id) = used.and_then(|used| used.keys().find(is_strange)) {
            return Err(Unended::NotReserved(id.clone()));
        }
        if let Some(counted) = &known.counted {
            return Ok(counted.clone());
        }
        let (amounts, turns) = (known.amounts.clone(), std::mem::take(&mut known.turns));
        let counts =
            |id: &str, reserved| used.map_or(0, |used| used.get(id).copied().unwrap_or(reserved));
        let counted = budgets.settle(&amounts, &turns, &counts);
        if let Some(known) = budgets.reservations.get_mut(key) {
            known.until = known.until.max(now + REMEMBERED);
            known.counted = Some(counted.clone());
        }
        drop(budgets);
        self.budgets_changed.notify_waiters();
        Ok(counted)
    }

    /// Brings the newest answers about budgets into force.
    pub(super) fn hear_budgets<'a>(&self, changed: impl Iterator<Item = &'a str>) {
        let (holder, mut budgets) = (self.holder.lock(), self.budgets.lock());
        if budgets.accounts.is_empty() {
            return;
        }
        for id in changed {
            let answer = holder.state.resource(id).and_then(|it| it.budget());
            if let (Some(answer), Some(account)) = (answer, budgets.accounts.get_mut(id)) {
                account.holder.answer(&answer);
            }
        }
        drop((holder, budgets));
        self.budgets_changed.notify_waiters();
    }

    /// Forgets old reservations, and closes accounts that nothing used since the last such call. Returns whether nothing
    /// is left.
    pub(super) fn close_idle_budgets(&self, holder: &mut Holder, now: Time) -> bool {
        let mut budgets = self.budgets.lock();
        let Budgets {
            accounts,
            reservations,
            last_words,
        } = &mut *budgets;
        reservations.retain(|key, it| {
            let stays = it.until > now;
            if !stays {
                self.room.free(&self.identity, it.bytes(key));
            }
            stays
        });
        let under_way = reservations.values().filter(|it| it.counted.is_none());
        let busy: HashSet<&str> = under_way
            .flat_map(|it| it.amounts.keys().map(|id| &**id))
            .collect();
        accounts.retain(|id, account| {
            let stays = std::mem::take(&mut account.is_used) || busy.contains(&**id);
            if !stays {
                let word = account.holder.say_need(0).word;
                if let Ok(id) = ResourceId::new(id) {
                    last_words.insert(
                        id,
                        BudgetWord {
                            closes: true,
                            ..word
                        },
                    );
                }
                holder.state.close(id, now);
                self.room.free(&self.identity, USE_BYTES);
            }
            stays
        });
        budgets.is_empty()
    }
}

impl Budgets {
    fn left(&self, id: &str, now: Time) -> Left {
        let holder = self.accounts.get(id).map(|it| &it.holder);
        let ends_at = holder.and_then(BudgetHolder::ends_at);
        Left {
            amount: holder.map_or(0, |it| it.left(now)),
            window_ends_in: ends_at.map(|ends| ends.since(now)),
            is_soft: holder.is_some_and(BudgetHolder::is_soft),
        }
    }
}

impl Reservation {
    fn bytes(&self, key: &str) -> usize {
        let names = self.amounts.keys().map(|id| 2 * id.len() + 64);
        RESERVATION_BYTES + key.len() + names.sum::<usize>()
    }
}
