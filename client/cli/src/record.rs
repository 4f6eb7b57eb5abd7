//! `doorward record`: the demand of all clients of a resource, as a trace that `doorward-sim replay` plays.
//!
//! It asks all servers of the tree again and again, and writes a row whenever the wants of a client have changed. A
//! client that its server lists no more wants 0. While a server does not answer, its clients want what they wanted.

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
use crate::failure::Failure;
use crate::flags::RecordFlags;
use crate::interruption::interruption;
use crate::output;
use crate::tree::{Place, walk};

/// Clients of a server that are read, at most.
const CLIENTS_MAX: u32 = 10_000;

/// Time between two lines about the progress, on a terminal.
const PROGRESS: Duration = Duration::from_secs(10);

pub(crate) async fn run(common: &Common, flags: &RecordFlags) -> Result<(), Failure> {
    let caller = MasterCaller::new(common)?;
    let request = GetStatusRequest {
        resource_id: flags.resource.clone(),
        leases_max: CLIENTS_MAX,
        ..GetStatusRequest::default()
    };
    let mut interrupted = pin!(interruption()?);
    let mut recording = Recording::new(output::stdout())?;
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
    /// Wants of each client, and its server.
    clients: BTreeMap<String, (f64, String)>,
    problem: String,
}

impl<W: Write> Recording<W> {
    fn new(out: W) -> io::Result<Self> {
        let mut out = Writer::from_writer(out);
        out.write_record(["time_s", "client", "wants"])?;
        Ok(Self {
            rows: 0,
            out,
            clients: BTreeMap::new(),
            problem: String::new(),
        })
    }

    /// Adds what the servers say at a time.
    fn add(&mut self, places: &[Place], at: Duration) -> Result<(), Failure> {
        let mut now: BTreeMap<String, (f64, String)> = BTreeMap::new();
        let mut problems = Vec::new();
        for place in places {
            let node = &place.node;
            if let Some(problem) = &place.problem {
                problems.push(format!("{node}: {problem}"));
            }
            let Some(resource) = place.resource() else {
                continue;
            };
            let clients = resource.leases.iter().filter(|it| it.kind == "client");
            let listed = clients.clone().count();
            for client in clients {
                let known = now.entry(client.holder.clone()).or_default();
                // A client that moves to another server is at both for a while.
                if client.wants >= known.0 {
                    *known = (client.wants, node.clone());
                }
            }
            let there = resource
                .leases_count
                .saturating_sub(resource.children_count);
            let missing = there.saturating_sub(listed as u64);
            if missing > 0 {
                problems.push(format!("{node}: {missing} clients are left out"));
            }
        }
        let answers = |node: &String| {
            places
                .iter()
                .any(|it| it.node == *node && it.status.is_some())
        };
        for (client, (_, node)) in &self.clients {
            if answers(node) {
                now.entry(client.clone()).or_insert((0.0, node.clone()));
            }
        }
        for (client, (wants, node)) in now {
            let before = self.clients.get(&client).map(|(wants, _)| *wants);
            if before.unwrap_or(0.0) != wants {
                let at = format!("{:.3}", at.as_secs_f64());
                let row = [at.as_str(), client.as_str(), &wants.to_string()];
                self.out.write_record(row).map_err(io::Error::from)?;
                self.rows += 1;
            }
            match wants {
                0.0 => self.clients.remove(&client),
                _ => self.clients.insert(client, (wants, node)),
            };
        }
        self.out.flush()?;
        self.tell(problems.join("; "))
    }

    /// Prints a problem once. Empty: there is none.
    fn tell(&mut self, problem: String) -> Result<(), Failure> {
        if !problem.is_empty() && problem != self.problem {
            writeln!(output::stderr(), "{}", line(&problem))?;
        }
        self.problem = problem;
        Ok(())
    }

    fn tell_progress(&self, at: Duration) -> Result<(), Failure> {
        let (seconds, rows, clients) = (at.as_secs(), self.rows, self.clients.len());
        let mut out = output::stderr();
        Ok(writeln!(
            out,
            "recorded {seconds} s: {rows} rows; {clients} clients want some now"
        )?)
    }
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
            resources: vec![ResourceStatus {
                leases: clients.iter().map(lease).collect(),
                leases_count: clients.len() as u64,
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
        let mut recording = Recording::new(&mut written).unwrap();
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
            // One client has moved, and one is gone.
            (
                3_000,
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
                        2.000,w,3\n3.000,w,0\n";
        assert_eq!(String::from_utf8(written).unwrap(), expected);
    }
}
