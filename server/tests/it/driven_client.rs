//! A process of a client that a test drives by hand. It numbers its requests and keeps its books as the protocol
//! demands.

use std::time::Duration;

use doorward_proto::doorman::capacity_client::CapacityClient;
use doorward_proto::doorman::refusal::Reason;
use doorward_proto::doorman::release_result::Outcome;
use doorward_proto::doorman::{
    GetCapacityRequest, GetCapacityResponse, Lease, ReleaseCapacityRequest, ResourceRequest,
};
use doorward_server::app::Server;
use tokio::time::Instant;
use tonic::transport::Channel;

use crate::running::{capacity, eventually};

/// The only resource that the process asks for.
pub(crate) const RESOURCE: &str = "fair/x";

/// Answer of the server for the only resource.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Told {
    Gets(f64),
    Refused {
        reason: Reason,
        retry_in_ms: Option<u64>,
    },
}

pub(crate) struct Process {
    client: CapacityClient<Channel>,
    id: String,
    /// None: the process is of the previous version, which does not send one.
    pub(crate) incarnation: Option<u64>,
    /// Sequence of the newest request.
    pub(crate) sequence: u64,
    /// Amount that the process may be using: its newest grant, unless the server told it to drop that.
    pub(crate) has: f64,
    /// Expiry of that amount. None: it does not expire for a while.
    over_at: Option<Instant>,
    granted_by: Option<u64>,
}

impl Process {
    /// Starts a process, which continues the given sequence.
    pub(crate) async fn start(
        server: &Server,
        id: &str,
        incarnation: impl Into<Option<u64>>,
        sequence: u64,
    ) -> Self {
        Self {
            client: capacity(server).await,
            id: id.to_owned(),
            incarnation: incarnation.into(),
            sequence,
            has: 0.0,
            over_at: None,
            granted_by: None,
        }
    }

    /// Sends all later requests to another server.
    pub(crate) async fn move_to(&mut self, server: &Server) {
        self.client = capacity(server).await;
    }

    /// Returns the amount that the process may be using at this moment.
    pub(crate) fn in_use(&self) -> f64 {
        match self.over_at {
            Some(over_at) if over_at <= Instant::now() => 0.0,
            _ => self.has,
        }
    }

    /// Returns the next request.
    pub(crate) fn request(&mut self, wants: f64) -> GetCapacityRequest {
        self.sequence += 1;
        self.has = self.in_use();
        let lasts = self.over_at.map_or(Duration::from_secs(50), |over_at| {
            over_at.saturating_duration_since(Instant::now())
        });
        let has = Lease {
            capacity: self.has,
            expires_in_ms: u64::try_from(lasts.as_millis()).ok(),
            granted_by: self.granted_by,
            ..Lease::default()
        };
        GetCapacityRequest {
            client_id: self.id.clone(),
            incarnation: self.incarnation,
            sequence: Some(self.sequence),
            resource: vec![ResourceRequest {
                budget: None,
                resource_id: RESOURCE.to_owned(),
                priority: 0,
                has: (self.has > 0.0).then_some(has),
                wants,
            }],
        }
    }

    /// Sends a request, and leaves the books unchanged.
    pub(crate) async fn send(&mut self, request: GetCapacityRequest) -> GetCapacityResponse {
        let answer = self.client.get_capacity(request).await;
        answer.expect("served").into_inner()
    }

    /// Asks, does as the server says, and returns the answer.
    pub(crate) async fn asks(&mut self, wants: f64) -> Told {
        let request = self.request(wants);
        let sent_at = Instant::now();
        let response = self.send(request).await;
        let told = told(&response);
        match told {
            Told::Gets(capacity) => {
                self.has = capacity;
                let gets = &response.response[0].gets;
                let lasts = Duration::from_millis(gets.expires_in_ms.expect("ours"));
                self.over_at = Some(sent_at + lasts);
                // A process of the previous version does not know this field.
                self.granted_by = gets.granted_by.filter(|_| self.incarnation.is_some());
            }
            Told::Refused { .. } => {}
        }
        told
    }

    /// Asks until the server grants as much as the process wants.
    pub(crate) async fn until_gets(&mut self, wants: f64) {
        eventually(&format!("{} gets {wants}", self.id.clone()), async || {
            self.asks(wants).await == Told::Gets(wants)
        })
        .await;
    }

    /// Releases the resource of this process, and one that no client holds. Returns both outcomes.
    pub(crate) async fn releases(&mut self, sequence: Option<u64>) -> [Outcome; 2] {
        let release = ReleaseCapacityRequest {
            budget: Vec::new(),
            client_id: self.id.clone(),
            incarnation: self.incarnation,
            resource_id: vec![RESOURCE.to_owned(), "fair/never-held".to_owned()],
            sequence,
        };
        let released = self.client.release_capacity(release).await;
        let released = released.expect("served").into_inner();
        assert_eq!(released.mastership, None);
        let [of_it, of_nothing] = released.result.as_slice() else {
            panic!("not a result for each: {released:?}");
        };
        assert_eq!(of_it.resource_id(), RESOURCE);
        [of_it.outcome(), of_nothing.outcome()]
    }
}

/// Returns the answer for the only resource.
#[track_caller]
pub(crate) fn told(response: &GetCapacityResponse) -> Told {
    assert_eq!(response.mastership, None);
    match (response.response.as_slice(), response.refused.as_slice()) {
        ([granted], []) => Told::Gets(granted.gets.capacity),
        ([], [refused]) => Told::Refused {
            reason: refused.reason(),
            retry_in_ms: refused.retry_in_ms,
        },
        _ => panic!("not one resource: {response:?}"),
    }
}
