//! Compares the use below each node with the books of its parent.
//!
//! It does so with every sample. While a fault affects servers, connections, clocks or templates,
//! and for some time after, it does so often: only then can the books go wrong.

use std::collections::HashMap;
use std::time::Duration;

use doorward_engine::templates::AlgorithmKind;
use doorward_engine::time::Time;

use crate::checker::NodeBook;
use crate::numbered::Numbered;
use crate::recording::MarkKind::{self, Close, Crash, Demand, Leave};
use crate::world::World;

/// Interval between checks during a fault.
const OFTEN: Duration = Duration::from_millis(100);

/// Minimum interval for each node and resource, so that large trees take no more time.
const EACH: Duration = Duration::from_millis(5);

/// Schedule of the checks.
#[derive(Debug, Default)]
pub(super) struct NestingChecks {
    /// End of the time in which books may go wrong.
    until: Time,
    /// True if a check is scheduled.
    is_due: bool,
}

impl World<'_> {
    /// Schedules frequent checks after an event from outside.
    pub(super) fn watch_nesting(&mut self, until: Option<Time>, kind: MarkKind) {
        if [Crash, Leave, Close, Demand].contains(&kind) {
            return;
        }
        // A clock with another speed may cause errors at any later time.
        let leases = self.watched.iter().map(|it| it.algorithm.lease_length);
        let lasts = leases.max().unwrap_or_default() * 2;
        let until = match kind {
            MarkKind::Clock => self.end,
            _ => until.unwrap_or(self.now) + lasts,
        };
        self.nesting.until = self.nesting.until.max(until);
        self.schedule_nesting_check();
    }

    fn schedule_nesting_check(&mut self) {
        let every = EACH * (self.places.len() * self.watched.len());
        let at = self.now + every.max(OFTEN);
        if !self.nesting.is_due && at <= self.nesting.until {
            self.nesting.is_due = true;
            self.act(at, |world| {
                world.check_nesting();
                world.nesting.is_due = false;
                world.schedule_nesting_check();
            });
        }
    }

    /// Checks all resources.
    pub(super) fn check_nesting(&mut self) {
        // A single node has no parent.
        if self.places.len() > 1 {
            for resource in self.watched.numbers() {
                self.check_nesting_of(resource);
            }
        }
    }

    fn check_nesting_of(&mut self, resource: u32) {
        let now = self.now;
        let watched = &self.watched[resource];
        // A child that forgot its book has what it granted by the former one, too.
        if watched.algorithm.kind == AlgorithmKind::Budget {
            return;
        }
        let books = self.places.iter().map(|place| NodeBook {
            parent: place.parent,
            reserved: None,
        });
        let mut books: Numbered<NodeBook> = books.collect();
        let parents = self.places.iter().filter(|it| !it.children.is_empty());
        for place in parents {
            let local = place.clock.shows(now);
            // A frozen server, or one whose term has ended, has no valid books.
            let Some(master) = place.master(now).filter(|it| !it.is_frozen(now)) else {
                continue;
            };
            let snapshot = master.node().resource_snapshot(&watched.resource, local);
            // Any child may have a part of it.
            let unreported = snapshot.as_ref().map_or(0.0, |it| it.unreported);
            let knows = match snapshot {
                // A server that learns, or has no lease from its own parent yet, does not know all
                // leases below it.
                Some(snapshot) => {
                    let lease = snapshot.upstream.as_ref();
                    let has_lease = lease.is_none_or(|lease| lease.expires_in.is_some());
                    snapshot.learning_remaining.is_none() && has_lease
                }
                // A root without the resource that no longer learns has reserved nothing. Any other
                // node has no lease of its own then.
                None => place.parent.is_none() && !watched.may_be_unknown(now),
            };
            if !knows {
                continue;
            }
            let known = master.node().child_snapshots(&watched.resource, local);
            let known = known.into_iter();
            let known = known.map(|child| (child.holder.name.to_string(), child.reserved));
            let known: HashMap<String, f64> = known.collect();
            for child in &place.children {
                let reserved = known.get(&self.places[*child].name).copied();
                books[*child].reserved = Some(reserved.unwrap_or_default() + unreported);
            }
        }
        self.watched[resource].note_books(&books, now);
    }
}
