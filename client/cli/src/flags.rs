//! Commands and flags, and what `--help` teaches.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use doorward_pages::exits;

use crate::common::Common;
use crate::context::{self, ContextFlags};
#[cfg(feature = "demo")]
use crate::demo::DemoFlags;
use crate::failure::Result;
use crate::rules::flags::RulesFlags;
use crate::templates::flags::TemplatesFlags;

const EXAMPLES: &str = "\
Examples:
  doorward get example/fair 30            what would I get?
  doorward watch example/fair 30          hold a lease, and see it change
  doorward status                         what the master holds
  doorward status example/fair            every lease on a resource, and why it is what it is
  doorward status --limits                what the server takes on at most, and how full that is
  doorward tree                           all servers below the one asked, and how they are
  doorward explain example/fair web-1     why a client has no more, through the whole tree
  doorward nodes --etcd-endpoints http://etcd-0:2379
                                          all nodes in etcd, their masters and servers
  doorward status --server etcd://etcd-0:2379/eu
                                          what the master of the node eu holds
  doorward templates check templates.yaml
  doorward templates edit                 change the templates in force, and see first what that does

Exit codes: 0 done; 1 the answer is no (refused, unknown resource, an invalid file);
2 wrong usage; 3 no server could be asked (unreachable, no master, no answer in time).
A change of templates that needs --force, and has none, is 2.
`templates diff` exits like diff: 0 the same; 1 different; 2 trouble; 3 as above.";

/// Last lines of every help text.
const SHARED: &str = "\
Flags of every command (--server, --output, --timeout, --color, and where etcd is): doorward options";

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "doorward",
    version,
    about = "Asks Doorward servers for capacity, and shows what they hold.",
    after_help = EXAMPLES,
    max_term_width = 100,
    // They count wherever they stand; `doorward options` shows them.
    mut_args = |arg| arg.global(true).hide(true)
)]
pub(crate) struct Flags {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Reads the arguments of the process, and those of a context that it does not give.
///
/// # Errors
///
/// If the contexts cannot be read, or have none of that name.
pub(crate) fn parse() -> Result<Flags> {
    let mut command = command();
    let mut args: Vec<OsString> = env::args_os().collect();
    let mut matches_of = |args: &[OsString]| {
        let matches = command.try_get_matches_from_mut(args);
        matches.unwrap_or_else(|error| exits::end(&error))
    };
    let mut matches = matches_of(&args);
    let (given, missing) = context::flags_of(&matches)?;
    if !missing.is_empty() {
        args.splice(1..1, missing);
        matches = matches_of(&args);
    }
    // An invalid argument is printed and ends the process.
    let mut flags =
        Flags::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit());
    if let Command::Context(flags) = &mut flags.command {
        flags.given = given;
    }
    Ok(flags)
}

/// The commands: each help shows the command's own flags, and says where the others are.
fn command() -> clap::Command {
    with_footer(Flags::command())
}

fn with_footer(command: clap::Command) -> clap::Command {
    let before = command.get_after_help();
    let footer = before.map_or_else(
        || SHARED.to_owned(),
        |before| format!("{before}\n\n{SHARED}"),
    );
    command.after_help(footer).mut_subcommands(with_footer)
}

/// The same for completions, which know the flags of every command.
pub(crate) fn to_complete() -> clap::Command {
    Flags::command().mut_args(|arg| arg.hide(false))
}

/// The flags of every command, as `doorward options` prints them.
pub(crate) fn shared_help() -> String {
    let mut command = Common::augment_args(clap::Command::new("doorward"))
        .disable_help_flag(true)
        .max_term_width(100)
        .next_line_help(true)
        .help_template(
            "These flags count for every command, before it or after it.\n\n{all-args}\n",
        );
    command.render_long_help().to_string()
}

