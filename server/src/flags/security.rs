//! Flags of TLS and identities.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use doorward_door::access::Access;
use doorward_tls::described;
use doorward_tls::flags::TlsFlags;
use doorward_tls::server::{ServerFiles, ServerTls};
use doorward_tls::tokens::Tokens;

use crate::flags::listened;
use crate::security::SecurityConfig;

/// TLS and identities of a server.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "TLS")]
pub struct SecurityFlags {
    /// Own certificate, and the way to the parent.
    #[command(flatten)]
    pub tls: TlsFlags,

    /// Authorities that sign the certificates of callers, a PEM file. With it, each call needs a certificate, or a
    /// token.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_client_ca: Option<PathBuf>,

    /// Revocation lists of these authorities, a PEM file.
    #[arg(long, value_name = "FILE", requires = "tls_client_ca")]
    pub tls_crl: Option<PathBuf>,

    /// Tokens of callers without certificates, a YAML file with their hashes and roles.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tokens: Option<PathBuf>,

    /// Identities of certificates that may act as child servers, separated by commas; `*` at the end stands for any
    /// characters [default: all].
    #[arg(
        long,
        value_name = "IDENTITY",
        value_delimiter = ',',
        requires = "tls_client_ca"
    )]
    pub child_identities: Vec<String>,

    /// Also accepts connections without TLS, and callers without an identity, while callers change over.
    #[arg(long, requires = "tls_cert")]
    pub accept_plaintext: bool,

    /// Port without TLS for Doorman's own clients [default: none].
    #[arg(long, value_name = "ADDRESS", value_parser = listened)]
    pub plain_listen: Option<SocketAddr>,

    /// Serves callers on a network without identities on purpose.
    #[arg(long)]
    pub insecure: bool,

    /// Host names under which browsers ask for the pages, separated by commas. IP addresses, localhost and the
    /// advertised host need none.
    #[arg(
        long,
        help_heading = "Addresses",
        value_name = "NAME",
        value_delimiter = ','
    )]
    pub http_host: Vec<String>,
}

impl SecurityFlags {
    /// Reads the files. Returns the configuration.
    ///
    /// # Errors
    ///
    /// If a file is missing or invalid, or flags contradict each other.
    pub fn config(&self) -> Result<SecurityConfig, String> {
        let identity = self.tls.identity()?;
        let mut certificates: Vec<PathBuf> = self.tls.ca.iter().cloned().collect();
        certificates.extend(self.tls_client_ca.clone());
        let mut tls = None;
        if let Some((certificate, key)) = identity {
            certificates.push(certificate.clone());
            let files = ServerFiles {
                certificate,
                key,
                client_ca: self.tls_client_ca.clone(),
                revoked: self.tls_crl.clone(),
            };
            tls = Some(ServerTls::open(files).map_err(|error| described(&error))?);
        }
        let tokens = self.tokens.clone().map(Tokens::open).transpose();
        let children = self.child_identities.iter();
        Ok(SecurityConfig {
            dialer: self.tls.dialer()?,
            access: Arc::new(Access {
                tls,
                accepts_plain: self.accept_plaintext,
                tokens: tokens.map_err(|error| described(&error))?,
                needs_identity: self.tls_client_ca.is_some() || self.tokens.is_some(),
                children: children.map(|it| it.trim().to_owned()).collect(),
                ..Access::default()
            }),
            certificates,
            plain_listen: self.plain_listen,
            is_insecure: self.insecure,
            http_hosts: self.http_host.clone(),
        })
    }
}
