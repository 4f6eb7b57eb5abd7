//! The grants of one server from a budget in one window.
//!
//! Each holder has an account with this granter's book. **The granter keeps, for each account, the most that its holder may
//! have taken**, and all of that together never exceeds the amount that there is. Only the holder's word lowers it: no
//! expiry and no release does, so an amount that was forgotten is lost to this window, and never given twice.
//!
//! The rest of the window is divided as headroom: each holder gets up to the max-min level of all needs. From a root, a
//! holder with a stream gets its share of a quarter of the rest, and asks again soon. So no holder keeps what others need.
//!
//! All amounts are whole numbers up to 10^15. A sum is exact.

mod headroom;
mod live;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use crate::budget::account::{Account, AccountId, Answer, Word, nothing};
use crate::claims::{Claim, ClaimIndex, Demand};
use crate::id::MastershipId;
use crate::messages::{LimitedBy, RefusalReason};
use crate::templates::window::Window;
use crate::time::Time;

/// A window that is over.
#[derive(Debug)]
struct Before {
    window: Window,
    /// Σ of what was reserved, less what was not used, as late words say.
    reserved: u128,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Granter {
    book: u64,
    mastership: MastershipId,
    /// Whether a parent gives the amount, by the needs of these holders.
    is_below: bool,
    window: Window,
    /// Number of the window.
    turn: u64,
    /// Amount that there is.
    total: u64,
    /// Amount that may be out.
    confirmed: u64,
    /// Largest `least` that counts.
    largest_call: u64,
    /// Time after which a silent holder's need does not count.
    lease_length: Duration,
    accounts: BTreeMap<AccountId, Account>,
    /// Number of holders with an account, and of child servers among them.
    holders: usize,
    servers: usize,
    /// Holders that are not silent, by the time of a word, and those that are. A live one moves to its newest word only
    /// when its entry is due, so a word costs no change here.
    live: BTreeSet<(Time, AccountId)>,
    silent: BTreeSet<(Time, AccountId)>,
    needs: ClaimIndex,
    /// Σ of what is reserved for all accounts.
    reserved: u128,
    /// Σ of what they are known to have taken.
    taken: u128,
    /// Σ of what silent ones may have taken beyond that.
    may_be_taken: u128,
    /// Amount of accounts that are not kept any more, and of those that a predecessor knew and this one does not.
    unreported: u64,
    before: Before,
    /// Whether there may be more for holders with a stream, and the last one that was looked at.
    round: Option<Option<AccountId>>,
    /// Whether a holder got less than it needs since the last round began.
    is_waited_for: bool,
    /// Amount that holders are to get once more of the total may be out.
    missing: u64,
    /// Smallest amount, beside all that is reserved, by which one of those would have its `least`.
    least: Option<u64>,
}

impl Granter {
    /// Makes one of a book. `unreported`: amount that a predecessor may have granted from the same book.
    pub(crate) fn new(
        book: u64,
        mastership: MastershipId,
        window: Window,
        unreported: u64,
    ) -> Self {
        Self {
            book,
            mastership,
            is_below: false,
            window,
            turn: 0,
            total: 0,
            confirmed: 0,
            largest_call: u64::MAX,
            lease_length: Duration::MAX,
            accounts: BTreeMap::new(),
            holders: 0,
            servers: 0,
            live: BTreeSet::new(),
            silent: BTreeSet::new(),
            needs: ClaimIndex::default(),
            reserved: 0,
            taken: 0,
            may_be_taken: 0,
            unreported,
            before: Before {
                window,
                reserved: 0,
            },
            round: None,
            is_waited_for: false,
            missing: 0,
            least: None,
        }
    }

    pub(crate) fn book(&self) -> u64 {
        self.book
    }

    pub(crate) fn window(&self) -> Window {
        self.window
    }

