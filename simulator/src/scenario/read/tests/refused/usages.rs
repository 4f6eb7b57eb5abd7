//! Several resources of a client, limiters, and what clients give back.

use super::{Table, check};

/// The group starts in column 3 of line 3.
#[track_caller]
fn check_groups(table: &Table) {
    for (group, expected) in table {
        check(&format!("SHAREDclients:\n- {group}\n"), expected);
    }
}

#[test]
fn limiters_that_make_no_sense_are_refused() {
    check_groups(&[
        (
            "{wants: 1, limiter: 5}",
            &["3:23: clients.limiter: is 5; give a map, as in {rate: 1}"],
        ),
        (
            "{wants: 1, limiter: {}}",
            &["3:23: clients.limiter: has none of rate, concurrency; give one"],
        ),
        (
            "{wants: 1, limiter: {rate: 1, concurrency: 1}}",
            &["3:23: clients.limiter: has both rate and concurrency; give one of them"],
        ),
        (
            "{wants: 1, limiter: {rate: }}",
            &["3:23: clients.limiter.rate: is missing; give what each piece of work takes"],
        ),
        (
            "{wants: 1, limiter: {rate: 0}}",
            &["3:30: clients.limiter.rate: is 0; give a number from 0.000001 to 1000000000000000"],
        ),
        (
            "{wants: 1, limiter: {rate: 1, for: 5s}}",
            &["3:33: clients.limiter.for: is unknown; known are rate, adaptive"],
        ),
        (
            "{wants: 1, limiter: {concurrency: 1}}",
            &["3:23: clients.limiter.for: is missing; give how long it takes"],
        ),
        (
            "{wants: 1, limiter: {concurrency: 1.5, for: 5s}}",
            &["3:37: clients.limiter.concurrency: is 1.5; give a whole number from 1 to 1000000"],
        ),
        (
            "{wants: 1, limiter: {concurrency: 1, for: 0s}}",
            &["3:45: clients.limiter.for: is \"0s\"; give more than nothing"],
        ),
        (
            "{wants: 1, limiter: {rate: 1, adaptive: true}}",
            &["3:43: clients.limiter.adaptive: is true; give a map, as in {window: 10s}"],
        ),
        (
            "{wants: 1, limiter: {rate: 1, adaptive: {window: 10ms}}}",
            &["3:52: clients.limiter.adaptive.window: is \"10ms\"; give at least 100ms"],
        ),
        (
            "{wants: 1, limiter: {rate: 1, adaptive: {headroom: 0.5}}}",
            &["3:54: clients.limiter.adaptive.headroom: is 0.5; give a number from 1 to 1000"],
        ),
        (
            "{wants: 1, limiter: {rate: 1, adaptive: {most: -1}}}",
            &[
                "3:50: clients.limiter.adaptive.most: is -1, which is negative; give a finite number that is not negative",
            ],
        ),
        (
            "{wants: 1, limiter: {rate: 1, adaptive: {lest: 1}}}",
            &["3:44: clients.limiter.adaptive.lest: is unknown; did you mean least?"],
        ),
    ]);
}

#[test]
fn further_resources_that_make_no_sense_are_refused() {
    check_groups(&[
        (
            "{wants: 1, also: 5}",
            &["3:20: clients.also: is 5; give a list, as in [{resource: other, wants: 5}]"],
        ),
        (
            "{wants: 1, also: [5]}",
            &["3:21: clients.also: is 5; give a map, as in {resource: other, wants: 5}"],
        ),
        (
            "{wants: 1, also: [{resource: shared}]}",
            &["3:21: clients.also.wants: is missing; give how much each of them wants"],
        ),
        (
            "{wants: 1, also: [{resource: shared, wants: 1}]}",
            &["3:32: clients.also.resource: \"shared\" is used already; give another one"],
        ),
        (
            "{wants: 1, also: [{wants: 1}]}",
            &["3:21: clients.also: \"shared\" is used already; give another one"],
        ),
        (
            "{wants: 1, also: [{count: 2, wants: 1}]}",
            &[
                "3:21: clients.also: \"shared\" is used already; give another one",
                "3:22: clients.also.count: is unknown; known are resource, priority, mode, wants, limiter",
            ],
        ),
        (
            "{wants: 1, also: [{resource: shared, wants: {trace: good.csv}}]}",
            &["3:47: clients.also.wants: is a trace, whose clients are a group of their own"],
        ),
    ]);
}

#[test]
fn what_clients_do_not_use_is_refused() {
    for (fault, expected) in [
        (
            "{at: 1s, close: {clients: 1}, resource: shraed}",
            r#"4:43: faults.resource: "shraed" is no resource that clients use; did you mean shared?"#,
        ),
        (
            "{at: 1s, demand: {clients: 1}, wants: 1, resource: other}",
            r#"4:54: faults.resource: "other" is no resource that clients use; give one of shared"#,
        ),
        (
            "{at: 1s, leave: {clients: 2}}",
            "4:29: faults.leave.clients: is 2; give a whole number from 1 to 1",
        ),
        (
            "{at: 1s, leave: {clients: 1}, resource: shared}",
            "4:33: faults.resource: is unknown; known are leave, for, at",
        ),
        (
            "{at: 1s, depose: root}",
            r#"4:20: faults.depose: "root" has no other candidate, so there is no election; give it candidates: 2"#,
        ),
    ] {
        let text = format!("SHAREDclients: [{{wants: 1}}]\nfaults:\n- {fault}\n");
        check(&text, &[expected]);
    }
}
