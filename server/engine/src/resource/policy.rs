//! The rule for dividing a resource: the algorithm, the bounds of a single holder, and their source.
//!
//! At the root, the source is the template. After its removal, its last values count until the leases have ended. Below
//! the root, the source is the parent. Until its first answer, and if it sends no algorithm (a Doorman server), the own
//! template counts, or a default if there is none.

use std::sync::Arc;

use crate::division::ParentTerms;
use crate::templates::{Algorithm, HolderBounds, Template};

/// The source of a resource's policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PolicySource {
    /// The root's template.
    Template,
    /// No source: the root's template was removed. The server grants nothing new.
    TemplateGone,
    /// No source yet: the parent has not answered. The own template counts instead.
    Unheard,
    /// The parent.
    Parent,
    /// The parent sends no algorithm, so the own template counts.
    LeftToUs,
}

/// Rule for dividing a resource.
#[derive(Debug)]
pub(super) struct Policy {
    source: PolicySource,
    /// Template that matches here, whether or not it counts.
    template: Option<Arc<Template>>,
    /// All resources of a template share the template's.
    algorithm: Arc<Algorithm>,
    /// Absent: no bounds.
    holder_bounds: Option<Box<HolderBounds>>,
}

impl Policy {
    /// Returns the policy of a resource at the root.
    pub(super) fn of_root(template: Arc<Template>) -> Self {
        Self::of(PolicySource::Template, Some(template))
    }

    /// Returns the policy of a node whose parent has not answered yet.
    pub(super) fn of_parent(template: Option<Arc<Template>>) -> Self {
        Self::of(PolicySource::Unheard, template)
    }

    fn of(source: PolicySource, template: Option<Arc<Template>>) -> Self {
        let own = template.as_ref();
        let algorithm = own.map(|own| Arc::clone(&own.algorithm));
        let bounds = own.map(|own| own.holder_bounds);
        Self {
            source,
            algorithm: algorithm.unwrap_or_default(),
            holder_bounds: bounds.and_then(boxed),
            template,
        }
    }

    /// Notes another matching template, or none. Returns its algorithm, if the caller should put it in force
    /// ([`Policy::replace_algorithm`]).
    pub(super) fn change_template(
        &mut self,
        template: Option<Arc<Template>>,
    ) -> Option<Arc<Algorithm>> {
        self.source = match (self.source, &template) {
            (PolicySource::Template | PolicySource::TemplateGone, Some(_)) => {
                PolicySource::Template
            }
            (PolicySource::Template | PolicySource::TemplateGone, None) => {
                PolicySource::TemplateGone
            }
            (below, _) => below,
        };
        self.template = template;
        let counts = self.source != PolicySource::Parent;
        let template = self.template.as_ref().filter(|_| counts)?;
        self.holder_bounds = boxed(template.holder_bounds);
        Some(Arc::clone(&template.algorithm))
    }

    /// Applies the parent's answer, with an algorithm or without one, and its bounds for a single holder. Returns the
    /// algorithm to put in force, if it differs, or if it is the first confirmed one.
    pub(super) fn apply_parent(
        &mut self,
        algorithm: Option<&Algorithm>,
        terms: &ParentTerms,
    ) -> Option<Arc<Algorithm>> {
        let is_first = self.source == PolicySource::Unheard;
        let own = self.template.as_ref();
        let counts = own.filter(|_| algorithm.is_none());
        self.holder_bounds = boxed(counts.map_or(terms.holder_bounds, |own| own.holder_bounds));
        self.source = if algorithm.is_some() {
            PolicySource::Parent
        } else {
            PolicySource::LeftToUs
        };
        let own = own.map(|own| &own.algorithm);
        let shared = own.filter(|own| algorithm.is_none_or(|algorithm| ***own == *algorithm));
        let of_parent = || Some(Arc::new(algorithm?.clone()));
        let algorithm = shared.cloned().or_else(of_parent)?;
        (is_first || algorithm != self.algorithm).then_some(algorithm)
    }

    /// Puts an algorithm in force. Returns the one before.
    pub(super) fn replace_algorithm(&mut self, algorithm: Arc<Algorithm>) -> Arc<Algorithm> {
        std::mem::replace(&mut self.algorithm, algorithm)
    }

