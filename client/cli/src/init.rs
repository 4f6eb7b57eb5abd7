//! `doorward init`: first templates and rules in a folder, which editors check against the published schemas.
//!
//! It replaces no file. If one of them is there, it writes neither.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use doorward_documents::{Kind, Located};

use crate::failure::{Failure, Result};
use crate::rules::document::RuleDocument;

/// Folder of the schemas that the documentation has.
const SCHEMAS: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/raw/main/docs/schemas");

pub(crate) fn run(folder: &Path) -> Result {
    let refused =
        |path: &Path, error: io::Error| Failure::No(format!("{}: {error}", path.display()));
    fs::create_dir_all(folder).map_err(|error| refused(folder, error))?;
    let [templates, rules] = ["templates.yaml", "rules.yaml"].map(|it| folder.join(it));
    for path in [&templates, &rules] {
        if path.symlink_metadata().is_ok() {
            let message = format!("{} exists; name another folder", path.display());
            return Err(Failure::No(message));
        }
    }
    for (path, text) in [
        (&templates, starter::<Located>("templates")),
        (&rules, starter::<RuleDocument>("rules")),
    ] {
        let written = File::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| refused(path, error))?;
    }
    let (templates, rules) = (templates.display(), rules.display());
    Ok(writeln!(
        io::stdout(),
        "{templates} and {rules} are written. Change them, and start:\n\
         doorward-server --templates {templates}\n\
         doorward-agent --rules {rules}"
    )?)
}

/// Returns the example of a kind of document, with the line that names its schema to editors.
fn starter<K: Kind>(schema: &str) -> String {
    format!(
        "# yaml-language-server: $schema={SCHEMAS}/{schema}.json\n{}",
        K::EXAMPLE
    )
}
