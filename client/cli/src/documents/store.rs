//! The place of a document, in etcd or in a file, to all commands alike.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use doorward_documents::Kind;
use doorward_etcd::documents::{self, DocumentEdit, Recorded, StoredDocument, Version, WriteError};
use doorward_etcd::layout::DocumentKeys;
use doorward_etcd::{DocumentPlace, EtcdConfig, EtcdConnection};

use super::file;
use super::{Document, show};
use crate::common::Common;
use crate::failure::{Failure, Result};

/// The place of a document.
#[derive(Debug)]
pub(crate) struct Store<'a> {
    pub(crate) common: &'a Common,
    /// As operators name it.
    pub(crate) name: String,
    kept: Kept,
}

#[derive(Debug)]
enum Kept {
    Etcd {
        config: Arc<EtcdConfig>,
        keys: DocumentKeys,
    },
    File(PathBuf),
}

/// The document in force.
#[derive(Debug)]
pub(crate) struct Standing<K: Kind> {
    /// None: there is none.
    pub(crate) document: Option<Document<K>>,
    /// The same as bytes, with what etcd knows of its history.
    pub(crate) stored: StoredDocument,
}

impl<K: Kind> Standing<K> {
    /// Returns the document as text; an empty one if there is none.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        let document = self.document.as_ref();
        document.map_or_else(Cow::default, Document::text)
    }

    /// Returns the number of the version in force. None: it is not known, or there is none.
    pub(crate) fn revision(&self) -> Option<u64> {
        show::in_force(&self.stored).map(|version| version.number)
    }
}

/// Outcome of a write.
#[derive(Debug, PartialEq)]
pub(crate) enum WriteResult {
    /// It is in force, with this number in the history; a file has none.
    Done(Option<u64>),
    /// Nothing was written: another writer was faster.
    Changed,
}

impl<'a> Store<'a> {
    /// Returns the store at a place, without a connection. None: the key of the kind, if etcd is known.
    pub(crate) fn open<K: Kind>(common: &'a Common, at: Option<&DocumentPlace>) -> Result<Self> {
        let (noun, config) = (K::NOUN, common.etcd.config());
        let place = match (at, &config) {
            (Some(place), _) => place.clone(),
            (None, Ok(Some(_)) | Err(_)) => DocumentPlace::Etcd(DocumentKeys::new(K::KEY)),
            (None, Ok(None)) => {
                return Err(Failure::Usage(format!(
                    "where the {noun}s are is not known: give --etcd-endpoints URL (or \
                     DOORWARD_ETCD_ENDPOINTS) for those in etcd, or --at FILE (or {}) for a file",
                    K::VARIABLE
                )));
            }
        };
        let name = place.to_string();
        let kept = match place {
            DocumentPlace::File(path) => Kept::File(path),
            DocumentPlace::Etcd(keys) => {
                let config = config.map_err(|error| Failure::Usage(error.to_string()))?;
                let Some(mut config) = config else {
                    return Err(Failure::Usage(format!(
                        "the {noun}s are at {name}, but not where etcd is: give --etcd-endpoints \
                         URL, as in http://127.0.0.1:2379"
                    )));
                };
                config.call_timeout = common.timeout;
                let config = Arc::new(config);
                Kept::Etcd { config, keys }
            }
        };
        Ok(Self { common, name, kept })
    }

    pub(crate) fn is_in_etcd(&self) -> bool {
        matches!(self.kept, Kept::Etcd { .. })
    }

    /// Returns the file. None: it is in etcd.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.kept {
            Kept::File(path) => Some(path),
            Kept::Etcd { .. } => None,
        }
    }

    /// Reads the document in force and the list of versions.
    pub(crate) async fn read<K: Kind>(&self) -> Result<Standing<K>> {
        let stored = match &self.kept {
            Kept::Etcd { config, keys } => {
                documents::read(&mut EtcdConnection::new(config.clone()), keys).await?
            }
            Kept::File(path) => StoredDocument {
                document: file::read(path)?,
                ..StoredDocument::default()
            },
        };
        let bytes = stored.document.clone();
        let document = bytes.map(|bytes| Document::new(&self.name, bytes));
        Ok(Standing { document, stored })
    }

    /// Reads the document in force.
    pub(crate) async fn in_force<K: Kind>(&self) -> Result<Document<K>> {
        let mut standing = self.read::<K>().await?;
        let document = standing.document.take();
        document.ok_or_else(|| show::nothing(self, &standing))
    }

    /// Versions of the history, in the order they are asked for; those that are not there are left
    /// out.
    pub(crate) async fn versions(&self, numbers: &[u64]) -> Result<Vec<Recorded>> {
        let Kept::Etcd { config, keys } = &self.kept else {
            let how = "only etcd keeps a history: use the history in git";
            let problem = format!("{} is not in etcd, and {how}", self.name);
            return Err(Failure::Usage(problem));
        };
        let mut versions = Vec::new();
        let mut connection = EtcdConnection::new(config.clone());
        for number in numbers {
            versions.extend(documents::version(&mut connection, keys, *number).await?);
        }
        Ok(versions)
    }

    /// A version of the history.
    pub(crate) async fn version(&self, number: u64) -> Result<Version> {
        let name = &self.name;
        let Some(recorded) = self.versions(&[number]).await?.pop() else {
            return Err(Failure::No(format!(
                "there is no revision {number} of {name}; history lists those there are"
            )));
        };
        let refused = format!("revision {number} of {name} cannot be used");
        let version = recorded.version;
        version.map_err(|problem| Failure::No(format!("{refused}: {problem}")))
    }

    /// Writes, unless the document has changed since `seen` was read.
    pub(crate) async fn write(
        &self,
        seen: &StoredDocument,
        change: &DocumentEdit<'_>,
    ) -> Result<WriteResult> {
        let (config, keys) = match &self.kept {
            Kept::Etcd { config, keys } => (config, keys),
            Kept::File(path) => {
                return file::write(path, seen.document.as_deref(), change.document);
            }
        };
        // Made anew: the operator may have thought for so long that a token ran out.
        let mut connection = EtcdConnection::new(config.clone());
        match documents::write(&mut connection, keys, seen, change).await {
            Ok(version) => Ok(WriteResult::Done(Some(version.number))),
            Err(WriteError::Changed) => Ok(WriteResult::Changed),
            Err(WriteError::Etcd(error)) => Err(error.into()),
            Err(error @ WriteError::Unknown(_)) => Err(Failure::Unreachable(error.to_string())),
            Err(error @ (WriteError::TooLarge { .. } | WriteError::NoNumber { .. })) => {
                Err(Failure::No(error.to_string()))
            }
        }
    }
}
