//! A population: clients by number, each of which holds some resources, and asks for all of them at once.

use std::sync::atomic::{AtomicU64, Ordering};

use doorward_proto::doorman::{
    GetCapacityRequest, GetCapacityResponse, Lease, ReleaseCapacityRequest,
    ReleaseCapacityResponse, ResourceRequest,
};

use crate::wire::{Failure, GET_CAPACITY, RELEASE_CAPACITY, STREAM_CAPACITY, Stream, Wire};

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
    fn request(&self, client: usize) -> GetCapacityRequest {
        let resource = (0..self.each).map(|number| {
            let has = self.lease(client, number).load(Ordering::Relaxed);
            ResourceRequest {
                budget: None,
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

    /// Asks for all wants of a client. A resource without an answer is a refusal: the server is not the master.
    pub(crate) async fn ask(&self, wire: &Wire, client: usize) -> Result<(), Failure> {
        let request = self.request(client);
        let answer: GetCapacityResponse = wire.call(GET_CAPACITY, &request).await?;
        if answer.response.len() < self.each {
            return Err(Failure::Refused(format!("{:?}", answer.refused.first())));
        }
        for (number, given) in answer.response.iter().enumerate() {
            if given.resource_id != request.resource[number].resource_id {
                return Err(Failure::Broken("another resource is answered".to_owned()));
            }
            let bits = given.gets.capacity.to_bits();
            self.lease(client, number).store(bits, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Opens a stream of a client, and waits for its first lease.
    pub(crate) async fn open(&self, wire: &Wire, client: usize) -> Result<Stream, Failure> {
        let request = GetCapacityRequest {
            sequence: Some(1),
            ..self.request(client)
        };
        let mut stream = wire.stream(STREAM_CAPACITY, &request).await?;
        let answer: GetCapacityResponse = stream.next().await?;
        match answer.response.len() == self.each {
            true => Ok(stream),
            false => Err(Failure::Refused(format!("{:?}", answer.refused.first()))),
        }
    }

    /// Releases all leases of a client.
    pub(crate) async fn release(&self, wire: &Wire, client: usize) -> Result<(), Failure> {
        let names = (0..self.each).map(|number| self.resource(client, number));
        let request = ReleaseCapacityRequest {
            client_id: self.id(client),
            resource_id: names.collect(),
            ..ReleaseCapacityRequest::default()
        };
        for number in 0..self.each {
            self.lease(client, number).store(NOTHING, Ordering::Relaxed);
        }
        let _: ReleaseCapacityResponse = wire.call(RELEASE_CAPACITY, &request).await?;
        Ok(())
    }

    /// Forgets all leases.
    pub(crate) fn forget(&self) {
        for lease in &self.leases {
            lease.store(NOTHING, Ordering::Relaxed);
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
