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
mod tests {
    use super::*;
    use crate::report::plausible;

    #[track_caller]
    fn check(write: impl Fn(&mut Vec<u8>) -> Result<(), Error>, expected: &str) {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn a_row_is_a_sample() {
        let mut resource = plausible::small().resources.remove(0);
        resource.samples.truncate(2);
        check(
            |out| write_samples(out, &resource),
            "at_s,capacity,demand,granted,fallback,safe,used,usable,peak,unfair,holders,wanting,\
             short\n\
             0,10,12,0,0,0,0,10,0,5,2,2,2\n\
             10,10,12,8,0,0,8,10,8,1,2,2,2\n",
        );
        check(
            |out| write_waits(out, &resource),
            "wait,lost\nclient's gap,0.005\nanswer under way,0.00001\nrefresh floor,0\n\
             others to shrink,0.01499\nshare,0\nlearning mode,0\nrefusal or parent,0\n\
             no server,0.025\n",
        );
    }

    #[test]
    fn nodes_and_clients_have_a_row_at_each_time() {
        let recording = plausible::small();
        let mut resource = recording.resources[0].clone();
        resource.samples.truncate(2);
        check(
            |out| write_nodes(out, &resource, &recording.nodes),
            "at_s,node,level,has,wants,granted,reserved,is_up,is_learning\n\
             0,<one>,0,10,12,0,0,true,true\n\
             10,<one>,0,10,12,8,8,true,false\n",
        );
        check(
            |out| write_clients(out, &resource),
            "at_s,client,node,wants,granted,fallback,ideal\n\
             0,a,<one>,5,0,0,5\n\
             10,a,<one>,5,4,0,5\n\
             0,\"b'\"\"\",<one>,7,0,0,5\n\
             10,\"b'\"\"\",<one>,7,4,0,5\n",
        );
        check(
            |out| write_client_figures(out, &resource),
            "client,node,wanted,got,ideal,short\n\
             \"b'\"\"\",<one>,7,4.55,5,1\n\
             a,<one>,5,4.55,5,0.5\n",
        );
        check(
            |out| write_marks(out, &recording.marks),
            "at_s,until_s,kind,text\n30,42,kill,<one> is killed & back after 12 s\n",
        );
    }

    #[test]
    fn of_nothing_there_is_a_header() {
        let empty = ResourceRecording::default();
        check(
            |out| write_clients(out, &empty),
            "at_s,client,node,wants,granted,fallback,ideal\n",
        );
    }
}
