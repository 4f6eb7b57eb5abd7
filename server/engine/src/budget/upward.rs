//! The account of a server with its parent, from which it grants.
//!
//! It has taken what its holders have taken, and what silent ones may have. Its need is the curve of their needs. Before
//! each request it lowers its ceiling to what it says, so an answer to an older request cannot raise it. A parent that
//! forgot has another book, and opens another account; the ceiling of the older one stays.

use std::sync::Arc;
use std::time::Duration;

use crate::amount::Amount;
use crate::budget::granter::Granter;
use crate::claims::{BandDemand, DemandCurve, ServerDemand};
use crate::id::{MastershipId, ResourceId};
use crate::messages::{
    AMOUNT_MAX, BudgetState, BudgetWord, Has, RefusalReason, ServerAsk, ServerLease,
    UpstreamSnapshot,
};
use crate::resource::parent::ParentPace;
use crate::resource::retry::PARENT_REFUSED;
use crate::templates::window::Window;
use crate::time::Time;

/// Part by which a holder counts the rest of a window shorter, since its clock may be slower than its parent's.
const FASTER: u32 = 1_000;

/// Shortest time between requests at the end of a window that the parent has not turned yet.
const TURN_RETRY: Duration = Duration::from_millis(20);

/// Time after which a request counts as lost.
const UNANSWERED: Duration = Duration::from_secs(5);

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Upward {
    /// This server's book.
    book: u64,
    /// The parent's book and mastership, by its last answer.
    parent: Option<(u64, Option<MastershipId>)>,
    /// Ceiling of that account.
    ceiling: u64,
    /// Σ of the ceilings of accounts with older books of the parent.
    older: u64,
    /// Number of the newest request, and when it was sent.
    asked: Option<(u64, Time)>,
    /// Need and use in the newest request.
    said: (u64, u64),
    said_least: u64,
    refresh_at: Time,
    /// Whether a change waits to be said, or to be answered.
    has_news: bool,
    is_awaited: bool,
    /// Whether the newest answer left nothing for the need. More may come by a push, or at the next refresh.
    is_exhausted: bool,
    /// Why the parent refuses the budget, if it does.
    refused: Option<RefusalReason>,
    /// When the parent first said that it is not ready.
    unready_since: Option<Time>,
    /// Whether the parent gives more once its mark has risen, or that of its own parent.
    is_rising: bool,
    /// End of the window. None: it has none, or none is known.
    ends_at: Option<Time>,
    total: u64,
    soft: bool,
}

impl Upward {
    /// No account yet.
    pub(crate) fn new(book: u64, now: Time) -> Self {
        Self {
            book,
            refresh_at: now,
            ..Self::default()
        }
    }

    /// Amount that may be granted here.
    pub(crate) fn ceiling(&self) -> u64 {
        self.ceiling.saturating_add(self.older)
    }

