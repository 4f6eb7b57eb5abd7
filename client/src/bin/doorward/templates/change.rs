//! Commands that write: they show what will change, ask, and write on top of what they showed.

use std::io::{self, Write};
use std::time::UNIX_EPOCH;

use doorward_etcd::templates::{Change, Kind};

use crate::caller::since_epoch;
use crate::failure::Failure;
use crate::flags::Common;
use crate::templates::author::Author;
use crate::templates::document::Document;
use crate::templates::flags::{ApplyFlags, PlaceFlags};
use crate::templates::place;
use crate::templates::store::Written;

pub(crate) async fn apply(
    common: &Common,
    place: &PlaceFlags,
    flags: &ApplyFlags,
) -> Result<(), Failure> {
    let store = place::open(common, place)?;
    let author = Author::of(&flags.change)?;
    let new = Document::read(&flags.file)?;
    let standing = store.read().await?;
    let change = Change {
        document: &new.text(),
        kind: Kind::Apply,
        who: &author.who,
        why: author.why.as_deref(),
        when: UNIX_EPOCH + since_epoch(),
    };
    match store.write(&standing, &change).await? {
        Written::Done(version) => writeln!(io::stdout(), "revision {}", version.number)?,
        Written::Changed => return Err(Failure::No("changed".to_owned())),
    }
    Ok(())
}
