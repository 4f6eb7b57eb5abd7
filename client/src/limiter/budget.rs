//! A client's accounts of a budget. A call reserves an estimate first, and settles its true use afterwards.
//!
//! Each book of a granter is an account with a ceiling. Calls take from the oldest account that has room, so an amount that
//! a forgetful granter cannot take back is used first. Before each request the holder lowers its ceiling to what it has
//! taken and needs, and then says so. **An answer counts only if it answers the newest request**
//! ([`ClientState`](crate::state::ClientState)), so no older answer can raise the ceiling again.

use std::time::Duration;

use doorward_session::time::budget::{AMOUNT_MAX, BudgetWord, Window};

use crate::state::{BudgetAnswer, BudgetAsk, LimitedBy};
use crate::time::Time;

/// Part by which a holder counts the rest of a window shorter, since its clock may be slower than the server's.
const FASTER: u32 = 1_000;

/// Length of the two spans over which use is measured.
const SPAN: Duration = Duration::from_secs(5);

/// Refresh intervals that the headroom of a client without a stream covers, and the same if the window is short.
const INTERVALS: (u32, u32) = (12, 2);

/// A window below that is short.
const SHORT: Duration = Duration::from_secs(3_600);

/// Reason why an amount cannot be reserved now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    /// The ceilings are too low. A server may raise them.
    Ceiling,
    /// The newest answer left less than the call needs, and the request had named such an amount: nothing more is there.
    Exhausted,
    /// The window is over, and the next one is not known yet.
    Turning,
    /// No server has answered yet.
    NoCeiling,
}

#[derive(Clone, Copy, Debug)]
struct Account {
    book: u64,
    ceiling: u64,
    taken: u64,
}

impl Account {
    fn headroom(&self) -> u64 {
        self.ceiling.saturating_sub(self.taken)
    }
}

/// A client's accounts of one budget in one window.
#[derive(Debug, Default)]
pub struct BudgetHolder {
    book: u64,
    /// Ordered by their last answers; the last one is that of the newest answer.
    accounts: Vec<Account>,
    /// Mastership of the newest answer.
    granted_by: Option<u64>,
    window: Option<Window>,
    ends_at: Option<Time>,
    /// Number of windows so far.
    turn: u64,
    /// Number of the newest answer.
    answered: u64,
    /// Headroom that this answer gives by what the server knew, and whether others have the rest of what was needed.
    granted: u64,
    is_short: bool,
    /// Need and smallest call of the newest word, and of the newest one that was answered.
    said: (u64, u64),
    heard: (u64, u64),
    /// Smallest and largest amount that calls asked for in vain since the newest word.
    in_vain: Option<(u64, u64)>,
    /// Whether more was asked for early since the newest answer.
    asked_early: bool,
    /// Amount that counts in the first account, since there is none yet.
    owed: u64,
    /// Amounts of calls in the present span and in the one before, and the start of the present one.
    used: (u64, u64, Time),
    soft: bool,
    /// The whole of the budget, by the newest answer. 0: not known.
    total: u64,
}

impl BudgetHolder {
    /// Holds nothing yet. `book` is a random number above 0.
    pub fn new(book: u64) -> Self {
        Self {
            book,
            ..Self::default()
        }
    }

    /// Number of windows so far. An amount is settled in the window in which it was reserved.
    pub const fn turn(&self) -> u64 {
        self.turn
    }

    /// Amount that calls may still take in this window, as far as servers have said.
    pub fn left(&self, now: Time) -> u64 {
        match self.is_over(now) {
            true => 0,
            false => self.accounts.iter().map(Account::headroom).sum(),
        }
    }

    /// Amount that calls have taken of the account of the newest answer and those before it in this window, and the amount
    /// that they may take in all.
    pub fn amounts(&self, now: Time) -> (u64, u64) {
        let present = self.accounts.iter().filter(|_| !self.is_over(now));
        present.fold((0, 0), |(taken, most), it| {
            (taken + it.taken, most + it.taken.max(it.ceiling))
        })
    }

