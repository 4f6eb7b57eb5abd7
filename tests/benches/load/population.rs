//! A population: clients by number, each of which holds some resources, and asks for all of them at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use doorward_proto::doorman::{
    GetCapacityRequest, GetCapacityResponse, Lease, Refusal, ReleaseCapacityRequest,
    ReleaseCapacityResponse, ResourceRequest, ResourceResponse,
};

use crate::wire::{Failure, GET_CAPACITY, RELEASE_CAPACITY, Wire};

/// Wants of every client for every resource.
const WANTS: f64 = 10.0;

/// Mark of a missing lease.
const NOTHING: u64 = f64::NAN.to_bits();

/// Clients and their leases.
#[derive(Debug)]
pub(crate) struct Population {
    /// Prefix of the clients' names.
    name: &'static str,
    resources: usize,
    each: usize,
    clients: usize,
    /// Capacity of each lease, as bits, client after client.
    leases: Vec<AtomicU64>,
}

/// Result of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Number of leases that were granted, or confirmed.
    pub(crate) granted: u64,
    /// Number of resources that the node refused.
    pub(crate) refused: u64,
    /// Number of those that were refused without a time.
    pub(crate) refused_for_ever: u64,
    /// The latest time to come back.
    pub(crate) comes_back_in: Option<Duration>,
    /// Number of resources that the answer omits: this server is not the master.
    pub(crate) unanswered: u64,
    /// Text of the first refusal.
    pub(crate) why: Option<String>,
}

impl Outcome {
    /// Reads an answer to a request for a number of resources. None: it has more than the request.
    fn of(answer: &GetCapacityResponse, asked: usize) -> Option<Self> {
        let times = answer.refused.iter().map(|refusal| refusal.retry_in_ms);
        let (granted, refused) = (answer.response.len(), answer.refused.len());
        Some(Self {
            granted: granted as u64,
            refused: refused as u64,
            refused_for_ever: times.clone().filter(Option::is_none).count() as u64,
            comes_back_in: times.flatten().max().map(Duration::from_millis),
            unanswered: asked.checked_sub(granted + refused)? as u64,
            why: answer.refused.first().and_then(|refusal| {
                let id = refusal.resource_id.as_deref()?;
                Some(format!("{id}: {}", refusal.message.as_deref()?))
            }),
        })
    }

    /// Returns whether everything was granted.
    pub(crate) fn is_complete(&self) -> bool {
        self.refused + self.unanswered == 0
    }

    /// Adds another result.
    pub(crate) fn add(&mut self, other: Self) {
        self.granted += other.granted;
        self.refused += other.refused;
        self.refused_for_ever += other.refused_for_ever;
        self.comes_back_in = self.comes_back_in.max(other.comes_back_in);
        self.unanswered += other.unanswered;
        if self.why.is_none() {
            self.why = other.why;
        }
    }
}

impl Population {
    /// Creates a number of clients, each of which asks for `each` of the resources.
    pub(crate) fn new(name: &'static str, clients: usize, resources: usize, each: usize) -> Self {
        assert!(each <= resources, "a client asks for a resource once");
        let leases = (0..clients * each).map(|_| AtomicU64::new(NOTHING));
        Self {
            name,
            resources,
            each,
            clients,
            leases: leases.collect(),
        }
    }

    /// Returns the number of clients.
    pub(crate) fn clients(&self) -> usize {
        self.clients
    }

    /// Returns the number of leases if every client has all.
    pub(crate) fn leases(&self) -> usize {
        self.leases.len()
    }

    fn id(&self, client: usize) -> String {
        format!("{}-{client:07}", self.name)
    }

    fn resource(&self, client: usize, number: usize) -> String {
        // Neighbours, so that every resource has the same number of holders.
        let resource = (client * self.each + number) % self.resources;
        format!("load/r-{resource:07}")
    }

    fn lease(&self, client: usize, number: usize) -> &AtomicU64 {
        &self.leases[client * self.each + number]
    }

