//! The flags of `doorward-agent`, and what `--help` teaches.

use std::sync::Arc;
use std::time::Duration;

use clap::{ArgAction, Parser, Subcommand};
use clap_complete::Shell;
use doorward_door::listener::Address;
use doorward_edge::rlqs;
use doorward_engine::node;
use doorward_etcd::flags::{self as etcd_flags, ElectionFlags, EtcdFlags, FlagsError};
use doorward_etcd::{DocumentPlace, Etcd, EtcdConfig};
use thiserror::Error;

use crate::app::ServerConfig;
use crate::clock;
use crate::edge::EdgeDoors;
use crate::files;
use crate::flags::bytes::Bytes;
use crate::flags::limits::LimitFlags;
use crate::flags::logs::LogFlags;
use crate::flags::parent::{ParentError, ParentServers, parent_servers, parent_source};
use crate::flags::security::SecurityFlags;
use crate::flags::{HttpListen, address, http_listen, node_name, with_variable};
use crate::limits::ServerLimit;
use crate::rules::store::RulesPlace;
use crate::transports::parent::ParentTransportConfig;

const EXAMPLES: &str = "\
Examples:
  doorward-agent --rules limits.yaml
      Serves alone: Envoys, HTTP and Redis clients of this machine share the limits of the file.
  doorward-agent --parent quota.example.com:6970 --rules limits.yaml --redis-listen 127.0.0.1:6982
      Shares limits with the agents and services of other machines: rules with `scope: shared`.
  curl 127.0.0.1:6981/v1/check -H 'content-type: application/json' \\
      -d '{\"domain\": \"api\", \"entries\": {\"user\": \"ann\"}}'
      Asks an agent whether a request passes.

Every flag can be given as an environment variable; a flag wins over its variable.
More flags: --help-all.
Exit codes: 0 stopped by a signal; 1 failed; 2 wrong usage, or invalid rules.";

/// Requests per second from one address, such as that of all programs of this machine.
const REQUESTS_MAX: u64 = 200_000;

/// Points of the demand curve of a resource with few callers: there may be many agents and resources.
const FEW_POINTS: usize = 8;

/// The arguments and variables of an agent.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "doorward-agent",
    version,
    about = "Limits for Envoy (RLS, RLQS), plain HTTP and Redis clients, shared fairly.",
    after_help = EXAMPLES,
    disable_help_flag = true,
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = true,
    mut_arg("endpoints", |endpoints| endpoints.env(etcd_flags::SERVER_ENDPOINTS)),
    mut_args(with_variable),
    max_term_width = 100,
)]
pub struct AgentFlags {
    /// A command to run instead of serving.
    #[command(subcommand)]
    pub command: Option<AgentCommand>,

    /// Rules: a file with one document, a directory with a file for each domain, or etcd:PREFIX
    /// for keys below it. They are read again when they change.
    #[arg(
        long,
        required = true,
        value_name = "FILE|DIR|etcd:PREFIX",
        env = "DOORWARD_AGENT_RULES",
        hide_env_values = true
    )]
    pub rules: Option<DocumentPlace>,

    /// Servers that lease capacity to this agent: addresses separated by commas, or the address of
    /// their node in etcd, etcd://HOST:PORT/NODE [default: none; this agent has the whole limits].
    #[arg(long, value_name = "HOST:PORT|etcd://…", value_parser = parent_servers)]
    pub parent: Vec<ParentServers>,

    /// Name among the children of the parent [default: the name of this machine, with "/agent"].
    #[arg(long, value_name = "NAME", value_parser = node_name)]
    pub node: Option<String>,

    /// Where to serve Envoy: RLS and RLQS. unix:PATH is a socket of the mode 0660.
    #[arg(
        long,
        value_name = "ADDRESS|unix:PATH",
        value_parser = address,
        default_value = "127.0.0.1:6980"
    )]
    pub listen: Address,

    /// Where to serve HTTP: /json, /v1/check, /v1/charge, /v1/lease, the status page, /metrics,
    /// /healthz and /readyz; "none" for nowhere.
    #[arg(
        long,
        value_name = "ADDRESS|unix:PATH|none",
        value_parser = http_listen,
        default_value = "127.0.0.1:6981"
    )]
    pub http_listen: HttpListen,

    /// Where to serve Redis clients: THROTTLE and CL.THROTTLE [default: nowhere].
    #[arg(long, value_name = "ADDRESS|unix:PATH", value_parser = address)]
    pub redis_listen: Option<Address>,

    /// Estimated memory of leases, callers and buckets [default: half of what the machine or its
    /// control group has].
    #[arg(long, value_name = "BYTES")]
    memory_max: Option<Bytes>,

    /// Where etcd is, for rules or a parent that are found there.
    #[command(flatten)]
    pub etcd: EtcdFlags,

    /// Where nodes stand there.
    #[command(flatten)]
    pub election: ElectionFlags,

    /// TLS and identities.
    #[command(flatten)]
    pub security: SecurityFlags,

    /// Level and format of the log.
    #[command(flatten)]
    pub logs: LogFlags,

    /// Prints the flags that most agents need.
    #[arg(short = 'h', long = "help", action = ArgAction::HelpShort)]
    help: Option<bool>,

    /// Prints all flags.
    #[arg(long = "help-all", action = ArgAction::HelpLong)]
    help_all: Option<bool>,
}

