//! The flags of every program that reaches etcd.
//!
//! Each has a variable, which is the same for every program, but for the endpoints: they are what makes
//! a server a candidate, so a server has a variable of its own for them ([`SERVER_ENDPOINTS`]). An
//! operator who exports [`ENDPOINTS`] for the command line would else start a candidate of production by
//! starting any server. TLS, credentials and prefixes do nothing without endpoints, and are shared.

use std::path::PathBuf;

use clap::Args;

use crate::config::{Endpoint, EtcdConfig};
use crate::credentials::CredentialFiles;
use crate::layout;

/// The variable for the endpoints, unless a program has another one.
pub const ENDPOINTS: &str = "DOORWARD_ETCD_ENDPOINTS";

/// The variable for the endpoints of a server.
pub const SERVER_ENDPOINTS: &str = "DOORWARD_SERVER_ETCD_ENDPOINTS";

/// Returns the first variable of ours whose value is not UTF-8. Without this, the message about it names no variable.
pub fn unreadable_variable() -> Option<String> {
    let mut unreadable = std::env::vars_os().filter(|(_, value)| value.to_str().is_none());
    unreadable.find_map(|(name, _)| {
        let name = name.to_str()?;
        name.starts_with("DOORWARD_").then(|| name.to_owned())
    })
}

/// How etcd is reached. A program with another variable for the endpoints says so where it takes these
/// flags in: `#[command(mut_arg("endpoints", |endpoints| endpoints.env(SERVER_ENDPOINTS)))]`.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "etcd", mut_args(|it| it.hide_env_values(true)))]
pub struct EtcdFlags {
    /// Members of an etcd cluster, separated by commas: http://HOST:PORT or https://HOST:PORT. A
    /// scheme may be left out: http:// then.
    #[arg(
        long = "etcd-endpoints",
        value_name = "URL",
        env = ENDPOINTS,
        value_delimiter = ',',
        value_parser = Endpoint::parse
    )]
    pub endpoints: Vec<Endpoint>,

    /// CA file (PEM) to verify etcd with; needed with https.
    #[arg(long = "etcd-ca", value_name = "FILE", env = "DOORWARD_ETCD_CA")]
    pub ca: Option<PathBuf>,

    /// Our own certificate, if etcd asks for one, a PEM file.
    #[arg(long = "etcd-cert", value_name = "FILE", env = "DOORWARD_ETCD_CERT")]
    pub cert: Option<PathBuf>,

    /// The key of our own certificate, a PEM file.
    #[arg(long = "etcd-key", value_name = "FILE", env = "DOORWARD_ETCD_KEY")]
    pub key: Option<PathBuf>,

    /// Who we are to etcd, if it has users.
    #[arg(long = "etcd-user", value_name = "NAME", env = "DOORWARD_ETCD_USER")]
    pub user: Option<String>,

    /// A file with the password of --etcd-user, and nothing else.
    #[arg(
        long = "etcd-password-file",
        value_name = "FILE",
        env = "DOORWARD_ETCD_PASSWORD_FILE"
    )]
    pub password_file: Option<PathBuf>,
}

/// Where nodes stand in etcd: for programs that elect masters, or look for them.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "etcd", mut_args(|it| it.hide_env_values(true)))]
pub struct ElectionFlags {
    /// What the keys of all nodes begin with in etcd: masters, and who is there.
    #[arg(
        long = "election-prefix",
        value_name = "KEY",
        env = "DOORWARD_ELECTION_PREFIX",
        default_value = layout::DEFAULT_PREFIX,
        value_parser = layout::key
    )]
    pub prefix: String,
}

impl EtcdFlags {
    /// How etcd is reached. None: no endpoints are given, so it is not used.
    ///
    /// # Errors
    ///
    /// If the flags contradict each other, or a file they name cannot be used.
    pub fn config(&self) -> Result<Option<EtcdConfig>, String> {
        let has_tls = self.ca.is_some() || self.cert.is_some() || self.key.is_some();
        let has_some = has_tls || self.user.is_some() || self.password_file.is_some();
        let speaks_tls = self.endpoints.iter().any(Endpoint::is_tls);
        let problem = if self.endpoints.is_empty() && !has_some {
            return Ok(None);
        } else if self.endpoints.is_empty() {
            "TLS or credentials for etcd are given, by flags or by DOORWARD_ETCD_… variables, but not where it is: \
             see --etcd-endpoints"
        } else if has_tls && !speaks_tls {
            "TLS for etcd is given, but no endpoint is https: see --etcd-endpoints"
        } else if speaks_tls && self.ca.is_none() {
            "an endpoint of etcd is https, and there is no CA to verify it with: give --etcd-ca"
        } else if self.user.is_some() != self.password_file.is_some() {
            "--etcd-user and --etcd-password-file are needed both, or neither"
        } else {
            let files = CredentialFiles {
                ca: self.ca.clone(),
                cert: self.cert.clone(),
                key: self.key.clone(),
                user: self.user.clone().zip(self.password_file.clone()),
            };
            let config = EtcdConfig::with_files(self.endpoints.clone(), files);
            return config.map(Some).map_err(|error| error.to_string());
        };
        Err(problem.to_owned())
    }
}

#[cfg(test)]
mod tests;
