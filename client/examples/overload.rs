//! A service with a cheap and an expensive operation, which stays useful under overload without any configuration.
//!
//! ```sh
//! cargo run -p doorward --example overload
//! curl -i localhost:8080/search -H 'x-doorward-criticality: CRITICAL'
//! ```

#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use doorward::layer::{LimitLayer, Overload};
use tokio::sync::Semaphore;

/// The service. It works on a few requests at once, like a database with so many connections.
pub fn app(connections: usize) -> Router {
    let database = Arc::new(Semaphore::new(connections));
    let operation = |millis| {
        let database = database.clone();
        move || async move {
            let _connection = database.acquire().await;
            tokio::time::sleep(Duration::from_millis(millis)).await;
            "done\n"
        }
    };
    Router::new()
        .route("/search", get(operation(5)))
        .route("/report", get(operation(50)))
        .layer(LimitLayer::new(Overload::new("shop")))
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    println!("listening on {}", listener.local_addr()?);
    let app = app(4).into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, app).await
}
