//! A load of HTTP requests at a rate that changes, and a meter of what passed.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Connections of a load.
const CONNECTIONS: u32 = 16;

/// Requests that passed, as a meter that the limit empties.
#[derive(Debug)]
pub struct Passed {
    limit: f64,
    /// Requests counted so far.
    pub count: AtomicU64,
    /// Requests refused so far.
    pub refused: AtomicU64,
    /// Level of the meter, its highest value, and the time of the last request.
    meter: Mutex<(f64, f64, Instant)>,
}

impl Passed {
    /// Counts nothing yet, against a limit per second.
    pub fn new(limit: f64) -> Arc<Self> {
        Arc::new(Self {
            limit,
            count: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            meter: Mutex::new((0.0, 0.0, Instant::now())),
        })
    }

    /// Counts a request that passed.
    pub fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut meter = self.meter.lock().unwrap();
        let (level, highest, last) = &mut *meter;
        let now = Instant::now();
        *level = (*level - (now - *last).as_secs_f64() * self.limit).max(0.0) + 1.0;
        *highest = highest.max(*level);
        *last = now;
    }

    /// Returns the largest number of requests above the limit at once.
    pub fn highest(&self) -> f64 {
        self.meter.lock().unwrap().1
    }

    /// Prints the part of the limit that passed, and the excess.
    pub fn report(&self, what: &str, bursts: f64, took: Duration) {
        let count = self.count.load(Ordering::Relaxed) as f64;
        let whole = self.limit * took.as_secs_f64();
        println!(
            "{what}: {count} passed and {} were refused in {took:.2?}; {:.2} % of limit × time; at most {:.0} above the \
             limit at once, bursts {bursts:.0}",
            self.refused.load(Ordering::Relaxed),
            100.0 * count / whole,
            self.highest(),
        );
    }
}

/// Sends `GET /` with these header lines at a rate that changes, until the end. `passed` learns the time of each answer,
/// and whether it was 200 rather than 429.
pub async fn load(
    to: SocketAddr,
    headers: &str,
    rate: impl Fn(Duration) -> f64 + Clone + Send + 'static,
    time: Duration,
    passed: impl Fn(Duration, bool) + Clone + Send + 'static,
) {
    let began = Instant::now();
    let request = format!("GET / HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
    let connections = (0..CONNECTIONS).map(|number| {
        let (rate, passed, request) = (rate.clone(), passed.clone(), request.clone());
        tokio::spawn(async move {
            let mut stream = TcpStream::connect(to).await.unwrap();
            stream.set_nodelay(true).unwrap();
            let mut ticks = interval(Duration::from_millis(1));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
            // The connections take turns, as independent clients would.
            let phase = f64::from(number) / f64::from(CONNECTIONS);
            let (mut due, mut last, mut answer) = (phase, began, [0; 4_096]);
            while began.elapsed() < time {
                ticks.tick().await;
                let now = Instant::now();
                due += (now - last).as_secs_f64() * rate(now - began) / f64::from(CONNECTIONS);
                last = now;
                while due >= 1.0 {
                    due -= 1.0;
                    stream.write_all(request.as_bytes()).await.unwrap();
                    // Both answers are short, and come in one piece.
                    let read = stream.read(&mut answer).await.unwrap();
                    match answer.get(9..12) {
                        Some(b"200") => passed(began.elapsed(), true),
                        Some(b"429") => passed(began.elapsed(), false),
                        other => panic!("{other:?} of {read} bytes"),
                    }
                }
            }
        })
    });
    for connection in connections.collect::<Vec<_>>() {
        connection.await.unwrap();
    }
}
