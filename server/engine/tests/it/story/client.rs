//! An honest client, written from the text of the protocol and not from any other code.
//!
//! It asks one server for one resource. It applies an answer only if that answers its newest
//! request. It counts leases from the time of the request. It reports the amount that it may be
//! using, and never uses more than that.

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::id::{Caller, HolderName, Incarnation, MastershipId, ResourceId};
use doorward_engine::messages::{ClientLease, GetCapacity, Has, ReleaseCapacity};
use doorward_engine::templates::SafeCapacity;
use doorward_engine::time::Time;

use crate::asking::{self, ask, holder, release_request};

/// Shortest time until a client sends changed wants.
pub const EARLY_GAP: Duration = Duration::from_millis(1_100);

#[derive(Clone, Debug)]
pub struct Client {
    pub name: HolderName,
    /// Number of its server.
    pub home: usize,
    pub resource: ResourceId,
    pub priority: i64,
    pub wants: f64,
    /// Present lease, and its end.
    pub lease: Option<(Amount, Time)>,
    /// Work that began under older, larger leases, and its end: never later than the end of the
    /// lease that allowed it.
    in_flight: Vec<(Amount, Time)>,
    /// Whether work continues when a lease shrinks, as transactions do.
    pub gauge: bool,
    /// Process. Clients of the previous version do not send it.
    pub incarnation: Option<Incarnation>,
    /// Mastership that granted its lease, if the client reports it.
    granted_by: Option<MastershipId>,
    /// Amount for safe mode.
    pub safe_capacity: Option<SafeCapacity>,
    sequence: u64,
    /// Time of the newest request, if it has no answer yet.
    asked: Option<Time>,
    /// Wants in the newest request.
    sent_wants: f64,
    pub next_send: Time,
    pub crashed: bool,
    /// Number of applied answers.
    pub answers: u64,
}

impl Client {
    /// Returns a client without a lease, wants or incarnation.
    pub fn new(name: &str, home: usize, resource: &str) -> Self {
        Self {
            name: holder(name),
            home,
            resource: asking::resource(resource),
            priority: 0,
            wants: 0.0,
            lease: None,
            in_flight: Vec::new(),
            gauge: false,
            incarnation: None,
            granted_by: None,
            safe_capacity: None,
            sequence: 0,
            asked: None,
            sent_wants: 0.0,
            next_send: Time::ZERO,
            crashed: false,
            answers: 0,
        }
    }

    /// Returns the most that the client is using now.
    pub fn uses(&self, now: Time) -> Amount {
        if self.crashed {
            return Amount::ZERO;
        }
        let held = self.lease.iter().chain(&self.in_flight);
        let valid = held
            .filter(|(_, until)| *until > now)
            .map(|(amount, _)| *amount);
        valid.max().unwrap_or(Amount::ZERO)
    }

    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns its address. A few clients share one.
    pub fn caller(&self) -> Option<Caller> {
        let name = self.name.as_str().bytes();
        Some(Caller::new(name.map(u128::from).sum::<u128>() % 3))
    }

    /// Returns a new request. The client gives up on an earlier one.
    pub fn request(&mut self, patience: Duration, now: Time) -> GetCapacity {
        self.sequence += 1;
        self.asked = Some(now);
        self.sent_wants = self.wants;
        self.next_send = now + patience;
        let uses = self.uses(now);
        let valid = self.lease.filter(|(_, until)| *until > now);
        let has = (valid.is_some() || !uses.is_zero()).then(|| Has {
            granted_by: self.granted_by,
            capacity: uses,
            expires_in: Some(valid.map_or(Duration::ZERO, |(_, until)| until.since(now))),
        });
        GetCapacity {
            caller: self.caller(),
            incarnation: self.incarnation,
            sequence: Some(self.sequence),
            ..asking::request(
                self.name.clone(),
                vec![ask(
                    self.resource.clone(),
                    self.priority,
                    Amount::new(self.wants).unwrap(),
                    has,
                )],
            )
        }
    }

    /// Applies an answer to the request of that number. Work that began under a larger lease
    /// continues for `lingers`.
    pub fn answer(
        &mut self,
        sequence: u64,
        lease: Option<&ClientLease>,
        lingers: Duration,
        now: Time,
    ) {
        if self.crashed || sequence != self.sequence {
            return;
        }
        let Some(sent) = self.asked.take() else {
            return;
        };
        let Some(lease) = lease else { return };
        self.answers += 1;
        self.in_flight.retain(|(_, until)| *until > now);
        if let Some((before, until)) = self.lease.filter(|(_, until)| *until > now)
            && self.gauge
            && before > lease.capacity
        {
            self.in_flight.push((before, until.min(now + lingers)));
        }
        self.lease = Some((lease.capacity, sent + lease.expires_in));
        self.granted_by = lease.granted_by.filter(|_| self.incarnation.is_some());
        self.safe_capacity = lease.safe_capacity;
        self.next_send = now + lease.refresh_in;
        if self.wants != self.sent_wants {
            self.next_send = self.next_send.min(now + EARLY_GAP);
        }
    }

    /// Gives the client a lease from an unknown granter.
    pub fn hold(&mut self, amount: Amount, until: Time) {
        self.lease = Some((amount, until));
        self.granted_by = None;
    }

    /// Ends all work that began under larger leases.
    pub fn finish(&mut self) {
        self.in_flight.clear();
    }

    /// Restarts the client, which keeps only its name. Without an incarnation its sequence
    /// continues, as one from a wall clock does. With an incarnation, the sequence starts anywhere.
    pub fn restart(&mut self, now: Time) {
        self.crashed = false;
        self.granted_by = None;
        if let Some(before) = self.incarnation {
            self.incarnation = Incarnation::new(before.get() + 1);
            self.sequence /= 2;
        }
        self.lease = None;
        self.in_flight.clear();
        self.asked = None;
        self.sequence += 1_000;
        self.next_send = now;
    }

    /// Stops all use, and returns a release.
    pub fn release(&mut self) -> ReleaseCapacity {
        self.sequence += 1;
        self.asked = None;
        self.lease = None;
        self.in_flight.clear();
        ReleaseCapacity {
            caller: self.caller(),
            incarnation: self.incarnation,
            sequence: Some(self.sequence),
            ..release_request(self.name.clone(), vec![self.resource.clone()])
        }
    }
}
