//! Servers that watch the keys of their node, as production servers do: they read the keys, and get
//! every later change in order. A server notices at its next read that etcd is out of reach, and
//! starts again once etcd answers.

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::time::Time;
use doorward_session::candidate::store::View;

use crate::scenario::fault::Span;
use crate::world::World;
use crate::world::etcd::store::ReadKeys;
use crate::world::etcd::{EtcdConnection, EtcdMessage};
use crate::world::message::ServerId;

/// Interval between a server's reads of the watched keys.
const LOOK: Span = (Duration::ZERO, Duration::from_secs(2));

/// Wait before a server tries again.
const AGAIN: Span = (Duration::from_millis(10), Duration::from_secs(1));

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
    heard_at: Time,
    is_away: bool,
}

impl World<'_> {
    pub(super) fn etcd_connection(&mut self, id: ServerId) -> Option<EtcdConnection> {
        let place = self.place(id.place)?;
        let slot = place.server(id.term)?.slot;
        place.slots.get(slot as usize).map(|slot| slot.way)
    }

    fn watch_of(&mut self, id: ServerId) -> Option<&mut KeyWatch> {
        let server = self.place(id.place)?.server(id.term)?;
        server.candidacy.as_mut().map(|it| &mut it.follow)
    }

    /// Starts to watch the keys of a server's node.
    pub(in crate::world) fn start_watch(&mut self, id: ServerId) {
        let now = self.now;
        if let Some(follow) = self.watch_of(id) {
            follow.heard_at = now;
        }
        self.send_etcd_message(now, EtcdMessage::Look(id));
    }

    /// Schedules the reads at which a server notices that its connection to etcd was cut or is
    /// back.
    pub(in crate::world) fn notice_cut(&mut self, id: ServerId, until: Time) {
        let now = self.now;
        let since = self.etcd.some_time(LOOK);
        let looks = now + self.etcd.some_time(LOOK);
        let again = until + self.etcd.some_time(AGAIN);
        if let Some(follow) = self.watch_of(id) {
            let heard_at = now.since(Time::ZERO).saturating_sub(since);
            follow.heard_at = follow.heard_at.max(Time::ZERO + heard_at);
            if looks < until {
                self.send_etcd_message(looks, EtcdMessage::Look(id));
            }
            self.send_etcd_message(again, EtcdMessage::Look(id));
        }
    }

    /// Ends all watches. Their servers read the keys again.
    pub(super) fn break_watches(&mut self) {
        for id in self.candidates() {
            let again = self.now + self.etcd.some_time(AGAIN);
            if let Some(follow) = self.watch_of(id) {
                follow.watch += 1;
                follow.is_watching = false;
                self.send_etcd_message(again, EtcdMessage::Look(id));
            }
        }
    }

    /// Reads a server's keys, and watches them from there.
    pub(super) fn read_keys(&mut self, id: ServerId) {
        let now = self.now;
        let Some(way) = self.etcd_connection(id) else {
            return;
        };
        let Some(follow) = self.watch_of(id) else {
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
        let news = EtcdMessage::Keys {
            to: id,
            watch,
            reading: self.etcd.store.read(id.place),
            asked: Some(now),
        };
        self.send_etcd_message(at, news);
    }

    /// Sends the changed keys of a node to every server that watches them.
    pub(in crate::world) fn send_keys(&mut self, node: u32) {
        let now = self.now;
        let reading = self.etcd.store.read(node);
        for id in self.candidates_of(node) {
            let Some(way) = self
                .etcd_connection(id)
                .filter(|way| way.back_cut_until <= now)
            else {
                continue;
            };
            let at = now + self.etcd.takes(&way, now);
            let Some(follow) = self.watch_of(id).filter(|it| it.is_watching) else {
                continue;
            };
            let at = at.max(follow.last);
            follow.last = at;
            let news = EtcdMessage::Keys {
                to: id,
                watch: follow.watch,
                reading: reading.clone(),
                asked: None,
            };
            self.send_etcd_message(at, news);
        }
    }

    /// Gives a server its keys.
    pub(super) fn handle_keys(
        &mut self,
        id: ServerId,
        watch: u32,
        reading: &ReadKeys,
        asked: Option<Time>,
    ) {
        let now = self.now;
        let is_cut = |way: EtcdConnection| now < way.back_cut_until;
        if self.etcd_connection(id).is_none_or(is_cut) {
            return;
        }
        let Some(place) = self.place(id.place) else {
            return;
        };
        let local = place.clock.shows(now);
        let Some(follow) = self.watch_of(id).filter(|it| it.watch == watch) else {
            return;
        };
        // Knowledge of an etcd that has gone back to an earlier state no longer counts.
        let known = follow.known.as_deref();
        let known = known.filter(|known| known.revision <= reading.revision);
        let view = Arc::new(reading.seen(known, local));
        follow.known = Some(Arc::clone(&view));
        if let Some(asked) = asked {
            follow.heard_at = asked;
            let was_away = std::mem::replace(&mut follow.is_away, false);
            if was_away {
                self.change_contact(id, asked, false);
            }
        }
        self.change_candidate(id, |candidate, now| {
            candidate.handle_view(view, now);
        });
    }

    /// Tells a server's candidate about its contact with etcd.
    fn change_contact(&mut self, id: ServerId, heard_at: Time, is_away: bool) {
        let clock = self.place(id.place).map(|place| place.clock);
        let Some(clock) = clock else { return };
        let heard_at = clock.shows(heard_at);
        self.change_candidate(id, |candidate, now| {
            candidate.handle_contact(heard_at, is_away, now);
        });
    }
}
