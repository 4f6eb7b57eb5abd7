//! Servers that watch the keys of their node, as production servers do: they read the keys, and get
//! every later change in order. A server notices at its next read that etcd is out of reach, and
//! starts again once etcd answers.

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::time::Time;
use doorward_session::candidate::store::View;

use crate::scenario::fault::Span;
use crate::world::etcd::EtcdConnection;
use crate::world::message::seen;
use crate::world::{ServerId, World};

/// Interval between a server's reads of the watched keys.
const LOOK: Span = Span(Duration::ZERO, Duration::from_secs(2));

/// Wait before a server tries again.
const AGAIN: Span = Span(Duration::from_millis(10), Duration::from_secs(1));

/// Server's knowledge of its keys.
#[derive(Debug, Default)]
pub(crate) struct KeyWatch {
    /// Number of the watch. Messages of earlier ones are dropped.
    watch: u32,
    /// True while a watch sends changes.
    is_watching: bool,
    /// Arrival of the watch's last message, so that messages keep their order.
    last: Time,
    known: Option<Arc<View>>,
    /// Time of the last request that etcd answered.
    pub(crate) heard_at: Time,
    is_away: bool,
}

impl World<'_> {
    pub(super) fn etcd_connection(&mut self, id: ServerId) -> Option<EtcdConnection> {
        let slot = self.server_of(id)?.slot;
        Some(self.places[id.place].slots[slot].way)
    }

    fn watch_of(&mut self, id: ServerId) -> Option<&mut KeyWatch> {
        let candidacy = self.server_of(id)?.candidacy.as_mut()?;
        Some(&mut candidacy.follow)
    }

    /// Schedules the reads at which a server notices that its connection to etcd was cut or is
    /// back.
    pub(crate) fn notice_cut(&mut self, id: ServerId, until: Time) {
        let now = self.now;
        let since = self.etcd.some_time(LOOK);
        let looks = now + self.etcd.some_time(LOOK);
        let again = until + self.etcd.some_time(AGAIN);
        if let Some(follow) = self.watch_of(id) {
            let heard_at = now.since(Time::ZERO).saturating_sub(since);
            follow.heard_at = follow.heard_at.max(Time::ZERO + heard_at);
            if looks < until {
                self.send_news(looks, id, move |world| world.read_keys(id));
            }
            self.send_news(again, id, move |world| world.read_keys(id));
        }
    }

    /// Ends all watches. Their servers read the keys again.
    pub(super) fn break_watches(&mut self) {
        for id in self.candidates() {
            let again = self.now + self.etcd.some_time(AGAIN);
            if let Some(follow) = self.watch_of(id) {
                follow.watch += 1;
                follow.is_watching = false;
                self.send_news(again, id, move |world| world.read_keys(id));
            }
        }
    }

    /// Reads a server's keys, and watches them from there.
    pub(crate) fn read_keys(&mut self, id: ServerId) {
        let now = self.now;
        let way = self.etcd_connection(id);
        let (Some(way), Some(follow)) = (way, self.watch_of(id)) else {
            return;
        };
        // An earlier watch ends.
        follow.watch += 1;
        follow.is_watching = now >= way.cut_until();
        let (watch, heard_at) = (follow.watch, follow.heard_at);
        if !follow.is_watching {
            // It reads again once the connection is back; see `notice_cut`.
            if !std::mem::replace(&mut follow.is_away, true) {
                self.change_contact(id, heard_at, true);
            }
            return;
        }
        let at = now + self.etcd.takes(&way, now) + self.etcd.takes(&way, now);
        if let Some(follow) = self.watch_of(id) {
            follow.last = at;
        }
        let keys = self.etcd.store.read(id.place);
        self.send_news(at, id, move |world| {
            world.handle_keys(id, watch, keys, Some(now));
        });
    }

    /// Sends the changed keys of a node to every server that watches them.
    pub(crate) fn send_keys(&mut self, node: u32) {
        let now = self.now;
        let keys = self.etcd.store.read(node);
        for id in self.candidates_of(node) {
            let way = self.etcd_connection(id);
            let Some(way) = way.filter(|way| way.back_cut_until <= now) else {
                continue;
            };
            let at = now + self.etcd.takes(&way, now);
            let Some(follow) = self.watch_of(id).filter(|it| it.is_watching) else {
                continue;
            };
            let at = at.max(follow.last);
            follow.last = at;
            let (watch, keys) = (follow.watch, keys.clone());
            self.send_news(at, id, move |world| {
                world.handle_keys(id, watch, keys, None);
            });
        }
    }

    /// Gives a server its keys.
    fn handle_keys(&mut self, id: ServerId, watch: u32, keys: View, asked: Option<Time>) {
        let now = self.now;
        let is_cut = |way: EtcdConnection| now < way.back_cut_until;
        if self.etcd_connection(id).is_none_or(is_cut) {
            return;
        }
        let local = self.places[id.place].clock.shows(now);
        let Some(follow) = self.watch_of(id).filter(|it| it.watch == watch) else {
            return;
        };
        // Knowledge of an etcd that has gone back to an earlier state no longer counts.
        let known = follow.known.as_deref();
        let known = known.filter(|known| known.revision <= keys.revision);
        let view = Arc::new(seen(keys, known, local));
        follow.known = Some(Arc::clone(&view));
        if let Some(asked) = asked {
            follow.heard_at = asked;
            if std::mem::take(&mut follow.is_away) {
                self.change_contact(id, asked, false);
            }
        }
        self.input_candidate(id, |candidate, now| candidate.handle_view(view, now));
    }

    /// Tells a server's candidate about its contact with etcd.
    fn change_contact(&mut self, id: ServerId, heard_at: Time, is_away: bool) {
        let heard_at = self.places[id.place].clock.shows(heard_at);
        self.input(id, |replica, now| {
            replica.handle_etcd_contact(heard_at, is_away, now);
        });
    }
}
