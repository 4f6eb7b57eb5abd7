//! Warnings about capacities: 0, a factor of ten, a total that is no longer kept, and a safe capacity that lets clients
//! use more than the capacity when no server answers.
//!
//! The number of clients is only known of resources in use. A safe capacity of -1 is intended.

use std::collections::BTreeMap;

use doorward_engine::id::ResourceId;
use doorward_engine::templates::{AlgorithmKind, Field, SafeCapacity, Template, Templates};

use doorward_proto::admin::v1::PlannedResource;

use super::{InForceBefore, Replaced, TemplateWarning, WarningKind};
use doorward_pages::numbers::capacity as number;
use doorward_proto::plan::ResourcePlan;

/// Factor of a capacity that needs a warning.
const FACTOR: f64 = 10.0;

/// Returns the warnings about one document.
pub(super) fn findings(templates: &Templates, in_use: &[ResourcePlan]) -> Vec<TemplateWarning> {
    let fullest = fullest(templates, in_use);
    let mut findings = Vec::new();
    for (index, template) in templates.iter().enumerate() {
        let kind = template.algorithm.kind;
        if template.capacity.get() == 0.0 && kind != AlgorithmKind::NoAlgorithm {
            let message = "is 0: no client gets anything of its resources".to_owned();
            let (kind, about) = (WarningKind::NoCapacity, Some((index, Field::Capacity)));
            findings.push(TemplateWarning::new(kind, about, message));
        }
        let fullest = fullest.get(template.identifier_glob.as_str()).copied();
        findings.extend(safe_capacity(index, template, fullest));
    }
    findings
}

/// Returns the warnings about capacities beside those in force.
pub(super) fn changes(new: &Templates, before: &InForceBefore<'_>) -> Vec<TemplateWarning> {
    let replaced = before.replaced(new).into_iter();
    let found = replaced.flat_map(|it| {
        let factor = factor(&it).filter(|_| !before.was_in_force);
        [factor, no_total(&it)]
    });
    found.flatten().collect()
}

/// Whether the capacity of a template changes by a factor of ten, usually a digit too much or too few.
fn factor(it: &Replaced<'_>) -> Option<TemplateWarning> {
    let (new, old) = (it.new, it.old);
    let is_amount = |template: &Template| template.algorithm.kind != AlgorithmKind::NoAlgorithm;
    let (was, is) = (old.capacity.get(), new.capacity.get());
    let times = if is >= was { is / was } else { was / is };
    // Zeros have a warning of their own.
    let counts = is_amount(old) && is_amount(new) && was > 0.0 && is > 0.0;
    (counts && times >= FACTOR).then(|| {
        let (is_said, was, times) = (number(is), number(was), number(times));
        let how = match is >= old.capacity.get() {
            true => "times",
            false => "times less than",
        };
        let message = format!("is {is_said}, {times} {how} the {was} in force");
        let about = Some((it.index, Field::Capacity));
        TemplateWarning::new(WarningKind::CapacityFactor, about, message)
    })
}

/// Whether a total that was kept is kept no more.
fn no_total(it: &Replaced<'_>) -> Option<TemplateWarning> {
    let (was, is) = (it.old.algorithm.kind, it.new.algorithm.kind);
    (was.promises_total() && !is.promises_total()).then(|| {
        let how = match is {
            AlgorithmKind::Static => "gives each client up to the capacity",
            _ => "gives everyone what it wants",
        };
        let capacity = number(it.old.capacity.get());
        let message = format!(
            "is {is}, which {how}: together they may use more than the {capacity} that {was} keeps to. \
             To limit each client as well, keep {was} and set wants_max"
        );
        TemplateWarning::new(WarningKind::NoTotal, Some((it.index, Field::Kind)), message)
    })
}

/// By template: which resource in use has the most clients.
fn fullest<'a>(
    templates: &'a Templates,
    in_use: &'a [ResourcePlan],
) -> BTreeMap<&'a str, &'a PlannedResource> {
    let mut fullest: BTreeMap<&str, &PlannedResource> = BTreeMap::new();
    for live in in_use.iter().map(|plan| &plan.root) {
        let id = ResourceId::new(&live.resource_id).ok();
        if let Some(template) = id.and_then(|id| templates.find(&id)) {
            let most = fullest.entry(&template.identifier_glob).or_insert(live);
            if live.clients_count > most.clients_count {
                *most = live;
            }
        }
    }
    fullest
}

fn safe_capacity(
    index: usize,
    template: &Template,
    fullest: Option<&PlannedResource>,
) -> Option<TemplateWarning> {
    let Some(SafeCapacity::Limited(safe)) = template.safe_capacity else {
        return None;
    };
    let (safe, capacity) = (safe.get(), template.capacity.get());
    let clients = fullest.map_or(1, |live| live.clients_count.max(1));
    let together = safe * clients as f64;
    if !template.algorithm.kind.promises_total() || together <= capacity {
        return None;
    }
    let (safe, capacity_said) = (number(safe), number(capacity));
    let message = match fullest {
        Some(live) if clients > 1 => format!(
            "is {safe}, and the {clients} clients of {} may use {} of {capacity_said} together when no \
             server answers; give less, or leave it out, for an equal part each",
            live.resource_id,
            number(together),
        ),
        _ => format!(
            "is {safe}, more than the capacity of {capacity_said}: a single client may use more than \
             there is when no server answers; give less, or leave it out, for an equal part each"
        ),
    };
    // Of nothing, everything is infinitely too much.
    let weight = together / capacity;
    let about = Some((index, Field::SafeCapacity));
    let found = TemplateWarning::new(WarningKind::SafeCapacity, about, message);
    Some(TemplateWarning { weight, ..found })
}