/// A command that runs instead of serving.
#[derive(Clone, Debug, Subcommand)]
pub enum AgentCommand {
    /// Prints a completion script for a shell.
    Completions {
        /// For which shell.
        shell: Shell,
    },
}

/// Flags that are invalid, alone or together.
#[derive(Debug, Error)]
pub enum AgentFlagsError {
    /// Flags about etcd.
    #[error(transparent)]
    Etcd(#[from] FlagsError),
    /// Address of the parent.
    #[error(transparent)]
    Parent(#[from] ParentError),
    /// Place of the rules, TLS.
    #[error("{0}")]
    Other(String),
}

impl AgentFlags {
    /// Returns the place of the rules. Files must be valid at the start.
    fn rules_place(&self, etcd: Option<Arc<EtcdConfig>>) -> Result<RulesPlace, String> {
        match self.rules.clone().ok_or("--rules is missing")? {
            DocumentPlace::File(path) => RulesPlace::of_files(path),
            keys @ DocumentPlace::Etcd(_) => RulesPlace::of(keys, etcd),
        }
    }

    /// Returns the configuration of the agent. `host` is the name of this machine.
    ///
    /// # Errors
    ///
    /// If flags are invalid together.
    pub fn config(&self, host: &str) -> Result<ServerConfig, AgentFlagsError> {
        let etcd = self.etcd.config()?.map(Arc::new);
        let elsewhere = etcd.clone().map(|config| Etcd {
            config,
            prefix: self.election.prefix.clone(),
        });
        let security = self.security.config().map_err(AgentFlagsError::Other)?;
        let parent = parent_source(&self.parent, elsewhere.as_ref(), security.dialer.is_tls())?;
        let rules = self.rules_place(etcd).map_err(AgentFlagsError::Other)?;
        let default = ServerConfig::default();
        let limits = LimitFlags::with_memory(self.memory_max);
        let mut bounds = limits.of_door(files::raise_limit());
        for limit in [
            ServerLimit::CallsPerAddress,
            ServerLimit::HttpRequestsPerAddress,
        ] {
            bounds.insert(limit, REQUESTS_MAX);
        }
        let message_bytes = u64::try_from(rlqs::MESSAGE_BYTES_MAX).unwrap_or(u64::MAX);
        bounds.insert(ServerLimit::ChildMessageBytes, message_bytes);
        let limits = limits.of_node_with_doors();
        // Messages under way have a part of the memory, too.
        let memory = u64::try_from(limits.memory_max).unwrap_or(u64::MAX);
        for (limit, part) in [
            (ServerLimit::IncomingBytes, 4),
            (ServerLimit::IncomingBytesPerAddress, 8),
            (ServerLimit::OutgoingBytes, 4),
            (ServerLimit::OutgoingBytesPerAddress, 8),
        ] {
            let bound = bounds.entry(limit).or_insert(u64::MAX);
            *bound = (*bound).min(memory / part);
        }
        let is_alone = parent.is_none();
        Ok(ServerConfig {
            node_name: self.node.clone().unwrap_or_else(|| format!("{host}/agent")),
            listen: self.listen.clone(),
            http_listen: self.http_listen.0.clone(),
            templates_source: if is_alone { "the rules" } else { "the parent" }.to_owned(),
            parent: parent.map(|servers| ParentTransportConfig {
                servers,
                round: Duration::from_millis(50),
                slow_round: Duration::from_millis(1_100),
            }),
            node: node::Config {
                refresh_floor: Duration::from_millis(100),
                limits,
                few_points: FEW_POINTS,
                clock_tolerance: clock::tolerance(),
                ..default.node.clone()
            },
            rules: Some(rules),
            security,
            doors: EdgeDoors {
                has_http: true,
                redis_listen: self.redis_listen.clone(),
                makes_templates: is_alone,
            },
            bounds,
            ..default
        })
    }
}
