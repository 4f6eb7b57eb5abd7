//! An HTTP API that limits each user, each address, and all orders together.
//!
//! ```sh
//! cargo run -p doorward --example api
//! curl -i -H 'x-user: ann' http://127.0.0.1:8080/orders    # the 6th within a second is refused
//! ```

use std::error::Error;
use std::net::SocketAddr;

use axum::{Router, routing::get};
use doorward::layer::{Limits, RulesLayer};
use doorward::rules::{Address, Part, Rules, Template};
use tokio::net::TcpListener;

const RULES: &str = "
domain: api
descriptors:
- key: user
  rate_limit: {rate: 5/s, algorithm: token_bucket}
- key: remote_address
  rate_limit: {rate: 600/min, algorithm: sliding_counter}
- key: path
  value: /orders
  rate_limit: {rate: 100/s, algorithm: token_bucket}
";

/// Creates the service behind its limits.
pub fn app() -> Result<Router, Box<dyn Error>> {
    let rules = Rules::load(&[("api.yaml", RULES)]).map_err(|problems| format!("{problems:?}"))?;
    let limits = Limits::builder("api")
        .part("user", Part::Header("x-user".to_owned()))
        .part("remote_address", Part::Address(Address::peer()))
        .part("path", Part::Path(vec![Template::new("/orders")]))
        .build(rules)?;
    let app = Router::new().route("/orders", get(|| async { "no orders\n" }));
    Ok(app.layer(RulesLayer::new(limits)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    let service = app()?.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await?;
    Ok(())
}
