//! Credentials for etcd that stand in files.
//!
//! Operators replace such files while programs run, so a connection looks at them each time it connects. While a file
//! cannot be read, or a certificate does not fit its key, the last good credentials count.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io, thread};

use doorward_files::Reloading;
use doorward_tls::client;
use doorward_tls::pem::PemFile;
use etcd_client::{Certificate, Identity, TlsOptions};
use thiserror::Error;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Names of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CredentialFiles {
    /// CA to verify etcd with.
    pub ca: Option<PathBuf>,
    /// Our own certificate.
    pub cert: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
    /// Name of the user, and the file with the password.
    pub user: Option<(String, PathBuf)>,
}

/// Credentials for etcd's own users.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The password. Never printed.
    pub password: String,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Certificates for TLS, as PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// CA to verify etcd with.
    pub ca: Option<Vec<u8>>,
    /// Our own certificate and its key, if etcd asks for one.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("ca", &self.ca.is_some())
            .field("identity", &self.identity.is_some())
            .finish()
    }
}

/// Certificates, and a user with a password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) tls: Tls,
    pub(crate) user: Option<User>,
}

/// Files with credentials cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CredentialsError {
    /// One for TLS cannot be read.
    #[error("cannot read {path}: {why}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
    /// One does not hold what it should, with its path and the remedy.
    #[error("{0}")]
    Content(String),
    /// A certificate without its key, or the other way round.
    #[error("a client certificate and its key are needed both, or neither")]
    HalfIdentity,
    /// The password cannot be read.
    #[error("cannot read the password from {path}: {why}")]
    Password {
        /// The file.
        path: PathBuf,
        /// Why.
        why: io::Error,
    },
}

impl CredentialFiles {
    /// Reads the files. `former`: the ones in force, which others that are not valid now do not replace.
    ///
    /// # Errors
    ///
    /// If one cannot be read or is invalid, or if only one of certificate and key is given.
    pub(crate) fn read(&self, former: Option<&Tls>) -> Result<Credentials, CredentialsError> {
        let user = match &self.user {
            Some((name, path)) => {
                let password = doorward_files::read_to_string(path);
                let password = password.map_err(|why| CredentialsError::Password {
                    path: path.clone(),
                    why,
                })?;
                Some(User {
                    name: name.clone(),
                    password: password.trim_end_matches(['\r', '\n']).to_owned(),
                })
            }
            None => None,
        };
        let paths = match (self.cert.as_deref(), self.key.as_deref()) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err(CredentialsError::HalfIdentity),
        };
        let identity = paths.map(|(certificate, key)| Ok((content(certificate)?, content(key)?)));
        let tls = Tls {
            ca: self.ca.as_deref().map(content).transpose()?,
            identity: identity.transpose()?,
        };
        let file = |path, bytes| PemFile { path, bytes };
        let authorities = self.ca.as_deref().zip(tls.ca.as_deref());
        let own = paths.zip(tls.identity.as_ref());
        let own = own.map(|(paths, (certificate, of_key))| {
            (file(paths.0, certificate), file(paths.1, of_key))
        });
        let former = former.and_then(|it| it.identity.as_ref());
        let former = former.map(|(certificate, _)| &**certificate);
        client::check(authorities.map(|(path, it)| file(path, it)), own, former)
            .map_err(|error| CredentialsError::Content(doorward_tls::described(&error)))?;
        Ok(Credentials { tls, user })
    }
}

impl Tls {
    /// In the form that the client of etcd takes.
    pub(crate) fn options(&self) -> TlsOptions {
        let mut options = TlsOptions::new();
        if let Some(ca) = &self.ca {
            options = options.ca_certificate(Certificate::from_pem(ca));
        }
        if let Some((certificate, key)) = &self.identity {
            options = options.identity(Identity::from_pem(certificate, key));
        }
        options
    }
}

fn content(path: &Path) -> Result<Vec<u8>, CredentialsError> {
    doorward_files::read(path).map_err(|why| CredentialsError::Read {
        path: path.to_owned(),
        why,
    })
}

/// Credentials from files. All connections with a configuration share them.
#[derive(Clone, Debug)]
pub struct ReadCredentials {
    files: CredentialFiles,
    read: Reloading<Credentials>,
}

/// The same files are the same credentials, whenever they were read.
impl PartialEq for ReadCredentials {
    fn eq(&self, other: &Self) -> bool {
        self.files == other.files
    }
}

impl Eq for ReadCredentials {}

impl ReadCredentials {
    pub(crate) fn open(files: CredentialFiles) -> Result<Self, CredentialsError> {
        let password = files.user.as_ref().map(|(_, path)| path);
        let paths = [&files.ca, &files.cert, &files.key].into_iter().flatten();
        let paths = paths.chain(password).cloned().collect();
        let named = files.clone();
        let read = move |former: Option<&Credentials>| named.read(former.map(|it| &it.tls));
        let read = Reloading::open("credentials for etcd", paths, read)?;
        Ok(Self { files, read })
    }

    /// Returns the last good credentials.
    pub(crate) fn current(&self) -> Arc<Credentials> {
        self.read.current()
    }

    /// Reads the files again if they have changed. Returns the last good credentials.
    pub(crate) async fn again(&self, patience: Duration) -> Arc<Credentials> {
        let read = self.read.clone();
        let (done, refreshing) = oneshot::channel();
        // A file that hangs must not delay the end of a runtime.
        let reader = thread::Builder::new().name("credentials".to_owned());
        let started = reader.spawn(move || done.send(read.refresh()));
        drop(started);
        // Later credentials are for the next connection, and the log says why files are not in force.
        let _ = timeout(patience, refreshing).await;
        self.current()
    }
}

#[cfg(test)]
mod tests;
