//! Clients and their demand.

use super::{Table, check};

/// The group starts in column 3 of line 4.
#[track_caller]
fn check_groups(table: &Table) {
    let tree = "tree: {root: {children: {leaf: {count: 2}}}}";
    for (group, expected) in table {
        check(&format!("SHARED{tree}\nclients:\n- {group}\n"), expected);
    }
}

#[test]
fn groups_that_make_no_sense_are_refused() {
    check_groups(&[
        (
            "{}",
            &["4:3: clients.wants: is missing; give how much each of them wants"],
        ),
        (
            "{wants: 1, at: leaf-3}",
            &[r#"4:18: clients.at: "leaf-3" is no node; did you mean leaf-1?"#],
        ),
        (
            "{wants: 1, at: nowhere}",
            &[
                r#"4:18: clients.at: "nowhere" is no node; give one of root, leaf-1, leaf-2, or leaves or all"#,
            ],
        ),
        (
            "{wants: 1, at: []}",
            &["4:18: clients.at: is empty; give at least one node"],
        ),
        (
            "{wants: 1, at: 5}",
            &["4:18: clients.at: is the number 5; put a text in quotes"],
        ),
        (
            "{wants: 1, at: [leaf-1, laef-2]}",
            &[r#"4:27: clients.at: "laef-2" is no node; did you mean leaf-2?"#],
        ),
        (
            "{wants: 1, at: {leaf: 1}}",
            &["4:18: clients.at: is a map; give a text"],
        ),
        (
            "{wants: 1, resource: shraed}",
            &[
                r#"4:24: clients.resource: no template is for "shraed"; there are templates for shared; did you mean shared?"#,
            ],
        ),
        (
            "{wants: 1, resource: other}",
            &[
                r#"4:24: clients.resource: no template is for "other"; there are templates for shared"#,
            ],
        ),
        (
            r#"{wants: 1, resource: ""}"#,
            &["4:24: clients.resource: is empty; give it a name"],
        ),
        (
            "{wants: 1, resource: 5}",
            &["4:24: clients.resource: is the number 5; put a text in quotes"],
        ),
        (
            "{wants: 1, count: 0}",
            &["4:21: clients.count: is 0; give a whole number from 1 to 5000000"],
        ),
        (
            "{wants: 1, count: 5000001}",
            &["4:21: clients.count: is 5000001; give a whole number from 1 to 5000000"],
        ),
        (
            "{wants: 1, count: 1.5}",
            &["4:21: clients.count: is 1.5; give a whole number from 1 to 5000000"],
        ),
        (
            r#"{wants: 1, name: ""}"#,
            &["4:20: clients.name: is empty; give it a name"],
        ),
        (
            "{wants: 1, priority: high}",
            &[r#"4:24: clients.priority: is "high"; give a whole number; higher ones come first"#],
        ),
        (
            "{wants: 1, mode: save}",
            &[
                r#"4:20: clients.mode: is "save"; give one of safe, pessimistic, optimistic; did you mean safe?"#,
            ],
        ),
        (
            "{wants: 1, start_within: 11m}",
            &["4:28: clients.start_within: is longer than the whole simulation; give less"],
        ),
        (
            "{wants: 1, cuont: 5}",
            &["4:14: clients.cuont: is unknown; did you mean count?"],
        ),
        (
            "5",
            &["4:3: clients: is 5; give a map, as in {count: 10, wants: 5}"],
        ),
    ]);
}

#[test]
fn demand_that_makes_no_sense_is_refused() {
    check_groups(&[
        (
            "{wants: many}",
            &[
                r#"4:11: clients.wants: is "many"; give a number, or how it changes, as in {walk: {start: 15}}"#,
            ],
        ),
        (
            "{wants: -1}",
            &[
                "4:11: clients.wants: is -1, which is negative; give a finite number that is not negative",
            ],
        ),
        (
            "{wants: .nan}",
            &["4:11: clients.wants: is not a number; give a finite number that is not negative"],
        ),
        (
            "{wants: .inf}",
            &["4:11: clients.wants: is inf, which is above the largest amount, 1000000000000000"],
        ),
        (
            "{wants: 2e15}",
            &[
                "4:11: clients.wants: is 2000000000000000, which is above the largest amount, 1000000000000000",
            ],
        ),
        (
            "{wants: [1]}",
            &[
                "4:11: clients.wants: is a list; give a number, or how it changes, as in {walk: {start: 15}}",
            ],
        ),
        (
            "{wants: {}}",
            &[
                "4:11: clients.wants: has none of constant, step, ramp, sine, diurnal, spike, walk, on_off, flash_crowd, trace; give one",
            ],
        ),
        (
            "{wants: {wolk: {start: 1}}}",
            &["4:12: clients.wants.wolk: is unknown; did you mean walk?"],
        ),
        (
            "{wants: {walk: {start: 1}, constant: 1}}",
            &["4:11: clients.wants: has both constant and walk; give one of them"],
        ),
        (
            "{wants: {walk: }}",
            &["4:11: clients.wants.walk: is missing; give how it changes"],
        ),
        (
            "{wants: {walk: 5}}",
            &["4:18: clients.wants.walk: is 5; give a map, as in {walk: {start: 15}}"],
        ),
        (
            "{wants: {walk: {}}}",
            &["4:18: clients.wants.walk.start: is missing; give how much is wanted"],
        ),
        (
            "{wants: {walk: {start: 1, factor: 0.9}}}",
            &["4:37: clients.wants.walk.factor: is 0.9; give a list, as in [0.9, 1.1]"],
        ),
        (
            "{wants: {walk: {start: 1, factor: [0.9]}}}",
            &[
                "4:37: clients.wants.walk.factor: is a list of 1; give the least and the largest, as in [0.9, 1.1]",
            ],
        ),
        (
            "{wants: {walk: {start: 1, factor: [1.1, 0.9]}}}",
            &["4:37: clients.wants.walk.factor: goes backwards; give the smaller one first"],
        ),
        (
            "{wants: {walk: {start: 1, factor: [-1, 1]}}}",
            &["4:38: clients.wants.walk.factor: is -1; give a number from 0 to 1000000"],
        ),
        (
            "{wants: {walk: {start: 1, every: 0s}}}",
            &[r#"4:36: clients.wants.walk.every: is "0s"; give at least 1ms"#],
        ),
        (
            "{wants: {walk: {start: 1, evry: 1s}}}",
            &["4:29: clients.wants.walk.evry: is unknown; did you mean every?"],
        ),
        (
            "{wants: {step: {from: 1, to: 2, at: 10m}}}",
            &[
                "4:39: clients.wants.step.at: is 10m, but the simulation ends after 10m; nothing would happen",
            ],
        ),
        (
            "{wants: {step: {from: 1}}}",
            &[
                "4:18: clients.wants.step.to: is missing; give how much is wanted",
                "4:18: clients.wants.step.at: is missing; give when it happens",
            ],
        ),
        (
            "{wants: {ramp: {from: 1, to: 2, at: 0, over: 0}}}",
            &["4:48: clients.wants.ramp.over: is 0; give at least 1ms"],
        ),
        (
            "{wants: {sine: {mean: 1, amplitude: 2, period: 60s}}}",
            &[
                "4:39: clients.wants.sine.amplitude: is more than the mean, 1; nobody wants less than nothing",
            ],
        ),
        (
            "{wants: {sine: {mean: 1, amplitude: 1, period: 60s, shift: 2}}}",
            &["4:62: clients.wants.sine.shift: is 2; give a number from 0 to 1"],
        ),
        (
            "{wants: {diurnal: {least: 5, most: 1}}}",
            &["4:38: clients.wants.diurnal.most: is less than the least, 5"],
        ),
        (
            "{wants: {diurnal: {least: 1, most: 5, peak: 24h}}}",
            &[
                "4:47: clients.wants.diurnal.peak: is 1day, but a period is 1day; give a time within it",
            ],
        ),
        (
            "{wants: {diurnal: {most: 5, night: 2}}}",
            &[
                "4:21: clients.wants.diurnal.least: is missing; give how much is wanted",
                "4:31: clients.wants.diurnal.night: is unknown; known are least, most, period, peak, shift, every",
            ],
        ),
        (
            "{wants: {spike: {base: 1, peak: 2, at: 5s}}}",
            &["4:19: clients.wants.spike.for: is missing; give how long it lasts"],
        ),
        (
            "{wants: {on_off: {on: 1, on_for: 1s, off_for: 1s}}}",
            &[
                "4:20: clients.wants.on_off.peak: is missing; give how much is wanted",
                "4:21: clients.wants.on_off.true: is unknown; known are peak, base, on_for, off_for",
            ],
        ),
        (
            "{wants: {flash_crowd: {base: 1, peak: 2, at: 5, rise: 5}}}",
            &[
                "4:25: clients.wants.flash_crowd.half_life: is missing; give how long it is until half of it is gone",
            ],
        ),
    ]);
}

#[test]
fn traces_that_cannot_be_played_are_refused() {
    check_groups(&[
        (
            "{wants: {trace: nowhere.csv}}",
            &[r#"4:19: clients.wants.trace: is "nowhere.csv", which is not in the library"#],
        ),
        (
            "{wants: {trace: bad.csv}}",
            &[
                "4:19: clients.wants.trace: bad.csv:3: wants is not a number; give a finite number that is not negative",
            ],
        ),
        (
            "{wants: {trace: 5}}",
            &["4:19: clients.wants.trace: is 5; give the name of a file, or {file: …, speed: 2}"],
        ),
        (
            "{wants: {trace: {speed: 2}}}",
            &["4:19: clients.wants.trace.file: is missing; give the name of a trace"],
        ),
        (
            "{wants: {trace: {file: good.csv, speed: 0, repeat: 0}}}",
            &[
                "4:43: clients.wants.trace.speed: is 0; give a number from 0.000001 to 1000000",
                "4:54: clients.wants.trace.repeat: is 0; give a whole number from 1 to 1000000",
            ],
        ),
        (
            "{wants: {trace: {file: still.csv, scale: 2000}}}",
            &[
                "4:44: clients.wants.trace.scale: makes the largest amount of the trace 2000000000000000; the largest there may be is 1000000000000000",
            ],
        ),
        (
            "{wants: {trace: {file: still.csv, repeat: 2}}}",
            &[
                "4:26: clients.wants.trace.file: has all its rows at the start: it takes no time, and is not repeated",
            ],
        ),
        (
            "{wants: {trace: good.csv}, count: 3}",
            &["4:37: clients.count: is not for traces; this one has 2 clients"],
        ),
        (
            r#"{wants: {trace: good.csv}, name: "\n"}"#,
            &[
                r#"4:36: clients.name: the name of the client "\n/a" contains the control character '\n'; use printable characters"#,
            ],
        ),
    ]);
}

#[test]
fn no_two_clients_have_the_same_name_and_there_are_not_too_many() {
    let table: &Table = &[
        (
            "SHAREDclients: [{wants: 1}, {wants: 1}]",
            &[
                "2:11: clients.name: is missing; give each of several groups a name",
                "2:23: clients.name: is missing; give each of several groups a name",
            ],
        ),
        (
            "SHAREDclients: [{name: a, wants: 1}, {name: a, wants: 1}]",
            &[r#"2:32: clients.name: there is a client "a" already; give this group another name"#],
        ),
        (
            "SHAREDclients: [{name: a, count: 2, wants: 1}, {name: a, count: 3, wants: 1}]",
            &[r#"2:42: clients.name: there is a client "a" already; give this group another name"#],
        ),
        (
            "SHAREDclients: [{name: a, count: 2, wants: 1}, {name: a-1, wants: 1}, {name: a-2, wants: 1}, {name: a-01, wants: 1}]",
            &[
                r#"2:42: clients.name: there is a client "a-1" already, of the group "a"; give this group another name"#,
            ],
        ),
        (
            "SHAREDclients: [{wants: {trace: good.csv}}, {wants: {trace: good.csv}}]",
            &[r#"2:39: clients.name: there is a client "a" already; give this group another name"#],
        ),
        (
            "SHAREDclients: [{name: a, wants: 1}, {wants: {trace: good.csv}}]",
            &[r#"2:32: clients.name: there is a client "a" already; give this group another name"#],
        ),
        (
            "SHAREDclients: [{name: a, count: 3000000, wants: 1}, {name: b, count: 3000000, wants: 1}]",
            &["2:48: clients: makes 6000000 clients; at most 5000000 altogether"],
        ),
    ];
    for (text, expected) in table {
        check(text, expected);
    }
}
