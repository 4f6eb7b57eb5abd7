//! Where templates are kept: in etcd or in a file, to all commands alike.

use std::path::Path;
use std::sync::Arc;

use doorward_etcd::layout::TemplateKeys;
use doorward_etcd::templates::{
    self, Recorded, StoredTemplates, TemplatesEdit, Version, WriteError,
};
use doorward_etcd::{EtcdConfig, EtcdConnection};

use crate::failure::Failure;
use crate::templates::document::Document;
use crate::templates::file::DocumentFile;
use crate::templates::place::{failure_of, failure_of_write};

/// Where templates are kept.
#[derive(Debug)]
pub(crate) struct TemplateStore {
    /// As operators name it.
    name: String,
    kept: StoreKind,
}

#[derive(Debug)]
enum StoreKind {
    Etcd {
        config: Arc<EtcdConfig>,
        keys: TemplateKeys,
    },
    File(DocumentFile),
}

/// Outcome of a write.
#[derive(Debug)]
pub(crate) enum WriteResult {
    /// It is in force, with this number in the history; a file has none.
    Done(Option<u64>),
    /// Nothing was written: another writer was faster.
    Changed,
}

impl TemplateStore {
    pub(crate) fn etcd(config: EtcdConfig, keys: TemplateKeys, name: String) -> Self {
        let config = Arc::new(config);
        Self {
            name,
            kept: StoreKind::Etcd { config, keys },
        }
    }

    pub(crate) fn file(path: &Path) -> Self {
        Self {
            name: path.display().to_string(),
            kept: StoreKind::File(DocumentFile::new(path)),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_in_etcd(&self) -> bool {
        matches!(self.kept, StoreKind::Etcd { .. })
    }

    /// Reads the document in force and the list of versions.
    pub(crate) async fn read(&self) -> Result<StoredTemplates, Failure> {
        match &self.kept {
            StoreKind::Etcd { config, keys } => {
                let mut connection = EtcdConnection::new(config.clone());
                let read = templates::read(&mut connection, keys).await;
                read.map_err(|error| failure_of(&error))
            }
            StoreKind::File(file) => Ok(StoredTemplates {
                document: file.read()?,
                ..StoredTemplates::default()
            }),
        }
    }

    /// Returns the document in force. None: there is none.
    pub(crate) fn document(&self, standing: &StoredTemplates) -> Option<Document> {
        let bytes = standing.document.clone()?;
        Some(Document::new(&self.name, bytes))
    }

    /// Versions of the history, in the order they are asked for; those that are not there are left
    /// out.
    pub(crate) async fn versions(&self, numbers: &[u64]) -> Result<Vec<Recorded>, Failure> {
        let StoreKind::Etcd { config, keys } = &self.kept else {
            let problem = format!(
                "{} is a file, and only etcd keeps a history: use the history in git",
                self.name
            );
            return Err(Failure::Usage(problem));
        };
        let mut versions = Vec::new();
        let mut connection = EtcdConnection::new(config.clone());
        for number in numbers {
            let version = templates::version(&mut connection, keys, *number).await;
            versions.extend(version.map_err(|error| failure_of(&error))?);
        }
        Ok(versions)
    }

    /// A version of the history.
    pub(crate) async fn version(&self, number: u64) -> Result<Version, Failure> {
        let there = match self.versions(&[number]).await?.pop() {
            Some(recorded) => recorded.version,
            None => {
                return Err(Failure::No(format!(
                    "there is no revision {number} of {}; history lists those there are",
                    self.name
                )));
            }
        };
        there.map_err(|problem| {
            let name = &self.name;
            Failure::No(format!(
                "revision {number} of {name} is of no use: {problem}"
            ))
        })
    }

    /// Writes, unless the templates have changed since `seen` was read.
    pub(crate) async fn write(
        &self,
        seen: &StoredTemplates,
        change: &TemplatesEdit<'_>,
    ) -> Result<WriteResult, Failure> {
        let written = match &self.kept {
            StoreKind::Etcd { config, keys } => {
                // Made anew: the operator may have thought for so long that a token ran out.
                let mut connection = EtcdConnection::new(config.clone());
                templates::write(&mut connection, keys, seen, change).await
            }
            StoreKind::File(file) => {
                let is_written = file.write(seen.document.as_deref(), change.document)?;
                return Ok(if is_written {
                    WriteResult::Done(None)
                } else {
                    WriteResult::Changed
                });
            }
        };
        match written {
            Ok(version) => Ok(WriteResult::Done(Some(version.number))),
            Err(WriteError::Changed) => Ok(WriteResult::Changed),
            Err(error) => Err(failure_of_write(&error)),
        }
    }
}
