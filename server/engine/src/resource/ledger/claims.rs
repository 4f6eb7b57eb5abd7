//! The claims of all holders of a resource, in bands, those of child servers a few at a time.
//!
//! Another demand of a client is another claim, and takes its place at once. Another demand of a child server may be
//! thousands of claims, all of which are [on their way](Claims::settle) until somebody has put them in: a few are
//! put in by whoever changes them, and the others by whoever goes on with that. Changes are made in the order in which
//! they came, so that no claim is ever taken out that is not there yet.
//!
//! Until all are there, some bands are as they were and others as they will be; of the one in between, what comes is there
//! before what goes. No more is granted than there is, all the same: that does not depend on claims. The child that asks is
//! decided about when all are there; a client that asks meanwhile hears of it at its next refresh.

use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::sync::Arc;

use crate::bands::Bands;
use crate::demand::changes::ClaimChanges;
use crate::demand::{Demand, ServerDemand};
use crate::resource::Garbage;
use crate::template::AlgorithmKind;
use crate::time::Time;

/// The claims of all holders. See the [module](self).
#[derive(Debug)]
pub(super) struct Claims {
    bands: Bands,
    /// By this, claims are in bands.
    kind: AlgorithmKind,
    /// As many of child servers are put in or taken out while everybody waits.
    at_once: NonZeroU16,
    /// Absent: all are there.
    on_their_way: Option<Box<OnTheirWay>>,
}

/// Claims that are to be put in or taken out.
#[derive(Debug)]
struct OnTheirWay {
    /// In this order.
    changes: VecDeque<ClaimChanges>,
    /// When to go on.
    due: Time,
}

impl Claims {
    /// There are none.
    pub(super) fn new(kind: AlgorithmKind, at_once: NonZeroU16) -> Self {
        Self {
            bands: Bands::default(),
            kind,
            at_once,
            on_their_way: None,
        }
    }

    /// None, for the same holders, by an algorithm of another kind.
    pub(super) fn none_yet(&self, kind: AlgorithmKind) -> Self {
        Self::new(kind, self.at_once)
    }

    /// Those that are there.
    pub(super) fn bands(&self) -> &Bands {
        &self.bands
    }

    /// By this, claims are in bands.
    pub(super) fn kind(&self) -> AlgorithmKind {
        self.kind
    }

    /// Another algorithm, by which claims are in the same bands.
    pub(super) fn change_kind(&mut self, kind: AlgorithmKind) {
        debug_assert_eq!(self.kind.has_bands(), kind.has_bands());
        self.kind = kind;
    }

    /// A holder comes. Returns how many claims were put in.
    pub(super) fn insert(&mut self, demand: &Demand) -> usize {
        match demand {
            Demand::Client { .. } => {
                let only = demand.only_claim(self.kind).into_iter();
                only.map(|(band, claim)| self.bands.insert(band, claim))
                    .count()
            }
            Demand::Server(after) => {
                self.send_off(Arc::default(), Arc::clone(after));
                0
            }
        }
    }

    /// A holder is gone.
    pub(super) fn remove(&mut self, demand: &Demand, waste: &mut Garbage) {
        match demand {
            Demand::Client { .. } => {
                if let Some((band, claim)) = demand.only_claim(self.kind)
                    && let Some(emptied) = self.bands.remove(band, claim)
                {
                    waste.push(Box::new(emptied));
                }
            }
            Demand::Server(before) => self.send_off(Arc::clone(before), Arc::default()),
        }
    }

    /// A holder asks for something else.
    pub(super) fn change(&mut self, before: &Demand, after: &Demand, waste: &mut Garbage) {
        if let (Demand::Server(before), Demand::Server(after)) = (before, after) {
            self.send_off(Arc::clone(before), Arc::clone(after));
            return;
        }
        match (before.only_claim(self.kind), after.only_claim(self.kind)) {
            (Some((band, before)), Some((same, after))) if band == same => {
                self.bands.replace(band, before, after);
            }
            _ => {
                self.remove(before, waste);
                self.insert(after);
            }
        }
    }

    /// Puts in, or takes out, some claims that are on their way: as many as may be at once. The rest is due, after what
    /// was due before. Returns how many.
    pub(super) fn settle(&mut self, now: Time, waste: &mut Garbage) -> usize {
        let Some(all) = &mut self.on_their_way else {
            return 0;
        };
        let most = usize::from(self.at_once.get());
        let mut moved = 0;
        while let Some(changes) = all.changes.front_mut() {
            if moved == most {
                all.due = now;
                return moved;
            }
            for change in changes.by_ref().take(most - moved) {
                if let Some(emptied) = self.bands.change(change) {
                    waste.push(Box::new(emptied));
                }
                moved += 1;
            }
            if !changes.has_next() {
                all.changes.pop_front();
            }
        }
        self.on_their_way = None;
        moved
    }

    /// Whether all are there.
    pub(super) fn are_settled(&self) -> bool {
        self.on_their_way.is_none()
    }

    /// When to go on with those that are not. None: all are there.
    pub(super) fn due(&self) -> Option<Time> {
        self.on_their_way.as_ref().map(|all| all.due)
    }

    /// How many there will be when all are there. O(claims), for tests.
    pub(super) fn len_to_be(&self) -> isize {
        let there: usize = self.bands.iter().map(|(_, index)| index.len()).sum();
        let on_their_way = self.on_their_way.iter().flat_map(|all| &all.changes);
        there as isize + on_their_way.map(ClaimChanges::growth).sum::<isize>()
    }

    fn send_off(&mut self, before: Arc<ServerDemand>, after: Arc<ServerDemand>) {
        let changes = ClaimChanges::new(before, after, self.kind);
        let all = self.on_their_way.get_or_insert_with(|| {
            Box::new(OnTheirWay {
                changes: VecDeque::new(),
                due: Time::ZERO,
            })
        });
        all.changes.push_back(changes);
    }
}