    /// Amount that there is.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Σ of what is reserved: for accounts, and for those that are not known.
    pub(crate) fn reserved(&self) -> u64 {
        narrow(self.all_reserved())
    }

    /// Σ of what accounts are known to have taken.
    pub(crate) fn taken(&self) -> u64 {
        narrow(self.taken)
    }

    /// Σ of what is taken, or may be by holders that are silent.
    pub(crate) fn base(&self) -> u64 {
        narrow(self.taken + self.may_be_taken + u128::from(self.unreported))
    }

    /// Amount that may have been used in the last window.
    pub(crate) fn reserved_before(&self) -> u64 {
        narrow(self.before.reserved)
    }

    /// Amount that unknown accounts may have taken.
    pub(crate) fn unreported(&self) -> u64 {
        self.unreported
    }

    /// Amount that may soon be out: by what holders wait for, and by all needs, of which a quarter of the rest or a largest
    /// call counts.
    pub(crate) fn asked_for(&self) -> u64 {
        let (base, needs) = (self.base(), self.needs.total_wants() as u64);
        let at_once = (self.total.saturating_sub(base) / 4).max(self.largest_call);
        let waits = self.reserved().saturating_add(self.missing);
        waits.max(base.saturating_add(needs.min(at_once)))
    }

    /// Whether a holder has an account here.
    pub(crate) fn knows(&self, account: &AccountId) -> bool {
        self.accounts.contains_key(account)
    }

    /// Number of accounts.
    pub(crate) fn len(&self) -> usize {
        self.accounts.len()
    }

    /// Number of holders with an account, and of child servers among them.
    pub(crate) fn holders(&self) -> (usize, usize) {
        (self.holders, self.servers)
    }

    /// The needs of all holders that are not silent.
    pub(crate) fn needs(&self) -> &ClaimIndex {
        &self.needs
    }

    /// The window, if it is known.
    pub(crate) fn known_window(&self) -> Option<Window> {
        Some(self.window).filter(|it| *it != Window::UNKNOWN)
    }

    /// Begins the first window that is known.
    pub(crate) fn begin(&mut self, window: Window) {
        self.window = window;
        self.begin_round();
    }

    /// Whether a holder got less than it needs since the last round began.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.is_waited_for
    }

    /// Returns the smallest amount, beside all that is taken, that would be of use to a holder which got less than that
    /// since the least was taken out. 0: none waits.
    pub(crate) fn least(&self) -> u64 {
        match self.least.unwrap_or(0) {
            0 => 0,
            // Other holders keep their headroom.
            least => least + (self.reserved() - self.base()),
        }
    }

    pub(crate) fn take_least(&mut self) -> u64 {
        let least = self.least();
        self.least = None;
        least
    }

    /// Says how much unknown accounts may have taken.
    pub(crate) fn set_unreported(&mut self, amount: u64) {
        self.unreported = amount;
        self.begin_round();
    }

    /// Changes the time after which a silent holder's need does not count, and the largest `least` that counts.
    pub(crate) fn set_terms(&mut self, lease_length: Duration, largest_call: u64) {
        (self.lease_length, self.largest_call) = (lease_length, largest_call);
    }

    /// Divides all that remains, also among holders with a stream: a parent gave no more than they need.
    pub(crate) fn below_a_parent(self) -> Self {
        Self {
            is_below: true,
            ..self
        }
    }

    /// Changes the amount that there is, and how much of it may be out.
    pub(crate) fn set_total(&mut self, total: u64, confirmed: u64) {
        let confirmed = confirmed.min(total);
        if total > self.total || confirmed > self.confirmed {
            self.begin_round();
            self.missing = 0;
        }
        (self.total, self.confirmed) = (total, confirmed);
    }

    /// Begins another window: all amounts are 0, and the needs stay.
    pub(crate) fn turn(&mut self, window: Window) {
        self.before = Before {
            window: std::mem::replace(&mut self.window, window),
            reserved: self.all_reserved(),
        };
        self.turn += 1;
        (self.reserved, self.taken, self.may_be_taken) = (0, 0, 0);
        (self.unreported, self.missing) = (0, 0);
        self.begin_round();
    }

