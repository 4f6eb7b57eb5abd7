//! Failures of joining a group.

use std::error::Error;
use std::fmt;
use std::io;
use std::iter;
use std::path::PathBuf;

use doorward::ConnectError;
use thiserror::Error as ThisError;

/// A process could not join its group. `Debug` is the text with its causes, as a `main` that fails with it prints.
#[derive(ThisError)]
#[non_exhaustive]
pub enum JoinError {
    /// The name cannot be that of a folder and of a node.
    #[error(
        "the group {0:?} has an invalid name; use letters, digits, '-', '_' and '.', at most 64 of them"
    )]
    BadGroup(String),
    /// A limit or a template is invalid.
    #[error("{0}")]
    BadLimits(String),
    /// No folder is known.
    #[error(
        "there is no folder for the group: $XDG_STATE_HOME and $HOME are not set; give one with `folder`"
    )]
    NoFolder,
    /// The path of the folder is too long for a socket in it.
    #[error("the path {0} is too long for a Unix socket; give a shorter folder with `folder`")]
    LongPath(PathBuf),
    /// The folder cannot be used.
    #[error("the group's folder {} cannot be used; all processes of a group need one that their user owns", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// Other users may write into the folder.
    #[error("other users may write into the group's folder {}; take that right from them, or give another one", .0.display())]
    SharedFolder(PathBuf),
    /// The address of etcd cannot be used.
    #[error("{0}")]
    BadEtcd(String),
    /// The thread of the server could not be started.
    #[error("the thread that serves the group cannot be started")]
    Thread(#[source] io::Error),
    /// A setting of the client is invalid.
    #[error(transparent)]
    Client(ConnectError),
    /// No process serves the group.
    #[error(
        "nobody serves the group at {at}: {}",
        problem.as_deref().unwrap_or("another process has its lock, or is elected, and does not answer")
    )]
    NobodyServes {
        /// The address of the group.
        at: String,
        /// Why this process does not, if it has tried.
        problem: Option<String>,
        /// The last attempt to reach one that does.
        source: ConnectError,
    },
}

/// Returns an error with its causes.
pub(crate) fn chain(error: &dyn Error) -> String {
    let causes = iter::successors(Some(error), |it| (*it).source());
    let texts: Vec<_> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&chain(self))
    }
}
