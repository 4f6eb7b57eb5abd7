//! Budgets: an amount for each window of time, never overspent.
//!
//! A budget is given out by a [granter](granter), and what it grants comes from the template at the root, and from an
//! account with the parent ([`upward`]) below it. Holders take what their ceiling allows, and say what they took.

mod account;
mod granter;
mod mark;
mod snapshot;
mod upward;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::admission::CallerSlot;
pub(crate) use crate::budget::account::{ACCOUNTS_MAX, AccountId, Answer, Word};
use crate::budget::granter::Granter;
use crate::budget::mark::BudgetMark;
use crate::budget::upward::Upward;
use crate::id::{MastershipId, ResourceId};
use crate::messages::{BudgetState, LimitedBy, RefusalReason, ServerAsk, ServerLease};
use crate::resource::parent::ParentPace;
use crate::templates::window::{UnixMillis, Window};
use crate::templates::{Algorithm, Template};
use crate::time::{Time, spread};

/// Shortest time after which a holder comes at the turn of a window, and the range by which holders are spread.
const AFTER_TURN: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// A budget at one server.
#[derive(Debug)]
pub(crate) struct Budget {
    id: ResourceId,
    /// The caller that brought it, and the bytes that are counted.
    pub(crate) caller: CallerSlot,
    pub(crate) weighed: usize,
    granter: Granter,
    source: Source,
    algorithm: Arc<Algorithm>,
    /// Number of answers, which spreads holders.
    answered: u64,
}

#[derive(Debug)]
enum Source {
    Root(Root),
    Parent(Box<Upward>),
}

/// Where a root's amounts come from.
#[derive(Debug)]
struct Root {
    /// None: its template was removed.
    template: Option<Arc<Template>>,
    /// Capacity of the present window, and of the one before.
    capacity: u64,
    capacity_before: u64,
    carried: Option<u64>,
    /// Whether any amount may have been given in this window.
    is_unknown: bool,
    /// Whether this server keeps marks of windows that are long enough.
    keeps_marks: bool,
    /// None: it keeps none of this window.
    mark: Option<BudgetMark>,
    /// Starts of windows that are over, and whose marks are in the store.
    marked_before: BTreeSet<UnixMillis>,
}

impl Budget {
    /// Makes a budget of a root. `mark`: the newest window of which there is a mark in the store, and the mark, or the
    /// present window; none if this server keeps no marks. `marked_before`: the starts of earlier windows with a mark.
    /// `is_unknown`: any amount may be out in it.
    pub(crate) fn of_root(
        id: ResourceId,
        template: Arc<Template>,
        (mark, mut marked_before, is_unknown): (Option<(Window, u64)>, BTreeSet<UnixMillis>, bool),
        mastership: MastershipId,
        caller: CallerSlot,
        at: UnixMillis,
    ) -> Self {
        let algorithm = Arc::clone(&template.algorithm);
        let terms = algorithm.budget.as_ref();
        let present = || terms.map_or(Window::LIFETIME, |it| it.period.at(at));
        let keeps_marks = mark.is_some();
        let is_marked = terms.is_some_and(|it| it.period.is_marked());
        let unmarked = mark.filter(|(_, mark)| !is_marked && *mark > 0);
        marked_before.extend(unmarked.map(|(window, _)| window.start));
        let (window, mark) = mark.filter(|_| is_marked).unzip();
        let window = window.unwrap_or_else(present);
        let capacity = capacity_of(&template);
        let book = node_book(&id);
        let unreported = match is_unknown {
            true => capacity,
            false => mark.unwrap_or(0),
        };
        Self {
            granter: Granter::new(book, mastership, window, unreported),
            source: Source::Root(Root {
                template: Some(template),
                capacity,
                capacity_before: capacity,
                // An unknown amount of the window before counts as used.
                carried: Some(0),
                is_unknown,
                keeps_marks,
                mark: mark.map(BudgetMark::found),
                marked_before,
            }),
            id,
            caller,
            weighed: 0,
            algorithm,
            answered: 0,
        }
    }

