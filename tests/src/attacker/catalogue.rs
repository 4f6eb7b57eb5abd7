//! All attacks by name: each at full size, for a bench, and slow, for hours beside others.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use super::flood::{Amount, Flood, flood};
use super::{Outcome, Siege, Target, claims, unread, waiting};

/// Size of an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// The load of an attacker with one machine.
    Full,
    /// A small amount, again and again.
    Slow,
}

impl Size {
    fn of<T>(self, full: T, slow: T) -> T {
        match self {
            Self::Full => full,
            Self::Slow => slow,
        }
    }
}

/// An attack in progress.
pub type Waging = Pin<Box<dyn Future<Output = Siege> + Send>>;

/// An attack by name.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    /// Name on the command line.
    pub name: &'static str,
    /// Description for people.
    pub what: &'static str,
    /// Attacks once. The siege holds its connections until it is dropped. The number of the round makes names that were
    /// not used before.
    pub wage: fn(Target, Size, u64) -> Waging,
}

macro_rules! attacks {
    ($($name:literal, $what:literal, |$target:ident, $size:ident, $round:ident| $wage:expr;)*) => {
        /// All attacks.
        pub const ATTACKS: &[Attack] = &[$(Attack {
            name: $name,
            what: $what,
            wage: |$target, $size, $round| {
                let _ = ($size, $round);
                Box::pin(async move { $wage })
            },
        },)*];
    };
}

