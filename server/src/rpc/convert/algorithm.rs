//! The algorithm of a resource, as servers send it: conversion between the wire and the engine.

use std::time::Duration;

use doorward_engine::templates::budget_terms::PARAMETERS as BUDGET_PARAMETERS;
use doorward_engine::templates::{Algorithm, AlgorithmKind, TemplateSpec, Templates};
use doorward_proto::doorman as wire;

use super::millis;

/// Converts an algorithm for a child.
pub(super) fn message(algorithm: &Algorithm) -> wire::Algorithm {
    let parameters = algorithm.parameters().into_iter();
    let parameters = parameters.map(|(name, value)| wire::NamedParameter {
        name,
        value: Some(value),
    });
    let secs = |span: Duration| i64::try_from(span.as_secs().max(1)).unwrap_or(i64::MAX);
    wire::Algorithm {
        kind: kind(algorithm.kind).into(),
        lease_length: secs(algorithm.lease_length),
        refresh_interval: secs(algorithm.refresh_interval),
        parameters: parameters.collect(),
        learning_mode_duration: Some(
            i64::try_from(algorithm.learning_mode_duration.as_secs()).unwrap_or(i64::MAX),
        ),
        lease_length_ms: Some(millis(algorithm.lease_length)),
        refresh_interval_ms: Some(millis(algorithm.refresh_interval)),
        learning_mode_duration_ms: Some(millis(algorithm.learning_mode_duration)),
    }
}

const fn kind(kind: AlgorithmKind) -> wire::algorithm::Kind {
    match kind {
        AlgorithmKind::NoAlgorithm => wire::algorithm::Kind::NoAlgorithm,
        AlgorithmKind::Static => wire::algorithm::Kind::Static,
        AlgorithmKind::ProportionalShare => wire::algorithm::Kind::ProportionalShare,
        AlgorithmKind::FairShare => wire::algorithm::Kind::FairShare,
        AlgorithmKind::PriorityBands => wire::algorithm::Kind::PriorityBands,
        AlgorithmKind::Budget => wire::algorithm::Kind::Budget,
    }
}

/// Converts the algorithm that a parent sends, and checks it like one that an operator wrote.
///
/// # Errors
///
/// The problems of the algorithm.
pub(super) fn heard(wire: &wire::Algorithm) -> Result<Algorithm, String> {
    let mut kinds = AlgorithmKind::ALL.into_iter();
    let found = kinds.find(|it| kind(*it) as i32 == wire.kind);
    let found = found.ok_or_else(|| format!("algorithm.kind {} is unknown", wire.kind))?;
    let span = |millis: Option<u64>, secs: i64| match millis {
        Some(millis) => Duration::from_millis(millis),
        None => Duration::from_secs(u64::try_from(secs).unwrap_or_default()),
    };
    let learning = match (wire.learning_mode_duration_ms, wire.learning_mode_duration) {
        (None, None) => None,
        (millis, secs) => Some(span(millis, secs.unwrap_or_default())),
    };
    let parameters = wire.parameters.iter().filter(|parameter| {
        // A parent of another version may send other parameters. This version ignores them.
        let name = parameter.name.as_str();
        match found {
            AlgorithmKind::Budget => BUDGET_PARAMETERS.contains(&name),
            _ => ["shrink", "decay_factor"].contains(&name) || name.starts_with("min_share."),
        }
    });
    let parameters = parameters.map(|it| (it.name.clone(), it.value.clone()));
    let spec = TemplateSpec {
        identifier_glob: Some("of-the-parent".to_owned()),
        capacity: Some(0.0),
        kind: Some(found),
        lease_length: Some(span(wire.lease_length_ms, wire.lease_length)),
        refresh_interval: Some(span(wire.refresh_interval_ms, wire.refresh_interval)),
        learning_mode_duration: learning,
        parameters: parameters.collect(),
        ..TemplateSpec::default()
    };
    let templates = Templates::parse(&[spec]).map_err(|problems| {
        let text = problems
            .iter()
            .map(|problem| format!("{}: {}", problem.field, problem.message));
        text.collect::<Vec<_>>().join("; ")
    })?;
    let template = templates.iter().next();
    template
        .map(|template| (*template.algorithm).clone())
        // The list had one template, and its problems would have been returned above.
        .ok_or_else(|| "algorithm cannot be read".to_owned())
}