    /// Makes a budget below the root.
    pub(crate) fn of_parent(
        id: ResourceId,
        mastership: MastershipId,
        caller: CallerSlot,
        now: Time,
    ) -> Self {
        Self {
            id,
            caller,
            weighed: 0,
            granter: Granter::new(mastership.get(), mastership, Window::UNKNOWN, 0)
                .below_a_parent(),
            source: Source::Parent(Box::new(Upward::new(mastership.get(), now))),
            algorithm: Arc::default(),
            answered: 0,
        }
    }

    /// Puts another template in force. None: it was removed.
    pub(crate) fn set_template(&mut self, template: Option<&Arc<Template>>) {
        if let Source::Root(root) = &mut self.source {
            // With another kind, it is as if it was removed.
            let template = template.filter(|it| it.algorithm.budget.is_some());
            root.template = template.cloned();
            if let Some(template) = template {
                self.algorithm = Arc::clone(&template.algorithm);
                root.capacity = capacity_of(template);
            }
        }
    }

    /// Brings the window and the amounts up to date.
    pub(crate) fn look(&mut self, at: UnixMillis, now: Time) {
        self.granter.note_silence(now);
        self.granter.forget_old();
        let (granter, terms) = (&mut self.granter, self.algorithm.budget.as_deref());
        let lease_length = self.algorithm.lease_length;
        match &mut self.source {
            Source::Parent(parent) => {
                let total = if parent.is_over(now) {
                    0
                } else {
                    parent.ceiling()
                };
                granter.set_terms(
                    lease_length,
                    terms.map_or(u64::MAX, |it| it.largest_call(parent.total())),
                );
                granter.set_total(total, total);
            }
            Source::Root(root) => {
                let Some(terms) = terms else {
                    return;
                };
                // The window never goes back.
                let before = granter.window();
                if let Some(window) = before.followed_by(terms.period.at(at), at) {
                    granter.turn(window);
                    root.capacity_before = root.capacity;
                    root.carried = None;
                    root.is_unknown = false;
                    if root.mark.is_some_and(|mark| mark.is_kept()) {
                        root.marked_before.insert(before.start);
                    }
                    let is_marked = root.keeps_marks && terms.period.is_marked();
                    root.mark = is_marked.then(BudgetMark::default);
                }
                let window = granter.window();
                if root.carried.is_none() {
                    let unused = root
                        .capacity_before
                        .saturating_sub(granter.reserved_before());
                    let since = at.saturating_sub(window.start);
                    root.carried = terms.carried(root.capacity, unused, since);
                }
                let paced = terms.paced(root.capacity, window, at);
                let total = paced + root.carried.unwrap_or(0);
                granter.set_terms(lease_length, terms.largest_call(root.capacity));
                granter.set_total(total, root.mark.map_or(total, |mark| mark.confirmed()));
            }
        }
    }

    /// Hears a holder's word, and answers it.
    ///
    /// # Errors
    ///
    /// If there is no ceiling for it now.
    pub(crate) fn ask(
        &mut self,
        account: &AccountId,
        word: Word,
        at: UnixMillis,
        now: Time,
    ) -> Result<Answer, RefusalReason> {
        if matches!(&self.source, Source::Root(root) if root.template.is_none()) {
            return Err(RefusalReason::UnknownResource);
        }
        self.look(at, now);
        let closes = word.closes;
        let answer = self.granter.hear(account, word, now);
        if let Source::Parent(parent) = &mut self.source {
            parent.note_change(&self.granter);
            if let Some(reason) = parent.refused() {
                return Err(reason);
            }
            if parent.is_over(now) && !closes {
                return Err(RefusalReason::NotReady);
            }
        }
        let answer = self.with_reason(answer?);
        let expects_more = answer.limited_by == LimitedBy::Parent;
        self.granter.note_told(account, expects_more);
        let is_unknown = matches!(&self.source, Source::Root(root) if root.is_unknown);
        match answer.limited_by {
            LimitedBy::Wants => Ok(answer),
            _ if is_unknown && answer.ceiling <= answer.taken => Err(RefusalReason::NotReady),
            _ => Ok(answer),
        }
    }

    /// Takes an operator's word whether any amount may have been given in this window.
    pub(crate) fn set_unknown(&mut self, is_unknown: bool) {
        if let Source::Root(root) = &mut self.source
            && root.is_unknown != is_unknown
        {
            root.is_unknown = is_unknown;
            let amount = if is_unknown { root.capacity } else { 0 };
            self.granter.set_unreported(amount);
        }
    }