    /// Returns the next request of a client.
    pub(crate) fn request(&self, client: usize) -> GetCapacityRequest {
        let resource = (0..self.each).map(|number| {
            let has = self.lease(client, number).load(Ordering::Relaxed);
            ResourceRequest {
                resource_id: self.resource(client, number),
                priority: 0,
                has: (has != NOTHING).then(|| lease(f64::from_bits(has))),
                wants: WANTS,
            }
        });
        GetCapacityRequest {
            client_id: self.id(client),
            resource: resource.collect(),
            ..GetCapacityRequest::default()
        }
    }

    /// Asks for all wants of a client.
    pub(crate) async fn ask(&self, wire: &Wire, client: usize) -> Result<Outcome, Failure> {
        let request = self.request(client);
        let answer: GetCapacityResponse = wire.call(GET_CAPACITY, &request).await?;
        let Some(outcome) = Outcome::of(&answer, self.each) else {
            return Err(Failure::Broken("more is answered than asked".to_owned()));
        };
        // After an incomplete answer, the next request reports nothing new.
        let is_complete = outcome.is_complete();
        let answered = answer.response.iter().take_while(|_| is_complete);
        for (number, given) in answered.enumerate() {
            if given.resource_id != request.resource[number].resource_id {
                return Err(Failure::Broken("another resource is answered".to_owned()));
            }
            let bits = given.gets.capacity.to_bits();
            self.lease(client, number).store(bits, Ordering::Relaxed);
        }
        Ok(outcome)
    }

    /// Releases all leases of a client.
    pub(crate) async fn release(&self, wire: &Wire, client: usize) -> Result<(), Failure> {
        let names = (0..self.each).map(|number| self.resource(client, number));
        let request = ReleaseCapacityRequest {
            client_id: self.id(client),
            resource_id: names.collect(),
            ..ReleaseCapacityRequest::default()
        };
        self.forget(client);
        let _: ReleaseCapacityResponse = wire.call(RELEASE_CAPACITY, &request).await?;
        Ok(())
    }

    /// Forgets all leases of a client.
    pub(crate) fn forget(&self, client: usize) {
        for number in 0..self.each {
            self.lease(client, number).store(NOTHING, Ordering::Relaxed);
        }
    }
}

fn lease(capacity: f64) -> Lease {
    Lease {
        expiry_time: 0,
        refresh_interval: 1,
        capacity,
        expires_in_ms: Some(60_000),
        refresh_in_ms: None,
        granted_by: None,
    }
}

/// Checks the reading of answers: granted, refused with a time and without one, omitted, and too many.
pub(crate) fn check() {
    let granted = ResourceResponse::default();
    let refused = |retry_in_ms| Refusal {
        resource_id: Some("r".to_owned()),
        message: Some(format!("{retry_in_ms:?}")),
        retry_in_ms,
        ..Refusal::default()
    };
    let answer = GetCapacityResponse {
        response: vec![granted.clone(), granted],
        refused: vec![refused(Some(2_000)), refused(None), refused(Some(700))],
        ..GetCapacityResponse::default()
    };
    let expected = Outcome {
        granted: 2,
        refused: 3,
        refused_for_ever: 1,
        comes_back_in: Some(Duration::from_secs(2)),
        unanswered: 4,
        why: Some("r: Some(2000)".to_owned()),
    };
    assert_eq!(Outcome::of(&answer, 9), Some(expected.clone()));
    assert_eq!(Outcome::of(&answer, 4), None);
    assert!(!expected.is_complete());
    let nothing = GetCapacityResponse::default();
    assert!(Outcome::of(&nothing, 0).is_some_and(|it| it.is_complete()));
    let mut twice = expected.clone();
    twice.add(expected.clone());
    assert_eq!((twice.refused_for_ever, twice.unanswered), (2, 8));
    assert_eq!(twice.comes_back_in, expected.comes_back_in);
}
