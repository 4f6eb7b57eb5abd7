//! Places of state directories.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use doorward_door::listener::Address;
use tracing::{info, warn};

use crate::state_directory::{Past, StateDirectory, StateError, Uncounted};

/// Place of the state directory of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatePlace {
    /// A directory that an operator has named.
    Named(PathBuf),
    /// The directory of a server that was given none. If it cannot be written, the server keeps no state.
    Usual(PathBuf),
}

/// State directory of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateConfig {
    /// Its place.
    pub place: StatePlace,
    /// Whether no client has a lease if the directory is new.
    pub is_unused: bool,
}

impl StatePlace {
    /// Returns the place that a flag names, or else the usual one. None: the server keeps no state.
    pub fn of(flag: Option<&Path>, node: &str, root_at: Option<&Address>) -> Option<Self> {
        match flag {
            Some(dir) if dir.as_os_str() == "none" => None,
            Some(dir) => Some(Self::Named(dir.to_owned())),
            None => Self::usual(node, root_at, |name| env::var_os(name)),
        }
    }

    /// Returns the place for a server that was given none: below the folder that systemd names, or else the user's
    /// folder for state. Roots of different addresses may have one name. `variable` reads a variable of the process. None: the user has no such folder, or the address has
    /// any free port, so that the next process has another one.
    pub fn usual(
        node: &str,
        root_at: Option<&Address>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Option<Self> {
        let is_any = |address: &Address| address.tcp().is_some_and(|it| it.port() == 0);
        if root_at.is_some_and(is_any) {
            return None;
        }
        let given = |name| variable(name).filter(|it| !it.is_empty());
        let folder = |name| given(name).map(PathBuf::from);
        let of_user = || {
            let state =
                folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")));
            Some(state?.join("doorward"))
        };
        // systemd separates several by colons.
        let of_system = variable("STATE_DIRECTORY").and_then(|all| env::split_paths(&all).next());
        let of_system = of_system.filter(|it| !it.as_os_str().is_empty());
        let above = of_system.or_else(of_user)?;
        let name = match root_at {
            Some(address) => format!("{node}@{address}"),
            None => node.to_owned(),
        };
        let name = name.replace('/', "%2F");
        Some(Self::Usual(above.join(name)))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Named(path) | Self::Usual(path) => path,
        }
    }
}

impl StateConfig {
    /// Opens the directory. None: no operator has named it, and it cannot be written.
    ///
    /// # Errors
    ///
    /// If it cannot be used.
    pub(crate) fn open(
        &self,
        node: &str,
        is_root: bool,
    ) -> Result<Option<(StateDirectory, Past)>, StateError> {
        match (
            StateDirectory::open(self.place.path(), node, is_root, self.is_unused),
            &self.place,
        ) {
            (Ok((directory, past)), _) => {
                let path = directory.path().display();
                match past.uncounted.as_ref().filter(|_| is_root) {
                    None | Some(Uncounted::New) => {
                        info!(%path, starts = past.starts, "state directory")
                    }
                    Some(why) => {
                        warn!(%path, %why, "the marks in the state directory do not count; the server learns")
                    }
                }
                Ok(Some((directory, past)))
            }
            // Marks that a later process finds would be too low.
            (Err(StateError::Unusable { path, source }), StatePlace::Usual(_))
                if !StateDirectory::may_exist(&path) =>
            {
                let path = path.display();
                warn!(%path, %source, "no state directory: the server learns after each restart; see --state-dir");
                Ok(None)
            }
            (Err(error), _) => Err(error),
        }
    }
}
