//! The servers of a place, as those know them who look for its master: by their addresses, one for each
//! candidate. Behind an address is a process that is the master, or believes it is; or one that stands by, and
//! says who is; or nobody.

use std::sync::Arc;

use doorward_engine::time::Time;
use doorward_session::address::Address;

use crate::world::World;
use crate::world::place::Place;

/// The addresses of a place's candidates, and which of these are not running.
#[derive(Debug)]
pub(crate) struct Seats {
    /// In the order in which clients are given them.
    pub(crate) addresses: Arc<[Address]>,
    /// By address: until when nobody is there.
    down_until: Vec<Time>,
}

/// Who is behind an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// Nobody listens.
    Nobody,
    /// A candidate that is not the master, and knows it.
    Standby,
    /// The process of that term, which is the master or believes it is.
    Server(u64),
}

/// Who the master is, as candidates know from etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) address: Address,
    pub(crate) epoch: Option<u64>,
}

impl Seats {
    /// Of the place of that number, with so many candidates: `node-3-0:1`, `node-3-1:1` and so on.
    pub(crate) fn new(place: u32, candidates: u32) -> Self {
        let address = |seat| Address::parse(&format!("node-{place}-{seat}:1")).ok();
        let addresses: Arc<[Address]> = (0..candidates.max(1)).filter_map(address).collect();
        Self {
            down_until: vec![Time::ZERO; addresses.len()],
            addresses,
        }
    }

    /// Which address of the place that is. None: it is none of these.
    pub(crate) fn find(&self, address: &Address) -> Option<u32> {
        let found = self.addresses.iter().position(|known| known == address);
        found.and_then(|found| u32::try_from(found).ok())
    }

    pub(crate) fn address(&self, seat: u32) -> Option<&Address> {
        self.addresses.get(seat as usize)
    }

    /// Nobody is there until then at least.
    pub(crate) fn note_down(&mut self, seat: u32, until: Time) {
        if let Some(down_until) = self.down_until.get_mut(seat as usize) {
            *down_until = until.max(*down_until);
        }
    }

    /// Nobody is at any of them until then at least.
    pub(crate) fn note_all_down(&mut self, until: Time) {
        for down_until in &mut self.down_until {
            *down_until = until.max(*down_until);
        }
    }

    /// Everybody is there again.
    pub(crate) fn heal(&mut self, now: Time) {
        for down_until in &mut self.down_until {
            *down_until = now.min(*down_until);
        }
    }

    fn is_down(&self, seat: u32, now: Time) -> bool {
        let down_until = self.down_until.get(seat as usize);
        down_until.is_none_or(|until| now < *until)
    }
}

impl Place {
    /// Where its next master is: another candidate each time, and one that is up and knows that it is not the
    /// master now, if there is such a one.
    pub(crate) fn next_seat(&self, now: Time) -> u32 {
        let count = self.seats.addresses.len().max(1) as u64;
        let nth = |step: u64| ((self.terms + count - 1 + step) % count) as u32;
        let is_free = |seat: &u32| {
            let mut all = self.succeeded.iter().filter(|server| !server.is_twin);
            !self.seats.is_down(*seat, now) && all.all(|server| server.seat != *seat)
        };
        (0..count).map(nth).find(is_free).unwrap_or(nth(0))
    }

    /// The process behind an address, and a second one of the same name.
    fn processes(&self, seat: u32) -> (Option<u64>, Option<u64>) {
        let all = self.master.iter().map(Box::as_ref).chain(&self.succeeded);
        let here = |is_twin| {
            let mut all = all.clone();
            let found = all.find(|it| it.seat == seat && it.is_twin == is_twin);
            found.map(|it| it.term)
        };
        (here(false), here(true))
    }

    /// Whom a candidate that stands by names as the master: whoever it is as etcd has it, frozen or cut off
    /// perhaps.
    pub(crate) fn named(&self) -> Option<Named> {
        let master = self.master.as_ref()?;
        Some(Named {
            address: self.seats.address(master.seat)?.clone(),
            epoch: master.epoch,
        })
    }
}

impl World<'_> {
    /// Who answers at an address of a place. If two processes have it, either does.
    pub(super) fn behind(&mut self, place: u32, seat: u32) -> Behind {
        let now = self.now;
        let Some(known) = self.places.get(place as usize) else {
            return Behind::Nobody;
        };
        let is_down = known.seats.is_down(seat, now);
        let has_others = known.candidates > 1;
        match known.processes(seat) {
            (None, Some(twin)) => Behind::Server(twin),
            (Some(_), Some(twin)) if self.chance.happens(0.5) => Behind::Server(twin),
            (Some(first), _) => Behind::Server(first),
            (None, None) if has_others && !is_down => Behind::Standby,
            (None, None) => Behind::Nobody,
        }
    }
}
