//! Commands and flags for documents of all kinds.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum DocumentCommand {
    /// Print the document in force, as it was written; what is known of it goes to standard error.
    Show {
        /// This version of the history instead.
        #[arg(long, value_name = "NUMBER")]
        revision: Option<u64>,
    },
    /// Validate files, or what is in force, and report every problem with its line.
    ///
    /// Warnings are no failure; check says if apply needs --force. Files are compared with the document in force and with
    /// what is in use, if that is known.
    Check {
        /// YAML files; - is standard input. None: what is in force.
        files: Vec<PathBuf>,
    },
    /// Show what applying a file would change, by line and in meaning; of templates also for those who hold leases.
    ///
    /// Exit codes are those of diff(1): 0 nothing would change; 1 something would; 2 trouble (a file
    /// that cannot be read or is invalid, wrong usage); and 3 if etcd cannot be asked.
    Diff {
        /// A YAML file; - is standard input.
        file: PathBuf,
        #[command(flatten)]
        search: Search,
    },
    /// Put a file in force: shows what it will change, and asks.
    ///
    /// The command writes nothing if the file is invalid, changes nothing or needs --force, or if the document in force
    /// has changed since the comparison.
    Apply {
        /// A YAML file; - is standard input, and needs --yes.
        file: PathBuf,
        #[command(flatten)]
        change: ChangeFlags,
    },
    /// Edit what is in force in $VISUAL or $EDITOR: shows what it will change, and asks.
    ///
    /// An invalid text is opened again, with every problem as a remark above its line. The text is never lost: after a
    /// failure, a line names the copy.
    Edit {
        #[command(flatten)]
        change: ChangeFlags,
    },
    /// List the versions that etcd keeps, the newest first.
    History {
        /// Number of versions to list at most.
        #[arg(short = 'n', long, value_name = "COUNT", default_value_t = 20)]
        count: usize,
    },
    /// Put an earlier version in force again: shows what it will change, and asks.
    Rollback {
        /// A version of the history.
        #[arg(value_name = "REVISION")]
        number: u64,
        #[command(flatten)]
        change: ChangeFlags,
    },
}

/// The clients that a comparison lists.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Search {
    /// Only this resource in use, with all its clients.
    #[arg(long, value_name = "ID")]
    pub(crate) resource: Option<String>,
    /// Only those of its clients that have this text in their names.
    #[arg(long, value_name = "TEXT", requires = "resource")]
    pub(crate) client: Option<String>,
}

/// How a change is made.
#[derive(Clone, Debug, Args)]
#[command(mut_args(|it| it.hide_env_values(true)))]
pub(crate) struct ChangeFlags {
    /// Reason for the change, kept in etcd with the version.
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: Option<String>,
    /// Name of the author, kept in etcd with the version (default: user@host).
    #[arg(long, value_name = "NAME", env = "DOORWARD_WHO")]
    pub(crate) who: Option<String>,
    /// Write only if this version of the history is in force; 0: only if there is no document, else do nothing.
    #[arg(long, value_name = "REVISION")]
    pub(crate) expect: Option<u64>,
    /// Do not ask.
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Write in spite of warnings: all that is in force goes; of templates, one goes that is or may be in use, a total is
    /// no longer kept, a length or capacity is ten times that in force, or no server reads them. --yes does not imply it.
    #[arg(long)]
    pub(crate) force: bool,
}
