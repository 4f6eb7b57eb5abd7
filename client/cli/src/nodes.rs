//! `doorward nodes`: registered servers and masters in etcd.
//!
//! A server is there as long as it renews its registration; a node is there as long as it has a
//! server, a master, or ever had one.

use std::io::Write;
use std::time::Duration;

use doorward_etcd::address::{self, Etcd, NodeAddress};
use doorward_etcd::directory::{self, Forgotten, Registration, Role, Servers, SteppedDown};
use doorward_etcd::layout::NodeKeys;
use serde::Serialize;
use serde_json::json;

use crate::common::{Common, Output, hurried};
use crate::failure::Failure;
use crate::flags::NodesFlags;
use crate::output;
use doorward_pages::terminal::{Cell, Palette, Table, Tone, cell};

/// For how long the last master of a node may be waited for.
const BELIEVED_MAX: Duration = Duration::from_secs(600);

/// A node, as `--output json` prints it. Its field names are an interface.
#[derive(Debug, PartialEq, Serialize)]
struct ListedNode {
    node: String,
    /// Absent: there is none.
    master: Option<ListedMaster>,
    /// The epoch of the last mastership, also when it is over. Absent: there was none.
    last_epoch: Option<u64>,
    servers: Vec<ListedServer>,
}

#[derive(Debug, PartialEq, Serialize)]
struct ListedMaster {
    address: String,
    epoch: u64,
}

#[derive(Debug, PartialEq, Serialize)]
struct ListedServer {
    address: String,
    /// Absent: its pages are nowhere.
    http_address: Option<String>,
    is_master: bool,
    role: Role,
    /// Number of nodes above its own. Absent: it does not know.
    level: Option<u32>,
    version: String,
}

pub(crate) async fn run(common: &Common, flags: &NodesFlags) -> Result<(), Failure> {
    let etcd = hurried(etcd(common)?, common.timeout);
    if let Some(node) = &flags.forget {
        return forget(common, &etcd, node).await;
    }
    let all = directory::resolve_all(&etcd.config, &etcd.prefix);
    let all = in_time(common, all).await?;
    let wanted = |node: &str| flags.node.as_ref().is_none_or(|wanted| wanted == node);
    let nodes: Vec<ListedNode> = all
        .into_iter()
        .filter(|(node, _)| wanted(node))
        .map(|(node, servers)| ListedNode::of(node, servers))
        .collect();
    if let (Some(node), []) = (&flags.node, nodes.as_slice()) {
        return Err(unknown(&etcd, node));
    }
    let mut out = output::stdout();
    if common.output == Output::Json {
        output::json(&mut out, &nodes)?;
    } else if common.output == Output::Name {
        output::names(&mut out, nodes.iter().map(|it| &it.node))?;
    } else if nodes.is_empty() {
        writeln!(out, "no node is known to etcd under {}", etcd.prefix)?;
    } else {
        let is_wide = common.output == Output::Wide;
        table(&nodes, is_wide, common.color.of_stdout()).write(&mut out)?;
    }
    Ok(())
}

fn unknown(etcd: &Etcd, node: &str) -> Failure {
    let prefix = &etcd.prefix;
    Failure::No(format!("no node {node:?} is known to etcd under {prefix}"))
}

/// Removes what is left of a node.
async fn forget(common: &Common, etcd: &Etcd, node: &str) -> Result<(), Failure> {
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
    let mut out = output::stdout();
    match forgotten {
        Forgotten::Done if common.output == Output::Json => {
            Ok(output::json(&mut out, &json!({"forgotten": node}))?)
        }
        Forgotten::Done => Ok(writeln!(out, "{node} is forgotten")?),
        Forgotten::Unknown => Err(unknown(etcd, node)),
        Forgotten::InUse | Forgotten::MayBeBelieved(..) => Err(Failure::No(format!(
            "{node:?} has a server or a master: nothing was removed. Stop its servers first; one \
             that was killed is gone from here a little later"
        ))),
    }
}

