//! The flags of `doorward templates`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use doorward_etcd::TemplatesPlace;

const EXAMPLES: &str = "\
Examples:
  export DOORWARD_ETCD_ENDPOINTS=http://10.0.0.1:2379,http://10.0.0.2:2379
  doorward templates show > templates.yaml   what is in force
  doorward templates diff templates.yaml     what would change, and for whom
  doorward templates apply templates.yaml --why 'more for batch'
  doorward templates edit                    the same in an editor
  doorward templates history                 who changed what, when and why
  doorward templates rollback 41             back to an earlier version
  doorward templates check templates.yaml    only whether it is valid";

/// Work with templates.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_args = |arg| arg.global(true))]
pub(crate) struct TemplatesFlags {
    #[command(flatten)]
    pub(crate) place: PlaceFlags,
    #[command(subcommand)]
    pub(crate) command: TemplatesCommand,
}

/// Where the templates are.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlaceFlags {
    /// Where the templates are: etcd:KEY or a file
    /// [default: etcd:/doorward/templates, if --etcd-endpoints are given].
    #[arg(
        long,
        value_name = "PLACE",
        env = "DOORWARD_TEMPLATES",
        hide_env_values = true
    )]
    pub(crate) at: Option<TemplatesPlace>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TemplatesCommand {
    /// Print the document in force, as it was written; what is known of it goes to standard error.
    Show(ShowFlags),
    /// Validate files, or what is in force, and report every problem with its line.
    ///
    /// Warnings are no failure; check says if apply needs --force. Files are compared with the templates in force, if
    /// these are known.
    Check {
        /// YAML files; - is standard input. None: what is in force.
        files: Vec<PathBuf>,
    },
    /// Show what applying a file would change, by line, by template, and for those who hold leases.
    ///
    /// Exit codes are those of diff(1): 0 nothing would change; 1 something would; 2 trouble (a file
    /// that cannot be read or is invalid, wrong usage); and 3 if etcd cannot be asked.
    Diff(DiffFlags),
    /// Put a file in force: shows what it will change, and asks.
    ///
    /// Nothing is written if the file is invalid, changes nothing or needs --force, or if the templates have changed
    /// since the comparison.
    Apply(ApplyFlags),
    /// Edit what is in force in $VISUAL or $EDITOR: shows what it will change, and asks.
    ///
    /// An invalid text is opened again, with every problem as a remark above its line. The text is never lost: after a
    /// failure, a line names the copy.
    Edit(EditFlags),
    /// List the versions that etcd keeps, the newest first.
    History(HistoryFlags),
    /// Put an earlier version in force again: shows what it will change, and asks.
    Rollback(RollbackFlags),
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ShowFlags {
    /// This version of the history instead.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) revision: Option<u64>,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct DiffFlags {
    /// A YAML file; - is standard input.
    pub(crate) file: PathBuf,
}

/// How a change is made.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChangeFlags {
    /// Reason for the change, kept in etcd with the version.
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: Option<String>,
    /// Name of the author, kept in etcd with the version (default: user@host).
    #[arg(
        long,
        value_name = "NAME",
        env = "DOORWARD_WHO",
        hide_env_values = true
    )]
    pub(crate) who: Option<String>,
    /// Do not ask.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Write even what is hardly meant: lengths that are ten times those in force, a safe capacity by
    /// which clients use more than there is, a capacity of 0, templates that no id can reach, no
    /// templates at all. --yes does not imply it.
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ApplyFlags {
    /// A YAML file; - is standard input, and needs --yes.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) change: ChangeFlags,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct EditFlags {
    #[command(flatten)]
    pub(crate) change: ChangeFlags,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct HistoryFlags {
    /// Number of versions to list at most.
    #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
    pub(crate) count: usize,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RollbackFlags {
    /// A version of the history.
    #[arg(value_name = "REVISION")]
    pub(crate) number: u64,
    #[command(flatten)]
    pub(crate) change: ChangeFlags,
}
