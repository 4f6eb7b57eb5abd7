//! The command line: flags, each with an environment variable, and what `--help` teaches.

pub mod agent;
mod bytes;
mod door;
mod limits;
mod logs;
mod parent;
pub mod security;
pub mod starts;

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, Args, Parser, Subcommand};
use clap_complete::Shell;
use doorward_documents::parse_duration_within;
use doorward_door::listener::Address;
use doorward_door::listening::LISTEN_BACKLOG;
use doorward_engine::id::{HolderName, IdError};
use doorward_etcd::DocumentPlace;
use doorward_etcd::flags::{self as etcd_flags, ElectionFlags, EtcdFlags};
use doorward_pages::exits;
use doorward_session::address::{Address as ServerAddress, ipv6_advice};
use doorward_session::time::tolerance::Tolerance;

pub use crate::flags::limits::LimitFlags;
pub use crate::flags::logs::LogFlags;
pub use crate::flags::parent::{ParentServers, parent_source};
pub use crate::flags::security::SecurityFlags;

use crate::clock;
use crate::flags::parent::parent_servers;

const SHORT_EXAMPLES: &str = "\
Examples:
  doorward-server
      A root on loopback with built-in example templates.
  doorward-server --listen 0.0.0.0:6970 --advertise quota.example.com:6970 \\
      --templates /etc/doorward/templates.yaml
      A root for others to reach. It reloads the file when it changes and on SIGHUP.
  doorward-server --node eu --parent quota.example.com:6970 --listen 0.0.0.0:6970
      A server of a region, or a leaf.

More flags, most of them limits, and more examples: --help-all.
Every flag can be given as an environment variable; a flag wins over its variable.
Exit codes: 0 done or stopped; 1 failed; 2 wrong usage, or invalid templates.";

const EXAMPLES: &str = "\
Examples:
  doorward-server
      A root on loopback with built-in example templates. Its status page is at
      http://127.0.0.1:6971/.
  doorward-server --check templates.yaml
      Validates a file and names every problem in it with its line.
  doorward-server --listen 0.0.0.0:6970 --advertise quota.example.com:6970 \\
      --templates /etc/doorward/templates.yaml --log-format json
      A root for others to reach. It reloads the file when it changes and on SIGHUP; if the new
      version is invalid, it says why and keeps the one in force.
  doorward-server --node eu --parent quota.example.com:6970 --listen 0.0.0.0:6970
      A server of a region, or a leaf: it leases from its parent what its clients and child
      servers ask for.
  doorward-server --node eu --parent etcd://etcd-0:2379,etcd-1:2379/root
      The same, below whichever servers of the node root are registered in etcd.

Every flag can be given as an environment variable, named beside it; a flag wins over its variable.
DOORWARD_ETCD_ENDPOINTS is for the command line, doorward. A server that finds it does not start,
unless it has endpoints of its own: DOORWARD_SERVER_ETCD_ENDPOINTS, which makes it a candidate.

Exit codes: 0 done, or stopped by SIGTERM or SIGINT; 1 failed while running, or an invalid file with
--check; 2 wrong usage, or invalid templates, or a start that was meant otherwise.";

/// The name of a node that was given none.
pub const DEFAULT_NODE: &str = "root";

/// The arguments and variables of the process.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "doorward-server",
    version,
    about = "Shares capacity among clients, by leases: exactly fair, never over capacity.",
    after_help = SHORT_EXAMPLES,
    after_long_help = EXAMPLES,
    disable_help_flag = true,
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = true,
    max_term_width = 100,
)]
pub struct Flags {
    /// A command to run instead of serving.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// How to serve.
    #[command(flatten)]
    pub serve: ServeFlags,

    /// Prints the flags that most servers need.
    #[arg(short = 'h', long = "help", action = ArgAction::HelpShort)]
    help: Option<bool>,

    /// Prints all flags.
    #[arg(long = "help-all", action = ArgAction::HelpLong)]
    help_all: Option<bool>,
}