/// Lets another server become the master of a node.
pub(crate) async fn step_down(common: &Common, node: &str) -> Result<(), Failure> {
    let etcd = hurried(etcd(common)?, common.timeout);
    let keys = NodeKeys::new(&etcd.prefix, node);
    let outcome = directory::step_down(&etcd.config, &keys, common.timeout).await?;
    let problem = match outcome {
        SteppedDown::Done {
            master,
            epoch,
            before,
        } => {
            let mut out = output::stdout();
            let [after, before] = [&master, &before].map(|it| it.address.as_str());
            if common.output == Output::Json {
                let master = json!({"address": after, "epoch": epoch});
                let done = json!({"node": node, "master": master, "before": before});
                return Ok(output::json(&mut out, &done)?);
            }
            let now = format!("{after} is the master now, epoch {epoch}");
            return Ok(writeln!(out, "{node}: {now}; it was {before}")?);
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
) -> Result<T, Failure> {
    match tokio::time::timeout(common.timeout, asking).await {
        Ok(answer) => Ok(answer?),
        Err(_) => {
            let problem = format!("etcd did not answer within {:?}", common.timeout);
            Err(Failure::Unreachable(problem))
        }
    }
}

/// Which etcd is meant.
fn etcd(common: &Common) -> Result<Etcd, Failure> {
    if let Some(etcd) = common.etcd()? {
        return Ok(etcd);
    }
    let addresses = common.addresses();
    let Some(text) = addresses.iter().find(|text| address::is_meant(text)) else {
        let problem = "where etcd is, is not given; see --etcd-endpoints";
        return Err(Failure::Usage(problem.to_owned()));
    };
    let place = NodeAddress::parse(text).and_then(|node| node.place(None));
    let place = place.map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(place.etcd)
}

impl ListedNode {
    fn of(node: String, servers: Servers) -> Self {
        let (master, epoch) = servers.master.unzip();
        let server = |registered: Registration| ListedServer {
            is_master: master
                .as_ref()
                .is_some_and(|master| master.address == registered.address),
            address: registered.address.into(),
            http_address: registered.pages.map(Into::into),
            role: registered.place.role,
            level: registered.place.level,
            version: registered.version.into(),
        };
        Self {
            node,
            last_epoch: epoch.or(servers.term.map(|term| term.epoch)),
            servers: servers.servers.into_iter().map(server).collect(),
            master: master.zip(epoch).map(|(master, epoch)| ListedMaster {
                address: master.address.into(),
                epoch,
            }),
        }
    }
}

/// A row for each server, the node's master first; and for what has no server.
fn table(nodes: &[ListedNode], is_wide: bool, palette: Palette) -> Table {
    let mut header = vec!["node", "server", "role", "level", "version", "state"];
    if is_wide {
        header.push("pages");
    }
    let mut table = Table::new(header, 3..4, palette);
    for node in nodes {
        let mut row = |server: Option<&ListedServer>, address: &str, state: Cell| {
            let level = |it: &ListedServer| it.level.map_or("?".to_owned(), |it| it.to_string());
            let mut row = vec![
                palette.cell(Tone::Strong, &node.node),
                cell(address),
                cell(server.map_or("", |it| it.role.as_str())),
                cell(server.map_or(String::new(), level)),
                cell(server.map_or("", |it| &it.version)),
                state,
            ];
            if is_wide {
                let pages = server.and_then(|it| it.http_address.as_deref());
                row.push(cell(pages.unwrap_or("")));
            }
            table.add(row);
        };
        let (address, tone, state) = match (&node.master, node.last_epoch) {
            (Some(master), _) => {
                let state = format!("master, epoch {}; not registered", master.epoch);
                (master.address.as_str(), Tone::Partial, state)
            }
            (None, Some(epoch)) => ("", Tone::Bad, format!("no master since epoch {epoch}")),
            (None, None) => ("", Tone::Bad, "no master, and there never was".to_owned()),
        };
        let mut servers: Vec<&ListedServer> = node.servers.iter().collect();
        servers.sort_by_key(|server| !server.is_master);
        if !servers.first().is_some_and(|server| server.is_master) {
            row(None, address, palette.cell(tone, state));
        }
        for server in servers {
            let state = match &node.master {
                Some(master) if server.is_master => {
                    palette.cell(Tone::Good, format!("master, epoch {}", master.epoch))
                }
                _ => palette.cell(Tone::Quiet, "candidate"),
            };
            row(Some(server), &server.address, state);
        }
    }
    table
}

#[cfg(test)]
mod tests;
