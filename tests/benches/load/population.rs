//! Who asks for what: clients by number, each of which holds some resources, and asks for all of them at once.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use doorward_proto::doorman::{
    GetCapacityRequest, GetCapacityResponse, Lease, Refusal, ReleaseCapacityRequest,
    ReleaseCapacityResponse, ResourceRequest, ResourceResponse,
};

use crate::wire::{Failure, GET_CAPACITY, RELEASE_CAPACITY, Wire};

/// What everybody wants of everything.
const WANTS: f64 = 10.0;

/// It has no lease.
const NOTHING: u64 = f64::NAN.to_bits();

/// Clients, and what they hold.
#[derive(Debug)]
pub(crate) struct Population {
    /// How the names of its clients begin.
    name: &'static str,
    resources: usize,
    each: usize,
    clients: usize,
    /// The capacity of each lease, as bits: those of one client after those of another.
    leases: Vec<AtomicU64>,
}

/// What came of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Leases that were granted, or confirmed.
    pub(crate) granted: u64,
    /// Resources that were refused by the node.
    pub(crate) refused: u64,
    /// Those of them that were refused without a time to come back.
    pub(crate) refused_for_ever: u64,
    /// When to come back: the latest time that was said.
    pub(crate) comes_back_in: Option<Duration>,
    /// Resources that the answer says nothing of: this server is not the master.
    pub(crate) unanswered: u64,
    /// What the first refusal says.
    pub(crate) why: Option<String>,
}

impl Outcome {
    /// What an answer says to a request for so many resources. None: it has more than was asked for.
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

    /// Whether everything was granted that was asked for.
    pub(crate) fn is_complete(&self) -> bool {
        self.refused + self.unanswered == 0
    }

    /// This one and the other.
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
    /// So many clients, of which each asks for `each` of the resources.
    pub(crate) fn new(name: &'static str, clients: usize, resources: usize, each: usize) -> Self {
        assert!(each <= resources, "nobody asks twice for one resource");
        let leases = (0..clients * each).map(|_| AtomicU64::new(NOTHING));
        Self {
            name,
            resources,
            each,
            clients,
            leases: leases.collect(),
        }
    }

    /// How many clients there are.
    pub(crate) fn clients(&self) -> usize {
        self.clients
    }

    /// How many leases they have if everybody has all.
    pub(crate) fn leases(&self) -> usize {
        self.leases.len()
    }

    fn id(&self, client: usize) -> String {
        format!("{}-{client:07}", self.name)
    }

    fn resource(&self, client: usize, number: usize) -> String {
        // Neighbours, so that every resource has as many holders as another.
        let resource = (client * self.each + number) % self.resources;
        format!("load/r-{resource:07}")
    }

    fn lease(&self, client: usize, number: usize) -> &AtomicU64 {
        &self.leases[client * self.each + number]
    }

    /// What a client sends next.
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

    /// Asks for everything that a client wants.
    pub(crate) async fn ask(&self, wire: &Wire, client: usize) -> Result<Outcome, Failure> {
        let request = self.request(client);
        let answer: GetCapacityResponse = wire.call(GET_CAPACITY, &request).await?;
        let Some(outcome) = Outcome::of(&answer, self.each) else {
            return Err(Failure::Broken("more is answered than asked".to_owned()));
        };
        // Of an answer that leaves some out, the next request reports nothing new.
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

    /// Gives back everything that a client has.
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

    /// A client knows of no lease any more.
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

/// What answers come to: granted, refused with a time and without one, left out, and more than was asked for.
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
