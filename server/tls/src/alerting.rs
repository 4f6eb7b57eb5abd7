//! A connection of a client that remembers the server's last alert.
//!
//! With TLS 1.3, a client completes its handshake before the server judges the client's certificate. So the refusal
//! comes with the first read, and the HTTP library reports only that the connection has closed.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use rustls::AlertDescription;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// The last alert of a server, if its last connection ended by one.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastAlert(Arc<Mutex<Option<String>>>);

impl LastAlert {
    pub(crate) fn get(&self) -> Option<String> {
        let alert = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        alert.clone()
    }

    pub(crate) fn clear(&self) {
        self.set(None);
    }

    fn set(&self, alert: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = alert;
    }
}

/// A connection.
#[derive(Debug)]
pub(crate) struct Alerting {
    pub(crate) stream: TlsStream<TcpStream>,
    pub(crate) last: LastAlert,
    /// Whether the server has sent anything.
    pub(crate) has_read: bool,
}

impl AsyncRead for Alerting {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        match &read {
            Poll::Ready(Err(error)) => {
                let tls = error.get_ref().and_then(|it| it.downcast_ref());
                if let Some(rustls::Error::AlertReceived(alert)) = tls {
                    self.last.set(Some(with_cause(*alert)));
                }
            }
            Poll::Ready(Ok(())) if !self.has_read => {
                self.has_read = true;
                self.last.set(None);
            }
            Poll::Ready(Ok(())) | Poll::Pending => {}
        }
        read
    }
}

/// Returns the text of an alert about a certificate, with its usual cause.
fn with_cause(alert: AlertDescription) -> String {
    let cause = match alert {
        AlertDescription::CertificateExpired => "it has ended, or does not begin yet",
        AlertDescription::UnknownCA => "the server does not trust its authority",
        AlertDescription::CertificateUnknown => {
            "it is self-signed, of a kind that is not taken, or without one name; the server's log tells it"
        }
        AlertDescription::DecryptError => "another authority of that name signed it",
        AlertDescription::UnsupportedCertificate => "its extended key usage is not for clients",
        _ => return format!("{alert:?}"),
    };
    format!("{alert:?}, usually because {cause}")
}

impl AsyncWrite for Alerting {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