/// A command that runs instead of serving.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Names the command that has taken the demonstration's place.
    #[command(hide = true)]
    Demo {
        /// Arguments of the demonstration, which are ignored.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Works on a state directory while no server uses it.
    State {
        /// Work on the directory.
        #[command(subcommand)]
        act: StateAct,
    },
    /// Prints a completion script for a shell.
    Completions {
        /// For which shell.
        shell: Shell,
    },
}

/// Work on a state directory.
#[derive(Clone, Debug, Subcommand)]
pub enum StateAct {
    /// Makes a directory that says that no client has a lease, so that the first start does not learn.
    Init {
        /// The directory. It must be new.
        dir: PathBuf,
        /// The node of the server.
        #[arg(long, default_value = DEFAULT_NODE, value_parser = node_name)]
        node: String,
    },
    /// Prints the node, the number of starts, and the mark of each resource.
    Show {
        /// The directory.
        dir: PathBuf,
    },
    /// Reads all of it, and fails if it is invalid, or if its marks do not count.
    Check {
        /// The directory.
        dir: PathBuf,
    },
}

/// Parses the command line as [`Parser::parse`] does. Returns the values of all flags and variables, too.
pub fn parse<P: Parser>() -> (P, Vec<OsString>) {
    let matches = P::command().try_get_matches();
    let matches = matches.unwrap_or_else(|error| exits::end(&error));
    let flags = P::from_arg_matches(&matches);
    let flags = flags.unwrap_or_else(|error| error.format(&mut P::command()).exit());
    let raw = |id: &clap::Id| matches.try_get_raw(id.as_str()).ok().flatten();
    let values = matches.ids().filter_map(raw).flatten();
    (flags, values.map(ToOwned::to_owned).collect())
}

/// Prints a completion script, and returns the exit code.
pub fn complete(mut command: clap::Command, shell: Shell) -> u8 {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    exits::exit_code(io::stdout().write_all(&script))
}

/// Flags that `--help` does not show, besides limits.
const HIDDEN: [&str; 18] = [
    "tls_crl",
    "tokens",
    "tls_token",
    "accept_plaintext",
    "plain_listen",
    "insecure",
    "http_host",
    "ca",
    "cert",
    "key",
    "user",
    "password_file",
    "prefix",
    "push_round",
    "election_ttl",
    "refresh_floor",
    "listen_backlog",
    "clock_tolerance",
];

