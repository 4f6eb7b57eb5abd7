//! An HTTP API that limits each user, each address, and all orders together.
//!
//! ```sh
//! cargo run -p doorward --example api
//! curl -i -H 'x-user: ann' http://127.0.0.1:8080/orders    # the 6th within a second is refused
//! ```

use std::error::Error;
use std::net::SocketAddr;

use axum::{Router, routing::get};
use doorward::layer::{LimitLayer, Limits};
use doorward::rules::{Rules, client_ip, header, path_template};
use tokio::net::TcpListener;

/// Creates the service behind its limits.
pub fn app() -> Result<Router, Box<dyn Error>> {
    let rules = Rules::named("api")
        .per(header("x-user"), "5/s")
        .per(client_ip(), "600/min")
        .per(path_template(["/orders"]), "100/s");
    let limits = Limits::new(rules)?;
    let app = Router::new().route("/orders", get(|| async { "no orders\n" }));
    Ok(app.layer(LimitLayer::new(limits)))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    let service = app()?.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).await?;
    Ok(())
}
