//! Holders that live, and those that are silent or forgotten.

use crate::budget::account::{ACCOUNTS_MAX, Account, AccountId, Word};
use crate::budget::granter::Granter;
use crate::id::HolderKind;
use crate::messages::RefusalReason;
use crate::time::Time;

/// Holders that are forgotten at once, at most.
const FORGOTTEN_AT_ONCE: usize = 16;

impl Granter {
    /// When the next holder may become silent.
    pub(crate) fn next_silence(&self) -> Option<Time> {
        self.live
            .first()
            .map(|(heard_at, _)| *heard_at + self.lease_length)
    }

    /// Notes which holders have become silent.
    pub(crate) fn note_silence(&mut self, now: Time) {
        while self.next_silence().is_some_and(|at| at <= now)
            && let Some((_, id)) = self.live.pop_first()
        {
            let heard_at = self.accounts.get(&id).map_or(now, |it| it.heard_at);
            if heard_at + self.lease_length > now {
                self.enqueue(id, heard_at, false);
                continue;
            }
            self.change(&id, |account| account.is_silent = true);
            self.replace_need(&id, None);
            self.enqueue(id, heard_at, true);
        }
    }

    fn enqueue(&mut self, id: AccountId, at: Time, is_silent: bool) {
        if let Some(account) = self.accounts.get_mut(&id) {
            account.queued_at = Some(at);
        }
        match is_silent {
            true => self.silent.insert((at, id)),
            false => self.live.insert((at, id)),
        };
    }

    /// Notes what a holder needs, and that it lives unless it leaves.
    pub(super) fn note_holder(&mut self, id: &AccountId, word: &Word, now: Time) {
        let before = self.change(id, |account| {
            (account.least, account.streams) = (word.least, word.streams);
            account.heard_at = now;
            let was_silent = std::mem::replace(&mut account.is_silent, word.closes);
            (was_silent, account.queued_at)
        });
        let (was_silent, queued_at) = before.unwrap_or_default();
        if was_silent || word.closes {
            if let Some(at) = queued_at {
                match was_silent {
                    true => self.silent.remove(&(at, id.clone())),
                    false => self.live.remove(&(at, id.clone())),
                };
            }
            self.enqueue(id.clone(), now, word.closes);
        }
        let need = (!word.closes).then_some(&word.need);
        self.replace_need(id, need);
    }

    /// Adds an account if there is none. The oldest silent one makes room for it.
    pub(super) fn open(&mut self, id: &AccountId) -> Result<(), RefusalReason> {
        if self.accounts.contains_key(id) {
            return Ok(());
        }
        if self.accounts.len() >= ACCOUNTS_MAX {
            let (_, oldest) = self
                .silent
                .pop_first()
                .ok_or(RefusalReason::TooManyAccounts)?;
            let reserved = self.change(&oldest, |account| {
                account.taken = 0;
                std::mem::take(&mut account.reserved)
            });
            self.unreported += reserved.unwrap_or_default();
            self.remove(&oldest);
        }
        self.count_holder(id, |count| *count += 1);
        self.accounts.insert(id.clone(), Account::new(self.turn));
        Ok(())
    }

    /// Forgets silent holders that took nothing in this window and the one before. A bounded number for each call.
    pub(crate) fn forget_old(&mut self) {
        for _ in 0..FORGOTTEN_AT_ONCE {
            let Some((_, id)) = self.silent.first() else {
                return;
            };
            let turn = self.accounts.get(id).map_or(0, |it| it.turn);
            if turn + 1 >= self.turn {
                return;
            }
            if let Some((_, id)) = self.silent.pop_first() {
                self.remove(&id);
            }
        }
    }

    fn remove(&mut self, id: &AccountId) {
        self.accounts.remove(id);
        self.count_holder(id, |count| *count -= 1);
    }

    /// Counts a holder whose first account comes, or whose last one went.
    fn count_holder(&mut self, id: &AccountId, change: impl Fn(&mut usize)) {
        let of = |book| AccountId { book, ..id.clone() };
        if self.accounts.range(of(0)..=of(u64::MAX)).next().is_none() {
            change(&mut self.holders);
            if id.holder.kind == HolderKind::Server {
                change(&mut self.servers);
            }
        }
    }
}