    /// Returns the algorithm in force, also after the template was removed.
    pub(super) fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }

    /// Returns the bounds for a single holder, also after the template was removed.
    pub(super) fn holder_bounds(&self) -> HolderBounds {
        let bounds = self.holder_bounds.as_deref();
        bounds.map_or(HolderBounds::NONE, |bounds| *bounds)
    }

    /// Returns the template that matches here.
    pub(super) fn template(&self) -> Option<&Arc<Template>> {
        self.template.as_ref()
    }

    /// Whether the algorithm keeps to the capacity.
    pub(super) fn promises_total(&self) -> bool {
        self.algorithm().kind.promises_total()
    }

    /// Whether new capacity may be granted.
    pub(super) fn is_in_force(&self) -> bool {
        self.source != PolicySource::TemplateGone
    }

    /// Whether the parent has answered. Always true at the root.
    pub(super) fn is_answered(&self) -> bool {
        self.source != PolicySource::Unheard
    }
}

/// Boxes bounds, since most templates have none.
fn boxed(bounds: HolderBounds) -> Option<Box<HolderBounds>> {
    (bounds != HolderBounds::NONE).then(|| Box::new(bounds))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::PolicySource::{LeftToUs, Parent, TemplateGone, Unheard};
    use super::*;
    use crate::templates::{AlgorithmKind, TemplateSpec, Templates};

    /// A template with this lease length, which identifies its algorithm.
    fn template(seconds: u64) -> Arc<Template> {
        let spec = TemplateSpec {
            identifier_glob: Some("*".into()),
            capacity: Some(1.0),
            kind: Some(AlgorithmKind::FairShare),
            lease_length: Some(Duration::from_secs(seconds)),
            refresh_interval: Some(Duration::from_secs(5)),
            learning_mode_duration: Some(Duration::ZERO),
            ..TemplateSpec::default()
        };
        let templates = Templates::parse(&[spec]).unwrap();
        Arc::clone(templates.iter().next().unwrap())
    }

    fn policy(source: PolicySource) -> Policy {
        Policy::of(source, Some(template(60)))
    }

    fn seconds(algorithm: Option<Arc<Algorithm>>) -> Option<u64> {
        algorithm.map(|algorithm| algorithm.lease_length.as_secs())
    }

    #[test]
    fn another_template_counts_unless_the_parent_decides() {
        for (before, new, after, puts_in_force) in [
            (
                PolicySource::Template,
                Some(30),
                PolicySource::Template,
                Some(30),
            ),
            (PolicySource::Template, None, TemplateGone, None),
            (TemplateGone, Some(30), PolicySource::Template, Some(30)),
            (TemplateGone, None, TemplateGone, None),
            (Unheard, Some(30), Unheard, Some(30)),
            (Unheard, None, Unheard, None),
            (LeftToUs, Some(30), LeftToUs, Some(30)),
            (LeftToUs, None, LeftToUs, None),
            (Parent, Some(30), Parent, None),
            (Parent, None, Parent, None),
        ] {
            let mut policy = policy(before);
            let found = policy.change_template(new.map(template));
            assert_eq!(seconds(found), puts_in_force, "{before:?}, {new:?}");
            assert_eq!(policy.source, after, "{before:?}, {new:?}");
            assert_eq!(policy.template().is_some(), new.is_some());
            assert_eq!(policy.algorithm().lease_length.as_secs(), 60, "unchanged");
        }
    }

    #[test]
    fn the_parent_decides_or_leaves_the_algorithm_to_the_template() {
        for (before, answered, after, puts_in_force) in [
            (Unheard, Some(20), Parent, Some(20)),
            (Unheard, Some(60), Parent, Some(60)),
            (Unheard, None, LeftToUs, Some(60)),
            (Parent, Some(20), Parent, Some(20)),
            (Parent, Some(60), Parent, None),
            (Parent, None, LeftToUs, None),
            (LeftToUs, Some(20), Parent, Some(20)),
            (LeftToUs, None, LeftToUs, None),
        ] {
            let mut policy = policy(before);
            let algorithm = answered.map(|seconds| template(seconds).algorithm.clone());
            let found = policy.apply_parent(algorithm.as_deref(), &ParentTerms::default());
            assert_eq!(seconds(found), puts_in_force, "{before:?}, {answered:?}");
            assert_eq!(policy.source, after, "{before:?}, {answered:?}");
        }
    }

    #[test]
    fn a_removed_template_grants_nothing_new() {
        for (source, is_in_force, is_heard) in [
            (PolicySource::Template, true, true),
            (TemplateGone, false, true),
            (Unheard, true, false),
            (Parent, true, true),
            (LeftToUs, true, true),
        ] {
            let policy = policy(source);
            assert_eq!(policy.is_in_force(), is_in_force, "{source:?}");
            assert_eq!(policy.is_answered(), is_heard, "{source:?}");
        }
    }
}
