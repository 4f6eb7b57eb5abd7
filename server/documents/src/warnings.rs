//! Warnings about a valid document that is probably a mistake. Pure.
//!
//! Some warnings need `--force` before a change that brings them is applied. A warning that the templates in force
//! deserve as well needs none: otherwise operators would force every change.

mod amounts;
mod emptied;
mod lengths;
mod reach;

use std::collections::{BTreeMap, BTreeSet};

use doorward_engine::id::ResourceId;
use doorward_engine::templates::{Field, Template, Templates};
use doorward_proto::plan::ResourcePlan;
use doorward_time::named;
use serde_json::{Value, json};

use crate::{Located, Problem};

/// State that a document is to replace.
#[derive(Clone, Copy, Debug, Default)]
pub struct InForceBefore<'a> {
    /// Templates in force. None: there are none, or they are unknown.
    pub templates: Option<&'a Templates>,
    /// Resources in use whose terms change, as far as they are known.
    pub in_use: &'a [ResourcePlan],
    /// Why holders may be missing there. None: there are none, or no server was asked.
    pub unknown: Option<&'a str>,
    /// Whether the new document was in force before.
    pub was_in_force: bool,
}

/// A template that takes resources which another one has in force.
struct Replaced<'a> {
    /// The place of the new one.
    index: usize,
    new: &'a Template,
    old: &'a Template,
    /// A resource in use that moves. None: both have the same glob.
    id: Option<&'a str>,
}

impl<'a> InForceBefore<'a> {
    /// Returns the new templates, each beside the one in force with its glob and those of resources in use that it takes.
    fn replaced(&self, new: &'a Templates) -> Vec<Replaced<'a>> {
        let Some(templates) = self.templates else {
            return Vec::new();
        };
        let places = new.iter().enumerate();
        let places = places.map(|(index, it)| (&*it.identifier_glob, (index, &**it)));
        let places: BTreeMap<&str, (usize, &Template)> = places.collect();
        let replaced = |old: &'a Template, glob: &str, id| {
            let (index, new) = *places.get(glob)?;
            Some(Replaced {
                index,
                new,
                old,
                id,
            })
        };
        let same = templates.iter();
        let same = same.filter_map(|old| replaced(old, &old.identifier_glob, None));
        let mut seen = BTreeSet::new();
        let moved = self.in_use.iter().filter_map(|ResourcePlan { root, .. }| {
            let id = ResourceId::new(&root.resource_id).ok()?;
            let (old, glob) = (templates.find(&id)?, root.planned_template.as_deref()?);
            let moves = glob != old.identifier_glob && seen.insert((&*old.identifier_glob, glob));
            let id = Some(root.resource_id.as_str());
            moves.then(|| replaced(old, glob, id)).flatten()
        });
        same.chain(moved).collect()
    }
}

named! {
    /// Subject of a warning. JSON has these names.
    #[derive(PartialOrd, Ord)]
    WarningKind {
        /// Clients hold a resource that no template matches any more, or may.
        InUse = "in_use",
        /// A total that was kept is kept no more.
        NoTotal = "no_total",
        /// No template is left of those in force.
        Emptied = "emptied",
        /// Something takes ten times as long, or lasts ten times as long.
        Longer = "longer",
        /// A tenth of it, or less.
        MuchShorter = "much_shorter",
        /// The capacity is 0.
        NoCapacity = "no_capacity",
        /// The capacity is ten times that in force or more, or a tenth or less.
        CapacityFactor = "capacity_factor",
        /// Clients in safe mode may use more than there is.
        SafeCapacity = "safe_capacity",
        /// No id takes the template.
        Unreached = "unreached",
        /// A field has no value.
        Blank = "blank",
    }
}

impl WarningKind {
    /// Whether a change that brings it must be forced. To take back a mistake must not: what was made
    /// ten times as long by mistake is made a tenth of it again.
    const fn needs_force(self) -> bool {
        !matches!(self, Self::MuchShorter | Self::Blank)
    }
}

