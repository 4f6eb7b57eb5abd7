//! gRPC's health service. Every name reports whether the server is ready ([`crate::status::readiness`]), except for
//! one, which reports that the process lives.

use std::sync::Arc;

use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::status::ServerState;

/// Reporter of readiness to the health service.
#[derive(Clone, Debug)]
pub struct Health(HealthReporter);

/// Names whose health is reported: the server as a whole, and each of its services.
const SERVICES: [&str; 5] = [
    "",
    "doorman.Capacity",
    "doorward.v1.CapacityStream",
    "doorward.admin.v1.Admin",
    "doorward.admin.v1.Rules",
];

/// Name that is healthy while the process lives, for a supervisor that restarts the process.
const LIVENESS: &str = "liveness";

impl Health {
    /// Reports to the health service of `reporter`.
    pub const fn new(reporter: HealthReporter) -> Self {
        Self(reporter)
    }

    /// Reports whether the server is ready.
    pub async fn set(&self, ready: bool) {
        let status = if ready {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        for service in SERVICES {
            self.0.set_service_status(service, status).await;
        }
        self.0
            .set_service_status(LIVENESS, ServingStatus::Serving)
            .await;
    }

    /// Reports that the server stops, and ends all watches: a shutdown waits for calls in flight, and a watch never
    /// ends by itself.
    pub async fn stop(&mut self) {
        for service in SERVICES {
            self.0
                .set_service_status(service, ServingStatus::NotServing)
                .await;
            self.0.clear_service_status(service).await;
        }
        self.0.clear_service_status(LIVENESS).await;
    }
}

/// Reports each change of readiness to the health service. Runs until the server stops: spawn it.
pub async fn report_readiness(state: Arc<ServerState>, health: Health) {
    let clock = state.node().clock();
    let mut masterships = state.node().masterships();
    let mut parent_answered = state.node().parent_answered();
    // A stopping server has already reported that, and ended the watches.
    while !state.is_stopping() {
        masterships.mark_unchanged();
        parent_answered.mark_unchanged();
        let (readiness, ends_at) = state.judge_readiness();
        health.set(readiness.is_ready()).await;
        let over = async {
            match ends_at {
                Some(end) => clock.sleep_until(end).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Ok(()) = masterships.changed() => {}
            Ok(()) = parent_answered.changed() => {}
            () = over => {}
            else => return,
        }
    }
}
