//! `doorward record`: the demand of all clients of a resource, as a trace that `doorward-sim replay` plays.
//!
//! It asks all servers of the tree again and again, and writes a row whenever the wants of a client have changed. A
//! client that its server lists no more wants 0, once it would have asked again: a server that has just started does not
//! know its clients yet. While a server does not answer or lists a part of its clients, they want what they wanted.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::pin::pin;
use std::time::Duration;

use csv::Writer;
use doorward_proto::admin::v1::GetStatusRequest;
use doorward_session::visible::line;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::caller::MasterCaller;
use crate::common::Common;
use crate::failure::{Failure, Result};
use crate::flags::RecordFlags;
use crate::interruption::interruption;
use crate::output;
use crate::tree::{Place, walk};

/// Clients of a server that are read, at most.
const CLIENTS_MAX: u32 = 10_000;

/// Time between two lines about the progress, on a terminal.
const PROGRESS: Duration = Duration::from_secs(10);

pub(crate) async fn run(common: &Common, flags: &RecordFlags) -> Result {
    let caller = MasterCaller::new(common)?;
    let request = GetStatusRequest {
        resource_id: flags.resource.clone(),
        leases_max: CLIENTS_MAX,
        ..GetStatusRequest::default()
    };
    let mut interrupted = pin!(interruption()?);
    let mut recording = Recording::new(output::stdout());
    let mut ticks = interval(flags.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut began, mut told) = (None, Duration::ZERO);
    loop {
        let read = tokio::select! {
            () = &mut interrupted => break,
            read = async {
                ticks.tick().await;
                walk(&caller, &request).await
            } => read,
        };
        let at = Instant::now() - *began.get_or_insert_with(Instant::now);
        match read {
            Ok(places) => recording.add(&places, at)?,
            // It may be away for a moment.
            Err(failure) if recording.rows > 0 => recording.tell(failure.to_string())?,
            Err(failure) => return Err(failure),
        }
        if flags.duration.is_some_and(|longest| at >= longest) {
            break;
        }
        if at >= told + PROGRESS && io::stderr().is_terminal() {
            told = at;
            recording.tell_progress(at)?;
        }
    }
    if recording.rows == 0 {
        let resource = line(&flags.resource);
        return Err(Failure::No(format!("nobody asked for {resource}")));
    }
    recording.tell_progress(began.map_or(told, |began| Instant::now() - began))
}

/// A trace in the making.
struct Recording<W: Write> {
    rows: usize,
    out: Writer<W>,
    clients: BTreeMap<String, Recorded>,
    problem: String,
}

/// A client as it was listed last.
#[derive(Default)]
struct Recorded {
    wants: f64,
    server: String,
    /// Time since when its server does not list it.
    gone_at: Option<Duration>,
}

impl<W: Write> Recording<W> {
    fn new(out: W) -> Self {
        Self {
            rows: 0,
            out: Writer::from_writer(out),
            clients: BTreeMap::new(),
            problem: String::new(),
        }
    }

    /// Adds what the servers say at a time.
    fn add(&mut self, places: &[Place], at: Duration) -> Result {
        let (listed, whole, problems) = listed(places);
        let mut rows = Vec::new();
        for (name, (wants, server)) in &listed {
            let known = self.clients.entry((*name).to_owned()).or_default();
            if known.wants != *wants {
                rows.push(((*name).to_owned(), *wants));
            }
            (known.wants, known.gone_at) = (*wants, None);
            known.server = (*server).to_owned();
        }
        for (name, it) in &mut self.clients {
            let Some(interval) = whole.get(&*it.server) else {
                continue;
            };
            if !listed.contains_key(&**name) && at >= *it.gone_at.get_or_insert(at) + *interval {
                if it.wants != 0.0 {
                    rows.push((name.clone(), 0.0));
                }
                it.wants = 0.0;
            }
        }
        let is_gone = |it: &Recorded| it.wants == 0.0 && it.gone_at.is_some();
        self.clients.retain(|_, it| !is_gone(it));
        if self.rows == 0 && !rows.is_empty() {
            let header = ["time_s", "client", "wants"];
            self.out.write_record(header).map_err(io::Error::from)?;
        }
        for (name, wants) in rows {
            let row = [format!("{:.3}", at.as_secs_f64()), name, wants.to_string()];
            self.out.write_record(row).map_err(io::Error::from)?;
            self.rows += 1;
        }
        self.out.flush()?;
        self.tell(problems.join("; "))
    }

    /// Prints a problem once. Empty: there is none.
    fn tell(&mut self, problem: String) -> Result {
        if !problem.is_empty() && problem != self.problem {
            writeln!(output::stderr(), "{}", line(&problem))?;
        }
        self.problem = problem;
        Ok(())
    }

