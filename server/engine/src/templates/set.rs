//! A valid set of templates: the choice of the template for a resource, and lease lengths compared with another set.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::time::Duration;

use siphasher::sip::SipHasher13;

use crate::id::ResourceId;
use crate::templates::check::Check;
use crate::templates::glob::{FirstMatch, Glob};
use crate::templates::{Algorithm, Field, TEMPLATES_MAX, Template, TemplateProblem, TemplateSpec};

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

    /// Returns the first budget of which a root without marks forgets what was given.
    pub fn budget_with_marks(&self) -> Option<&Arc<Template>> {
        let is_marked = |it: &&Arc<Template>| {
            let terms = it.algorithm.budget.as_ref();
            it.algorithm.learns() && terms.is_some_and(|terms| terms.period.is_marked())
        };
        self.iter().find(is_marked)
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
        let lengths = &self.0.lengths;
        let longer = Some(longer_leases).filter(|_| lengths.learns_longer);
        Some(lengths.learns_for?.max(longer.unwrap_or_default()))
    }
}

// Lease lengths of a set of templates, compared with those of another set.
//
// A new master learns for the lease length of *its* templates. That is not enough if the leases of its predecessor
// were longer: see [`Term::longer_leases`](crate::node::mastership::Term::longer_leases). This module computes that
// from two sets of templates. The result depends on lease lengths alone, and on the template that a resource takes. It
// ignores capacities, because an edit of a capacity must not lengthen learning. It ignores the algorithm, because a
// lease without a promised total is in use for as long as any other.

impl Templates {
    /// Returns the longest lease that these templates may have granted for a resource whose new lease is shorter. Zero:
    /// the new templates give every resource the same lease length, or a longer one. A resource without a template gets
    /// no lease, which counts as shorter.
    ///
    /// The resources are unknown, so after templates were added or moved the result may be longer than necessary, but
    /// never shorter. An old template does not count if both of these hold. First, its glob is in the new set, with
    /// leases at least as long, so every resource that took it still has a template. Second, no template that may take
    /// a resource away from it has shorter leases. These are the added templates, and all templates if the order of the
    /// old ones has changed.
    pub fn outlasts(&self, new: &Self) -> Duration {
        self.shortened(new).0
    }

    /// Returns both: [`Templates::outlasts`], and the same within a mastership. If an operator set the learning mode of a
    /// template shorter than its lease, only the learning mode counts then. A change must not make such a server begin
    /// to learn.
    pub(crate) fn shortened(&self, new: &Self) -> (Duration, Duration) {
        let shortened: Vec<&Arc<Template>> = self.shortened_by(new).collect();
        let longest = |length: fn(&Arc<Template>) -> Duration| {
            let lengths = shortened.iter().map(|template| length(template));
            lengths.max().unwrap_or_default()
        };
        (longest(length_of), longest(learned_of))
    }

    /// Returns the templates that count for [`Templates::outlasts`].
    fn shortened_by<'a>(&'a self, new: &'a Self) -> impl Iterator<Item = &'a Arc<Template>> {
        let new_lengths: BTreeMap<&str, Duration> = new
            .iter()
            .map(|template| (glob_of(template), length_of(template)))
            .collect();
        let places: BTreeMap<&str, usize> = self
            .iter()
            .enumerate()
            .map(|(place, template)| (glob_of(template), place))
            .collect();
        let stay = new.iter().filter_map(|it| places.get(glob_of(it)));
        let is_order_kept = stay.is_sorted();
        let takers = new
            .iter()
            .filter(|taker| !is_order_kept || !places.contains_key(glob_of(taker)));
        let shortest_taker = takers.map(length_of).min().unwrap_or(Duration::MAX);
        let is_shortened = move |template: &&Arc<Template>| {
            let length = length_of(template);
            let still = new_lengths.get(glob_of(template));
            still.is_none_or(|still| *still < length) || shortest_taker < length
        };
        self.iter().filter(is_shortened)
    }
}

