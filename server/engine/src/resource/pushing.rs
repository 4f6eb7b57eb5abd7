//! Pushes to clients with a stream: finds the client that needs one most, and decides its lease.

use std::ops::ControlFlow;

use crate::amount::Amount;
use crate::claims::Demand;
use crate::division::Rule;
use crate::holders::{Holding, Position, Slot, Streaming};
use crate::id::HolderId;
use crate::resource::Resource;
use crate::resource::ask::Answer;
use crate::rounding::SHORTFALL;
use crate::time::Time;

/// A decision for a client that did not ask.
#[derive(Debug)]
pub(crate) struct ClientPush {
    pub(crate) client: HolderId,
    /// Newest request of the client that it takes into account.
    pub(crate) sequence: u64,
    pub(crate) answer: Answer,
}

impl Resource {
    /// Whether a client with a stream was among the holders.
    pub(crate) fn has_streams(&self) -> bool {
        self.holders.streaming.is_some()
    }

    /// Looks at the client that a push helps most. `is_open`: whether its stream is still open. Break: no push helps
    /// now.
    pub(crate) fn push_next(
        &mut self,
        is_open: impl Fn(&HolderId) -> bool,
        now: Time,
    ) -> ControlFlow<(), Option<ClientPush>> {
        let streaming = self.holders.streaming.as_deref_mut();
        if let Some(slot) = streaming.and_then(Streaming::next_misplaced) {
            self.place(slot);
            return ControlFlow::Continue(None);
        }
        let Some((slot, holding)) = self.next_to_push(now) else {
            return ControlFlow::Break(());
        };
        let (client, sequence) = (holding.holder(), holding.sequence);
        if !is_open(&client) {
            self.holders.place(slot, None);
            return ControlFlow::Continue(None);
        }
        if let Some(answer) = self.regrant(slot, now) {
            return ControlFlow::Continue(Some(ClientPush {
                client,
                sequence,
                answer,
            }));
        }
        // Its lease stays as it is. It moves to the present level, or the next look would be at it again.
        let rule = self.division();
        let holding = self.holders.table.get(slot);
        let position = holding.and_then(|holding| self.position(holding, &rule));
        self.holders
            .place(slot, position.map(|it| settled(it, &rule)));
        ControlFlow::Continue(None)
    }

    /// Places a client by its newest lease, if it has a stream.
    pub(super) fn place(&mut self, slot: Slot) {
        let holding = self.holders.table.get(slot);
        let holding = holding.filter(|it| it.is_pushed() && !it.pending);
        let position = holding.and_then(|holding| self.position(holding, &self.division()));
        self.holders.place(slot, position);
    }

    /// Returns the client to push to next.
    fn next_to_push(&self, now: Time) -> Option<(Slot, &Holding)> {
        let streaming = self.holders.streaming.as_deref()?;
        let learns = self.learning_remaining(now).is_some();
        if learns || !self.situation(now).has_lease() || !self.has_source() {
            return None;
        }
        let table = &self.holders.table;
        let room = self.room_beside_others(Amount::ZERO, self.grants_max());
        // STATIC promises no total, so no holder waits.
        let shrinks =
            table.waiting() > 0 || self.overcommitted().is_some() || !self.policy.promises_total();
        let growths = room.get() > self.supply.capacity.get() * SHORTFALL;
        let rule = self.division();
        let slot = streaming.next(|band| rule.levels(band), shrinks, growths)?;
        Some((slot, table.get(slot)?))
    }

    /// Returns the place of a client by its newest lease. None: it is a child server.
    fn position(&self, holding: &Holding, rule: &Rule) -> Option<Position> {
        let Demand::Client { priority, claim } = &holding.demand else {
            return None;
        };
        let band = match self.policy.algorithm().kind.has_bands() {
            true => *priority,
            false => 0,
        };
        let gets = holding.newest().capacity.get();
        let share = rule.share_of(&holding.demand);
        let is_settled = (gets - share.get()).abs() <= SHORTFALL * share.get();
        let position = Position {
            band,
            is_short: match is_settled {
                true => share < claim.wants,
                false => gets < claim.wants.get(),
            },
            level: Amount::from_computed(gets / claim.subclients.get()),
        };
        Some(match rule {
            _ if is_settled && position.is_short => settled(position, rule),
            // Its levels are parts of the wants.
            Rule::Proportional { .. } if position.is_short => Position {
                level: match gets > share.get() {
                    true => Amount::MAX,
                    false => Amount::ZERO,
                },
                ..position
            },
            _ => position,
        })
    }
}

/// Returns a place at the present level.
fn settled(position: Position, rule: &Rule) -> Position {
    let levels = rule.levels(position.band);
    let level = match position.is_short {
        true => levels.short,
        false => levels.satisfied.min(position.level.get()),
    };
    Position {
        level: Amount::from_computed(level),
        ..position
    }
}
