//! Tokens of callers without certificates. The server has only their hashes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ring::digest::{SHA256, digest};
use serde::Deserialize;
use subtle::ConstantTimeEq;

use crate::TlsError;
use crate::identity::Identity;
use crate::reloading::Reloading;

/// Most values that aliases repeat.
const REPEATED_MAX: usize = 10_000;

/// Permission of a token's holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Leases capacity, asks for decisions, and reads status and rules.
    Client,
    /// Leases capacity as a child server.
    Server,
    /// Also changes rules.
    Operator,
}

impl Role {
    /// Returns the name in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Operator => "operator",
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    tokens: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    sha256: String,
    #[serde(default = "client")]
    roles: Vec<Role>,
}

fn client() -> Vec<Role> {
    vec![Role::Client]
}

/// The tokens of a file. It is read again when it changes.
#[derive(Debug)]
pub struct Tokens(Reloading<Vec<Known>>);

#[derive(Debug)]
struct Known {
    identity: Identity,
    hash: [u8; 32],
    roles: Arc<[Role]>,
}

impl Tokens {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If it is missing or invalid.
    pub fn open(path: PathBuf) -> Result<Self, TlsError> {
        let files = vec![path.clone()];
        Ok(Self(Reloading::open(files, move || read(&path))?))
    }

    /// Returns the identity and the roles of a token's holder. None: no such token is known.
    ///
    /// It compares hashes, and all of them, so its time tells nothing about a token.
    pub fn find(&self, token: &[u8]) -> Option<(Identity, Arc<[Role]>)> {
        let hash = digest(&SHA256, token);
        let mut found = None;
        for known in self.0.current().iter() {
            if bool::from(known.hash.ct_eq(hash.as_ref())) {
                found = Some((known.identity.clone(), Arc::clone(&known.roles)));
            }
        }
        found
    }

    /// Reads the file again if it has changed. See [`Reloading::refresh`].
    ///
    /// # Errors
    ///
    /// If the new file is invalid.
    pub fn refresh(&self) -> Result<bool, TlsError> {
        self.0.refresh()
    }
}

/// Returns the hash of a token, as a file has it.
pub fn hash(token: &[u8]) -> String {
    let hash = digest(&SHA256, token);
    hash.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn read(path: &Path) -> Result<Vec<Known>, TlsError> {
    let text = fs::read_to_string(path).map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })?;
    let options = serde_saphyr::options! {
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: REPEATED_MAX },
    };
    let document: Document = serde_saphyr::from_str_with_options(&text, options)
        .map_err(|error| TlsError::content(path, error))?;
    let known = document.tokens.into_iter().map(|entry| {
        let name = &entry.name;
        let is_named = !name.is_empty() && name.len() <= 200 && !name.contains(|it: char| it.is_control() || it == '#');
        match bytes(&entry.sha256) {
            Some(hash) if is_named => Ok(Known {
                identity: Identity::of_token(name),
                hash,
                roles: entry.roles.into(),
            }),
            Some(_) => Err(TlsError::content(path, format!("{name:?} is no name for a token"))),
            None => Err(TlsError::content(
                path,
                format!("sha256 of {name:?} must have 64 hexadecimal digits: printf %s TOKEN | sha256sum"),
            )),
        }
    });
    known.collect()
}

fn bytes(hex: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        let digits = hex.get(2 * index..2 * index + 2)?;
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_that_repeat_much_are_refused_before_they_are_memory() {
        let many = |of: &str| [of; 200].join(", ");
        let entry = format!("&a {{name: a, sha256: b, roles: [{}]}}", many("client"));
        let text = format!("tokens: [{entry}, {}]\n", many("*a"));
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        let problem = read(file.path()).unwrap_err().to_string();
        assert!(problem.contains("alias replay"), "{problem}");
    }
}