    /// A holder gets less only for now if the mark rises, or the parent has or is asked for more. A child server knows it
    /// by a share above its ceiling.
    fn with_reason(&self, answer: Answer) -> Answer {
        if answer.limited_by == LimitedBy::Wants {
            return answer;
        }
        let share = match &self.source {
            Source::Parent(parent) if parent.expects_more() => answer.ceiling.saturating_add(1),
            _ => answer.share,
        };
        let limited_by = match share > answer.ceiling {
            true => LimitedBy::Parent,
            false => answer.limited_by,
        };
        Answer {
            share,
            limited_by,
            ..answer
        }
    }

    /// Returns the state of the budget, for a holder, of which so much is known to be taken.
    pub(crate) fn state(&self, known_taken: u64, at: UnixMillis, now: Time) -> BudgetState {
        let window = self.granter.window();
        let (total, soft, ends_in) = match &self.source {
            Source::Root(root) => {
                let soft = self.algorithm.budget.as_ref().and_then(|it| it.soft_limit);
                let is_soft =
                    |part: f64| self.granter.taken() as f64 >= part * root.capacity as f64;
                (
                    self.granter.total(),
                    soft.is_some_and(is_soft),
                    window.remaining(at),
                )
            }
            Source::Parent(parent) => (parent.total(), parent.is_soft(), parent.remaining(now)),
        };
        BudgetState {
            granter_book: self.granter.book(),
            window,
            ends_in,
            total,
            known_taken,
            soft,
        }
    }

    /// Returns how long a holder's word counts, and when the holder should ask again.
    pub(crate) fn pace(&mut self, at: UnixMillis, now: Time) -> (Duration, Duration) {
        let algorithm = &self.algorithm;
        let remaining = match &self.source {
            Source::Root(_) => self.granter.window().remaining(at),
            Source::Parent(parent) => parent.remaining(now),
        };
        self.answered += 1;
        let turn = remaining.map(|it| it + spread::evenly(self.answered, AFTER_TURN));
        let refresh = algorithm.refresh_interval;
        (
            algorithm.lease_length,
            turn.map_or(refresh, |turn| turn.min(refresh)),
        )
    }

    /// Returns the next time at which the budget changes without a request.
    pub(crate) fn next_timeout(&self, at: UnixMillis, now: Time) -> Option<Time> {
        let ends = match &self.source {
            Source::Root(_) => self.granter.window().remaining(at).map(|left| now + left),
            Source::Parent(_) => None,
        };
        ends.into_iter().chain(self.granter.next_silence()).min()
    }

    /// When the parent is to be asked.
    pub(crate) fn next_request(&self, pace: ParentPace) -> Option<Time> {
        match &self.source {
            Source::Root(_) => None,
            Source::Parent(parent) => Some(parent.due(pace)),
        }
    }

    /// Makes the ask to the parent, and lowers what is granted here to what it says. None: this is the root.
    pub(crate) fn ask_upstream(
        &mut self,
        sequence: u64,
        points_max: usize,
        now: Time,
    ) -> Option<ServerAsk> {
        self.look(0, now);
        let Source::Parent(parent) = &mut self.source else {
            return None;
        };
        let ask = parent.ask(&self.id, &mut self.granter, sequence, points_max, now);
        self.look(0, now);
        Some(ask)
    }

    /// Brings the parent's answer into force.
    pub(crate) fn handle_upstream_lease(
        &mut self,
        lease: &ServerLease,
        state: &BudgetState,
        now: Time,
    ) {
        let Source::Parent(parent) = &mut self.source else {
            return;
        };
        if let Some(algorithm) = &lease.algorithm {
            self.algorithm = Arc::new(algorithm.clone());
        }
        parent.answer(&mut self.granter, lease, state, now);
        self.look(0, now);
    }

    /// Returns the account with the parent. None: this is the root.
    pub(crate) fn upward(&mut self) -> Option<&mut Upward> {
        match &mut self.source {
            Source::Root(_) => None,
            Source::Parent(parent) => Some(parent),
        }
    }