attacks! {
    "half-open-calls", "999 calls on each of 20 connections announce 4 MiB and send nothing", |target, size, round|
        waiting::half_open_calls(target, size.of(20, 2), size.of(999, 20)).await;
    "stopped-child-streams", "30 child servers stop at 3.99 of 4 MiB", |target, size, round|
        waiting::stopped_child_streams(target, size.of(30, 1)).await;
    "silent-sockets", "2,200 connections say nothing, and 150 a second are made anew", |target, size, round| {
        let mut siege = waiting::silent_sockets(target, size.of(2_200, 20)).await;
        let (per_second, times) = size.of((150, 9_000), (5, 25));
        waiting::reopen(&mut siege, target, per_second, times).await;
        siege
    };
    "one-byte", "5,000 connections say one byte", |target, size, round|
        waiting::one_byte(target, size.of(5_000, 20)).await;
    "slow-headers", "3,000 connections to the pages send a byte of a header each second", |target, size, round| {
        let mut siege = waiting::slow_http_headers(target, size.of(3_000, 20)).await;
        let mut turns = tokio::time::interval(Duration::from_secs(1));
        for _ in 0..size.of(30, 5) {
            turns.tick().await;
            waiting::drip(&mut siege).await;
        }
        siege
    };
    "idle-http", "3,000 connections to the pages stay when they were answered", |target, size, round|
        waiting::idle_http(target, size.of(3_000, 20)).await;
    "unfinished-headers", "2,000 calls whose headers do not end", |target, size, round|
        waiting::unfinished_headers(target, size.of(2_000, 20)).await;
    "greeted", "3,000 connections greet and ask for nothing", |target, size, round|
        waiting::greeted(target, size.of(3_000, 20)).await;
    "rapid-resets", "1.9 million calls that are given up at once", |target, size, round|
        flooded(target, Flood::RapidResets, size, 1_900_000).await;
    "resets-by-zero-window", "500,000 calls that the server resets: a window grown by 0", |target, size, round|
        flooded(target, Flood::ResetsByZeroWindow, size, 500_000).await;
    "resets-by-overflow", "500,000 calls that the server resets: a window too large", |target, size, round|
        flooded(target, Flood::ResetsByOverflow, size, 500_000).await;
    "resets-by-data-after-end", "500,000 calls that the server resets: data after the end", |target, size, round|
        flooded(target, Flood::ResetsByDataAfterEnd, size, 500_000).await;
    "continuation", "5 million pieces of headers that do not end", |target, size, round|
        flooded(target, Flood::Continuation, size, 5_000_000).await;
    "empty-continuation", "5 million empty pieces of headers", |target, size, round|
        flooded(target, Flood::EmptyContinuation, size, 5_000_000).await;
    "settings", "5 million settings", |target, size, round|
        flooded(target, Flood::Settings, size, 5_000_000).await;
    "ping", "5 million pings", |target, size, round|
        flooded(target, Flood::Ping, size, 5_000_000).await;
    "priority", "5 million priorities", |target, size, round|
        flooded(target, Flood::Priority, size, 5_000_000).await;
    "window-update", "5 million windows grown by a byte", |target, size, round|
        flooded(target, Flood::WindowUpdate, size, 5_000_000).await;
    "unknown-frames", "5 million frames of an unknown kind", |target, size, round|
        flooded(target, Flood::Unknown, size, 5_000_000).await;
    "empty-data", "5 million frames of no data", |target, size, round|
        flooded(target, Flood::EmptyData, size, 5_000_000).await;
    "header-bombs", "20,000 header blocks of 16 KiB that unfold to 50 MB", |target, size, round|
        flooded(target, Flood::HeaderBomb, size, 20_000).await;
    "invented-resources", "one client asks for 100,000 resources that the server does not know", |target, size, round| {
        let prefix = format!("invented/{round}");
        done(claims::invented_resources(target, &prefix, size.of(100_000, 100), size.of(1_000, 10)).await)
    };
    "invented-ids", "a million clients that the server does not know", |target, size, round| {
        let count = size.of(1_000_000, 100);
        let first = usize::try_from(round).unwrap_or(0).saturating_mul(count);
        done(claims::invented_ids(target, "attacked/ids", first..first.saturating_add(count), size.of(64, 2)).await)
    };
    "forged-children", "117 child servers with 900 demand curves each", |target, size, round|
        done(claims::forged_children(target, "attacked/curve", size.of(117, 2), size.of(900, 20)).await);
    "priorities", "64 priorities from 2⁶³−1 downwards", |target, size, round|
        done(claims::priorities(target, "banded", 64).await);
    "claims", "a client that says it has 10¹⁵, and a child server of 10¹² clients", |target, size, round| {
        let mut outcome = claims::claimed(target, "attacked/has", 1e15).await;
        outcome.add(claims::crowded_child(target, "attacked/crowd", 1_000_000_000_000).await);
        done(outcome)
    };
    "unread-child-streams", "30 child servers that ask 1,000 times and never read", |target, size, round|
        unread::child_streams(target, size.of(30, 2), size.of(1_000, 20)).await;
    "unread-statuses", "30 connections ask 60 times for the status of 5,000 resources and read none", |target, size, round| {
        let filled = claims::invented_resources(target, "read", size.of(5_000, 10), size.of(500, 10)).await;
        let mut siege = unread::statuses(target, size.of(30, 2), size.of(60, 4)).await;
        siege.outcome.add(filled);
        siege
    };
    "unread-watches", "30 connections with 60 watches of health each, and read nothing", |target, size, round|
        unread::health_watches(target, size.of(30, 2), size.of(60, 4)).await;
    "unread-reflections", "30 connections ask for 6,000 descriptors each, and read none", |target, size, round|
        unread::reflections(target, size.of(30, 2), size.of(60, 4)).await;
    "unread-pings", "30 connections send 100,000 pings each, and read no answer", |target, size, round|
        unread::pings(target, size.of(30, 2), size.of(100_000, 1_000)).await;
}

async fn flooded(target: Target, what: Flood, size: Size, times: u64) -> Siege {
    let amount = Amount {
        times: size.of(times, 500),
        connections_max: size.of(10_000, 5),
    };
    done(flood(target, what, amount).await)
}

/// Returns an attack that holds nothing.
fn done(outcome: Outcome) -> Siege {
    Siege {
        outcome,
        ..Siege::default()
    }
}
