//! A worker that shares a database with other programs, by a lease of queries per second.
//!
//! ```sh
//! cargo run --release --bin doorward-server                  # example/fair shares 100 a second
//! cargo run -p doorward --example worker -- worker-1   # and worker-2 in another shell
//! ```

#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::env;
use std::error::Error;

use doorward::Client;
use doorward::limiter::demand::AdaptiveWants;
use doorward::limiter::rate::Burst;

/// Does this many queries as the lease allows.
pub async fn work(client: &Client, queries: u32) -> Result<(), Box<dyn Error>> {
    // The wants follow the use, so an idle worker leaves its part to the others.
    let adaptive = AdaptiveWants {
        least: 10.0,
        most: 80.0,
        ..AdaptiveWants::default()
    };
    let database = client
        .resource("example/fair")
        .adaptive_wants(adaptive)
        .open()?;
    let limiter = database.rate_limiter(Burst::default());
    for query in 1..=queries {
        limiter.acquire(1).await?;
        // The query.
        if query % 100 == 0 {
            println!("{query} queries; {} a second allowed", database.capacity());
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let id = env::args().nth(1).unwrap_or_else(|| "worker-1".to_owned());
    let client = Client::builder()
        .id(id)
        .address("127.0.0.1:6970")
        .connect()
        .await?;
    work(&client, 1_000).await?;
    client.close().await;
    Ok(())
}
