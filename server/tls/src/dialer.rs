//! The way to servers: with TLS or without. A program that is built without the feature `tls` has only the latter.

use tonic::transport::{Channel, Endpoint};
#[cfg(feature = "tls")]
use tonic::{service::interceptor::InterceptedService, transport};
#[cfg(feature = "tls")]
use tower::service_fn;

#[cfg(feature = "tls")]
use crate::client::{Bearer, ClientTls, connect, encrypted};

/// Way to servers. The default is without TLS.
#[derive(Clone, Debug, Default)]
pub struct Dialer {
    #[cfg(feature = "tls")]
    tls: Option<ClientTls>,
    #[cfg(feature = "tls")]
    withholds_token: bool,
}

/// A channel that sends the token of its client, if it has one.
#[cfg(feature = "tls")]
pub type Dialed = InterceptedService<Channel, Bearer>;

/// A channel.
#[cfg(not(feature = "tls"))]
pub type Dialed = Channel;

#[cfg(feature = "tls")]
impl Dialer {
    /// Returns a dialer. Without `tls`, its connections are plain.
    pub const fn new(tls: Option<ClientTls>) -> Self {
        Self {
            tls,
            withholds_token: false,
        }
    }

    /// Returns the same way without the token: whoever gets that may use it elsewhere.
    #[must_use]
    pub fn without_token(self) -> Self {
        Self {
            withholds_token: true,
            ..self
        }
    }

    fn bearer(&self) -> Bearer {
        Bearer(self.tls.clone().filter(|_| !self.withholds_token))
    }

    /// Returns whether connections use TLS.
    pub const fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns the reason for which a server has refused the last connection, if it has told one.
    pub fn refusal(&self) -> Option<String> {
        self.tls.as_ref().and_then(ClientTls::refusal)
    }

    /// Returns a channel that connects at its first call. The scheme of the endpoint has no effect.
    pub fn channel(&self, endpoint: &Endpoint) -> Dialed {
        let channel = match self.tls.clone() {
            None => endpoint.connect_lazy(),
            Some(tls) => {
                let connector = service_fn(move |server| connect(tls.clone(), server));
                encrypted(endpoint).connect_with_connector_lazy(connector)
            }
        };
        InterceptedService::new(channel, self.bearer())
    }

    /// Connects.
    ///
    /// # Errors
    ///
    /// If there is no connection.
    pub async fn connect(&self, endpoint: &Endpoint) -> Result<Dialed, transport::Error> {
        let channel = match self.tls.clone() {
            None => endpoint.connect().await?,
            Some(tls) => {
                let connector = service_fn(move |server| connect(tls.clone(), server));
                encrypted(endpoint)
                    .connect_with_connector(connector)
                    .await?
            }
        };
        Ok(InterceptedService::new(channel, self.bearer()))
    }
}

#[cfg(not(feature = "tls"))]
impl Dialer {
    /// Returns whether connections use TLS.
    pub const fn is_tls(&self) -> bool {
        false
    }

    /// Returns None: without TLS, no server refuses a connection.
    pub fn refusal(&self) -> Option<String> {
        None
    }

    /// Returns a channel that connects at its first call.
    pub fn channel(&self, endpoint: &Endpoint) -> Dialed {
        endpoint.connect_lazy()
    }
}
