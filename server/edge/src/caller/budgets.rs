//! An identity's accounts of budgets, and what its programs have reserved of them.
//!
//! A reservation has a key. A repeated call with the key changes nothing, and has the answer of the first one. A
//! reservation without an end counts as estimated.

mod of_rules;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use doorward::limiter::budget::{BudgetHolder, Short};
use doorward::state::{BudgetAsk, RefusalKind};
use doorward::time::Time;
use doorward_engine::id::ResourceId;
use doorward_engine::messages::AMOUNT_MAX;
use doorward_engine::messages::BudgetWord;

use serde::Serialize;

use super::{Caller, RESOURCES_MAX, RETRY_IN, USE_BYTES};
use crate::clock::{self, Clock};
use crate::holder::Holder;

/// Time for which an ended reservation is remembered.
const REMEMBERED: Duration = Duration::from_secs(600);

/// Estimated bytes of a reservation without its names.
const RESERVATION_BYTES: usize = 300;

const NO_ROOM: &str = "there are too many reservations or budgets of this identity";
const NO_RESERVATION: &str = "key: no such reservation is here; an expired one counts as estimated";

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
    /// A window, and what rules took in it.
    counted: (u64, u64),
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

/// Why nothing was reserved or ended.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) kind: Kind,
    /// The problem, for people.
    pub(crate) detail: String,
    /// Time after which it may succeed.
    pub(crate) retry_in: Option<Duration>,
}

/// Kind of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The window has too little.
    UsedUp,
    /// The node may soon say more.
    NotYet,
    NoRoom,
    Unknown,
    /// The node, or the key, means something else.
    Conflict,
    Invalid,
}

impl Refused {
    fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: detail.into(),
            retry_in: matches!(kind, Kind::NotYet | Kind::NoRoom).then_some(RETRY_IN),
        }
    }

    /// Makes the refusal of a budget that has too little.
    fn short(budget: &str, short: Short, window_ends_in: Option<Duration>) -> Self {
        let (kind, why) = match short {
            Short::Exhausted => (Kind::UsedUp, "has too little for this call in this window"),
            Short::NoCeiling => (Kind::NotYet, "has no answer of the node yet"),
            Short::Turning => (Kind::NotYet, "begins its next window"),
            Short::Ceiling => (Kind::NotYet, "may have more soon"),
        };
        let refused = Self::new(kind, format!("{budget} {why}"));
        Self {
            retry_in: refused.retry_in.or(window_ends_in),
            ..refused
        }
    }
}