    fn tell_progress(&self, at: Duration) -> Result {
        let clients = self.clients.values().filter(|it| it.wants > 0.0).count();
        let (seconds, rows) = (at.as_secs(), self.rows);
        let told = format!("{rows} rows; {clients} clients want some now");
        Ok(writeln!(output::stderr(), "recorded {seconds} s: {told}")?)
    }
}

/// Wants of each client, and its server.
type Listed<'a> = BTreeMap<&'a str, (f64, &'a str)>;

/// Servers that list all their clients, and the time until each of these has asked again.
type Whole<'a> = BTreeMap<&'a str, Duration>;

/// Returns the clients that servers list, those that list all, and what is wrong with others.
fn listed(places: &[Place]) -> (Listed<'_>, Whole<'_>, Vec<String>) {
    let (mut listed, mut whole) = (Listed::new(), Whole::new());
    let mut problems = Vec::new();
    for place in places {
        let node = place.node.as_str();
        if let Some(problem) = &place.problem {
            problems.push(format!("{node}: {problem}"));
        }
        let Some(status) = place.status.as_ref().filter(|it| it.is_master) else {
            continue;
        };
        let Some(resource) = place.resource() else {
            whole.insert(node, Duration::ZERO);
            continue;
        };
        let clients = resource.leases.iter().filter(|it| it.kind == "client");
        let count = clients.clone().count() as u64;
        for client in clients {
            let known = listed.entry(&client.holder).or_default();
            // A client that moves to another server is at both for a while.
            if client.wants >= known.0 {
                *known = (client.wants, node);
            }
        }
        let others = resource.children_count.saturating_add(count);
        match resource.leases_count.saturating_sub(others) {
            0 if status.learning_remaining_ms.is_none() => {
                let interval = Duration::from_millis(resource.refresh_interval_ms);
                whole.insert(node, interval);
            }
            0 => {}
            missing => problems.push(format!("{node}: {missing} clients are left out")),
        }
    }
    (listed, whole, problems)
}

#[cfg(test)]
mod tests {
    use doorward_proto::admin::v1::{GetStatusResponse, LeaseStatus, ResourceStatus};

    use super::*;

    /// A server with these clients, or one that does not answer.
    fn place(node: &str, clients: Option<&[(&str, f64)]>) -> Place {
        let lease = |(holder, wants): &(&str, f64)| LeaseStatus {
            holder: (*holder).to_owned(),
            kind: "client".to_owned(),
            wants: *wants,
            ..LeaseStatus::default()
        };
        let status = clients.map(|clients| GetStatusResponse {
            is_master: true,
            resources: vec![ResourceStatus {
                leases: clients.iter().map(lease).collect(),
                leases_count: clients.len() as u64,
                refresh_interval_ms: 1_000,
                ..ResourceStatus::default()
            }],
            ..GetStatusResponse::default()
        });
        Place {
            node: node.to_owned(),
            status,
            ..Place::default()
        }
    }

    #[test]
    fn a_row_is_written_when_wants_change_and_a_silent_server_changes_none() {
        let mut written = Vec::new();
        let mut recording = Recording::new(&mut written);
        let at = Duration::from_millis;
        for (millis, places) in [
            (
                0,
                [
                    place("a", Some(&[("x", 5.0), ("y, z", 1.5)])),
                    place("b", Some(&[])),
                ],
            ),
            (
                1_000,
                [
                    place("a", Some(&[("x", 5.0), ("y, z", 2.0)])),
                    place("b", Some(&[])),
                ],
            ),
            (2_000, [place("a", None), place("b", Some(&[("w", 3.0)]))]),
            // One client has moved. Another one may only be late.
            (
                3_000,
                [
                    place("a", Some(&[("y, z", 2.0)])),
                    place("b", Some(&[("x", 5.0)])),
                ],
            ),
            (
                3_900,
                [
                    place("a", Some(&[("y, z", 2.0)])),
                    place("b", Some(&[("x", 5.0)])),
                ],
            ),
            (
                4_000,
                [place("a", Some(&[])), place("b", Some(&[("x", 5.0)]))],
            ),
            (
                4_500,
                [
                    place("a", Some(&[("y, z", 2.0)])),
                    place("b", Some(&[("x", 5.0)])),
                ],
            ),
        ] {
            recording.add(&places, at(millis)).unwrap();
        }
        drop(recording);
        let expected = "time_s,client,wants\n0.000,x,5\n0.000,\"y, z\",1.5\n1.000,\"y, z\",2\n\
                        2.000,w,3\n4.000,w,0\n";
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }
}
