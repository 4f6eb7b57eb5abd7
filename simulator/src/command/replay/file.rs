//! A replay as a scenario file, which plays the same: from there on faults, limits and everything
//! else of scenarios can be added.

use std::fmt::Write;
use std::time::Duration;

use doorward_engine::template::{Algorithm, SafeCapacity, Shrink, Template};
use doorward_simulator::scenario::demand::{Demand, Trace};
use doorward_simulator::scenario::{Node, Scenario};
use doorward_simulator::trace::Source;

/// The file. `command` is what it plays the same as.
pub(super) fn text(scenario: &Scenario, command: &str) -> String {
    let mut out = format!(
        "# What this plays: {command}\n\
         # Files are looked for from the folder of this one. docs/simulator.md has every key.\n"
    );
    line(
        &mut out,
        format_args!("description: {}", quoted(&scenario.description)),
    );
    line(
        &mut out,
        format_args!("duration: {}", long(scenario.duration)),
    );
    line(
        &mut out,
        format_args!("sample_every: {}", long(scenario.sample_every)),
    );
    line(&mut out, format_args!("seed: {}", scenario.seed));
    line(&mut out, format_args!("\ntemplates:\n  resources:"));
    for template in scenario.templates.iter() {
        write_template(&mut out, template);
    }
    line(&mut out, format_args!("\ntree:"));
    write_node(&mut out, &scenario.nodes, 0, 1);
    line(&mut out, format_args!("\nclients:"));
    for group in &scenario.clients {
        let resource = quoted(group.resource.as_str());
        line(&mut out, format_args!("- resource: {resource}"));
        if let Demand::Trace(trace) = &group.demand {
            write_trace(&mut out, trace);
        }
    }
    if let Some(overshoot) = scenario.limits.overshoot_max {
        line(
            &mut out,
            format_args!("\nlimits:\n  overshoot: {overshoot}"),
        );
    }
    out
}

fn write_template(out: &mut String, template: &Template) {
    let algorithm = &template.algorithm;
    let glob = quoted(&template.identifier_glob);
    line(out, format_args!("  - identifier_glob: {glob}"));
    line(
        out,
        format_args!("    capacity: {}", template.capacity.get()),
    );
    match template.safe_capacity {
        Some(SafeCapacity::Unlimited) => line(out, format_args!("    safe_capacity: -1")),
        Some(SafeCapacity::Limited(amount)) => {
            line(out, format_args!("    safe_capacity: {}", amount.get()));
        }
        None => {}
    }
    if !template.description.is_empty() {
        let description = quoted(&template.description);
        line(out, format_args!("    description: {description}"));
    }
    line(out, format_args!("    algorithm:"));
    line(out, format_args!("      kind: {}", algorithm.kind.as_str()));
    line(
        out,
        format_args!("      lease_length: {}", long(algorithm.lease_length)),
    );
    line(
        out,
        format_args!(
            "      refresh_interval: {}",
            long(algorithm.refresh_interval)
        ),
    );
    if algorithm.learning_mode_duration != algorithm.lease_length {
        let learning = long(algorithm.learning_mode_duration);
        line(
            out,
            format_args!("      learning_mode_duration: {learning}"),
        );
    }
    let mut parameters = Vec::new();
    if algorithm.decay_factor != Algorithm::default().decay_factor {
        parameters.push((
            "decay_factor".to_owned(),
            algorithm.decay_factor.to_string(),
        ));
    }
    if algorithm.shrink == Shrink::Immediate {
        parameters.push(("shrink".to_owned(), "immediate".to_owned()));
    }
    for (priority, share) in &algorithm.min_shares {
        parameters.push((format!("min_share.{priority}"), share.to_string()));
    }
    if !parameters.is_empty() {
        line(out, format_args!("      parameters:"));
        for (name, value) in parameters {
            line(
                out,
                format_args!("      - {{name: {name}, value: \"{value}\"}}"),
            );
        }
    }
}

/// A node, indented so deep, and all below it.
fn write_node(out: &mut String, nodes: &[Node], number: usize, depth: usize) {
    let Some(node) = nodes.get(number) else {
        return;
    };
    let indent = "  ".repeat(depth);
    let name = quoted(&node.name);
    let children: Vec<usize> = (0..nodes.len())
        .filter(|child| {
            nodes
                .get(*child)
                .is_some_and(|it| it.parent == Some(number))
        })
        .collect();
    if children.is_empty() {
        let candidates = node.candidates;
        line(
            out,
            format_args!("{indent}{name}: {{candidates: {candidates}}}"),
        );
        return;
    }
    line(out, format_args!("{indent}{name}:"));
    line(
        out,
        format_args!("{indent}  candidates: {}", node.candidates),
    );
    line(out, format_args!("{indent}  children:"));
    for child in children {
        write_node(out, nodes, child, depth + 2);
    }
}

fn write_trace(out: &mut String, trace: &Trace) {
    let Source::File(path) = &trace.source else {
        return;
    };
    let file = quoted(&path.display().to_string());
    line(
        out,
        format_args!("  wants:\n    trace:\n      file: {file}"),
    );
    for (key, value) in [
        ("speed", trace.speed),
        ("scale", trace.scale),
        ("repeat", f64::from(trace.repeat)),
    ] {
        if value != 1.0 {
            line(out, format_args!("      {key}: {value}"));
        }
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing into a string does not fail.
    let _ = writeln!(out, "{text}");
}

/// A text in YAML. What is plain stands as it is; in quotes YAML understands what JSON does.
fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    // What begins with two letters, and is of these, is no number; truth values and nothing are.
    let is_word = text.chars().take(2).all(|c| c.is_ascii_alphabetic())
        && text.len() > 5
        && text.chars().all(is_plain);
    if is_word || text == "root" {
        return text.to_owned();
    }
    serde_json::Value::from(text).to_string()
}

fn long(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}
