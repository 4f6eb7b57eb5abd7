//! What memory a server has: at rest, with connections on which nothing happens, with many leases, and when they are
//! gone again.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::fill::{empty, fill, holders};
use crate::population::Population;
use crate::subject::{Place, Subject, Templates};
use crate::wire::Wire;

/// How often somebody asks who is there all the time.
const ASKED_EVERY: Duration = Duration::from_millis(10);

/// How much there is of what takes memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) connections: usize,
    pub(crate) resources: usize,
    pub(crate) leases: usize,
    /// How long to wait for memory to be given back.
    pub(crate) rest: Duration,
}

/// Bytes that a server has, at some moment.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    when: String,
    resident: u64,
    /// Of each connection, or lease, beyond what was there before.
    each: Option<f64>,
}

impl Moment {
    pub(crate) fn print(&self) {
        let each = self
            .each
            .map_or_else(String::new, |each| format!("{each:.0} B each"));
        let mib = self.resident as f64 / f64::from(1 << 20);
        println!("{:44} {mib:>8.1} MiB  {each}", self.when);
    }

    pub(crate) fn json(&self) -> Value {
        json!({"when": self.when, "resident": self.resident, "each": self.each})
    }
}

/// Measures it, on a server of its own for each.
pub(crate) async fn measure(place: &Place, size: Size, mut tell: impl FnMut(Moment)) {
    let server = || Subject::server(place, Templates::FAIR, &[]);
    connections(&server(), size, &mut tell).await;
    leases(&server(), size, &mut tell).await;
}

/// Goes on asking a little: an allocator gives memory back while it is at work.
async fn served_for(subject: &Subject, span: Duration) {
    let until = Instant::now() + span;
    let client = Population::new("beside", 1, 1, 1);
    let wire = Wire::open(subject.address, None).await.unwrap();
    while Instant::now() < until {
        client.ask(&wire, 0).await.unwrap();
        sleep(ASKED_EVERY).await;
    }
}

async fn connections(subject: &Subject, size: Size, tell: &mut impl FnMut(Moment)) {
    let resident = || subject.memory().map_or(0, |memory| memory.resident);
    let at_first = resident();
    tell(Moment {
        when: "at rest".to_owned(),
        resident: at_first,
        each: None,
    });
    // A connection is more than nothing only once somebody has asked something on it.
    let client = Population::new("idle", size.connections, 1, 1);
    let mut open = Vec::new();
    for number in 0..size.connections {
        let from = IpAddr::V4(Ipv4Addr::new(127, 2, 0, 1 + (number % 250) as u8));
        let wire = Wire::open(subject.address, Some(from)).await.unwrap();
        client.ask(&wire, number).await.unwrap();
        open.push(wire);
    }
    served_for(subject, size.rest / 10).await;
    tell(Moment {
        when: format!("{} idle connections, each with a lease", size.connections),
        resident: resident(),
        each: Some(resident().saturating_sub(at_first) as f64 / size.connections as f64),
    });
    drop(open);
    served_for(subject, size.rest).await;
    tell(Moment {
        when: format!("{:?} after they were closed", size.rest),
        resident: resident(),
        each: None,
    });
}

async fn leases(subject: &Subject, size: Size, tell: &mut impl FnMut(Moment)) {
    let resident = || subject.memory().map_or(0, |memory| memory.resident);
    let at_first = resident();
    let holders = holders(size.leases, size.resources);
    for round in ["", ", once more"] {
        let began = Instant::now();
        fill(subject.address, &holders).await.unwrap();
        let took = began.elapsed();
        let leases = holders.leases();
        tell(Moment {
            when: format!("{leases} leases{round} (in {took:.1?})"),
            resident: resident(),
            each: Some(resident().saturating_sub(at_first) as f64 / leases as f64),
        });
        empty(subject.address, &holders).await.unwrap();
        served_for(subject, size.rest / 10).await;
        tell(Moment {
            when: format!("{:?} after they were released", size.rest / 10),
            resident: resident(),
            each: None,
        });
        served_for(subject, size.rest).await;
        tell(Moment {
            when: format!("{:?} later", size.rest),
            resident: resident(),
            each: None,
        });
    }
}