/// Results over all lengths of a set, so that no later call reads all templates.
#[derive(Clone, Debug)]
pub(super) struct Lengths {
    /// Length of the longest lease. Zero: there are no templates.
    pub(super) longest_lease: Duration,
    /// Longest learning mode of a new master if leases of its predecessors were no longer. None: there are no
    /// templates.
    learns_for: Option<Duration>,
    /// Whether longer leases of predecessors lengthen the learning mode of some template.
    learns_longer: bool,
    /// See [`Templates::lengths_digest`].
    pub(super) digest: u64,
}

impl Lengths {
    pub(super) fn of(templates: &[Arc<Template>]) -> Self {
        let learns_for = |longer: Duration| {
            let each = templates.iter();
            each.map(move |template| template.algorithm.learns_for(longer))
        };
        // A template that learns longer for longer leases does so for any length.
        let learns_longer = learns_for(Duration::MAX).any(|lasts| lasts == Duration::MAX);
        let mut hasher = SipHasher13::new();
        for template in templates {
            hasher.write(glob_of(template).as_bytes());
            // No glob contains this byte.
            hasher.write(&[0xff]);
            hasher.write(&length_of(template).as_nanos().to_le_bytes());
        }
        Self {
            longest_lease: templates.iter().map(length_of).max().unwrap_or_default(),
            learns_for: learns_for(Duration::ZERO).max(),
            learns_longer,
            digest: hasher.finish(),
        }
    }
}

impl Algorithm {
    /// Returns the learning mode of a new master of the root if leases of its predecessors, by other templates, may
    /// last for `longer_leases`. An operator who sets learning mode shorter than a lease accepts an overshoot, so
    /// longer leases do not change such a learning mode.
    pub(crate) fn learns_for(&self, longer_leases: Duration) -> Duration {
        if !self.learns() {
            Duration::ZERO
        } else if self.learning_mode_duration < self.lease_length {
            self.learning_mode_duration
        } else {
            self.learning_mode_duration.max(longer_leases)
        }
    }
}

fn glob_of(template: &Arc<Template>) -> &str {
    &template.identifier_glob
}

fn length_of(template: &Arc<Template>) -> Duration {
    template.algorithm.lease_length
}

