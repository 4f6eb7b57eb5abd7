//! Takes as much as it gets of 300 a second, which all processes of this machine that run it share. Prints each second how
//! much that was, and who serves.
//!
//! `cargo run --release -p doorward-embedded --example shared_limit [FOLDER]`, several times side by side.

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::env;
use std::error::Error;
use std::io::stderr;
use std::time::Duration;

use doorward::limiter::rate::Burst;
use doorward_embedded::embedded;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::interval;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(stderr).init();
    let mut group = embedded("example").limit("db/orders", "300/s");
    if let Some(folder) = env::args_os().nth(1) {
        group = group.folder(folder);
    }
    let group = group.join().await?;
    let database = group.client().resource("db/orders").open()?;
    let limiter = database.rate_limiter(Burst::default());
    let mut end = signal(SignalKind::terminate())?;
    let mut second = interval(Duration::from_secs(1));
    let mut taken = 0;
    loop {
        tokio::select! {
            acquired = limiter.acquire(1) => {
                acquired?;
                taken += 1;
            }
            _ = second.tick() => {
                let part = if group.is_serving() { "serves" } else { "is served" };
                println!("{taken} in a second; this process {part}");
                taken = 0;
            }
            _ = end.recv() => break,
        }
    }
    group.leave().await;
    Ok(())
}
