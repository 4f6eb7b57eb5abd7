//! Takes as much as it gets of 300 a second, which all processes of this machine that run it share. Prints each second how
//! much that was, and who serves.
//!
//! `cargo run --release -p doorward-embedded --example shared_limit [FOLDER]`, several times side by side.

use std::env;
use std::error::Error;
use std::io::stderr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use doorward::limiter::rate::Burst;
use doorward_embedded::embedded;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(stderr).init();
    let mut group = embedded("example").limit("db/orders", "300/s");
    if let Some(folder) = env::args_os().nth(1) {
        group = group.folder(folder);
    }
    let client = group.join().await?;
    let limiter = client
        .resource("db/orders")
        .open()?
        .rate_limiter(Burst::default());
    let mut end = signal(SignalKind::terminate())?;
    let (mut second, mut admitted) = (0, 0);
    loop {
        tokio::select! {
            acquired = limiter.acquire(1) => { let _permit = acquired?; }
            _ = end.recv() => break,
        }
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO)
            .as_secs();
        if now != second {
            let part = if client.is_serving() {
                "serves"
            } else {
                "is served"
            };
            println!("{second} {admitted} {part}");
            (second, admitted) = (now, 0);
        }
        admitted += 1;
    }
    println!("{second} {admitted} leaves");
    client.leave().await;
    Ok(())
}