    /// Whether [`Granter::push_next`] may have something.
    pub(crate) fn has_round(&self) -> bool {
        self.round.is_some()
    }

    /// Looks at all accounts again.
    pub(crate) fn begin_round(&mut self) {
        if !self.accounts.is_empty() {
            self.round = Some(None);
            // Holders that still wait say so again.
            self.least = None;
        }
    }

    /// Hears a word and decides.
    ///
    /// # Errors
    ///
    /// `NotReady` if it is about a window that has not begun here, or the mark of the budget rises first: the need is
    /// noted. `TooManyAccounts` if all are those of live holders.
    pub(crate) fn hear(
        &mut self,
        id: &AccountId,
        word: Word,
        now: Time,
    ) -> Result<Answer, RefusalReason> {
        self.note_silence(now);
        self.open(id)?;
        let has_begun = |window: Window| window.start <= self.window.start;
        if self.window == Window::UNKNOWN || !word.window.is_none_or(has_begun) {
            self.note_holder(id, &word, now);
            self.is_waited_for = true;
            self.least = self.least.into_iter().chain(Some(word.least)).min();
            return Err(RefusalReason::NotReady);
        }
        let is_new = |account: &Account| {
            let is_newest = word.sequence == account.newest;
            word.sequence > account.newest || is_newest && account.is_unanswered
        };
        if !self.accounts.get(id).is_some_and(is_new) {
            return self.last_answer(id).ok_or(RefusalReason::TooManyAccounts);
        }
        let before = self.all_reserved();
        self.note_word(id, &word);
        if self.is_waited_for && self.all_reserved() < before {
            self.begin_round();
        }
        self.note_holder(id, &word, now);
        let headroom = self.headroom(id).ok_or(RefusalReason::TooManyAccounts)?;
        self.missing = self.missing.saturating_add(headroom.missing());
        let waits = headroom.missing() > 0 && !word.streams;
        if let Some(account) = self.accounts.get_mut(id) {
            (account.newest, account.is_unanswered) = (word.sequence, waits);
        }
        if waits {
            return Err(RefusalReason::NotReady);
        }
        self.decide(id, headroom)
            .ok_or(RefusalReason::TooManyAccounts)
    }

    /// Notes what a word says about an account of this book and window. It lowers only what its own mastership granted.
    fn note_word(&mut self, id: &AccountId, word: &Word) {
        if word.book != Some(self.book) {
            return;
        }
        let said = word.has.max(word.taken);
        if word.window != Some(self.window) {
            if word.window == Some(self.before.window) {
                let freed = self.change(id, |account| {
                    let freed = account.reserved_before.saturating_sub(said);
                    account.reserved_before -= freed;
                    freed
                });
                self.before.reserved -= u128::from(freed.unwrap_or_default());
            }
            return;
        }
        let may_lower = word.mastership == Some(self.mastership);
        let raised = self.change(id, |account| {
            // An amount that this mastership granted is beside the unreported one, and so is a use above it.
            let is_unreported = account.newest == 0 || !may_lower;
            let raised = said.saturating_sub(account.reserved);
            let raised = if is_unreported { raised } else { 0 };
            if may_lower {
                (account.reserved, account.taken) = (said, word.taken);
            } else {
                account.reserved = account.reserved.max(said);
                account.taken = account.taken.max(word.taken);
            }
            raised
        });
        // The unreported amount includes it.
        self.unreported = self.unreported.saturating_sub(raised.unwrap_or_default());
    }

    fn all_reserved(&self) -> u128 {
        self.reserved + u128::from(self.unreported)
    }

