//! `doorward templates diff`: what applying a file would change.

use std::io::{self, Write};

use crate::failure::Failure;
use crate::flags::{Common, Output};
use crate::output;
use crate::templates::document::Document;
use crate::templates::flags::{DiffFlags, PlaceFlags};
use crate::templates::place;
use crate::templates::preview::Preview;

pub(crate) async fn run(
    common: &Common,
    place: &PlaceFlags,
    flags: &DiffFlags,
) -> Result<(), Failure> {
    let compared = compare(common, place, flags).await;
    // 1 means that something would change: what goes wrong is something else.
    compared.map_err(|failure| match failure {
        Failure::No(problem) => Failure::Usage(problem),
        Failure::Output(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Failure::Usage(format!("cannot write the output: {error}"))
        }
        other => other,
    })
}

async fn compare(common: &Common, place: &PlaceFlags, flags: &DiffFlags) -> Result<(), Failure> {
    let store = place::open(common, place)?;
    let new = Document::read(&flags.file)?;
    let standing = store.read().await?;
    let old = store.document(&standing);
    let preview = Preview::new(common, &store, old.as_ref(), &new).await;
    let mut out = output::stdout();
    if common.output == Output::Json {
        output::json(&mut out, &preview.to_json())?;
    } else if !preview.is_same() {
        preview.write(&mut out, common.color.of_stdout())?;
    }
    if let Err(error) = &new.read {
        writeln!(output::stderr(), "{error}")?;
        let problem = format!("{} is invalid", new.name);
        return Err(Failure::Usage(problem));
    }
    if preview.is_same() {
        Ok(())
    } else {
        Err(Failure::Printed(1))
    }
}
