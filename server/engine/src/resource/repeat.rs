//! A client that asks for the same again, where nothing has changed since: it gets the same for longer.
//!
//! Most requests are such. The inputs of a decision have a version
//! ([`Ledger::version`](super::ledger::Ledger::version)): claims, reserved capacity, capacity and algorithm. If a
//! decision leaves all of them unchanged, the same request gets the same decision as long as the version stays the
//! same; so it is not decided again. Debug builds decide it anyway, and compare.
//!
//! Not below the root, where the parent's answers count, nor in learning mode, where reports do.

use crate::holders::{Holding, KnownWhy, Slot, Standing};
use crate::id::HolderKind;
use crate::resource::Resource;
use crate::resource::ask::{Answer, AnswerKind, HolderAsk};
use crate::resource::pace::Before;
use crate::time::Time;

impl Resource {
    /// The answer to a request that repeats what was decided. None: it has to be decided.
    pub(super) fn repeat(&mut self, slot: Slot, ask: &HolderAsk<'_>, now: Time) -> Option<Answer> {
        if self.upstream.is_some() || self.learning.is_on() {
            return None;
        }
        let holding = self.ledger.get(slot)?;
        let is_early = now.since(holding.decided_at) < ask.floor && !holding.is_invited(now);
        let is_decided = holding.repeats_in == Some(self.ledger.version());
        let is_repeat = is_decided && !is_early && is_same(holding, ask);
        if !is_repeat {
            return None;
        }
        self.assert_decides_the_same(holding, ask, now);
        let waited = Before::of(holding).invited_after();
        let expires_at = self.expiry_from(now);
        self.ledger.renew(slot, expires_at);
        self.ledger
            .note(slot, |holding| holding.wants_more = ask.wants_more);
        self.ledger.note_request(slot, ask);
        let refresh_in = self.plan(slot, false, waited, ask.floor, now);
        Some(self.current(slot, refresh_in, AnswerKind::Repeated, now))
    }

    /// Debug builds only.
    fn assert_decides_the_same(&self, holding: &Holding, ask: &HolderAsk<'_>, now: Time) {
        if cfg!(debug_assertions) {
            let newest = holding.newest().capacity;
            let grant = self.grant(ask, newest, newest, newest, now);
            let known = (newest, holding.share, holding.why, holding.waits);
            let fresh = (
                grant.gets,
                grant.share.amount,
                KnownWhy::of(grant.why),
                grant.waits,
            );
            assert_eq!(known, fresh, "{}: decided as before", self.id);
        }
    }
}

/// Whether a client asks for what it asked for before, has what it was granted and nothing else, and speaks for itself
/// alone.
fn is_same(holding: &Holding, ask: &HolderAsk<'_>) -> bool {
    let newest = holding.newest().capacity;
    let is_alone = holding.standing == Standing::Newest && holding.leases().is_only_newest();
    let is_next = match ask.sequence {
        Some(sequence) => sequence > holding.sequence,
        None => holding.sequence == 0,
    };
    holding.kind == HolderKind::Client
        && is_next
        && is_alone
        && !holding.pending
        && ask.incarnation == holding.incarnation
        && ask.in_use() == newest
        && ask.demand == holding.demand
}
