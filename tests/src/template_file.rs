//! A file of templates for a server of a test.

use std::fs;

use tempfile::TempDir;

/// A file in a folder of its own, which is deleted when this is dropped.
#[derive(Debug)]
pub struct TemplateFile {
    /// Path of the file, as a flag takes it.
    pub path: String,
    folder: TempDir,
}

impl TemplateFile {
    /// Writes templates to a new file.
    pub fn new(templates: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("templates.yaml").display().to_string();
        let file = Self { path, folder };
        file.write(templates);
        file
    }

    /// Replaces the file at once, so that no server reads a part of it.
    pub fn write(&self, templates: &str) {
        let next = self.folder.path().join("next");
        fs::write(&next, templates).unwrap();
        fs::rename(next, &self.path).unwrap();
    }
}
