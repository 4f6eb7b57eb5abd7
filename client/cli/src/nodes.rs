//! `doorward nodes`: registered servers and masters in etcd.
//!
//! A server is there as long as it renews its registration; a node is there as long as it has a
//! server, a master, or ever had one.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use doorward_etcd::address::{self, Etcd};
use doorward_etcd::directory::{self, Forgotten, Registration, Servers, SteppedDown};
use doorward_etcd::layout::NodeKeys;
use serde_json::{Value, json};

use crate::common::{Common, Output, hurried};
use crate::failure::{Failure, Result};
use crate::output;
use doorward_pages::terminal::{Cell, Palette, Table, Tone, cell};

/// For how long the last master of a node may be waited for.
const BELIEVED_MAX: Duration = Duration::from_secs(600);

type Nodes = BTreeMap<String, Servers>;

pub(crate) async fn run(common: &Common, node: Option<String>, gone: Option<String>) -> Result {
    let etcd = etcd(common)?;
    if let Some(gone) = gone {
        return forget(common, &etcd, &gone).await;
    }
    let all = directory::resolve_all(&etcd.config, &etcd.prefix);
    let mut nodes = in_time(common, all).await?;
    if let Some(wanted) = node {
        nodes.retain(|node, _| *node == wanted);
        if nodes.is_empty() {
            return Err(unknown(&etcd, &wanted));
        }
    }
    let listed: Value = nodes.iter().map(to_json).collect();
    output::print(common, &listed, |out| match common.output {
        Output::Name => output::names(out, nodes.keys()),
        _ if nodes.is_empty() => writeln!(out, "no node is known to etcd under {}", etcd.prefix),
        other => table(&nodes, other == Output::Wide, out.palette).write(out),
    })
}

fn unknown(etcd: &Etcd, node: &str) -> Failure {
    let prefix = &etcd.prefix;
    Failure::No(format!("no node {node:?} is known to etcd under {prefix}"))
}

/// Removes what is left of a node.
async fn forget(common: &Common, etcd: &Etcd, node: &str) -> Result {
    let keys = NodeKeys::new(&etcd.prefix, node);
    let mut forgotten = in_time(common, directory::forget(&etcd.config, &keys, None)).await?;
    if let Forgotten::MayBeBelieved(term) = &forgotten {
        let length = term.length;
        if length > BELIEVED_MAX {
            return Err(Failure::No(format!(
                "the last master of {node:?} may believe in its mastership for {length:?} yet: \
                 nothing was removed"
            )));
        }
        let mut err = output::stderr();
        writeln!(err, "waiting {length:?}: its last master did not resign")?;
        tokio::time::sleep(length).await;
        let again = directory::forget(&etcd.config, &keys, Some(term));
        forgotten = in_time(common, again).await?;
    }
    match forgotten {
        Forgotten::Done => output::print(common, &json!({"forgotten": node}), |out| {
            writeln!(out, "{node} is forgotten")
        }),
        Forgotten::Unknown => Err(unknown(etcd, node)),
        Forgotten::InUse | Forgotten::MayBeBelieved(..) => Err(Failure::No(format!(
            "{node:?} has a server or a master: nothing was removed. Stop its servers first; one \
             that was killed is gone from here a little later"
        ))),
    }
}

/// Lets another server become the master of a node.
pub(crate) async fn step_down(common: &Common, node: &str) -> Result {
    let etcd = etcd(common)?;
    let keys = NodeKeys::new(&etcd.prefix, node);
    let outcome = directory::step_down(&etcd.config, &keys, common.timeout).await?;
    let problem = match outcome {
        SteppedDown::Done {
            master,
            epoch,
            before,
        } => {
            let [after, before] = [&master, &before].map(|it| it.address.as_str());
            let master = json!({"address": after, "epoch": epoch});
            let done = json!({"node": node, "master": master, "before": before});
            let now = format!("{after} is the master now, epoch {epoch}");
            return output::print(common, &done, |out| {
                writeln!(out, "{node}: {now}; it was {before}")
            });
        }
        SteppedDown::NoMaster => format!("{node:?} has no master; see doorward nodes"),
        SteppedDown::IsAlone(master) => format!(
            "{node:?} has no server beside its master, {}: start another one first",
            master.address
        ),
        SteppedDown::Late(master) => format!(
            "no other server of {node:?} became the master in place of {} within {:?}; see doorward nodes. \
             Servers of the previous release do not step down; stop one by SIGTERM instead",
            master.address, common.timeout
        ),
    };
    Err(Failure::No(problem))
}