/// How to serve.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("endpoints", |endpoints| endpoints.env(etcd_flags::SERVER_ENDPOINTS)))]
#[command(mut_args(with_variable))]
pub struct ServeFlags {
    /// Where to serve gRPC.
    #[arg(
        long,
        help_heading = "Addresses",
        value_name = "ADDRESS",
        value_parser = listened,
        default_value = "127.0.0.1:6970"
    )]
    pub listen: SocketAddr,

    /// Where to serve the status page, /metrics, /healthz and /readyz; "none" for nowhere.
    #[arg(
        long,
        help_heading = "Addresses",
        value_name = "ADDRESS|none",
        value_parser = http_listen,
        default_value = "127.0.0.1:6971"
    )]
    pub http_listen: HttpListen,

    /// The address clients are given, host:port [default: the one that is listened on].
    #[arg(long, help_heading = "Addresses", value_name = "HOST:PORT", value_parser = advertised)]
    pub advertise: Option<String>,

    /// Lease capacity from the node of these servers, instead of being the root: the addresses of
    /// one parent, separated by commas; or that of its node in etcd, etcd://HOST:PORT/NODE, whose
    /// servers are followed as they come and go.
    ///
    /// Templates are the root's: what a resource has and how it is divided comes from the parent.
    /// An address in etcd may name several members, separated by commas, and after a ? more, joined
    /// by &: prefix=KEY, ca=FILE, cert=FILE, key=FILE, user=NAME, password_file=FILE. Given twice,
    /// plain addresses are tried after those that etcd knows.
    #[arg(
        long, help_heading = "Tree",
        value_name = "HOST:PORT|etcd://…",
        requires = "node",
        value_parser = parent_servers
    )]
    pub parent: Vec<ParentServers>,

    /// How long changes are gathered before parent and child servers hear of them, in one message.
    #[arg(
        long, help_heading = "Tree",
        value_name = "DURATION",
        default_value = "50ms",
        value_parser = push_round
    )]
    pub push_round: Duration,

    /// The name of the node this server belongs to; unique in the tree, and the same after a
    /// restart. Needed with --parent.
    #[arg(
        long, help_heading = "Tree",
        value_name = "NAME",
        default_value = DEFAULT_NODE,
        value_parser = node_name
    )]
    pub node: String,

    /// Resource templates: a YAML file, or etcd:KEY for a document in etcd [default:
    /// etcd:/doorward/templates with --etcd-endpoints, else built-in examples].
    ///
    /// They are read again when they change (a file also on SIGHUP). An invalid version
    /// is reported, and the one in force stays in force.
    #[arg(long, help_heading = "Templates", value_name = "FILE|etcd:KEY")]
    pub templates: Option<DocumentPlace>,

    /// Shadow templates: they divide the present demand beside those in force, for the charts of the
    /// page, and grant nothing [default: none].
    #[arg(long, help_heading = "Templates", value_name = "FILE|etcd:KEY")]
    pub shadow_templates: Option<DocumentPlace>,

    /// Rule documents for services: a directory with a file for each domain, or etcd:PREFIX for keys below it
    /// in etcd [default: none; the rules service refuses all calls].
    ///
    /// They are read again when they change. An invalid document is reported, and the last valid one of its domain
    /// stays in force. In etcd, each document has a history.
    #[arg(
        long,
        help_heading = "Rules",
        value_name = "DIR|etcd:PREFIX",
        env = "DOORWARD_SERVER_RULES"
    )]
    pub rules: Option<DocumentPlace>,

    /// Where a server without etcd keeps what its next process must know, so that it divides at once
    /// after a restart: a directory on a local disk, or "none" [default: one for this node and
    /// address in ~/.local/state/doorward, or in systemd's StateDirectory=].
    #[arg(long, help_heading = "Tree", value_name = "DIR|none")]
    pub state_dir: Option<PathBuf>,

    /// Where etcd is, in which the servers of a node elect their master.
    #[command(flatten)]
    pub etcd: EtcdFlags,

    /// Where nodes stand there.
    #[command(flatten)]
    pub election: ElectionFlags,

    /// How long the master's lease in etcd lasts: about how long a node is without a master after
    /// a crash. Whole seconds; below 5 a slow etcd may unseat masters that are well.
    #[arg(
        long, help_heading = "etcd",
        value_name = "DURATION",
        default_value = "10s",
        value_parser = election_ttl
    )]
    pub election_ttl: Duration,

    /// Validates a template file, reports every problem in it, and exits.
    #[arg(long, help_heading = "Templates", value_name = "FILE")]
    pub check: Option<PathBuf>,

    /// A client that asks for a resource faster than this gets its current lease again; 0s: every
    /// request is decided.
    #[arg(
        long, help_heading = "Limits",
        value_name = "DURATION",
        default_value = "1s",
        value_parser = doorward_documents::parse_duration
    )]
    pub refresh_floor: Duration,

    /// By how much the speed of this machine's clock may differ from that of others, as a part from
    /// 0.001 to 0.25. The clock of leases has a constant speed, if the platform offers one: then a
    /// thousandth is enough. If not, a tenth covers the corrections of chrony.
    #[arg(
        long, help_heading = "Limits",
        value_name = "PART",
        default_value_t = clock::tolerance(),
    )]
    pub clock_tolerance: Tolerance,

    /// Bounds of everything that callers bring.
    #[command(flatten)]
    pub limits: LimitFlags,

    /// Connections that wait to be accepted. Linux keeps no more than net.core.somaxconn, usually 4096. It drops
    /// further connections, and clients retry them seconds later.
    #[arg(
        long,
        help_heading = "Addresses",
        value_name = "COUNT",
        default_value_t = LISTEN_BACKLOG
    )]
    pub listen_backlog: NonZeroU32,

    /// How long a shutdown waits for calls in flight.
    #[arg(
        long, help_heading = "Limits",
        value_name = "DURATION",
        default_value = "10s",
        value_parser = doorward_documents::parse_duration
    )]
    pub shutdown_grace: Duration,

    /// TLS and identities.
    #[command(flatten)]
    pub security: SecurityFlags,

    /// Level and format of the log.
    #[command(flatten)]
    pub logs: LogFlags,
}