    /// The whole of the budget, as the parent says.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn is_soft(&self) -> bool {
        self.soft
    }

    /// Whether the parent may soon give more.
    pub(crate) fn expects_more(&self) -> bool {
        self.has_news || self.is_awaited || self.is_rising
    }

    /// Whether the window is over, and the next one is not known.
    pub(crate) fn is_over(&self, now: Time) -> bool {
        self.ends_at.is_some_and(|ends| ends <= now)
    }

    /// Returns the rest of the window. None: it has no end.
    pub(crate) fn remaining(&self, now: Time) -> Option<Duration> {
        Some(self.ends_at?.since(now))
    }

    /// When to ask the parent.
    pub(crate) fn due(&self, pace: ParentPace) -> Time {
        let last = self.asked.map_or(Time::ZERO, |(_, at)| at);
        let early = self.has_news.then(|| last + pace.round);
        let is_refused = self.refused.is_some() || self.unready_since.is_some();
        let turn = self.ends_at.filter(|_| !is_refused);
        let turn = turn.map(|ends| ends.max(last + TURN_RETRY));
        let due = [early, turn].into_iter().flatten().min();
        due.map_or(self.refresh_at, |due| due.min(self.refresh_at))
    }

    pub(crate) fn snapshot(&self, now: Time) -> UpstreamSnapshot {
        UpstreamSnapshot {
            expires_in: self.remaining(now),
            share: self.ceiling() as f64,
            knows_algorithm: self.parent.is_some(),
            in_flight: self.is_awaited,
            refused: self.refused,
            learning_remaining: None,
        }
    }

    /// The parent refuses the budget. It is asked again later, soon at first if it is not ready.
    pub(crate) fn handle_refusal(&mut self, reason: RefusalReason, pace: ParentPace, now: Time) {
        let since = (reason == RefusalReason::NotReady).then(|| self.unready_since.unwrap_or(now));
        let wait = since.map_or(PARENT_REFUSED, |since| {
            now.since(since).clamp(pace.not_ready(), PARENT_REFUSED)
        });
        self.ask_again_at(now + wait);
        self.unready_since = since;
        self.refused = match reason {
            RefusalReason::NotReady => None,
            RefusalReason::UnknownResource => Some(reason),
            _ => Some(RefusalReason::RefusedByParent),
        };
    }

    /// Asks again at that time.
    pub(crate) fn ask_again_at(&mut self, at: Time) {
        self.refresh_at = at;
        self.has_news = false;
        (self.refused, self.unready_since) = (None, None);
    }

    pub(crate) fn refused(&self) -> Option<RefusalReason> {
        self.refused
    }

    /// Notes that holders have said something. If one of them waits, the parent hears of what has changed.
    pub(crate) fn note_change(&mut self, granter: &Granter) {
        let says = (granter.needs().total_wants() as u64, granter.base());
        let least = granter.least();
        // A smaller call may be served where a large one was refused.
        let is_another = least > 0 && least != self.said_least;
        let is_news = says != self.said && !self.is_exhausted || is_another;
        self.has_news |= granter.is_waited_for() && is_news;
    }

    /// Makes the next request, and lowers the ceiling to what it says.
    pub(crate) fn ask(
        &mut self,
        id: &ResourceId,
        granter: &mut Granter,
        sequence: u64,
        points_max: usize,
        now: Time,
    ) -> ServerAsk {
        let needs = granter.needs();
        let need = needs.total_wants() as u64;
        let (base, reserved) = (granter.base(), granter.reserved());
        let keeps = reserved.max(base.saturating_add(need).min(self.ceiling()));
        self.ceiling = keeps.saturating_sub(self.older);
        let band = BandDemand {
            priority: 0,
            clients: needs.total_subclients(),
            wants: Amount::from_computed(needs.total_wants()),
            curve: DemandCurve::of(needs, points_max),
        };
        let bands = if need == 0 { Vec::new() } else { vec![band] };
        let (granter_book, granted_by) = self.parent.unzip();
        let least = granter.take_least();
        (self.said, self.said_least) = ((need, base), least);
        self.asked = Some((sequence, now));
        (self.has_news, self.is_awaited) = (false, true);
        // The answer says when to ask again; it may be lost.
        self.refresh_at = now + UNANSWERED;
        ServerAsk {
            resource: id.clone(),
            demand: Arc::new(ServerDemand::new(bands)),
            has: Some(Has {
                granted_by: granted_by.flatten(),
                ..Has::untimed(Amount::from_computed(self.ceiling.min(AMOUNT_MAX) as f64))
            }),
            outstanding: None,
            reported: Vec::new(),
            unreported: Amount::ZERO,
            learning: false,
            budget: Some(BudgetWord {
                holder_book: self.book,
                granter_book,
                window: granter.known_window(),
                taken: base.saturating_sub(self.older).min(AMOUNT_MAX),
                least,
                closes: false,
            }),
        }
    }

    /// Brings an answer to the newest request into force.
    pub(crate) fn answer(
        &mut self,
        granter: &mut Granter,
        lease: &ServerLease,
        state: &BudgetState,
        now: Time,
    ) {
        let Some((_, sent_at)) = self
            .asked
            .filter(|(asked, _)| lease.sequence == Some(*asked))
        else {
            return;
        };
        self.refresh_at = now + lease.refresh_in;
        (self.refused, self.unready_since) = (None, None);
        self.is_awaited = false;
        self.is_rising = lease.terms.share > lease.capacity;
        if state.window.start < granter.window().start {
            return;
        }
        if state.window != granter.window() {
            match granter.window() {
                Window::UNKNOWN => granter.begin(state.window),
                _ => granter.turn(state.window),
            }
            (self.older, self.ceiling, self.ends_at) = (0, 0, None);
            // The new window begins with nothing taken.
            self.said.1 = 0;
        } else if self
            .parent
            .is_some_and(|(book, _)| book != state.granter_book)
        {
            self.older = self.ceiling();
            self.ceiling = 0;
        }
        self.parent = Some((state.granter_book, lease.granted_by));
        self.ceiling = lease.capacity.get() as u64;
        // A push tells what remains later than it was asked. The latest of such ends is true still.
        let ends_at = state.ends_in.map(|left| sent_at + (left - left / FASTER));
        self.ends_at = self.ends_at.max(ends_at);
        (self.total, self.soft) = (state.total, state.soft);
        let (need, base) = self.said;
        let too_little = self.ceiling().saturating_sub(base) < self.said_least.max(1);
        self.is_exhausted = need > 0 && too_little && !self.is_rising;
        self.note_change(granter);
        if self.is_exhausted && !self.expects_more() {
            // Holders that wait hear that no more comes.
            granter.begin_round();
        }
    }
}
