//! The list of mutations, `tests/mutations.toml`: bugs that a test must find.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// A bug: a change of one place in the code, and the smallest test that must fail with it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutation {
    /// Unique name. It says what goes wrong.
    pub name: String,
    /// Path of the file, from the root of the repository.
    pub file: String,
    /// Text to replace. It occurs exactly once in the file.
    pub find: String,
    /// Text that takes its place.
    pub replace: String,
    /// Arguments of `cargo test`: a package, a target and a filter.
    pub test: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutation: Vec<Mutation>,
}

/// Returns the root of the repository.
pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package).to_owned()
}

/// Reads the list.
///
/// # Errors
///
/// If the file is missing or invalid.
pub fn read() -> Result<Vec<Mutation>> {
    let path = root().join("tests/mutations.toml");
    let text = fs::read(&path).context("tests/mutations.toml")?;
    let list: List = basic_toml::from_slice(&text).context("tests/mutations.toml")?;
    Ok(list.mutation)
}

impl Mutation {
    /// Returns the text of the file with the mutation.
    ///
    /// # Errors
    ///
    /// If the text to replace does not occur exactly once.
    pub fn apply(&self, text: &str) -> Result<String> {
        match text.matches(&self.find).count() {
            1 => Ok(text.replacen(&self.find, &self.replace, 1)),
            count => bail!(
                "{}: the text occurs {count} times in {}: {}",
                self.name,
                self.file,
                self.find
            ),
        }
    }

    /// Returns the package of the test.
    pub fn package(&self) -> &str {
        let mut words = self.test.split_whitespace();
        words.find(|word| *word == "-p");
        words.next().unwrap_or_default()
    }
}
