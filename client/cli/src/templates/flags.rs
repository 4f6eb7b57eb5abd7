//! The flags of `doorward templates`.

use clap::Args;
use doorward_documents::{Kind, Located};
use doorward_etcd::DocumentPlace;

use crate::documents::flags::DocumentCommand;

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
#[command(after_help = EXAMPLES, mut_args = |arg| arg.global(true).hide_env_values(true))]
pub(crate) struct TemplatesFlags {
    /// Where the templates are: etcd:KEY or a file
    /// [default: etcd:/doorward/templates, if --etcd-endpoints are given].
    #[arg(long, value_name = "PLACE", env = Located::VARIABLE)]
    pub(crate) at: Option<DocumentPlace>,
    #[command(subcommand)]
    pub(crate) command: DocumentCommand,
}
