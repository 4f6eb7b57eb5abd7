//! gRPC's health service. Every name reports whether the server is ready, except for one, which reports that the
//! process lives.

use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

/// Reporter of readiness to the health service.
#[derive(Clone, Debug)]
pub struct Health {
    reporter: HealthReporter,
    services: &'static [&'static str],
}

/// Name that is healthy while the process lives, for a supervisor that restarts the process.
const LIVENESS: &str = "liveness";

impl Health {
    /// Reports to the health service of `reporter` under the names of `services`.
    pub const fn new(reporter: HealthReporter, services: &'static [&'static str]) -> Self {
        Self { reporter, services }
    }

    /// Reports whether the server is ready.
    pub async fn set(&self, ready: bool) {
        let status = if ready {
            ServingStatus::Serving
        } else {
            ServingStatus::NotServing
        };
        for service in self.services {
            self.reporter.set_service_status(service, status).await;
        }
        self.reporter
            .set_service_status(LIVENESS, ServingStatus::Serving)
            .await;
    }

    /// Reports that the server stops, and ends all watches: a shutdown waits for calls in flight, and a watch never
    /// ends by itself.
    pub async fn stop(&mut self) {
        for service in self.services {
            self.reporter
                .set_service_status(service, ServingStatus::NotServing)
                .await;
            self.reporter.clear_service_status(service).await;
        }
        self.reporter.clear_service_status(LIVENESS).await;
    }
}
