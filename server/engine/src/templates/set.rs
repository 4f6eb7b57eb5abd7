//! A valid set of templates, and the choice of the template for a resource.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::time::Duration;

use siphasher::sip::SipHasher13;

use crate::id::ResourceId;
use crate::templates::check::Check;
use crate::templates::glob::{FirstMatch, Glob};
use crate::templates::lengths::Lengths;
use crate::templates::{Field, TEMPLATES_MAX, Template, TemplateProblem, TemplateSpec};

/// A valid set of templates. Cheap to clone: all clones share the lookup structures.
#[derive(Clone, Debug)]
pub struct Templates(Arc<Set>);

#[derive(Debug)]
struct Set {
    in_order: Vec<Arc<Template>>,
    /// Number of each template by the text of its glob.
    by_text: HashMap<Box<str>, usize, BuildHasherDefault<SipHasher13>>,
    /// Templates that match other ids than their text.
    by_glob: FirstMatch,
    lengths: Lengths,
}

impl Default for Templates {
    /// No templates: every resource is unknown.
    fn default() -> Self {
        Self::of(Vec::new())
    }
}

impl Templates {
    /// Checks templates and their order.
    ///
    /// # Errors
    ///
    /// All problems, in the order of the templates and their fields.
    pub fn parse(specs: &[TemplateSpec]) -> Result<Self, Vec<TemplateProblem>> {
        let mut problems = Vec::new();
        let mut in_order = Vec::with_capacity(specs.len());
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, spec) in specs.iter().enumerate().take(TEMPLATES_MAX) {
            let mut check = Check {
                index,
                problems: &mut problems,
            };
            let glob = check.glob(spec);
            if let Some(text) = &spec.identifier_glob {
                if let Some(earlier) = places.get(text.as_str()) {
                    check.problem(
                        Field::IdentifierGlob,
                        format!("{text:?} is template {} already; remove one", earlier + 1),
                    );
                } else {
                    places.insert(text, index);
                }
                if text == "*" && index + 1 < specs.len() {
                    check.problem(
                        Field::IdentifierGlob,
                        "the catch-all \"*\" must be the last template; no later glob would be \
                         reached",
                    );
                }
            }
            if let (Some(template), Some(glob)) = (check.template(spec), glob) {
                in_order.push((glob, Arc::new(template)));
            }
        }
        if specs.len() > TEMPLATES_MAX {
            problems.push(TemplateProblem {
                index: TEMPLATES_MAX,
                field: Field::IdentifierGlob,
                message: format!(
                    "there are {} templates; at most {TEMPLATES_MAX}",
                    specs.len()
                ),
            });
        }
        if problems.is_empty() {
            Ok(Self::of(in_order))
        } else {
            Err(problems)
        }
    }

    /// Builds a set of templates that were checked.
    fn of(checked: Vec<(Glob, Arc<Template>)>) -> Self {
        let (globs, in_order): (Vec<Glob>, Vec<Arc<Template>>) = checked.into_iter().unzip();
        let text = |template: &Arc<Template>| template.identifier_glob.as_str().into();
        let by_text = in_order.iter().map(text).zip(0..).collect();
        let is_found_by_text = |place: usize, glob: &Glob| {
            let template: Option<&Arc<Template>> = in_order.get(place);
            let text = template.map(|template| template.identifier_glob.as_str());
            text.is_some() && glob.literal() == text
        };
        let globs = globs.into_iter().enumerate();
        let globs = globs.filter(|(place, glob)| !is_found_by_text(*place, glob));
        Self(Arc::new(Set {
            by_text,
            by_glob: FirstMatch::new(globs),
            lengths: Lengths::of(&in_order),
            in_order,
        }))
    }

    /// Returns the template of a resource: the one whose glob is the id, else the first whose glob matches it.
    pub fn find(&self, resource: &ResourceId) -> Option<&Arc<Template>> {
        self.find_with_position(resource)
            .map(|(_, template)| template)
    }

    /// Returns the template with its number, counted from 0.
    pub(crate) fn find_with_position(
        &self,
        resource: &ResourceId,
    ) -> Option<(usize, &Arc<Template>)> {
        let id = resource.as_str();
        let by_text = self.0.by_text.get(id).copied();
        let position = by_text.or_else(|| self.0.by_glob.find(id))?;
        Some((position, self.0.in_order.get(position)?))
    }

    /// Iterates over the templates in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Template>> {
        self.0.in_order.iter()
    }

    /// Number of templates.
    pub fn len(&self) -> usize {
        self.0.in_order.len()
    }

    /// Whether there are no templates. Then every resource is unknown.
    pub fn is_empty(&self) -> bool {
        self.0.in_order.is_empty()
    }

    /// Returns the length of the longest lease. Zero: there are no templates, so no holder gets a lease.
    pub fn longest_lease(&self) -> Duration {
        self.0.lengths.longest_lease
    }

    /// Returns a digest of the lease lengths: equal for templates with the same globs in the same order and the same
    /// lease lengths, on every machine. Other versions compare it, so it must stay the same.
    pub fn lengths_digest(&self) -> u64 {
        self.0.lengths.digest
    }

    /// Returns the longest learning mode of a new master if leases of its predecessors may last for `longer_leases`, or
    /// nothing if there are no templates.
    pub(crate) fn learns_for(&self, longer_leases: Duration) -> Option<Duration> {
        self.0.lengths.learns_for(longer_leases)
    }
}
