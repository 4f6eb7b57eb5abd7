//! A client as honest clients are, written from the protocol's text and not from any other code.
//!
//! It asks one server for one resource; applies an answer only if that answers its newest request;
//! counts leases from when it sent the request; says it has what it may be using; and uses, at any
//! moment, no more than that.

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::id::{Caller, HolderName, Incarnation, MastershipId, ResourceId};
use doorward_engine::request::{ClientLease, GetCapacity, Has, ReleaseCapacity};
use doorward_engine::template::SafeCapacity;
use doorward_engine::time::Time;

use crate::asking::{self, ask, holder, release_request};

/// How soon a client says that it wants something else.
pub const EARLY_GAP: Duration = Duration::from_millis(1_100);

#[derive(Clone, Debug)]
pub struct Client {
    pub name: HolderName,
    /// The number of the server it asks.
    pub home: usize,
    pub resource: ResourceId,
    pub priority: i64,
    pub wants: f64,
    /// What it works to, until when.
    pub lease: Option<(Amount, Time)>,
    /// Work that was begun under older, larger leases, and goes on until it ends by itself: never
    /// longer than the lease that allowed it.
    in_flight: Vec<(Amount, Time)>,
    /// Whether work goes on when a lease shrinks, as transactions do.
    pub gauge: bool,
    /// Which process it is. Clients of the previous version do not say.
    pub incarnation: Option<Incarnation>,
    /// Which mastership granted its lease, if it says that.
    granted_by: Option<MastershipId>,
    /// What it may use in safe mode.
    pub safe_capacity: Option<SafeCapacity>,
    sequence: u64,
    /// The newest request, if it was not answered yet: when it was sent.
    asked: Option<Time>,
    /// What was wanted in the newest request.
    sent_wants: f64,
    pub next_send: Time,
    pub crashed: bool,
    /// How many answers it has applied.
    pub answers: u64,
}

impl Client {
    /// A client that has nothing, wants nothing, and does not say which process it is.
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

    /// The most it is using now.
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

    /// Where it is: a few are behind one address.
    pub fn caller(&self) -> Option<Caller> {
        let name = self.name.as_str().bytes();
        Some(Caller::new(name.map(u128::from).sum::<u128>() % 3))
    }

    /// Asks; gives up on whatever was asked before.
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

    /// An answer came to the request of that number. `lingers` is how long work that was begun
    /// under a larger lease goes on, if there is any.
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

    /// It has so much by a lease of which it is not known who granted it.
    pub fn hold(&mut self, amount: Amount, until: Time) {
        self.lease = Some((amount, until));
        self.granted_by = None;
    }

    /// Ends all work that was begun under larger leases.
    pub fn finish(&mut self) {
        self.in_flight.clear();
    }

    /// Loses everything but its name. The sequence of one that does not say which process it is goes
    /// on, as one from a wall clock does; that of another begins anywhere.
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

    /// Stops using anything, and says so.
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
