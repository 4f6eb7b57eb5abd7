//! Flags of all commands: whom to ask, how to print, where etcd is.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ColorChoice, ValueEnum};
use doorward_etcd::address::{self, Etcd, EtcdNode, NodeAddress};
use doorward_etcd::flags::{ElectionFlags, EtcdFlags};
use doorward_tls::client::ClientTls;
use doorward_tls::flags::TlsFlags;

use crate::failure::{Failure, Result};

/// Server to ask without --server.
const SERVER: &str = "127.0.0.1:6970";

/// Flags of all commands.
#[derive(Clone, Debug, Args)]
#[command(mut_args(|it| it.global(true).hide_env_values(true)))]
pub(crate) struct Common {
    /// The servers of a node, host:port, separated by commas: any will do, they say who the master
    /// is. Or the node in etcd, where they are registered: etcd://HOST:PORT/NODE
    /// [default: 127.0.0.1:6970].
    ///
    /// An address in etcd may name several members, separated by commas, and after a ? more, joined
    /// by &: prefix=KEY, ca=FILE, cert=FILE, key=FILE, user=NAME, password_file=FILE. Without a
    /// host, etcd:///NODE, the flags for etcd count. Where etcd is known, templates look there for the
    /// node root, unless this is given.
    #[arg(long, value_name = "ADDRESS", env = "DOORWARD_SERVER")]
    pub(crate) server: Vec<String>,

    /// How to print.
    #[arg(short, long, value_enum, env = "DOORWARD_OUTPUT", default_value_t)]
    pub(crate) output: Output,

    /// Time to wait for an answer. A busy server is asked again for six times as long; all servers of a tree have twelve
    /// times as long, a minute at most.
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = doorward_documents::parse_duration,
        env = "DOORWARD_TIMEOUT",
        default_value = "5s"
    )]
    pub(crate) timeout: Duration,

    /// Takes flags that `doorward context` keeps under this name. Flags of the command line and variables win
    /// [default: the context that `doorward context use` chose].
    #[arg(long, value_name = "NAME", env = "DOORWARD_CONTEXT")]
    pub(crate) context: Option<String>,

    /// When to colour: on a terminal unless NO_COLOR is set, even into a pipe, or nowhere.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,

    /// Where etcd is, for what does not say so itself.
    #[command(flatten)]
    pub(crate) etcd: EtcdFlags,

    /// Where nodes stand there.
    #[command(flatten)]
    pub(crate) election: ElectionFlags,

    /// TLS towards servers.
    #[command(flatten)]
    pub(crate) tls: TlsFlags,
}

impl Common {
    /// The addresses that --server gives, one by one; or that of a server here.
    pub(crate) fn addresses(&self) -> Vec<String> {
        if self.server.is_empty() {
            return vec![SERVER.to_owned()];
        }
        let lists = self.server.iter();
        let addresses = lists.flat_map(|list| address::split(list));
        addresses.map(str::to_owned).collect()
    }

    /// Returns TLS towards servers. None: connections are plain.
    pub(crate) fn tls(&self) -> Result<Option<ClientTls>> {
        if self.tls.cert.is_some() && self.tls.ca.is_none() {
            return Err(Failure::Usage("--tls-cert needs --ca".to_owned()));
        }
        self.tls.client().map_err(Failure::Usage)
    }

    /// The etcd that the flags name, if they do. Only for what needs it: a mistake in them is none
    /// for anything else.
    pub(crate) fn etcd(&self) -> Result<Option<Etcd>> {
        let config = self.etcd.config();
        let config = config.map_err(Failure::Usage)?;
        Ok(config.map(|config| Etcd {
            config: Arc::new(config),
            prefix: self.election.prefix.clone(),
        }))
    }

    /// Returns the node in etcd at an address of --server.
    pub(crate) fn node(&self, address: &str) -> Result<EtcdNode> {
        let etcd = self.etcd()?;
        let node = NodeAddress::parse(address).and_then(|node| node.place(etcd.as_ref()));
        let mut node = node.map_err(|error| Failure::Usage(error.to_string()))?;
        node.etcd = hurried(node.etcd, self.timeout);
        Ok(node)
    }
}

/// How to print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
    /// The JSON as YAML.
    Yaml,
    /// A table with more columns, where a command has more.
    Wide,
    /// The names alone, one a line, where a command lists something.
    Name,
}

/// With so little time for each endpoint that all of them get their turn.
pub(crate) fn hurried(mut etcd: Etcd, timeout: Duration) -> Etcd {
    let config = Arc::make_mut(&mut etcd.config);
    let endpoints = u32::try_from(config.endpoints.len().max(1)).unwrap_or(u32::MAX);
    config.call_timeout = timeout / endpoints;
    etcd
}

/// Returns our folder in the one of this user that a variable names, or else in that one of the home folder.
pub(crate) fn user_folder(variable: &str, in_home: &str) -> Option<PathBuf> {
    let named = env::var_os(variable).map(PathBuf::from);
    let in_home = || Some(PathBuf::from(env::var_os("HOME")?).join(in_home));
    let folder = named.filter(|it| it.is_absolute()).or_else(in_home)?;
    Some(folder.join("doorward"))
}
