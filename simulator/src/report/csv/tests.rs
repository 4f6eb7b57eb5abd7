//! Rows of samples.

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
