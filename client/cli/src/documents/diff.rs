//! Command `diff`: what applying a file would change.

use std::io;
use std::path::Path;

use super::flags::Search;
use super::preview::Preview;
use super::{Document, Shown, Store};
use crate::common::Output;
use crate::failure::{Failure, Result};
use crate::output;

pub(super) async fn run<K: Shown>(store: &Store<'_>, file: &Path, search: &Search) -> Result {
    let compared = compare::<K>(store, file, search).await;
    // 1 means that something would change: what goes wrong is something else.
    compared.map_err(|failure| match failure {
        Failure::No(problem) => Failure::Usage(problem),
        Failure::Output(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Failure::Usage(format!("cannot write the output: {error}"))
        }
        other => other,
    })
}

async fn compare<K: Shown>(store: &Store<'_>, file: &Path, search: &Search) -> Result {
    let new = Document::<K>::read(file)?;
    let standing = store.read().await?;
    let preview = Preview::new(store, &standing, &new, search, false).await?;
    let mut out = output::stdout();
    if store.common.output == Output::Json {
        output::json(&mut out, &preview.to_json())?;
    } else if !preview.is_same() {
        preview.write(&mut out, false)?;
    }
    new.valid("")?;
    if preview.is_same() {
        Ok(())
    } else {
        Err(Failure::Printed(1))
    }
}