/// Gives a flag its variable, unless it has one already, and hides it from `--help` if it is one of [`HIDDEN`].
fn with_variable(argument: Arg) -> Arg {
    let variable = argument.get_long();
    let variable = variable.map(|it| format!("DOORWARD_{}", it.replace('-', "_").to_uppercase()));
    let action = argument.get_action();
    let is_help = matches!(action, ArgAction::HelpShort | ArgAction::HelpLong);
    let variable = variable.filter(|_| !is_help && argument.get_env().is_none());
    let is_hidden =
        argument.is_hide_short_help_set() || HIDDEN.contains(&argument.get_id().as_str());
    let argument = argument.hide_env_values(true).hide_short_help(is_hidden);
    match variable {
        Some(variable) => argument.env(variable),
        None => argument,
    }
}

/// Where the pages are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpListen(
    /// Absent: nowhere.
    pub Option<Address>,
);

fn http_listen(text: &str) -> Result<HttpListen, String> {
    if text == "none" {
        return Ok(HttpListen(None));
    }
    let address = address(text).map_err(|problem| format!("{problem}, or \"none\""))?;
    Ok(HttpListen(Some(address)))
}

/// An address to listen on, or a Unix socket.
fn address(text: &str) -> Result<Address, String> {
    match text.strip_prefix("unix:") {
        Some("") => Err("give the path of a socket, as in unix:/run/doorward.sock".to_owned()),
        Some(path) => Ok(Address::Unix(path.into())),
        None => listened(text).map(Address::Tcp),
    }
}

/// An address to listen on. Names are not looked up: one may have several addresses, or another one tomorrow.
fn listened(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        if text.contains('%') {
            return "give the zone of an IPv6 address by its number, as in [fe80::1%2]:6970 (see `ip link`)"
                .to_owned();
        }
        let port = text.rsplit_once(':').map(|(_, port)| port);
        let port = port.filter(|port| port.parse::<u16>().is_ok());
        let port = port.unwrap_or("PORT");
        format!(
            "give an IP address and a port: 127.0.0.1:{port} for this machine only, 0.0.0.0:{port} or \
             [::]:{port} for all networks"
        )
    })
}

fn push_round(text: &str) -> Result<Duration, String> {
    let range = Duration::from_millis(1)..=Duration::from_secs(10);
    parse_duration_within(text, range, "give a duration from 1ms to 10s")
}

fn election_ttl(text: &str) -> Result<Duration, String> {
    const ADVICE: &str = "give whole seconds, from 2s to 10m";
    let range = Duration::from_secs(2)..=Duration::from_secs(600);
    let ttl = parse_duration_within(text, range, ADVICE)?;
    let is_whole = ttl.subsec_nanos() == 0;
    is_whole.then_some(ttl).ok_or_else(|| ADVICE.to_owned())
}

fn node_name(text: &str) -> Result<String, IdError> {
    HolderName::new(text).map(|name| name.to_string())
}

/// Anything goes that names a host and a port: what it means is for the clients to find out.
fn advertised(text: &str) -> Result<String, String> {
    if let Some(advice) = ipv6_advice(text) {
        return Err(advice.to_owned());
    }
    match ServerAddress::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("give a host and a port, as in quota.example.com:6970".to_owned()),
    }
}

#[cfg(test)]
mod tests;
