//! A tonic service (that of health checks) that limits each client by its metadata.
//!
//! ```sh
//! cargo run -p doorward --features tonic --example grpc
//! ```

use std::error::Error;

use doorward::layer::{LimitLayer, Limits};
use doorward::rules::{Rules, header};
use tonic::transport::Server;

/// Creates the limits of the service.
pub fn limits() -> Result<Limits, Box<dyn Error>> {
    let rules = Rules::named("health").per(header("x-client"), "10/s");
    Ok(Limits::new(rules)?)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (_reporter, service) = tonic_health::server::health_reporter();
    Server::builder()
        .layer(LimitLayer::new(limits()?))
        .add_service(service)
        .serve("127.0.0.1:8081".parse()?)
        .await?;
    Ok(())
}
