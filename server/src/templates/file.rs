//! Templates in a file that operators edit.
//!
//! The file is [followed](Follower). If a later version is invalid or cannot be read, the last valid one stays in force.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use doorward_documents::{DOCUMENT_BYTES_MAX, DocumentError};
use doorward_engine::templates::Templates;
use doorward_files::{Content, Follower, document};
use thiserror::Error;
use tokio::sync::watch;

use crate::status::ServerState;

/// Interval between two reads of the file.
pub(super) const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Failure to get templates from a file.
#[derive(Debug, Error)]
pub enum TemplateFileError {
    /// The file cannot be read.
    #[error("templates: {0}")]
    Read(String),
    /// The document is invalid.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A budget outlasts restarts, and the server keeps nothing.
    #[error(
        "{0}: a budget with a window of ten minutes or more needs etcd or a --state-dir; without one, \
         learning_mode_duration: 0s lets it begin anew with each start"
    )]
    NoStore(String),
}

/// A file with templates, and its last known content.
#[derive(Debug)]
pub struct TemplateFile {
    follower: Follower,
    /// The last content, valid or not, or the reason why it could not be read.
    content: Content,
    keeps_marks: bool,
}

impl TemplateFile {
    /// Reads the file for the first time, and then once an interval. `keeps_marks`: the server has a store for them.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is invalid.
    pub async fn open(
        path: &Path,
        interval: Duration,
        keeps_marks: bool,
    ) -> Result<(Self, Templates), TemplateFileError> {
        let mut file = Self {
            follower: Follower::new(path, interval, |path| document(path, DOCUMENT_BYTES_MAX)),
            content: Ok(Default::default()),
            keeps_marks,
        };
        let templates = file.read_again().await?;
        Ok((file, templates))
    }

    /// Reads the file, changed or not.
    async fn read_again(&mut self) -> Result<Templates, TemplateFileError> {
        let content = self.follower.read().await;
        self.parse(content).await
    }

    /// Waits until the content changes, and reads it. Each content is reported once. Cancel safe.
    async fn changed(&mut self) -> Result<Templates, TemplateFileError> {
        let content = self.follower.changed(&self.content).await;
        self.parse(content).await
    }

    /// Brings every new valid version into force, and looks at once whenever it is told. Runs for ever: spawn it.
    pub async fn run(mut self, state: Arc<ServerState>, mut rereads: watch::Receiver<()>) {
        loop {
            let read = tokio::select! {
                read = self.changed() => read,
                Ok(()) = rereads.changed() => self.read_again().await,
            };
            match read {
                Ok(templates) => {
                    super::apply(&state, templates).await;
                    super::note(&state, "templates", None);
                }
                Err(error) => super::refuse(&state, error.to_string()),
            }
        }
    }

    /// Parses the content. Cancel safe: a content that was not parsed to its end is read again.
    async fn parse(&mut self, content: Content) -> Result<Templates, TemplateFileError> {
        let parsed = match content.clone() {
            Ok(files) => {
                let (name, content) = files.into_iter().next().unwrap_or_default();
                let parsed = super::parse(content, name.clone()).await;
                parsed
                    .map_err(Into::into)
                    .and_then(|it| self.check(it, &name))
            }
            Err(problem) => Err(TemplateFileError::Read(problem)),
        };
        self.content = content;
        parsed
    }

    fn check(&self, templates: Templates, name: &str) -> Result<Templates, TemplateFileError> {
        match templates.budget_with_marks() {
            Some(budget) if !self.keeps_marks => {
                let budget = format!("{name}: {}", budget.identifier_glob);
                Err(TemplateFileError::NoStore(budget))
            }
            _ => Ok(templates),
        }
    }
}

