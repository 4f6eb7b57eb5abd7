//! Warnings about capacities: 0, and a safe capacity that lets clients use more than the capacity when no server
//! answers.
//!
//! The number of clients is only known of resources in use. A safe capacity of -1 is intended.

use std::collections::BTreeMap;

use doorward_engine::id::ResourceId;
use doorward_engine::template::{AlgorithmKind, Field, SafeCapacity, Template, Templates};

use super::{TemplateWarning, WarningKind};
use crate::granted::number;
use crate::templates::effect::Live;

pub(super) fn findings(templates: &Templates, live: &[Live]) -> Vec<TemplateWarning> {
    let fullest = fullest(templates, live);
    let mut findings = Vec::new();
    for (index, template) in templates.iter().enumerate() {
        let kind = template.algorithm.kind;
        if template.capacity.get() == 0.0 && kind != AlgorithmKind::NoAlgorithm {
            let message = "is 0: no client gets anything of its resources".to_owned();
            let field = Field::Capacity;
            findings.push(TemplateWarning::new(
                WarningKind::NoCapacity,
                index,
                field,
                message,
            ));
        }
        let fullest = fullest.get(template.identifier_glob.as_str()).copied();
        findings.extend(safe_capacity(index, template, fullest));
    }
    findings
}

/// By template: which resource in use has the most clients.
fn fullest<'a>(templates: &'a Templates, live: &'a [Live]) -> BTreeMap<&'a str, &'a Live> {
    let mut fullest: BTreeMap<&str, &Live> = BTreeMap::new();
    for live in live {
        let id = ResourceId::new(&live.resource).ok();
        if let Some(template) = id.and_then(|id| templates.find(&id)) {
            let most = fullest.entry(&template.identifier_glob).or_insert(live);
            if live.clients > most.clients {
                *most = live;
            }
        }
    }
    fullest
}

fn safe_capacity(
    index: usize,
    template: &Template,
    fullest: Option<&Live>,
) -> Option<TemplateWarning> {
    let Some(SafeCapacity::Limited(safe)) = template.safe_capacity else {
        return None;
    };
    let (safe, capacity) = (safe.get(), template.capacity.get());
    if !template.algorithm.kind.promises_total() {
        return None;
    }
    let clients = fullest.map_or(1, |live| live.clients.max(1));
    let together = safe * clients as f64;
    if together <= capacity {
        return None;
    }
    let (safe, capacity_said) = (number(safe), number(capacity));
    let message = match fullest {
        Some(live) if clients > 1 => format!(
            "is {safe}, and the {clients} clients of {} may use {} of {capacity_said} together when no \
             server answers; give less, or leave it out, for an equal part each",
            live.resource,
            number(together),
        ),
        _ => format!(
            "is {safe}, more than the capacity of {capacity_said}: a single client may use more than \
             there is when no server answers; give less, or leave it out, for an equal part each"
        ),
    };
    let found = TemplateWarning::new(
        WarningKind::SafeCapacity,
        index,
        Field::SafeCapacity,
        message,
    );
    Some(TemplateWarning {
        // Of nothing, everything is infinitely too much.
        weight: together / capacity,
        ..found
    })
}
