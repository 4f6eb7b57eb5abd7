//! Command `show`: the document as it was written, and what is known of it.
//!
//! The document goes to standard output byte for byte, so that `show > f` and `apply f` change
//! nothing; what is known of it goes to standard error.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use doorward_documents::Kind;
use doorward_etcd::documents::{StoredDocument, Version};
use serde_json::{Value, json};

use super::author::plain;
use super::{Document, Standing, Store};
use crate::common::Output;
use crate::failure::{Failure, Result};
use crate::output;
use doorward_pages::terminal::Tone;

pub(super) async fn run<K: Kind>(store: &Store<'_>, revision: Option<u64>) -> Result {
    let mut standing = store.read::<K>().await?;
    let (document, version, is_in_force) = match revision {
        Some(number) => {
            let version = store.version(number).await?;
            let bytes = document_of(version.clone())?.into_bytes();
            let is_in_force = standing.stored.document.as_ref() == Some(&bytes);
            let document = Document::new(&store.name, bytes);
            (document, Some(version), is_in_force)
        }
        None => match standing.document.take() {
            Some(document) => (document, in_force(&standing.stored).cloned(), true),
            None => return Err(nothing(store, &standing)),
        },
    };
    if store.common.output == Output::Json {
        let mut shown = fields(version.as_ref(), is_in_force);
        let more = json!({"at": store.name, "document": document.text()});
        output::extend(&mut shown, more);
        return Ok(output::json(&mut output::stdout(), &shown)?);
    }
    let note = match &version {
        Some(version) => about(version),
        None => "not written by this command line: who, when and why are not known".to_owned(),
    };
    let mut note = format!("{}: {note}", store.name);
    if revision.is_some() {
        note += match is_in_force {
            true => " (in force)",
            false => " (not in force)",
        };
    }
    if store.is_in_etcd() {
        output::stderr().say(Tone::Quiet, &note)?;
    }
    let (count, s) = counted(document.problems().len());
    if count > 0 {
        let problem = format!("the document is INVALID: {count} problem{s}; check lists them");
        output::stderr().say(Tone::Bad, &problem)?;
    }
    let shown = as_shown(&document.bytes, io::stdout().is_terminal());
    if matches!(shown, Cow::Owned(_)) {
        let note = "characters that cannot be seen are shown as their numbers, on a terminal only";
        output::stderr().say(Tone::Bad, note)?;
    }
    Ok(io::stdout().write_all(&shown)?)
}

/// Returns the known fields of a version for programs. Their names are an interface.
pub(super) fn fields(version: Option<&Version>, in_force: bool) -> Value {
    json!({
        "in_force": in_force,
        "revision": version.map(|v| v.number),
        "kind": version.map(|v| v.kind.to_string()),
        "who": version.and_then(|v| v.who.as_deref()),
        "when": version.map(|v| &v.when),
        "when_unix_ms": version.map(|v| v.when_unix_ms),
        "why": version.and_then(|v| v.why.as_deref()),
    })
}

/// Returns a document byte for byte, so that a redirect keeps it as it was written. On a terminal all characters are
/// made visible.
fn as_shown(document: &[u8], is_terminal: bool) -> Cow<'_, [u8]> {
    if !is_terminal {
        return Cow::Borrowed(document);
    }
    let text = String::from_utf8_lossy(document);
    match plain(&text) {
        shown if shown == text => Cow::Borrowed(document),
        shown => Cow::Owned(shown.into_owned().into_bytes()),
    }
}

/// The version in force. None: there is no document, or it is not the newest version.
pub(crate) fn in_force(stored: &StoredDocument) -> Option<&Version> {
    let newest = stored.newest.as_ref()?.version.as_ref().ok()?;
    (stored.document.is_some() && stored.is_recorded()).then_some(newest)
}

/// The document of a version.
pub(crate) fn document_of(version: Version) -> Result<String> {
    let (number, why) = (version.number, version.why);
    version.document.ok_or_else(|| {
        let why = why.unwrap_or_else(|| "it was not kept".to_owned());
        Failure::No(format!("revision {number} has no document: {why}"))
    })
}

/// A version, in a line.
pub(crate) fn about(version: &Version) -> String {
    let (number, kind, when) = (version.number, version.kind, &version.when);
    let who = version.who.as_deref().unwrap_or("an unknown author");
    let why = match &version.why {
        Some(why) => format!(": {why}"),
        None => String::new(),
    };
    let about = format!("revision {number}, {kind} by {who} at {when}{why}");
    plain(&about).replace('\n', " ")
}

/// There is no document.
pub(crate) fn nothing<K: Kind>(store: &Store<'_>, standing: &Standing<K>) -> Failure {
    let (name, noun) = (&store.name, K::NOUN);
    Failure::No(match standing.stored.numbers.first() {
        None => {
            let lost = match store.is_in_etcd() {
                true => &format!(
                    ". If there were some, etcd has lost them: running servers still have the last \
                     ones; the file they were applied from, or a backup of etcd, brings them back: \
                     doorward {noun}s apply FILE"
                ),
                false => "",
            };
            format!(
                "there are no {noun}s at {name} yet. To begin, write a file and put it in force \
                 with `doorward {noun}s apply FILE`; `doorward {noun}s edit` starts from \
                 examples{lost}"
            )
        }
        Some(newest) => format!(
            "there are no {noun}s at {name} any more: they were removed. `doorward \
             {noun}s rollback {newest}` puts the newest version in force again"
        ),
    })
}

/// A count, and the ending of what is counted.
pub(crate) fn counted(count: usize) -> (usize, &'static str) {
    (count, if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_what_was_written_but_on_a_terminal_everything_can_be_seen() {
        let evil = "a: 1 # \u{1b}[2J\u{202e}\n".as_bytes();
        let shown = r"a: 1 # \u{1b}[2J\u{202e}";
        assert_eq!(as_shown(evil, false), evil);
        assert_eq!(as_shown(evil, true), format!("{shown}\n").as_bytes());
        for plain in ["a: 1\n\tb\n", "ä"] {
            assert!(matches!(as_shown(plain.as_bytes(), true), Cow::Borrowed(_)));
        }
    }
}
