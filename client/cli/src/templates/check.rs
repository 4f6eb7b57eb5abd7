//! `doorward templates check`: whether documents are valid, without any server; and what they
//! hardly mean, beside what is in force where that is known.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use doorward_documents::Located;
use doorward_engine::amount::Amount;
use doorward_engine::claim::Subclients;
use doorward_engine::template::{SafeCapacity, Template, Templates};
use doorward_etcd::TemplatesPlace;

use crate::failure::Failure;
use crate::flags::{Common, Output};
use crate::granted::number;
use crate::output;
use crate::templates::author::plain;
use crate::templates::flags::PlaceFlags;
use crate::templates::warnings::{InForceBefore, Warnings};
use crate::templates::{document, place, show};
use doorward_pages::numbers::typed_span as span;
use doorward_pages::terminal::palette::Tone;
use doorward_pages::terminal::table::{Table, cell};

/// Validity does not depend on etcd, so the wait for it is short.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Validates files; every one is looked at, whatever is wrong with another.
pub(crate) async fn files(
    common: &Common,
    place: &PlaceFlags,
    files: &[PathBuf],
) -> Result<(), Failure> {
    let (former, is_forgotten) = former(common, place).await?;
    let before = InForceBefore {
        templates: former.as_ref(),
        is_forgotten,
        ..InForceBefore::default()
    };
    let (mut bad, mut unread) = (0, 0);
    for file in files {
        let name = &document::name_of(file);
        let bytes = match document::read(file) {
            Ok(bytes) => bytes,
            Err(error) => {
                unread += 1;
                writeln!(output::stderr(), "{name}: cannot be read: {error}")?;
                continue;
            }
        };
        match doorward_documents::locate_bytes(&bytes, name) {
            Ok(located) => {
                let warnings = Warnings::of(name, &located, &before);
                print(common, name, &located, &warnings)?;
                let palette = common.color.of_stderr();
                warnings.write_need(&mut output::stderr(), palette)?;
            }
            Err(error) => {
                bad += 1;
                writeln!(output::stderr(), "{error}")?;
            }
        }
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
pub(crate) async fn in_force(common: &Common, place: &PlaceFlags) -> Result<(), Failure> {
    let store = place::open(common, place)?;
    let standing = store.read().await?;
    let Some(document) = store.document(&standing) else {
        return Err(show::nothing(&store, &standing));
    };
    match &document.read {
        Ok(located) => {
            let before = InForceBefore::default();
            let name = &document.name;
            let warnings = Warnings::of(name, located, &before);
            print(common, name, located, &warnings)
        }
        Err(error) => {
            writeln!(output::stderr(), "{error}")?;
            let problem = "it is invalid: servers keep the templates they had";
            Err(Failure::No(problem.to_owned()))
        }
    }
}

/// Returns the templates that files would replace, if they are known; and whether a restarted server forgets the length
/// of older leases.
async fn former(common: &Common, place: &PlaceFlags) -> Result<(Option<Templates>, bool), Failure> {
    if let Some(TemplatesPlace::File(path)) = &place.at {
        let bytes = document::read(path).ok();
        let former = bytes.and_then(|it| doorward_documents::parse_bytes(&it, "").ok());
        return Ok((former, true));
    }
    if place.at.is_none() && matches!(common.etcd.config(), Ok(None)) {
        return Ok((None, false));
    }
    let common = Common {
        timeout: common.timeout.min(TIMEOUT),
        ..common.clone()
    };
    let read = async {
        let store = place::open(&common, place)?;
        let standing = store.read().await?;
        Ok::<_, Failure>(store.document(&standing))
    };
    match read.await {
        Ok(document) => {
            let read = document.and_then(|document| document.read.ok());
            Ok((read.map(|located| located.templates), false))
        }
        Err(failure) => {
            let message = format!("not compared with what is in force: {failure}");
            writeln!(output::stderr(), "{}", plain(&message))?;
            Ok((None, false))
        }
    }
}

/// A table of the templates, and what to take care of.
fn print(
    common: &Common,
    name: &str,
    Located { templates, .. }: &Located,
    warnings: &Warnings,
) -> Result<(), Failure> {
    write(common, name, templates, warnings)?;
    Ok(warnings.write(&mut output::stderr(), common.color.of_stderr())?)
}

/// Returns the capacity as text, with the most that one client can have, if that is limited.
fn capacity(template: &Template) -> String {
    let capacity = number(template.capacity.get());
    match template.holder_bounds.wants_max {
        Some(most) => format!("{capacity} ({} a client)", number(most.get())),
        None => capacity,
    }
}

fn write(
    common: &Common,
    name: &str,
    templates: &Templates,
    warnings: &Warnings,
) -> Result<(), Failure> {
    let mut out = output::stdout();
    let safe = |safe: Option<SafeCapacity>| match safe {
        None => None,
        Some(SafeCapacity::Unlimited) => Some(-1.0),
        Some(SafeCapacity::Limited(amount)) => Some(amount.get()),
    };
    if common.output == Output::Json {
        let templates: Vec<_> = templates
            .iter()
            .map(|template| {
                serde_json::json!({
                    "identifier_glob": template.identifier_glob,
                    "capacity": template.capacity.get(),
                    "safe_capacity": safe(template.safe_capacity),
                    "wants_max": template.holder_bounds.wants_max.map(Amount::get),
                    "subclients_max": template.holder_bounds.subclients_max.map(Subclients::get),
                    "description": template.description,
                    "kind": template.algorithm.kind.as_str(),
                    "lease_length_s": template.algorithm.lease_length.as_secs_f64(),
                    "refresh_interval_s": template.algorithm.refresh_interval.as_secs_f64(),
                    "learning_mode_duration_s":
                        template.algorithm.learning_mode_duration.as_secs_f64(),
                })
            })
            .collect();
        let warnings = warnings.to_json();
        let message =
            serde_json::json!({"file": name, "templates": templates, "warnings": warnings});
        output::json(&mut out, &message)?;
        return Ok(());
    }
    let count = templates.len();
    let plural = if count == 1 { "" } else { "s" };
    writeln!(out, "{name}: {count} template{plural}, valid")?;
    if count == 0 {
        return Ok(());
    }
    let palette = common.color.of_stdout();
    let header = [
        "glob",
        "algorithm",
        "capacity",
        "safe",
        "lease",
        "refresh",
        "learning",
    ];
    let mut table = Table::new(header, 2..7, palette);
    for template in templates.iter() {
        let algorithm = &template.algorithm;
        table.add([
            palette.cell(Tone::Strong, &template.identifier_glob),
            cell(algorithm.kind),
            cell(capacity(template)),
            cell(safe(template.safe_capacity).map_or_else(|| "dynamic".to_owned(), number)),
            cell(span(algorithm.lease_length)),
            cell(span(algorithm.refresh_interval)),
            cell(span(algorithm.learning_mode_duration)),
        ]);
    }
    Ok(table.write(&mut out)?)
}