/// The rest of a budget for this process.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Left {
    left: u64,
    /// Whether the soft limit is reached.
    soft: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_ends_in_seconds: Option<f64>,
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
        let has = |(id, amount): &(&String, &u64)| {
            let account = self.accounts.get(&***id);
            account.is_some_and(|it| it.holder.has(**amount, now))
        };
        let short = amounts.iter().find(|it| !has(it));
        let mut turns = Vec::with_capacity(amounts.len());
        for (id, amount) in amounts {
            let Some(account) = self.accounts.get_mut(&**id) else {
                continue;
            };
            account.is_used = true;
            // A call that one budget refuses is no use of the others, but waits for all.
            match short {
                None => _ = account.holder.reserve(*amount, now),
                Some(_) => account.holder.wait_for(*amount),
            }
            turns.push(account.holder.turn());
        }
        if let Some((id, amount)) = short {
            let account = self.accounts.get(&**id);
            let why = account.map_or(Short::NoCeiling, |it| it.holder.short(*amount, now));
            return Err((id.clone(), why));
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
    ) -> Result<BTreeMap<String, Left>, Refused> {
        let until = clock.now() + wait;
        loop {
            let changed = self.budgets_changed.notified();
            let now = clock.now();
            match self.try_reserve(key, amounts, lasts, now) {
                Err(refused) if refused.kind == Kind::NotYet && now < until => tokio::select! {
                    () = changed => {}
                    () = clock.sleep_until(until) => {}
                },
                answer => return answer,
            }
        }
    }

    fn try_reserve(
        &self,
        key: &str,
        amounts: &Amounts,
        lasts: Duration,
        now: Time,
    ) -> Result<BTreeMap<String, Left>, Refused> {
        let (mut holder, mut budgets) = (self.holder.lock(), self.budgets.lock());
        let known = budgets.reservations.get(key).filter(|it| it.until > now);
        if known.is_some_and(|it| it.amounts != *amounts) {
            let detail = "key: it has reserved other amounts; give each call a key of its own";
            return Err(Refused::new(Kind::Conflict, detail));
        }
        if known.is_none() {
            let turns = self.reserve_all(amounts, &mut holder, &mut budgets, now)?;
            let reservation = Reservation {
                amounts: amounts.clone(),
                turns,
                counted: None,
                until: now + lasts,
            };
            if !self.room.take(&self.identity, reservation.bytes(key)) {
                budgets.settle(amounts, &reservation.turns, &|_, _| 0);
                return Err(Refused::new(Kind::NoRoom, NO_ROOM));
            }
            if let Some(expired) = budgets.reservations.insert(key.into(), reservation) {
                self.room.free(&self.identity, expired.bytes(key));
            }
        }
        let left = |id: &String| (id.clone(), budgets.left(id, now));
        Ok(amounts.keys().map(left).collect())
    }

    /// Reserves all amounts or none, and asks for more if need be.
    fn reserve_all(
        &self,
        amounts: &Amounts,
        holder: &mut Holder,
        budgets: &mut Budgets,
        now: Time,
    ) -> Result<Vec<u64>, Refused> {
        for id in amounts.keys() {
            self.open_budget(id, holder, budgets, now)?;
        }
        let reserved = budgets.reserve(amounts, now);
        for id in amounts.keys() {
            let account = budgets.accounts.get_mut(&**id);
            if account.is_some_and(|it| it.holder.asks_early(now)) {
                holder.state.ask_anew(id);
                self.wake.notify_one();
            }
        }
        reserved.map_err(|(budget, short)| {
            let trouble = holder.state.resource(&budget).and_then(|it| it.trouble());
            let detail = trouble.map(|it| format!("{budget}: {}", it.message));
            match trouble.map(|it| it.kind).zip(detail) {
                Some((RefusalKind::Unknown, detail)) => Refused::new(Kind::Unknown, detail),
                Some((RefusalKind::Other, detail)) => Refused::new(Kind::Conflict, detail),
                _ => Refused::short(&budget, short, budgets.window_ends_in(&budget, now)),
            }
        })
    }

    fn open_budget(
        &self,
        id: &str,
        holder: &mut Holder,
        budgets: &mut Budgets,
        now: Time,
    ) -> Result<(), Refused> {
        if budgets.accounts.contains_key(id) {
            return Ok(());
        }
        ResourceId::new(id)
            .map_err(|error| Refused::new(Kind::Invalid, format!("{id:?} {error}")))?;
        let is_full = budgets.accounts.len() >= RESOURCES_MAX;
        // A limit by rate or in flight has the place.
        if holder.state.resource(id).is_some() {
            let detail = format!("{id}: it is in use as a limit that is no budget");
            return Err(Refused::new(Kind::Conflict, detail));
        }
        if is_full || !self.room.take(&self.identity, USE_BYTES) {
            return Err(Refused::new(Kind::NoRoom, NO_ROOM));
        }
        holder.open(id, 0.0, now);
        if budgets
            .last_words
            .keys()
            .any(|closed| closed.as_str() == id)
        {
            holder.state.release_former(id);
        }
        let account = Account {
            holder: BudgetHolder::new(clock::incarnation().get()),
            is_used: true,
            counted: (0, 0),
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
    ) -> Result<Amounts, Refused> {
        let mut budgets = self.budgets.lock();
        let known = budgets.reservations.get_mut(key);
        let known = known
            .filter(|it| it.until > now)
            .ok_or_else(|| Refused::new(Kind::Unknown, NO_RESERVATION))?;
        let is_strange = |id: &&String| !known.amounts.contains_key(*id);
        if let Some(id) = used.and_then(|used| used.keys().find(is_strange)) {
            let detail = format!("used.{id}: nothing of it was reserved");
            return Err(Refused::new(Kind::Invalid, detail));
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
    fn window_ends_in(&self, id: &str, now: Time) -> Option<Duration> {
        let ends_at = self.accounts.get(id)?.holder.ends_at()?;
        Some(ends_at.since(now))
    }

    fn left(&self, id: &str, now: Time) -> Left {
        let holder = self.accounts.get(id).map(|it| &it.holder);
        let ends_in = self.window_ends_in(id, now);
        Left {
            left: holder.map_or(0, |it| it.left(now)),
            soft: holder.is_some_and(BudgetHolder::is_soft),
            window_ends_in_seconds: ends_in.map(|it| it.as_secs_f64()),
        }
    }
}

impl Reservation {
    fn bytes(&self, key: &str) -> usize {
        let names = self.amounts.keys().map(|id| 2 * id.len() + 64);
        RESERVATION_BYTES + key.len() + names.sum::<usize>()
    }
}
