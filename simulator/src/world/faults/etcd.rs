//! etcd is wiped, or restored from a backup; and all servers of a node stop, so that nobody remembers
//! what stood there.

use doorward_engine::time::Time;

use crate::scenario::fault::Span;
use crate::world::World;

/// How many masters find that the key by which they are master is not there any more, or another one's.
const MASTERS_LOST: f64 = 0.5;

impl World<'_> {
    /// All servers of a place stop, and start again when this is over.
    pub(super) fn stop(&mut self, number: u32, length: Span) {
        let until = self.now + self.mishaps.duration(length.0, length.1);
        let text = format!("all servers of {} stop", self.name_of(number));
        self.mark(Some(until), "kill", text);
        self.vacate(number, until);
        if let Some(place) = self.place(number) {
            place.seats.note_all_down(until);
            place.epoch_seen = 0;
            // The term stands in etcd, but nobody saw when it was last confirmed.
            place.vacant_since = None;
        }
    }

    /// What was written to etcd since then is lost. Candidates that are alive remember.
    pub(super) fn lose_etcd(&mut self, back: Option<Span>) {
        let now = self.now;
        let text = match back {
            None => {
                self.etcd.wipe(now);
                "etcd is wiped".to_owned()
            }
            Some((least, most)) => {
                let back = self.mishaps.duration(least, most);
                let then = now.since(Time::ZERO).saturating_sub(back);
                self.etcd.restore(Time::ZERO + then, now);
                format!("etcd is restored to what it was {back:?} ago")
            }
        };
        self.mark(None, "election", text);
        let is_wiped = back.is_none();
        let longest = self.elections.take.1;
        for number in 0..self.places.len() as u32 {
            let is_lost = self.mishaps.happens(MASTERS_LOST);
            let Some(place) = self.place(number).filter(|place| place.candidates > 1) else {
                continue;
            };
            if is_wiped && place.epoch_seen == 0 {
                // Nobody is alive who could write it again.
                place.lengths = None;
            }
            let Some(master) = place.master.as_mut().filter(|_| is_lost) else {
                continue;
            };
            // It is confirmed no more, until it has seen who succeeds it.
            let until = now + longest * 2;
            let before = master.isolated_until.unwrap_or(until);
            master.isolated_until = Some(before.max(until));
            self.stop_confirming(number);
            self.plan(number);
        }
    }
}
