//! What was measured, as CSV, for whoever wants to look at it with other tools: all amounts as they
//! are, none thinned or rounded.
//!
//! Samples have a row each. Nodes and clients are in long form, a row for each of them at each
//! time, so that a tool can group and filter them by name.

use std::io::Write;

use csv::{Error, Writer};

use crate::recording::{Mark, NodeInfo, ResourceRecording};
use crate::report::wait_rows::WAITS;

/// All clients together, a row a sample.
pub fn write_samples(out: impl Write, resource: &ResourceRecording) -> Result<(), Error> {
    let mut csv = Writer::from_writer(out);
    csv.write_record([
        "at_s", "capacity", "demand", "granted", "fallback", "safe", "used", "usable", "peak",
        "unfair", "holders", "wanting", "short",
    ])?;
    for sample in &resource.samples {
        let amounts = [
            sample.at_s,
            sample.capacity,
            sample.demand,
            sample.granted,
            sample.fallback,
            sample.safe,
            sample.used,
            sample.usable,
            sample.peak,
            sample.unfair,
        ];
        let cells = amounts.iter().map(f64::to_string);
        let counts = [sample.holders, sample.wanting, sample.short];
        csv.write_record(cells.chain(counts.map(|count| count.to_string())))?;
    }
    Ok(csv.flush()?)
}

/// Every node at every time.
pub fn write_nodes(
    out: impl Write,
    resource: &ResourceRecording,
    nodes: &[NodeInfo],
) -> Result<(), Error> {
    let mut csv = Writer::from_writer(out);
    csv.write_record([
        "at_s",
        "node",
        "level",
        "has",
        "wants",
        "granted",
        "reserved",
        "is_up",
        "is_learning",
    ])?;
    for sample in &resource.samples {
        let at = sample.at_s.to_string();
        for (info, node) in nodes.iter().zip(&sample.nodes) {
            csv.write_record([
                at.as_str(),
                &info.name,
                &info.level.to_string(),
                &node.has.to_string(),
                &node.wants.to_string(),
                &node.granted.to_string(),
                &node.reserved.to_string(),
                truth(node.is_up),
                truth(node.is_learning),
            ])?;
        }
    }
    Ok(csv.flush()?)
}

/// Those clients that are shown one by one, at every time.
pub fn write_clients(out: impl Write, resource: &ResourceRecording) -> Result<(), Error> {
    let mut csv = Writer::from_writer(out);
    csv.write_record([
        "at_s", "client", "node", "wants", "granted", "fallback", "ideal",
    ])?;
    for client in &resource.clients {
        for (all, sample) in resource.samples.iter().zip(&client.samples) {
            csv.write_record([
                &all.at_s.to_string(),
                &client.client,
                &client.node,
                &sample.wants.to_string(),
                &sample.granted.to_string(),
                &sample.fallback.to_string(),
                &sample.ideal.to_string(),
            ])?;
        }
    }
    Ok(csv.flush()?)
}

/// How clients did, the one to whom most was missing first.
pub fn write_client_figures(out: impl Write, resource: &ResourceRecording) -> Result<(), Error> {
    let mut csv = Writer::from_writer(out);
    csv.write_record(["client", "node", "wanted", "got", "ideal", "short"])?;
    for client in &resource.client_figures {
        csv.write_record([
            &client.client,
            &client.node,
            &client.wanted.to_string(),
            &client.got.to_string(),
            &client.ideal.to_string(),
            &client.short.to_string(),
        ])?;
    }
    Ok(csv.flush()?)
}

/// What utilisation misses, by what clients waited for; all of them, in parts of what could be used.
pub fn write_waits(out: impl Write, resource: &ResourceRecording) -> Result<(), Error> {
    let mut csv = Writer::from_writer(out);
    csv.write_record(["wait", "lost"])?;
    for wait in &WAITS {
        let lost = (wait.get)(&resource.figures);
        csv.write_record([wait.name, &lost.to_string()])?;
    }
    Ok(csv.flush()?)
}

/// What happened from outside. An empty `until_s`: it did not last.
pub fn write_marks(out: impl Write, marks: &[Mark]) -> Result<(), Error> {
    let mut csv = Writer::from_writer(out);
    csv.write_record(["at_s", "until_s", "kind", "text"])?;
    for mark in marks {
        let until = mark.until_s.map(|until| until.to_string());
        csv.write_record([
            mark.at_s.to_string().as_str(),
            until.unwrap_or_default().as_str(),
            mark.kind.as_str(),
            &mark.text,
        ])?;
    }
    Ok(csv.flush()?)
}

const fn truth(value: bool) -> &'static str {
    if value { "true" } else { "false" }
}

#[cfg(test)]
mod tests;
