//! Command `check`: whether documents are valid; and warnings, beside what is in force and in use where that is known.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use doorward_documents::Kind;
use doorward_etcd::DocumentPlace;
use doorward_pages::terminal::Tone;
use serde_json::json;

use super::flags::Search;
use super::{Change, Document, Effect, Shown, Store, counted};
use crate::common::Common;
use crate::failure::{Failure, Result};
use crate::output;

/// Validity does not depend on etcd, so the wait for it is short.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Validates files, each whatever is wrong with another, and finds parts that two of them have.
pub(crate) async fn files<K: Shown>(
    common: &Common,
    at: Option<&DocumentPlace>,
    files: &[PathBuf],
) -> Result {
    let hurried = Common {
        timeout: common.timeout.min(TIMEOUT),
        ..common.clone()
    };
    let (store, old) = former::<K>(&hurried, at).await?;
    let (mut bad, mut unread, mut valid) = (0, 0, Vec::<Document<K>>::new());
    for file in files {
        let document = match Document::<K>::read(file) {
            Ok(document) => document,
            Err(failure) => {
                unread += 1;
                writeln!(output::stderr(), "{failure}")?;
                continue;
            }
        };
        let new = match &document.read {
            Ok(new) => new,
            Err(error) => {
                bad += 1;
                writeln!(output::stderr(), "{error}")?;
                continue;
            }
        };
        let mut others = valid.iter();
        let clash = others.find_map(|it| Some((&it.name, new.clash(it.read.as_ref().ok()?)?)));
        if let Some((other, part)) = clash {
            bad += 1;
            let name = &document.name;
            let message = format!("{name}: {part} is in {other} too; keep one of them");
            output::stderr().say(Tone::Plain, &message)?;
            continue;
        }
        let change = Change {
            document: &document,
            new,
            old: old.as_ref(),
            store: store.as_ref(),
            search: &Search::default(),
            was_in_force: false,
        };
        let effect = print(common, change).await?;
        effect.write_need(&document.name, &mut output::stderr())?;
        valid.push(document);
    }
    match bad {
        // The files that could be read are valid, so the command was wrong.
        0 if unread > 0 => Err(Failure::Usage("not every file can be read".to_owned())),
        0 => Ok(()),
        1 => Err(Failure::No("a file is invalid".to_owned())),
        _ => Err(Failure::No(format!("{bad} files are invalid"))),
    }
}

/// Validates what is in force.
pub(super) async fn in_force<K: Shown>(store: &Store<'_>) -> Result {
    let document = store.in_force::<K>().await?;
    let then = format!(": servers keep the {}s they had", K::NOUN);
    let change = Change {
        document: &document,
        new: document.valid(&then)?,
        old: None,
        store: Some(store),
        search: &Search::default(),
        was_in_force: false,
    };
    print(store.common, change).await.map(drop)
}

/// Returns the document that files would replace and its place, as far as they are known.
async fn former<'a, K: Kind>(
    common: &'a Common,
    at: Option<&DocumentPlace>,
) -> Result<(Option<Store<'a>>, Option<K>)> {
    if at.is_none() && matches!(common.etcd.config(), Ok(None)) {
        return Ok((None, None));
    }
    let read = async {
        let store = Store::open::<K>(common, at)?;
        let standing = store.read::<K>().await?;
        Ok::<_, Failure>((store, standing.document))
    };
    match read.await {
        Ok((store, document)) => Ok((Some(store), document.and_then(|it| it.read.ok()))),
        Err(failure) => {
            let message = format!("not compared with what is in force: {failure}");
            output::stderr().say(Tone::Plain, &message)?;
            Ok((None, None))
        }
    }
}

/// Prints the parts of a document, and the warnings.
async fn print<K: Shown>(common: &Common, change: Change<'_, K>) -> Result<Effect> {
    let (name, new, noun) = (&change.document.name, change.new, K::NOUN);
    let changes = |old: &K| !K::changes(old, new).is_empty();
    let asks = K::IS_LEASED && change.old.is_some_and(changes);
    let effect = K::effect(change, asks).await?;
    let warnings = effect.json.get("warnings");
    let message = json!({"file": name, format!("{noun}s"): new.to_json(), "warnings": warnings});
    output::print(common, &message, |out| {
        let (count, s) = counted(new.len());
        writeln!(out, "{name}: {count} {noun}{s}, valid")?;
        match count {
            0 => Ok(()),
            _ => new.table(out.palette).write(out),
        }
    })?;
    effect.write_warnings(&mut output::stderr())?;
    Ok(effect)
}