    /// Returns the mark to write now.
    pub(crate) fn mark_due(&self) -> Option<u64> {
        let Source::Root(root) = &self.source else {
            return None;
        };
        let granter = &self.granter;
        let needed = granter
            .base()
            .saturating_add(granter.needs().total_wants() as u64);
        root.mark?.due(granter.asked_for(), needed, granter.total())
    }

    /// Begins to write the mark. Returns it, and whether there is one in the store.
    pub(crate) fn send_mark(&mut self) -> Option<(u64, bool)> {
        let due = self.mark_due()?;
        let mark = self.mark_mut()?;
        let was_there = mark.confirmed() > 0;
        mark.send(due);
        Some((due, was_there))
    }

    fn mark_mut(&mut self) -> Option<&mut BudgetMark> {
        match &mut self.source {
            Source::Root(root) => root.mark.as_mut(),
            Source::Parent(_) => None,
        }
    }

    /// Returns the starts of windows whose marks are to be written or removed now.
    pub(crate) fn marks_due(&self) -> impl Iterator<Item = UnixMillis> {
        let before = match &self.source {
            Source::Root(root) => Some(root.marked_before.iter().copied()),
            Source::Parent(_) => None,
        };
        let present = self.mark_due().map(|_| self.window().start);
        before.into_iter().flatten().chain(present)
    }

    /// Begins to remove the mark of a window that is over. Returns whether there is one.
    pub(crate) fn remove_mark(&mut self, start: UnixMillis) -> bool {
        match &mut self.source {
            Source::Root(root) => root.marked_before.remove(&start),
            Source::Parent(_) => false,
        }
    }

    /// Notes that the mark is in the store.
    pub(crate) fn note_mark_written(&mut self) {
        if let Some(mark) = self.mark_mut() {
            mark.note_written();
        }
    }

    /// The window now.
    pub(crate) fn window(&self) -> Window {
        self.granter.window()
    }

    /// Whether [`Budget::push_next`] may have something.
    pub(crate) fn has_round(&self) -> bool {
        self.granter.has_round()
    }

    /// Looks at the next holder that waits. Returns its answer if it gets more, or may no longer expect more.
    pub(crate) fn push_next(&mut self, at: UnixMillis, now: Time) -> Option<(AccountId, Answer)> {
        self.look(at, now);
        let (account, answer, gets_more) = self.granter.push_next(now)?;
        let answer = self.with_reason(answer);
        let expects_more = answer.limited_by == LimitedBy::Parent;
        let expected_more = self.granter.note_told(&account, expects_more);
        (gets_more || expected_more && !expects_more).then_some((account, answer))
    }

    /// The rule in force.
    pub(crate) fn algorithm(&self) -> Algorithm {
        Algorithm::clone(&self.algorithm)
    }

    /// Whether a holder has an account here.
    pub(crate) fn knows(&self, account: &AccountId) -> bool {
        self.granter.knows(account)
    }

    /// Whether nothing is known of it that a new one would not know.
    pub(crate) fn is_forgettable(&self) -> bool {
        let has_mark = |root: &Root| root.mark.is_some_and(|it| it.is_kept());
        self.granter.len() == 0
            && self.granter.reserved() == 0
            && match &self.source {
                Source::Root(root) => !has_mark(root) && root.marked_before.is_empty(),
                Source::Parent(parent) => parent.ceiling() == 0,
            }
    }

    /// Number of holders with an account, and of child servers among them.
    pub(crate) fn holders(&self) -> (usize, usize) {
        self.granter.holders()
    }

    /// Number of accounts.
    pub(crate) fn accounts(&self) -> usize {
        self.granter.len()
    }

    /// Asserts that the sums are those of the accounts. O(accounts), for tests.
    pub(crate) fn assert_consistent(&self) {
        self.granter.assert_consistent();
    }
}

/// Whole units of a template's capacity.
fn capacity_of(template: &Template) -> u64 {
    template.capacity.get() as u64
}

/// Returns the book of a root: the same for each master of its node.
fn node_book(id: &ResourceId) -> u64 {
    let bytes = id.as_str().bytes().map(u64::from);
    bytes.fold(1, crate::id::split_mix).max(1)
}

#[cfg(test)]
mod tests;
