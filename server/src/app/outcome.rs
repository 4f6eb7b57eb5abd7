//! How a server ends by itself.

use std::io;

use doorward_door::listener::Address;
use thiserror::Error;
use tokio::task::JoinError;

use crate::app::ports::Port;
use crate::state_directory::StateError;
use crate::templates::file::TemplateFileError;

/// Returns advice on an address that cannot be listened on.
fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "if another server runs there, stop it, or ",
        _ => "",
    }
}

/// Failure of a server, at its start or later.
#[derive(Debug, Error)]
pub enum ServerError {
    /// A socket could not be opened.
    #[error(
        "cannot listen for {port} on {address}; {advice}choose another address with {flag}",
        advice = advice(source),
        flag = port.as_str()
    )]
    Listen {
        /// Part that needs the socket.
        port: Port,
        /// Address to listen on.
        address: Address,
        /// Cause.
        source: io::Error,
    },
    /// There are no templates at the start.
    #[error(transparent)]
    Templates(#[from] TemplateFileError),
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The descriptors compiled into the program are broken.
    #[error("gRPC reflection cannot be set up")]
    Reflection(#[from] tonic_reflection::server::Error),
    /// The election stopped by itself. That is a bug: this server could never be master again.
    #[error("the election has stopped; this is a bug, please tell us what the log says before")]
    Election,
    /// A part stopped by itself.
    #[error("{0} is no longer served")]
    Stopped(Port),
    /// A part panicked. That is a bug.
    #[error("a part of the server has panicked")]
    Panicked(#[from] JoinError),
}