fn learned_of(template: &Arc<Template>) -> Duration {
    let algorithm = &template.algorithm;
    if algorithm.kind.promises_total() {
        algorithm.lease_length.min(algorithm.learning_mode_duration)
    } else {
        algorithm.lease_length
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ResourceId;
    use crate::templates::{AlgorithmKind, TemplateSpec};

    /// Parses templates of the form `GLOB SECONDS`.
    fn templates(said: &str) -> Templates {
        let specs: Vec<TemplateSpec> = said
            .split(", ")
            .filter(|said| !said.is_empty())
            .map(|said| {
                let (glob, seconds) = said.split_once(' ').unwrap();
                TemplateSpec {
                    identifier_glob: Some(glob.to_owned()),
                    capacity: Some(100.0),
                    kind: Some(AlgorithmKind::FairShare),
                    lease_length: Some(Duration::from_secs(seconds.parse().unwrap())),
                    refresh_interval: Some(Duration::from_millis(500)),
                    ..TemplateSpec::default()
                }
            })
            .collect();
        Templates::parse(&specs).unwrap()
    }

    #[test]
    fn the_longest_lease_is_the_longest_of_all_templates() {
        for (said, seconds) in [("", 0), ("a 5", 5), ("a 5, b 60, * 20", 60)] {
            let longest = templates(said).longest_lease();
            assert_eq!(longest, Duration::from_secs(seconds), "{said}");
        }
    }

    #[test]
    fn leases_outlast_templates_that_give_shorter_ones() {
        for (what, old, new, seconds) in [
            ("no templates before", "", "a 5", 0),
            ("no change", "a* 40, * 60", "a* 40, * 60", 0),
            ("leases become longer", "a 40, * 5", "a 60, * 10", 0),
            (
                "one becomes shorter",
                "a 40, b 30, * 60",
                "a 5, b 6, * 60",
                40,
            ),
            ("it is gone", "a 40, b 50", "b 50", 40),
            ("the last one is gone", "a 40", "", 40),
            (
                "one as long is added",
                "b* 30, * 60",
                "b1* 60, b* 30, * 60",
                0,
            ),
            (
                "a shorter one is added",
                "a 5, b* 30, * 60",
                "a 5, b* 30, c 40, * 60",
                60,
            ),
            (
                "a short one is added among shorter ones",
                "a 5, b 6",
                "a 5, b 6, c 6",
                0,
            ),
            ("another order", "a* 5, *b 60", "*b 60, a* 5", 60),
            (
                "another order, no shorter lease",
                "a* 60, *b 60",
                "*b 60, a* 60",
                0,
            ),
            ("another glob", "a* 40, c 30", "b* 40, c 30", 40),
        ] {
            let found = templates(old).outlasts(&templates(new));
            assert_eq!(found, Duration::from_secs(seconds), "{what}");
        }
    }

    #[test]
    fn no_lease_of_a_resource_outlasts_the_result() {
        let sets = [
            "",
            "a 5",
            "a* 40",
            "a* 40, * 60",
            "a 7, a* 40",
            "*b 30, a* 40",
            "a* 40, *b 30",
            "* 20",
            "ab 50, * 20",
            "a* 5, ab 3, *b 9, * 70",
            "*b 9, a* 5, ab 3, * 70",
        ];
        let ids = ["a", "b", "ab", "aab", "abb", "x", "a*", "*"];
        for (old, new) in sets.iter().flat_map(|a| sets.map(|b| (a, b))) {
            let (before, after) = (templates(old), templates(new));
            let said = before.outlasts(&after);
            for id in ids {
                let id = ResourceId::new(id).unwrap();
                let length = |set: &Templates| set.find(&id).map(length_of).unwrap_or_default();
                let (had, has) = (length(&before), length(&after));
                assert!(had <= has || had <= said, "{id}: {old:?} to {new:?}");
            }
        }
    }

    #[test]
    fn digests_differ_for_lease_lengths_and_nothing_else() {
        let digest = |said| templates(said).lengths_digest();
        let ours = digest("a* 40, b 5");
        for other in ["", "a* 40", "b 5, a* 40", "a* 40, b 6", "a* 40, c 5"] {
            assert_ne!(digest(other), ours, "{other}");
        }
        let other_capacity = TemplateSpec {
            identifier_glob: Some("a".to_owned()),
            capacity: Some(7.0),
            kind: Some(AlgorithmKind::Static),
            lease_length: Some(Duration::from_secs(40)),
            refresh_interval: Some(Duration::from_secs(3)),
            learning_mode_duration: Some(Duration::ZERO),
            ..TemplateSpec::default()
        };
        let other = Templates::parse(&[other_capacity]).unwrap();
        assert_eq!(other.lengths_digest(), digest("a 40"));
        // Programs of other versions use the same digest.
        assert_eq!(ours, 4_582_743_090_997_331_935);
    }

    #[test]
    fn a_learning_mode_shorter_than_the_lease_stays_short() {
        let algorithm = |lease, learning| Algorithm {
            lease_length: Duration::from_secs(lease),
            learning_mode_duration: Duration::from_secs(learning),
            ..Algorithm::default()
        };
        for (lease, learning, longer, learns_for) in [
            (5, 5, 0, 5),
            (5, 5, 40, 40),
            (60, 60, 40, 60),
            (5, 90, 40, 90),
            (5, 3, 40, 3),
            (5, 0, 40, 0),
        ] {
            let found = algorithm(lease, learning).learns_for(Duration::from_secs(longer));
            let expected = Duration::from_secs(learns_for);
            assert_eq!(found, expected, "{lease} {learning} {longer}");
        }
        let promises_nothing = Algorithm {
            kind: AlgorithmKind::Static,
            ..algorithm(5, 5)
        };
        let found = promises_nothing.learns_for(Duration::from_secs(40));
        assert_eq!(found, Duration::ZERO);
    }
}
