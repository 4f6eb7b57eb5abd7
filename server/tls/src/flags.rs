//! Command-line flags. Each has a variable of the same name.

use std::path::PathBuf;

use clap::Args;

use crate::client::{ClientFiles, ClientTls};
use crate::described;
use crate::dialer::Dialer;

/// TLS towards servers.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "TLS", mut_args(|it| it.hide_env_values(true)))]
pub struct TlsFlags {
    /// Authorities that sign the certificates of Doorward's servers, a PEM file. With it, every connection to a server
    /// uses TLS.
    #[arg(long, id = "tls_ca", value_name = "FILE", env = "DOORWARD_CA")]
    pub ca: Option<PathBuf>,

    /// Own certificate with its chain, a PEM file.
    #[arg(
        long = "tls-cert",
        id = "tls_cert",
        value_name = "FILE",
        env = "DOORWARD_TLS_CERT"
    )]
    pub cert: Option<PathBuf>,

    /// Key of --tls-cert, a PEM file.
    #[arg(
        long = "tls-key",
        id = "tls_key",
        value_name = "FILE",
        env = "DOORWARD_TLS_KEY"
    )]
    pub key: Option<PathBuf>,

    /// Token for servers that ask for one, the only line of a file.
    #[arg(
        long,
        id = "tls_token",
        value_name = "FILE",
        env = "DOORWARD_TOKEN_FILE"
    )]
    pub token_file: Option<PathBuf>,
}

impl TlsFlags {
    /// Returns the files of the certificate and its key, if they are given.
    ///
    /// # Errors
    ///
    /// If only one of them is given.
    pub fn identity(&self) -> Result<Option<(PathBuf, PathBuf)>, String> {
        match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => Ok(Some((cert.clone(), key.clone()))),
            (None, None) => Ok(None),
            (Some(_), None) => Err("--tls-cert needs --tls-key".to_owned()),
            (None, Some(_)) => Err("--tls-key needs --tls-cert".to_owned()),
        }
    }

    /// Returns TLS towards servers. None: no authorities are given, so connections are plain.
    ///
    /// # Errors
    ///
    /// If a file is missing or invalid, or flags contradict each other.
    pub fn client(&self) -> Result<Option<ClientTls>, String> {
        let identity = self.identity()?;
        let Some(ca) = self.ca.clone() else {
            return match &self.token_file {
                Some(_) => Err("--token-file needs --ca: a token is sent only by TLS".to_owned()),
                None => Ok(None),
            };
        };
        let files = ClientFiles {
            ca,
            identity,
            token: self.token_file.clone(),
        };
        let tls = ClientTls::open(files).map_err(|error| described(&error))?;
        Ok(Some(tls))
    }

    /// Returns the way to servers.
    ///
    /// # Errors
    ///
    /// The errors of [`TlsFlags::client`].
    pub fn dialer(&self) -> Result<Dialer, String> {
        self.client().map(Dialer::new)
    }
}
