//! Command `diff`: what applying a file would change.

use std::io::{self, Write};
use std::path::Path;

use doorward_etcd::DocumentPlace;

use crate::documents::Shown;
use crate::documents::document::Document;
use crate::documents::preview::Preview;
use crate::documents::store::Store;
use crate::failure::Failure;
use crate::flags::{Common, Output};
use crate::output;

pub(crate) async fn run<K: Shown>(
    common: &Common,
    at: Option<&DocumentPlace>,
    file: &Path,
) -> Result<(), Failure> {
    let compared = compare::<K>(common, at, file).await;
    // 1 means that something would change: what goes wrong is something else.
    compared.map_err(|failure| match failure {
        Failure::No(problem) => Failure::Usage(problem),
        Failure::Output(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Failure::Usage(format!("cannot write the output: {error}"))
        }
        other => other,
    })
}

async fn compare<K: Shown>(
    common: &Common,
    at: Option<&DocumentPlace>,
    file: &Path,
) -> Result<(), Failure> {
    let store = Store::open::<K>(common, at)?;
    let new = Document::<K>::read(file)?;
    let standing = store.read().await?;
    let preview = Preview::new(common, &store, &standing, &new).await;
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
