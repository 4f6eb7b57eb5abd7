//! `doorward man`: manual pages of all programs, for packages.

use std::fs;
use std::path::Path;

use crate::failure::Result;
use crate::flags;

pub(crate) fn run(folder: &Path) -> Result {
    fs::create_dir_all(folder)?;
    clap_mangen::generate_to(flags::to_complete(), folder)?;
    #[cfg(feature = "demo")]
    {
        use clap::CommandFactory as _;
        use doorward_server::flags::{Flags, agent::AgentFlags};
        clap_mangen::generate_to(Flags::command(), folder)?;
        clap_mangen::generate_to(AgentFlags::command(), folder)?;
    }
    Ok(())
}