    /// Notes whether a holder is told that more may come. Returns whether it was told so before.
    pub(crate) fn note_told(&mut self, id: &AccountId, expects_more: bool) -> bool {
        let account = self.accounts.get_mut(id);
        account.is_some_and(|it| std::mem::replace(&mut it.expects_more, expects_more))
    }

    /// Looks at the next account of the round. Returns the answer if its holder has a stream and waits, and whether it gets
    /// more.
    pub(crate) fn push_next(&mut self, now: Time) -> Option<(AccountId, Answer, bool)> {
        self.note_silence(now);
        let after = self.round.as_ref()?;
        let from = after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.accounts.range((from, Bound::Unbounded)).next();
        let Some((id, account)) = next.map(|(id, account)| (id.clone(), account)) else {
            self.round = None;
            return None;
        };
        if after.is_none() {
            self.is_waited_for = false;
        }
        self.round = Some(Some(id.clone()));
        let is_new = account.turn != self.turn;
        let is_short = is_new || account.limited_by != LimitedBy::Wants;
        self.is_waited_for |= is_short;
        if !account.streams || account.is_silent || !is_short {
            return None;
        }
        let before = self.change(&id, |account| account.ceiling)?;
        let headroom = self.headroom(&id)?;
        self.missing = self.missing.saturating_add(headroom.missing());
        let answer = self.decide(&id, headroom)?;
        Some((id, answer, is_new || answer.ceiling > before))
    }

    /// Changes an account, and with it the sums.
    fn change<T>(&mut self, id: &AccountId, change: impl FnOnce(&mut Account) -> T) -> Option<T> {
        let account = self.accounts.get_mut(id)?;
        if account.turn != self.turn {
            let is_next = account.turn + 1 == self.turn;
            account.reserved_before = if is_next { account.reserved } else { 0 };
            account.turn = self.turn;
            (account.reserved, account.taken, account.ceiling) = (0, 0, 0);
        }
        let [reserved, taken, silent] = account.amounts();
        let changed = change(account);
        debug_assert!(
            account.reserved >= account.taken,
            "what is taken is reserved"
        );
        let after = account.amounts();
        let replace =
            |sum: u128, before: u64, after: u64| sum - u128::from(before) + u128::from(after);
        self.reserved = replace(self.reserved, reserved, after[0]);
        self.taken = replace(self.taken, taken, after[1]);
        self.may_be_taken = replace(self.may_be_taken, silent, after[2]);
        Some(changed)
    }

    /// Replaces what counts of an account's need. None: nothing.
    fn replace_need(&mut self, id: &AccountId, need: Option<&Demand>) {
        let Some(account) = self.accounts.get_mut(id) else {
            return;
        };
        let none = nothing();
        let need = need.unwrap_or(&none);
        if *need != account.need {
            let needs = &mut self.needs;
            let counts = |claim: &Claim| !claim.wants.is_zero();
            let before = std::mem::replace(&mut account.need, need.clone());
            before.for_each_claim(|_, claim| {
                if counts(&claim) {
                    needs.remove(claim)
                }
            });
            let after = &account.need;
            after.for_each_claim(|_, claim| {
                if counts(&claim) {
                    needs.insert(claim)
                }
            });
        }
    }

    /// Asserts that the sums are those of the accounts. O(accounts), for tests.
    pub(crate) fn assert_consistent(&self) {
        let present = self.accounts.values().filter(|it| it.turn == self.turn);
        let sums = present.fold([0; 3], |sums: [u128; 3], account| {
            let of = account.amounts().map(u128::from);
            [sums[0] + of[0], sums[1] + of[1], sums[2] + of[2]]
        });
        assert_eq!(sums, [self.reserved, self.taken, self.may_be_taken], "sums");
        assert_eq!(
            self.live.len() + self.silent.len(),
            self.accounts.len(),
            "accounts"
        );
    }
}

fn narrow(sum: u128) -> u64 {
    u64::try_from(sum).unwrap_or(u64::MAX)
}
