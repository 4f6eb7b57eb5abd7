//! Templates, as template files have them.

use doorward_engine::template::{Algorithm, SafeCapacity, Shrink, Template, Templates};

use crate::scenario::write::yaml::Yaml;

pub(super) fn written(templates: &Templates) -> Yaml {
    let mut out = Yaml::map();
    let each = templates.iter().map(|template| one(template));
    out.put("resources", Yaml::List(each.collect()));
    out
}

fn one(template: &Template) -> Yaml {
    let mut out = Yaml::map();
    out.put("identifier_glob", Yaml::text(&template.identifier_glob));
    out.put("capacity", Yaml::plain(template.capacity.get()));
    match template.safe_capacity {
        Some(SafeCapacity::Unlimited) => out.put("safe_capacity", Yaml::plain(-1)),
        Some(SafeCapacity::Limited(amount)) => {
            out.put("safe_capacity", Yaml::plain(amount.get()));
        }
        None => {}
    }
    if let Some(most) = template.holder_bounds.wants_max {
        out.put("wants_max", Yaml::plain(most.get()));
    }
    if let Some(most) = template.holder_bounds.subclients_max {
        out.put("subclients_max", Yaml::plain(most.get()));
    }
    if !template.description.is_empty() {
        out.put("description", Yaml::text(&template.description));
    }
    out.put("algorithm", algorithm(&template.algorithm));
    out
}

fn algorithm(algorithm: &Algorithm) -> Yaml {
    let mut out = Yaml::map();
    out.put("kind", Yaml::plain(algorithm.kind.as_str()));
    out.put("lease_length", Yaml::duration(algorithm.lease_length));
    out.put(
        "refresh_interval",
        Yaml::duration(algorithm.refresh_interval),
    );
    if algorithm.learning_mode_duration != algorithm.lease_length {
        let learning = Yaml::duration(algorithm.learning_mode_duration);
        out.put("learning_mode_duration", learning);
    }
    let mut parameters = Vec::new();
    let mut parameter = |name: String, value: String| {
        let mut one = Yaml::map();
        one.put("name", Yaml::plain(name));
        one.put("value", Yaml::plain(format!("\"{value}\"")));
        parameters.push(one);
    };
    if algorithm.decay_factor != Algorithm::default().decay_factor {
        parameter(
            "decay_factor".to_owned(),
            algorithm.decay_factor.to_string(),
        );
    }
    if algorithm.shrink == Shrink::Immediate {
        parameter("shrink".to_owned(), "immediate".to_owned());
    }
    for (priority, share) in &algorithm.min_shares {
        parameter(format!("min_share.{priority}"), share.to_string());
    }
    if !parameters.is_empty() {
        out.put("parameters", Yaml::List(parameters));
    }
    out
}