/// Reads a template file once, for a server with a store for marks or without one.
///
/// # Errors
///
/// If the file cannot be read or is invalid.
pub async fn check(path: &Path, keeps_marks: bool) -> Result<Templates, TemplateFileError> {
    let opened = TemplateFile::open(path, POLL_INTERVAL, keeps_marks).await;
    opened.map(|(_, templates)| templates)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    fn document(capacity: u32) -> String {
        format!(
            "resources: [{{identifier_glob: a, capacity: {capacity}, algorithm: {{kind: STATIC, \
             lease_length: 60, refresh_interval: 5}}}}]"
        )
    }

    fn capacity(templates: &Templates) -> f64 {
        templates.iter().next().unwrap().capacity.get()
    }

    /// Opens a template file in a new directory, which is read every few milliseconds.
    async fn open() -> (tempfile::TempDir, PathBuf, TemplateFile) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("templates.yaml");
        fs::write(&path, document(1)).unwrap();
        let interval = Duration::from_millis(10);
        let (file, templates) = TemplateFile::open(&path, interval, true).await.unwrap();
        assert_eq!(capacity(&templates), 1.0);
        (directory, path, file)
    }

    #[tokio::test]
    async fn a_bad_version_is_reported_and_a_good_one_after_it_is_read() {
        let (_directory, path, mut file) = open().await;
        fs::write(&path, "resources: 3").unwrap();
        let error = file.changed().await.unwrap_err().to_string();
        assert!(error.contains(":1:12: resources: is 3"), "{error}");
        fs::write(&path, "").unwrap();
        let error = file.changed().await.unwrap_err().to_string();
        assert!(error.contains("is empty"), "{error}");
        fs::remove_file(&path).unwrap();
        let error = file.changed().await.unwrap_err().to_string();
        assert!(error.starts_with("templates: cannot read /"), "{error}");
        fs::write(&path, document(4)).unwrap();
        assert_eq!(capacity(&file.changed().await.unwrap()), 4.0);
        assert_eq!(capacity(&file.read_again().await.unwrap()), 4.0);
    }

    #[tokio::test]
    async fn a_file_too_large_or_not_there_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.yaml");
        let missing = check(&path, true).await;
        assert!(matches!(missing, Err(TemplateFileError::Read(_))));
        fs::write(&path, " ".repeat(DOCUMENT_BYTES_MAX + 10)).unwrap();
        let error = check(&path, true).await.unwrap_err().to_string();
        assert!(error.contains("more than the 1048576 bytes"), "{error}");
    }

    #[tokio::test]
    async fn aliases_of_aliases_are_refused_when_a_file_is_changed_as_when_it_is_checked() {
        let (_directory, path, mut file) = open().await;
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = vec![format!("*a{}", level - 1); 9].join(", ");
            text += &format!("a{level}: &a{level} [{before}]\n");
        }
        fs::write(&path, text).unwrap();
        let changed = file.changed().await.unwrap_err().to_string();
        let checked = check(&path, true).await.unwrap_err().to_string();
        assert_eq!(changed, checked);
    }

    #[tokio::test]
    async fn a_budget_that_outlasts_restarts_needs_a_store() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("templates.yaml");
        // Window, further fields, and whether a server without a store takes it.
        let cases = [
            ("day", "", false),
            ("10m", "", false),
            ("lifetime", "", false),
            ("5m", "", true),
            ("day", ", learning_mode_duration: 0s", true),
        ];
        for (window, more, is_valid) in cases {
            let text = format!(
                "resources: [{{identifier_glob: tokens/*, capacity: 10, algorithm: {{kind: BUDGET, \
                 lease_length: 60s, refresh_interval: 5s, parameters: [{{name: window, value: {window}}}]{more}}}}}]"
            );
            fs::write(&path, text).unwrap();
            assert!(check(&path, true).await.is_ok(), "{window}{more}");
            let checked = check(&path, false).await;
            assert_eq!(checked.is_ok(), is_valid, "{window}{more}");
            if let Err(error) = checked {
                let error = error.to_string();
                assert!(
                    error.contains("tokens/*") && error.contains("--state-dir"),
                    "{error}"
                );
            }
        }
    }
}
