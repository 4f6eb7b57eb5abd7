//! The flags of `doorward rules`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use doorward_documents::Kind;
use doorward_etcd::DocumentPlace;

use crate::documents::flags::DocumentCommand;
use crate::rules::document::RuleDocument;
use crate::rules::request::TriedRequest;

const EXAMPLES: &str = "\
Examples:
  doorward rules check rules.yaml               whether it is valid, and its rules
  doorward rules check rules.d/*.yaml           the same of all files of a directory
  doorward rules diff rules.yaml                what would change in etcd, rule by rule
  doorward rules apply rules.yaml --why 'more for batch'
  doorward rules history                        who changed what, when and why
  doorward rules instances --server rules-0:6970   who runs which version
  doorward rules try rules.yaml --request 'POST /login user=ann ip=192.0.2.1'
  doorward rules try rules.yaml --request 'user=ann' --repeat 20 --every 100ms
  doorward rules try rules.yaml --request 'user=ann' --request 'user=bob' --hits 3 -o json";

/// Work with rules.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_args = |arg| arg.global(true).hide_env_values(true))]
pub(crate) struct RulesFlags {
    /// Where the rules are: etcd:KEY or a file
    /// [default: etcd:/doorward/rules, if --etcd-endpoints are given].
    #[arg(long, value_name = "PLACE", env = RuleDocument::VARIABLE)]
    pub(crate) at: Option<DocumentPlace>,
    #[command(subcommand)]
    pub(crate) command: RulesCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    #[command(flatten)]
    Document(DocumentCommand),
    /// List the services that follow the rules of servers (--server), and the versions that they run.
    ///
    /// A row for each domain: the name of the service, its address, the server, the version, the time since its last
    /// report, and its problem if it refuses the newest rules. The servers run with --rules.
    Instances,
    /// Print the answer of rules to requests, without a server.
    ///
    /// A line for each request: time, allowed or refused with its status, the rule, the amount left, the time until
    /// everything is available again, and the reason. The time begins with the year 1970, so all windows begin fresh,
    /// and goes on by --every. The rules are asked as by a service: with each combination of their keys. An entry that
    /// the request lacks has no value, which a key without a value matches; the reason tells such an entry.
    Try(TryFlags),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct TryFlags {
    /// A YAML file with rules; - is standard input. None: the rules in force.
    pub(crate) file: Option<PathBuf>,
    /// A request, such as 'POST /login user=ann ip=192.0.2.1'.
    ///
    /// Method and path fill the entries of these names, ip= fills remote_address, and any other KEY=VALUE the entry
    /// KEY. Several requests are asked in turn.
    #[arg(long, required = true, value_name = "REQUEST")]
    pub(crate) request: Vec<TriedRequest>,
    /// Number of times that all requests are asked.
    #[arg(long, value_name = "COUNT", default_value_t = 1)]
    pub(crate) repeat: u64,
    /// Time from one request to the next.
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = humantime::parse_duration,
        default_value = "0s"
    )]
    pub(crate) every: Duration,
    /// Units that each request takes; 0 only looks [default: the rule's cost].
    #[arg(long, value_name = "COUNT")]
    pub(crate) hits: Option<u64>,
}