/// Warning about a template.
#[derive(Clone, Debug, PartialEq)]
struct TemplateWarning {
    kind: WarningKind,
    /// Which template, counted from 0, and which field of it. None: all of them.
    about: Option<(usize, Field)>,
    message: String,
    /// How bad it is, beside another of its kind about the same.
    weight: f64,
}

impl TemplateWarning {
    fn new(kind: WarningKind, about: Option<(usize, Field)>, message: String) -> Self {
        Self {
            kind,
            about,
            message,
            weight: 0.0,
        }
    }

    /// Returns its kind, template and field, by which it is known among those of another document.
    fn subject<'a>(&self, templates: &'a Templates) -> Option<(WarningKind, &'a str, Field)> {
        let (index, field) = self.about?;
        let template = templates.iter().nth(index)?;
        Some((self.kind, &template.identifier_glob, field))
    }

    fn in_document(self, document: &Located, stands: bool) -> Warning {
        let problem = match self.about {
            Some((index, field)) => document.remark(index, field, self.message),
            None => document.remark_on_all(self.message),
        };
        Warning {
            kind: self.kind,
            problem,
            stands,
        }
    }
}

/// One thing to take care of.
#[derive(Clone, Debug, PartialEq)]
pub struct Warning {
    /// Its subject.
    pub kind: WarningKind,
    /// Where, and what.
    pub problem: Problem,
    /// Whether what is in force deserves it as well.
    pub stands: bool,
}

impl Warning {
    /// Returns it for programs. Its field names are an interface.
    pub fn to_json(&self) -> Value {
        let problem = &self.problem;
        let (number, glob) = problem.template.clone().unzip();
        json!({
            "kind": self.kind.as_str(),
            "line": problem.line,
            "column": problem.column,
            "template": number,
            "identifier_glob": glob.flatten(),
            "field": problem.field,
            "message": problem.message,
            "needs_force": self.needs_force(),
        })
    }

    /// Whether a change that brings it must be forced.
    pub fn needs_force(&self) -> bool {
        self.kind.needs_force() && !self.stands
    }
}

/// Returns everything to take care of in a document, in the order in which it stands.
pub fn warnings(new: &Located, before: &InForceBefore<'_>) -> Vec<Warning> {
    // How bad each warning is that what is in force deserves.
    let mut stood = BTreeMap::new();
    if let Some(old) = before.templates {
        let found = of_templates(old, before.in_use).into_iter();
        stood.extend(found.filter_map(|it| Some((it.subject(old)?, it.weight))));
    }
    let found = of_templates(&new.templates, before.in_use).into_iter();
    let found = found.map(|it| {
        let was = it.subject(&new.templates).and_then(|it| stood.get(&it));
        let stands = was.is_some_and(|was| *was >= it.weight);
        it.in_document(new, stands)
    });
    let mut changes = lengths::findings(&new.templates, before);
    changes.extend(amounts::changes(&new.templates, before));
    let emptied = emptied::finding(before.templates, &new.templates);
    changes.extend(emptied.or_else(|| emptied::unknown(before, &new.templates)));
    changes.extend(emptied::unmatched(before.in_use, &new.templates));
    let changes = changes.into_iter().map(|it| it.in_document(new, false));
    let blanks = new.blanks().iter().map(|problem| Warning {
        kind: WarningKind::Blank,
        problem: problem.clone(),
        stands: false,
    });
    let mut list: Vec<Warning> = found.chain(changes).chain(blanks).collect();
    list.sort_by_key(|warning| (warning.problem.line, warning.problem.column));
    list
}

/// Returns the warnings that do not depend on the templates before.
fn of_templates(templates: &Templates, in_use: &[ResourcePlan]) -> Vec<TemplateWarning> {
    let mut findings = amounts::findings(templates, in_use);
    findings.extend(reach::findings(templates));
    findings
}

#[cfg(test)]
#[path = "warnings_tests.rs"]
mod tests;
