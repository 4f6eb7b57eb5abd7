//! Templates that no id can reach, since others take all that they match.
//!
//! An id that is spelt as a template takes that one, wherever it stands; so templates without wildcards
//! are always reached, and others by one odd id at least, which does not count here.

use doorward_engine::templates::glob::Glob;
use doorward_engine::templates::{Field, Templates};

use super::{TemplateWarning, WarningKind};

/// Bound on comparisons of globs: a fraction of a second.
const LOOKS_MAX: usize = 5_000_000;

/// Characters by which a glob is more than the name of one resource.
const WILDCARDS: [char; 4] = ['*', '?', '[', '\\'];

pub(super) fn findings(templates: &Templates) -> Vec<TemplateWarning> {
    let globs = templates.iter().map(|it| it.identifier_glob.as_str());
    let globs = globs.map(|text| (text, Glob::parse(text).ok()));
    let globs: Vec<(&str, Option<Glob>)> = globs.collect();
    let mut findings = Vec::new();
    let mut looks: usize = 0;
    for (index, (text, glob)) in globs.iter().enumerate() {
        let Some(glob) = glob.as_ref().filter(|_| text.contains(WILDCARDS)) else {
            continue;
        };
        looks += 3 * globs.len();
        if looks > LOOKS_MAX {
            break;
        }
        let message = if glob.matches_nothing() {
            "matches nothing: it has a class that takes no character".to_owned()
        } else if let Some((earlier, taker)) = taker(&globs, index, text, glob) {
            format!(
                "no id reaches it, unless it is spelt like that: template {} ({taker:?}) takes all that \
                 it matches; move this one before it, or remove it",
                earlier + 1
            )
        } else {
            continue;
        };
        let about = Some((index, Field::IdentifierGlob));
        findings.push(TemplateWarning::new(WarningKind::Unreached, about, message));
    }
    findings
}

/// A template that takes all that a glob matches: one before it, or the only id that it matches.
fn taker<'a>(
    globs: &[(&'a str, Option<Glob>)],
    index: usize,
    of_glob: &str,
    glob: &Glob,
) -> Option<(usize, &'a str)> {
    // A glob matches its own text, unless it has a class or quotes something. A quick look, which spares most globs the
    // long one.
    let matches_itself = glob.matches(of_glob);
    let takers = globs.iter().enumerate();
    let mut takers =
        takers.filter(|(place, (text, _))| *place < index || !text.contains(WILDCARDS));
    takers.find_map(|(place, (text, taker))| {
        let taker = taker.as_ref()?;
        let may_take = !matches_itself || taker.matches(of_glob);
        (place != index && may_take && taker.covers(glob)).then_some((place, *text))
    })
}
