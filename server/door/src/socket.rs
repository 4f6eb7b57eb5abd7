//! The socket of a connection.

use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

/// A socket: without TLS on the left, with TLS on the right.
pub type Socket = Either<TcpStream, Box<TlsStream<TcpStream>>>;
