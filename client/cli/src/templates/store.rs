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

/// What became of a write.
#[derive(Debug)]
pub(crate) enum WriteResult {
    /// It is in force, as this version.
    Done(Version),
    /// Nothing was written: somebody else has, since what it was compared with was read.
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

    /// What is in force, and what is known of the history.
    pub(crate) async fn read(&self) -> Result<StoredTemplates, Failure> {
        match &self.kept {
            StoreKind::Etcd { config, keys } => {
                let mut connection = EtcdConnection::new(config.clone());
                let read = templates::read(&mut connection, keys).await;
                read.map_err(|error| failure_of(&error))
            }
            StoreKind::File(file) => file.read(),
        }
    }

    /// What is in force, as a document. None: there is none.
    pub(crate) fn document(&self, standing: &StoredTemplates) -> Option<Document> {
        let bytes = standing.document.clone()?;
        Some(Document::new(&self.name, bytes))
    }

    /// Versions of the history, in the order they are asked for; those that are not there are left
    /// out.
    pub(crate) async fn versions(&self, numbers: &[u64]) -> Result<Vec<Recorded>, Failure> {
        let mut versions = Vec::new();
        match &self.kept {
            StoreKind::Etcd { config, keys } => {
                let mut connection = EtcdConnection::new(config.clone());
                for number in numbers {
                    let version = templates::version(&mut connection, keys, *number).await;
                    versions.extend(version.map_err(|error| failure_of(&error))?);
                }
            }
            StoreKind::File(file) => versions = file.versions(numbers)?,
        }
        Ok(versions)
    }

    /// A version of the history.
    pub(crate) async fn version(
        &self,
        standing: &StoredTemplates,
        number: u64,
    ) -> Result<Version, Failure> {
        let there = match self.versions(&[number]).await?.pop() {
            Some(recorded) => recorded.version,
            None => {
                return Err(Failure::No(format!(
                    "there is no revision {number} of {}{}",
                    self.name,
                    listed(&standing.numbers)
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

    /// Writes, if nobody else has since `seen` was read.
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
            StoreKind::File(file) => return file.write(seen, change),
        };
        match written {
            Ok(version) => Ok(WriteResult::Done(version)),
            Err(WriteError::Changed) => Ok(WriteResult::Changed),
            Err(error) => Err(failure_of_write(&error)),
        }
    }
}

/// Which versions there are, as the end of a sentence: ranges, since they are usually without gaps.
fn listed(numbers: &[u64]) -> String {
    const RANGES_MAX: usize = 10;
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((low, _)) if number + 1 == *low => *low = *number,
            _ => ranges.push((*number, *number)),
        }
    }
    if ranges.is_empty() {
        return ": its history is empty".to_owned();
    }
    let shown: Vec<String> = ranges
        .iter()
        .take(RANGES_MAX)
        .map(|(low, high)| match low == high {
            true => low.to_string(),
            false => format!("{low} to {high}"),
        })
        .collect();
    let more = if ranges.len() > RANGES_MAX {
        " and older ones"
    } else {
        ""
    };
    format!("; there are {}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_there_are_are_listed_in_short() {
        for (numbers, text) in [
            (&[][..], ": its history is empty"),
            (&[1], "; there are 1"),
            (&[5, 4, 3, 1], "; there are 3 to 5, 1"),
        ] {
            assert_eq!(listed(numbers), text);
        }
        let odd: Vec<u64> = (1..30).rev().filter(|number| number % 2 == 1).collect();
        assert!(
            listed(&odd).ends_with(" and older ones"),
            "{}",
            listed(&odd)
        );
    }
}
