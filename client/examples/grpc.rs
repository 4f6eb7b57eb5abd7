//! A tonic service (that of health checks) that limits each client by its metadata.
//!
//! ```sh
//! cargo run -p doorward --features tonic --example grpc
//! ```

use std::error::Error;

use doorward::layer::{Limits, RulesLayer};
use doorward::rules::{Part, Rules};
use tonic::transport::Server;

const RULES: &str = "
domain: health
descriptors:
- key: client
  rate_limit: {rate: 10/s, algorithm: token_bucket}
";

/// Creates the limits of the service.
pub fn limits() -> Result<Limits, Box<dyn Error>> {
    let rules =
        Rules::load(&[("health.yaml", RULES)]).map_err(|problems| format!("{problems:?}"))?;
    let client = Part::Header("x-client".to_owned());
    Ok(Limits::builder("health")
        .part("client", client)
        .build(rules)?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (_reporter, service) = tonic_health::server::health_reporter();
    Server::builder()
        .layer(RulesLayer::new(limits()?))
        .add_service(service)
        .serve("127.0.0.1:8081".parse()?)
        .await?;
    Ok(())
}