/// Returns etcd's answer, or fails after a time.
async fn in_time<T>(
    common: &Common,
    asking: impl Future<Output = Result<T, doorward_etcd::Error>>,
) -> Result<T> {
    match tokio::time::timeout(common.timeout, asking).await {
        Ok(answer) => Ok(answer?),
        Err(_) => {
            let problem = format!("etcd did not answer within {:?}", common.timeout);
            Err(Failure::Unreachable(problem))
        }
    }
}

/// Which etcd is meant.
fn etcd(common: &Common) -> Result<Etcd> {
    if let Some(etcd) = common.etcd()? {
        return Ok(hurried(etcd, common.timeout));
    }
    let addresses = common.addresses();
    let Some(text) = addresses.iter().find(|text| address::is_meant(text)) else {
        let problem = "where etcd is, is not given; see --etcd-endpoints";
        return Err(Failure::Usage(problem.to_owned()));
    };
    Ok(common.node(text)?.etcd)
}

/// Returns a node for programs. Its field names are an interface.
fn to_json((node, servers): (&String, &Servers)) -> Value {
    let server = |it: &Registration| {
        json!({
            "address": it.address,
            "http_address": it.pages,
            "is_master": is_master(servers, it),
            "role": it.place.role,
            "level": it.place.level,
            "version": it.version,
        })
    };
    let master = servers.master.as_ref();
    json!({
        "node": node,
        "master": master.map(|(it, epoch)| json!({"address": it.address, "epoch": epoch})),
        "last_epoch": last_epoch(servers),
        "servers": servers.servers.iter().map(server).collect::<Value>(),
    })
}

fn is_master(servers: &Servers, server: &Registration) -> bool {
    let master = servers.master.as_ref();
    master.is_some_and(|(master, _)| master.address == server.address)
}

/// Returns the epoch of the last mastership, also when it is over. None: there was none.
fn last_epoch(servers: &Servers) -> Option<u64> {
    let epoch = servers.master.as_ref().map(|(_, epoch)| *epoch);
    epoch.or(servers.term.as_ref().map(|term| term.epoch))
}

/// A row for each server, the node's master first; and for what has no server.
fn table(nodes: &Nodes, is_wide: bool, palette: Palette) -> Table {
    let mut header = vec!["node", "server", "role", "level", "version", "state"];
    if is_wide {
        header.push("pages");
    }
    let mut table = Table::new(header, 3..4, palette);
    for (node, servers) in nodes {
        let mut row = |server: Option<&Registration>, address: &str, state: Cell| {
            let level = |it: &Registration| {
                let level = it.place.level;
                level.map_or("?".to_owned(), |it| it.to_string())
            };
            let mut row = vec![
                palette.cell(Tone::Strong, node),
                cell(address),
                cell(server.map_or("", |it| it.place.role.as_str())),
                cell(server.map_or(String::new(), level)),
                cell(server.map_or("", |it| &it.version)),
                state,
            ];
            if is_wide {
                let pages = server.and_then(|it| it.pages.as_deref());
                row.push(cell(pages.unwrap_or("")));
            }
            table.add(row);
        };
        let is_master = |it: &&Registration| is_master(servers, it);
        let (address, tone, state) = match (&servers.master, last_epoch(servers)) {
            (Some((master, epoch)), _) => {
                let state = format!("master, epoch {epoch}");
                (master.address.as_str(), Tone::Good, state)
            }
            (None, Some(epoch)) => ("", Tone::Bad, format!("no master since epoch {epoch}")),
            (None, None) => ("", Tone::Bad, "no master, and there never was".to_owned()),
        };
        match (servers.servers.iter().find(is_master), address) {
            (None, "") => row(None, address, palette.cell(tone, state)),
            (None, _) => {
                let state = format!("{state}; not registered");
                row(None, address, palette.cell(Tone::Partial, state));
            }
            (server, _) => row(server, address, palette.cell(tone, state)),
        }
        for server in servers.servers.iter().filter(|it| !is_master(it)) {
            let state = palette.cell(Tone::Quiet, "candidate");
            row(Some(server), &server.address, state);
        }
    }
    table
}

#[cfg(test)]
mod tests;