    /// End of the window, if it has one.
    pub const fn ends_at(&self) -> Option<Time> {
        self.ends_at
    }

    /// Whether the soft limit of the budget is reached.
    pub const fn is_soft(&self) -> bool {
        self.soft
    }

    /// Number of the newest answer.
    pub const fn answered(&self) -> u64 {
        self.answered
    }

    /// Whether the newest answer left nothing for a call of that amount, although one as small had waited for it.
    fn is_told_no(&self, amount: u64) -> bool {
        let (_, least) = self.heard;
        self.is_short && least > 0 && amount >= least && self.granted < least
    }

    fn is_too_large(&self, amount: u64) -> bool {
        self.total > 0 && amount > self.total
    }

    fn is_over(&self, now: Time) -> bool {
        self.ends_at.is_some_and(|ends| ends <= now)
    }

    /// Reserves an amount.
    ///
    /// # Errors
    ///
    /// The reason why that is not possible now.
    pub fn reserve(&mut self, amount: u64, now: Time) -> Result<(), Short> {
        if !self.is_over(now) {
            let room = |account: &&mut Account| account.headroom() >= amount;
            if let Some(account) = self.accounts.iter_mut().find(room) {
                account.taken += amount;
                self.note_use(amount, now);
                // A call that waited waits no more.
                self.in_vain.take_if(|(_, most)| *most <= amount);
                return Ok(());
            }
        }
        self.wait_for(amount);
        Err(self.short(amount, now))
    }

    /// Notes that a call waits for an amount, or for another budget beside it: the next request asks for so much. A call
    /// that is larger than the whole budget waits for nothing.
    pub fn wait_for(&mut self, amount: u64) {
        if self.is_too_large(amount) {
            return;
        }
        let (least, most) = self.in_vain.unwrap_or((amount, amount));
        self.in_vain = Some((least.min(amount), most.max(amount)));
    }

    /// Returns why an amount for which there is no room cannot be reserved.
    pub fn short(&self, amount: u64, now: Time) -> Short {
        match self.accounts.is_empty() {
            _ if self.is_over(now) => Short::Turning,
            true => Short::NoCeiling,
            false if self.is_told_no(amount) || self.is_too_large(amount) => Short::Exhausted,
            false => Short::Ceiling,
        }
    }

    /// Whether an amount may be reserved now.
    pub fn has(&self, amount: u64, now: Time) -> bool {
        let mut accounts = self.accounts.iter();
        !self.is_over(now) && accounts.any(|account| account.headroom() >= amount)
    }

    /// Settles an amount that was reserved in that window. In a later window it changes nothing.
    pub fn settle(&mut self, turn: u64, reserved: u64, used: u64) {
        if turn != self.turn {
            return;
        }
        let more = used.saturating_sub(reserved);
        match self.accounts.last_mut() {
            Some(account) => account.taken = account.taken.saturating_add(more).min(AMOUNT_MAX),
            None => self.owed = self.owed.saturating_add(more).min(AMOUNT_MAX),
        }
        let mut back = reserved.saturating_sub(used);
        for account in self.accounts.iter_mut().rev() {
            let part = back.min(account.taken);
            account.taken -= part;
            back -= part;
        }
    }

    fn note_use(&mut self, amount: u64, now: Time) {
        let (present, _, since) = &mut self.used;
        if now.since(*since) < SPAN {
            *present = present.saturating_add(amount);
            return;
        }
        let before = if now.since(*since) < 2 * SPAN {
            *present
        } else {
            0
        };
        self.used = (amount, before, now);
    }

