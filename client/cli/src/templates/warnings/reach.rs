//! Templates that no id can reach, since others take all that they match.
//!
//! An id that is spelt as a template takes that one, wherever it stands; so templates without wildcards
//! are always reached, and others by one odd id at least, which does not count here.

use doorward_engine::id::ResourceId;
use doorward_engine::templates::glob::Glob;
use doorward_engine::templates::{Field, Templates};

use super::{TemplateWarning, WarningKind};
use crate::templates::sample;

/// Characters by which a glob is more than the name of one resource.
const WILDCARDS: [char; 4] = ['*', '?', '[', '\\'];

pub(super) fn findings(templates: &Templates) -> Vec<TemplateWarning> {
    let globs: Vec<(&str, Option<Glob>)> = templates
        .iter()
        .map(|it| it.identifier_glob.as_str())
        .map(|text| (text, Glob::parse(text).ok()))
        .collect();
    let mut findings = Vec::new();
    let mut looks: usize = 0;
    for (index, (text, glob)) in globs.iter().enumerate() {
        let Some(glob) = glob.as_ref().filter(|_| text.contains(WILDCARDS)) else {
            continue;
        };
        looks += 3 * globs.len();
        if looks > sample::LOOKS_MAX {
            break;
        }
        let message = if glob.matches_nothing() {
            "matches nothing: it has a class that takes no character".to_owned()
        } else if is_reached(templates, text, glob) {
            continue;
        } else if let Some((earlier, taker)) = taker(&globs, index, glob) {
            format!(
                "no id reaches it, unless it is spelt like that: template {} ({taker:?}) takes all that \
                 it matches; move this one before it, or remove it",
                earlier + 1
            )
        } else {
            continue;
        };
        let field = Field::IdentifierGlob;
        findings.push(TemplateWarning::new(
            WarningKind::Unreached,
            index,
            field,
            message,
        ));
    }
    findings
}

/// Whether an id was found that takes it. A quick look, which spares most templates the long one.
fn is_reached(templates: &Templates, text: &str, glob: &Glob) -> bool {
    ["x", ""].into_iter().any(|star| {
        let id = sample::filled(text, star);
        let takes = |id: &ResourceId| {
            let taken = templates.find(id);
            id.as_str() != text && taken.is_some_and(|taken| taken.identifier_glob == text)
        };
        glob.matches(&id) && ResourceId::new(&id).is_ok_and(|id| takes(&id))
    })
}

/// A template that takes all that a glob matches: one before it, or the only id that it matches.
fn taker<'a>(
    globs: &[(&'a str, Option<Glob>)],
    index: usize,
    glob: &Glob,
) -> Option<(usize, &'a str)> {
    let takers = globs.iter().enumerate();
    let mut takers =
        takers.filter(|(place, (text, _))| *place < index || !text.contains(WILDCARDS));
    takers.find_map(|(place, (text, taker))| {
        let taker = taker.as_ref()?;
        (place != index && taker.covers(glob)).then_some((place, *text))
    })
}
