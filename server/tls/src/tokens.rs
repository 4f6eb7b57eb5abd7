//! Tokens of callers without certificates. The server has only their hashes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::HEXLOWER_PERMISSIVE;
use doorward_files::Reloading;
use doorward_time::named;
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use serde_saphyr::Spanned;
use subtle::ConstantTimeEq;

use crate::TlsError;
use crate::identity::Identity;

/// Most values that aliases repeat.
const REPEATED_MAX: usize = 10_000;

named! {
    /// Permission of a token's holder, as files name it.
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    Role {
        /// Leases capacity, asks for decisions, and reads status and rules.
        Client = "client",
        /// Leases capacity as a child server.
        Server = "server",
        /// Also changes rules.
        Operator = "operator",
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    tokens: Vec<Spanned<Entry>>,
    /// Says that no token is wanted: else a file without any is a mistake.
    #[serde(default)]
    empty: bool,
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
pub struct Tokens(Reloading<Vec<Arc<Holder>>>);

/// Hash of a token.
pub type Hash = [u8; 32];

/// Holder of a token.
#[derive(Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its identity.
    pub identity: Identity,
    /// Hash of its token.
    pub hash: Hash,
    /// Its permissions.
    pub roles: Vec<Role>,
}

impl Tokens {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If it is missing or invalid.
    pub fn open(path: PathBuf) -> Result<Self, TlsError> {
        let files = vec![path.clone()];
        Ok(Self(Reloading::open("tokens", files, move |_| {
            read(&path)
        })?))
    }

    /// Returns the reason why a changed file is not in force, if it is not.
    pub fn problem(&self) -> Option<String> {
        self.0.problem()
    }

    /// Returns whether a token is still in force, for the same holder with the same roles.
    pub fn has(&self, holder: &Holder) -> bool {
        self.0.current().iter().any(|it| **it == *holder)
    }

    /// Returns the holder of a token. None: no such token is known.
    ///
    /// It compares hashes, and all of them, so its time tells nothing about a token.
    pub fn find(&self, hash: &Hash) -> Option<Arc<Holder>> {
        let mut found = None;
        for holder in self.0.current().iter() {
            if bool::from(holder.hash.ct_eq(hash)) {
                found = Some(Arc::clone(holder));
            }
        }
        found
    }

    /// Reads the file again if it has changed. See [`Reloading::refresh`].
    ///
    /// # Errors
    ///
    /// If the new file is invalid.
    pub fn refresh(&self) -> Result<bool, String> {
        self.0.refresh()
    }
}

/// Returns the hash of a token.
pub fn hash(token: &[u8]) -> Hash {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, token).as_ref());
    hash
}

fn read(path: &Path) -> Result<Vec<Arc<Holder>>, TlsError> {
    let text = doorward_files::read_to_string(path);
    let text = text.map_err(|error| TlsError::read(path, error))?;
    let refuse = |problem: String| TlsError::content(path, problem);
    if text.trim().is_empty() {
        let problem = "it is empty: list `tokens`, or say `empty: true`";
        return Err(refuse(problem.to_owned()));
    }
    let options = serde_saphyr::options! {
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: REPEATED_MAX },
    };
    let document: Document = serde_saphyr::from_str_with_options(&text, options)
        .map_err(|error| TlsError::content(path, error))?;
    if document.tokens.is_empty() != document.empty {
        let problem =
            "a file without tokens locks callers out: give one, or say `empty: true` without any";
        return Err(refuse(problem.to_owned()));
    }
    let mut known: Vec<Arc<Holder>> = Vec::with_capacity(document.tokens.len());
    let mut problems = Vec::new();
    for entry in document.tokens {
        match holder(entry.value, &known) {
            Ok(holder) => known.push(Arc::new(holder)),
            Err(problem) => {
                let line = entry.referenced.line();
                problems.push(format!("line {line}: {problem}"));
            }
        }
    }
    match problems.is_empty() {
        true => Ok(known),
        false => Err(refuse(problems.join("; "))),
    }
}

fn holder(entry: Entry, known: &[Arc<Holder>]) -> Result<Holder, String> {
    let Entry {
        name,
        sha256,
        roles,
    } = entry;
    let is_named = !name.is_empty()
        && name.len() <= 200
        && !name.contains(|it: char| it.is_control() || it == '#');
    if !is_named {
        return Err(format!("{name:?} is no name for a token"));
    }
    let given = HEXLOWER_PERMISSIVE.decode(sha256.as_bytes()).ok();
    let Some(given) = given.and_then(|bytes| Hash::try_from(bytes).ok()) else {
        return Err(format!(
            "sha256 of {name:?} must have 64 hexadecimal digits: printf %s TOKEN | sha256sum"
        ));
    };
    if [&b""[..], b"\n"].into_iter().any(|it| hash(it) == given) {
        return Err(format!("sha256 of {name:?} is that of an empty token"));
    }
    if let Some(other) = known.iter().find(|it| it.hash == given) {
        let other = &other.identity;
        return Err(format!("{name:?} and {other} have the same token"));
    }
    Ok(Holder {
        identity: Identity::of_token(&name),
        hash: given,
        roles,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

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
