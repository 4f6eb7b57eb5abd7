//! The place of a document: under a key of etcd, or in a file.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::layout::{self, DocumentKeys};

/// Prefix that tells a key of etcd from a file.
const ETCD: &str = "etcd:";

/// The place of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentPlace {
    /// Under a key of etcd: `etcd:/doorward/templates`.
    Etcd(DocumentKeys),
    /// In a file, or a directory of files: anything else.
    File(PathBuf),
}

impl FromStr for DocumentPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix(ETCD) {
            Some(key) if key.starts_with("//") => Err(
                "give the key alone, as in etcd:/doorward/KEY; --etcd-endpoints has the address"
                    .to_owned(),
            ),
            Some(key) => match layout::key(key) {
                Ok(key) => Ok(Self::Etcd(DocumentKeys::new(&key))),
                Err(_) => Err("give a key of etcd, as in etcd:/doorward/KEY".to_owned()),
            },
            None if text.is_empty() => Err("give a file, or a key of etcd: etcd:KEY".to_owned()),
            None => Ok(Self::File(PathBuf::from(text))),
        }
    }
}

impl fmt::Display for DocumentPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Etcd(keys) => write!(f, "{ETCD}{}", keys.document()),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_begins_with_etcd_is_a_key_and_any_other_a_file() {
        for (text, printed) in [
            ("etcd:/a/b/", "etcd:/a/b"),
            ("etcd:a", "etcd:a"),
            ("/etc/t.yaml", "/etc/t.yaml"),
            ("etcd.yaml", "etcd.yaml"),
        ] {
            let place: DocumentPlace = text.parse().unwrap();
            assert_eq!(place.to_string(), printed);
        }
        for bad in ["", "etcd:", "etcd:/", "etcd://host:2379/t"] {
            assert!(bad.parse::<DocumentPlace>().is_err(), "{bad}");
        }
    }
}
