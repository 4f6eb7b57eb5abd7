//! Listeners: TCP, and sockets in the file system, whose callers are one.

use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, TcpSocket, UnixListener, UnixSocket};

/// Mode of a socket in the file system: its owner and their group may connect.
const MODE: u32 = 0o660;

/// Address of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

/// A listener.
#[derive(Debug)]
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A socket in the file system. Its file goes first, so that no other server's file is removed.
    Unix(SocketFile, UnixListener),
}

/// The file of a socket. It is removed when this is dropped.
#[derive(Debug)]
pub struct SocketFile(PathBuf);

impl Address {
    /// Returns the address, if it is one of TCP.
    pub const fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }
}

impl Listener {
    /// Opens a listener for which the system queues at most `backlog` connections. Returns it with its address. Replaces
    /// the file of a socket without a listener.
    ///
    /// # Errors
    ///
    /// If the system refuses it.
    pub fn open(address: &Address, backlog: NonZeroU32) -> io::Result<(Self, Address)> {
        let address = match address {
            Address::Tcp(address) => *address,
            Address::Unix(path) => {
                let listener = open_unix(path, backlog)?;
                return Ok((listener, Address::Unix(path.clone())));
            }
        };
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // A restarted server gets its port at once.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        let listener = socket.listen(backlog.get())?;
        let bound = listener.local_addr()?;
        Ok((Self::Tcp(listener), Address::Tcp(bound)))
    }

    /// Registers the listener with the runtime of this thread.
    pub(crate) fn move_here(self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(listener) => Self::Tcp(TcpListener::from_std(listener.into_std()?)?),
            Self::Unix(file, listener) => {
                Self::Unix(file, UnixListener::from_std(listener.into_std()?)?)
            }
        })
    }

    /// Accepts a connection. Returns its socket, not registered with a runtime yet, and its other end. A Unix socket is
    /// handled as a TCP socket: the same system calls read, write and close it. Cancel safe.
    pub(crate) async fn accept(&self) -> io::Result<(TcpStream, Option<SocketAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (socket, peer) = listener.accept().await?;
                Ok((socket.into_std()?, Some(peer)))
            }
            Self::Unix(_, listener) => {
                let (socket, _) = listener.accept().await?;
                Ok((TcpStream::from(OwnedFd::from(socket.into_std()?)), None))
            }
        }
    }
}

fn open_unix(path: &Path, backlog: NonZeroU32) -> io::Result<Listener> {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    // A datagram cannot connect to a stream, and learns all the same whether there is a listener.
    let looked = UnixDatagram::unbound()?.connect(path);
    if is_socket && looked.is_err_and(|it| it.kind() == io::ErrorKind::ConnectionRefused) {
        fs::remove_file(path)?;
    }
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    let file = SocketFile(path.to_owned());
    fs::set_permissions(path, Permissions::from_mode(MODE))?;
    Ok(Listener::Unix(file, socket.listen(backlog.get())?))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // The operator may have removed it.
        let _ = fs::remove_file(&self.0);
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}