/// Command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Ask once for capacity, and print the lease.
    ///
    /// The lease is released at once, so that other clients lose nothing; --keep leaves it
    /// until it expires. To hold a lease: watch.
    Get(GetFlags),
    /// Hold a lease, and print a line each time what may be used changes, until Ctrl-C.
    ///
    /// A line says how much, by what, until when and what comes then; and since when something is wrong.
    /// On a terminal, type a number and Enter to want that much instead, Enter alone to see how
    /// things stand. The lease is released at
    /// the end. With --output json each line is an object.
    Watch(WatchFlags),
    /// Give back what a client that is gone still holds.
    ///
    /// Others may be granted it at once. A client that lives goes on using it until its next refresh,
    /// so that more than the capacity can be in use: stop it first.
    Release {
        /// Id of the client.
        client: String,
        /// On which resources.
        #[arg(required = true)]
        resources: Vec<String>,
    },
    /// Show what the master holds; with a resource, every lease on it and why it is what it is.
    ///
    /// Of the servers of a node only the master holds anything, so that is the one that is shown,
    /// whichever was asked; --here shows the one that was asked.
    Status(StatusFlags),
    /// Show all servers below the one asked, as a tree: where each is, its state, and what it holds.
    ///
    /// It asks each server for its status, with your certificate or token. A child server that is gone stays listed for a
    /// day after its leases. One of the previous release is listed without address, with what its parent knows. Clients are
    /// those of the resource, or of the one that has most of them.
    Tree {
        /// Adds what each server wants and gets of this resource.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        resource: Option<String>,
    },
    /// Record the demand of all clients as a trace for `doorward-sim replay`, to standard output.
    ///
    /// It asks all servers of the tree once a second, and writes CSV: a row for each change of a client's wants.
    Record(RecordFlags),
    /// Show why a client has no more of a resource: each step from the template to its number.
    ///
    /// It looks for the client through the whole tree below the server asked, which is best the root. Exit code 1: no
    /// such client holds any of it.
    Explain {
        /// Of which resource.
        #[arg(value_parser = NonEmptyStringValueParser::new())]
        resource: String,
        /// Id of the client.
        client: String,
    },
    /// List contexts, or change them: flags of every command, kept under a name in a file.
    ///
    /// The file is $XDG_CONFIG_HOME/doorward/contexts.yaml. Flags and variables win over it.
    Context(ContextFlags),
    /// Show whom the server takes you for: the identity of your certificate or token.
    Whoami,
    /// List the nodes that are registered in etcd: their masters, and all servers that are there.
    ///
    /// Which etcd, the flags for etcd say, or else --server if it is the address of a node in etcd.
    /// A node stays listed when its servers are gone for good, or its name was a mistake: --forget
    /// removes it.
    Nodes {
        /// Only this node.
        node: Option<String>,
        /// Remove what is left of this node, which must have no server and no master.
        #[arg(long, value_name = "NODE", conflicts_with = "node")]
        forget: Option<String>,
    },
    /// Let another server of a node become its master, as before an upgrade of that machine.
    ///
    /// Leases stay, and growth goes on within a second. Where etcd is: as for nodes. It waits for the new master, for
    /// --timeout at most. If no other server becomes it, the old one goes on.
    StepDown {
        /// The node.
        node: String,
    },
    /// Begin or end learning mode at the master, for what no server can know.
    ///
    /// End it at the first start of a tree, when no client has a lease yet. Begin it at the root after etcd was
    /// restored from a backup; it lasts as long as after an election. An operator may, or who is on the server's own
    /// machine.
    Learning(LearningFlags),
    /// Show, check and change the templates, in etcd or in a file.
    Templates(Box<TemplatesFlags>),
    /// Try, check and change the rules by which a service limits its callers, in etcd or in a file; list the services
    /// that follow rules.
    Rules(Box<RulesFlags>),
    /// Show a tree of servers and self-throttling clients at work, on real demand.
    ///
    /// One root, two regions and four leaves, all on loopback and in this process, share one
    /// capacity; the clients of the trace are spread over the leaves.
    #[cfg(feature = "demo")]
    Demo(DemoFlags),
    /// Write first templates and rules, as templates.yaml and rules.yaml.
    ///
    /// They name their schemas, so that editors complete and check them. No file is replaced.
    Init {
        /// Folder for the files.
        #[arg(default_value = ".")]
        folder: PathBuf,
    },
    /// Print the flags that every command takes: whom to ask, how to print, where etcd is.
    Options,
    /// Print a completion script for a shell.
    Completions {
        /// For which shell.
        shell: Shell,
    },
    /// Write manual pages of all programs, for packages.
    #[command(hide = true)]
    Man {
        /// Folder for the files.
        folder: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LearningWord {
    /// Earlier masters may have granted leases that no client has reported.
    Begin,
    /// They have not.
    End,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct LearningFlags {
    /// Whether learning mode begins or ends.
    #[arg(value_enum)]
    pub(crate) word: LearningWord,
    /// Of which resources.
    #[arg(required_unless_present = "all")]
    pub(crate) resources: Vec<String>,
    /// Of all resources, also those without a holder.
    #[arg(long, conflicts_with = "resources")]
    pub(crate) all: bool,
    /// Do not ask.
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Client and resource of a request.
#[derive(Clone, Debug, Args)]
pub(crate) struct AskFlags {
    /// Of which resource.
    pub(crate) resource: String,
    /// Amount that the client could use.
    // A negative one is no flag, and gets its own error.
    #[arg(value_parser = amount, allow_negative_numbers = true)]
    pub(crate) wants: f64,
    /// Higher is more important, if the resource's algorithm looks at it.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    pub(crate) priority: i64,
    /// The client's id [default: a new one].
    #[arg(long, value_name = "ID")]
    pub(crate) client: Option<String>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct GetFlags {
    #[command(flatten)]
    pub(crate) ask: AskFlags,
    /// Do not release: the lease stays until it expires.
    #[arg(long)]
    pub(crate) keep: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct WatchFlags {
    #[command(flatten)]
    pub(crate) ask: AskFlags,
    /// Stop this long after the first lease. Without one, stop after --timeout and this long.
    #[arg(long = "for", value_name = "DURATION", value_parser = doorward_documents::parse_duration)]
    pub(crate) duration: Option<Duration>,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct StatusFlags {
    /// Only this resource, with its leases.
    pub(crate) resource: Option<String>,
    /// Number of leases of a resource to list at most [default: 100 with a resource, else 0].
    #[arg(long, value_name = "COUNT")]
    pub(crate) leases: Option<u32>,
    /// Show the server that was asked, even if another one is the master.
    #[arg(long)]
    pub(crate) here: bool,
    /// Show what the server takes on at most instead, how full that is, and what was refused for it.
    ///
    /// A line for each limit: the amount in use, the bound, and the number of refusals since the server started. Of a
    /// limit for each address, template or resource, the line shows the one that uses most; "-" is not counted. FULL
    /// marks a limit that is reached; "!" one of which 80 % are in use, or that has refused something. A flag of
    /// doorward-server sets the bound. A refusal carries a retry delay and takes no lease away. Connections are those
    /// of the server that is shown: with --here, of one that is not the master.
    #[arg(long, conflicts_with_all = ["resource", "leases"])]
    pub(crate) limits: bool,
    /// Show the templates in force instead, wherever the server has them from.
    #[arg(long, conflicts_with_all = ["resource", "leases", "limits"])]
    pub(crate) templates: bool,
    /// Only leases of this client, over all resources. A * stands for any text.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["limits", "templates"])]
    pub(crate) client: Option<String>,
}

fn every(text: &str) -> Result<Duration, String> {
    let range = Duration::from_millis(100)..=Duration::from_secs(3_600);
    doorward_documents::parse_duration_within(text, range, "give 100ms to 1h")
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RecordFlags {
    /// Of which resource.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) resource: String,
    /// Stop after this time [default: at Ctrl-C].
    #[arg(long = "for", value_name = "DURATION", value_parser = doorward_documents::parse_duration)]
    pub(crate) duration: Option<Duration>,
    /// Time between two readings.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = every)]
    pub(crate) every: Duration,
}

/// A number that a server takes.
pub(crate) fn amount(text: &str) -> Result<f64, String> {
    let amount = text.parse().ok();
    let amount = amount.filter(|amount| (0.0..=1e15).contains(amount));
    amount.ok_or_else(|| format!("{text:?} is no amount; give a number from 0 to 10^15"))
}

#[cfg(test)]
mod tests;