    /// Returns the headroom that calls need until the request after the next one.
    fn need(&self, interval: Duration, streams: bool, now: Time) -> u64 {
        let (present, before, since) = self.used;
        let span = now.since(since);
        let (amount, over) = match span < 2 * SPAN {
            true if before > 0 => (present.saturating_add(before), span + SPAN),
            true => (present, span.max(interval)),
            false => (0, SPAN),
        };
        let is_short = |window: Window| {
            let length = window.end.saturating_sub(window.start).unsigned_abs();
            Duration::from_millis(length) < SHORT
        };
        let intervals = match self.window {
            _ if streams => 1,
            Some(window) if is_short(window) => INTERVALS.1,
            _ => INTERVALS.0,
        };
        let rate = amount as f64 / over.as_secs_f64().max(0.001);
        let need = (rate * (interval * intervals).as_secs_f64()).ceil() as u64;
        let in_vain = self.in_vain.map_or(0, |(_, most)| most);
        need.max(in_vain).min(AMOUNT_MAX)
    }

    /// Whether to ask before the next refresh: less than half of what was granted is left, or a call waits. Only once for
    /// each answer, and not if that one left nothing.
    pub fn asks_early(&mut self, now: Time) -> bool {
        let is_low = self.left(now) < self.granted / 2;
        let waits = |(least, _)| self.is_over(now) || !self.is_told_no(least);
        let asks = !self.asked_early && self.in_vain.map_or(is_low, waits);
        self.asked_early |= asks;
        asks
    }

    /// Lowers the ceiling to what is taken and needed for a refresh interval, and returns the word that says so.
    pub fn say(&mut self, interval: Duration, streams: bool, now: Time) -> BudgetAsk {
        let need = self.need(interval, streams, now);
        self.say_need(need)
    }

    /// The same, with a need that is known.
    pub fn say_need(&mut self, mut need: u64) -> BudgetAsk {
        let least = self.in_vain.take().map_or(0, |(least, _)| least);
        let account = self.accounts.last_mut();
        let (granter_book, has, taken) = account.map_or((None, 0, 0), |account| {
            // The two together are an amount, too.
            need = need.min(AMOUNT_MAX.saturating_sub(account.taken));
            account.ceiling = account.ceiling.min(account.taken.saturating_add(need));
            let has = account.ceiling.max(account.taken);
            (Some(account.book), has, account.taken)
        });
        self.said = (need, least);
        BudgetAsk {
            word: BudgetWord {
                holder_book: self.book,
                granter_book,
                window: self.window,
                taken,
                least,
                closes: false,
            },
            granted_by: self.granted_by,
            has,
            need,
        }
    }

    /// Brings an answer to the newest request into force. Returns whether it counts.
    pub fn answer(&mut self, answer: &BudgetAnswer) -> bool {
        let state = &answer.state;
        let is_older = |window: Window| state.window.start < window.start;
        if answer.number <= self.answered || self.window.is_some_and(is_older) {
            return false;
        }
        (self.answered, self.heard) = (answer.number, self.said);
        if self.window != Some(state.window) {
            self.accounts.clear();
            self.turn += 1;
            (self.window, self.ends_at) = (Some(state.window), None);
        }
        // A push tells what remains later than it was asked. The latest of such ends is true still.
        let ends_at = state
            .ends_in
            .map(|left| answer.sent_at + (left - left / FASTER));
        self.ends_at = self.ends_at.max(ends_at);
        self.granted_by = answer.granted_by;
        let book = state.granter_book;
        let place = self.accounts.iter().position(|it| it.book == book);
        let taken = place.map_or(0, |place| self.accounts.remove(place).taken);
        let taken = taken
            .saturating_add(std::mem::take(&mut self.owed))
            .min(AMOUNT_MAX);
        let ceiling = answer.ceiling;
        self.accounts.push(Account {
            book,
            ceiling,
            taken,
        });
        self.granted = answer.ceiling.saturating_sub(state.known_taken);
        self.asked_early = false;
        self.is_short = matches!(
            answer.limited_by,
            Some(LimitedBy::Share | LimitedBy::Others)
        );
        (self.soft, self.total) = (state.soft, state.total);
        let whole = self.total;
        self.in_vain.take_if(|(_, most)| whole > 0 && *most > whole);
        true
    }
}

#[cfg(test)]
mod tests;
