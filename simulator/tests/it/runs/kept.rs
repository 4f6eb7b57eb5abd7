//! Worlds that failed once, kept as files: they stay the same whatever later releases draw.
//! `doorward-sim fuzz --seed N --print-scenario` makes such a file from any seed.
//!
//! Random decisions during a run still change whenever the engine or the simulator sends other
//! messages or sends them at other times. Each fixed error therefore also has a test of its own,
//! beside its fix.

use std::path::{Path, PathBuf};

use doorward_simulator::fuzz;
use doorward_simulator::scenario::Scenario;
use doorward_simulator::scenario::read::Files;

use super::played;

/// Expected outcome of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// All its limits hold.
    Holds,
    /// A known failure, which depends on random decisions: if limits are broken, these are. A fix
    /// changes the entry to `Holds`.
    MayFail(&'static [&'static str]),
}

use Expected::{Holds, MayFail};

/// A child's master changes twice while its parent learns.
const TWICE: &[(&str, Expected)] = &[
    ("chain-5.yaml", Holds),
    ("few2-259.yaml", Holds),
    ("few3-10.yaml", Holds),
    ("few3-60.yaml", Holds),
    ("fuzz-7555.yaml", Holds),
    ("fuzz-16645.yaml", Holds),
    // Holds by luck: a root that is cut off from etcd now applies other templates later.
    ("fuzz-1015725.yaml", Holds),
    ("fuzz-30524.yaml", Holds),
    ("fuzz-31184.yaml", Holds),
    ("fuzz-31726.yaml", Holds),
    ("fuzz-32717.yaml", Holds),
    ("fuzz-34143.yaml", Holds),
    ("fuzz-36743.yaml", Holds),
];

/// A learning node granted the amount by which its lease had grown.
const GROWN: &[(&str, Expected)] = &[
    ("fuzz-31747.yaml", Holds),
    ("fuzz-70224.yaml", Holds),
    ("fuzz-61008.yaml", Holds),
    ("fuzz-33137.yaml", Holds),
];

/// A lease length is shortened, and then the master changes.
const SHORTENED: &[(&str, Expected)] = &[
    ("short.yaml", Holds),
    // Below the root: a node whose parent learns for longer leases learned only for the new ones.
    ("fuzz-153593.yaml", Holds),
    ("fuzz-700741.yaml", Holds),
    // Below the root: amounts of a longer lease counted only for the present lease length.
    ("fuzz-225107.yaml", Holds),
    ("fuzz-231305.yaml", Holds),
    // Error of a checker: a root that is cut off from its election has not read the templates yet.
    ("fuzz-235176.yaml", Holds),
];

/// The allowance of a node is lowered, and then its master changes. The next master confirms
/// reports up to the capacity that is left beside leases not yet reported.
const LOWERED_AND_CHANGED: &[(&str, Expected)] = &[
    ("fuzz-49438.yaml", Holds),
    ("fuzz-48729.yaml", Holds),
    // It confirmed a child server's outstanding amount although its predecessor had lowered the
    // child's lease below that.
    ("fuzz-10037305.yaml", Holds),
];

/// Etcd is wiped, and no running process remembers the epoch of a node.
const WIPED: &[(&str, Expected)] = &[
    // The parent refused the node's master for ever because it had seen a later epoch.
    ("fuzz-51729.yaml", Holds),
    // Error of the simulator: a server never noticed the end of a child's stream in a partition,
    // and refused the streams of its successors, whose epochs are lower.
    ("fuzz-50236.yaml", Holds),
    // Etcd is wiped, a master is elected in it, and etcd is wiped again before the next master sees
    // that term. The next master learned only for the rest of its own leases. (And of the checkers:
    // the capacity is lowered meanwhile. A learning root cannot tell that all reports are true, and
    // has less in its books until it has come down.)
    ("fuzz-4000778.yaml", Holds),
    // The next master was frozen while another one decided and etcd was wiped.
    ("fuzz-4005245.yaml", Holds),
];

/// A second process of a node runs, and confirms leases that the first one continues to grant.
const TWINS: &[(&str, Expected)] = &[
    ("fuzz-60036.yaml", Holds),
    // A second process of a client runs besides, and no server sees both (decision 10). A quarter
    // of all seeds fail.
    ("fuzz-61377.yaml", MayFail(&["overshoot", "nesting"])),
    ("twins-of-both-13.yaml", MayFail(&["overshoot", "nesting"])),
    // The second process of a leaf had counted the first one as gone. It confirmed a lease that it
    // had not reported yet when the first one was heard again, which freed that lease.
    ("fuzz-50000338.yaml", Holds),
    // A second process of a client has work in flight beyond a lease that shrank. When the first
    // one was heard again, its amount stayed reserved only until its next request and not until its
    // lease ended.
    ("fuzz-550.yaml", Holds),
    // A leaf lost one request, and its parent took it for gone before the leaf could notice.
    ("fuzz-1438.yaml", Holds),
    // A second process that had learned took the name at a parent that did not know it yet, and its
    // report freed the leases of the first.
    ("fuzz-2000109.yaml", Holds),
    ("fuzz-4002103.yaml", Holds),
    ("fuzz-4009141.yaml", Holds),
    // The second process passes on an amount that one of its clients has released.
    ("fuzz-63381.yaml", Holds),
    ("fuzz-63781.yaml", Holds),
    ("fuzz-60111.yaml", Holds),
    ("fuzz-60180.yaml", Holds),
    // Two processes of a leaf replaced each other's stream in turns, and each waited longer each
    // time. So the first one was silent for longer than its parent waits when the second one asked
    // for capacity.
    ("fuzz-1460071.yaml", Holds),
    // The second process of a leaf confirmed work in flight for the length of the client's present
    // lease. The former lease that allowed the work ended earlier.
    ("fuzz-8005112.yaml", Holds),
];

/// The capacity is lowered where clocks are slow. The checkers expected old leases to end after a
/// lease length of a true clock, not of the root's.
const LOWERED: &[(&str, Expected)] = &[("fuzz-5010487.yaml", Holds), ("lowered-slow.yaml", Holds)];

/// Errors fixed long ago.
const MENDED: &[(&str, Expected)] = &[
    // The simulator: a client waited for ever for a server that had vanished.
    ("fuzz-18.yaml", Holds),
    ("fuzz-193.yaml", Holds),
    // The simulator: an answer to an older call counted for a newer one.
    ("fuzz-54.yaml", Holds),
    // The simulator: a client wanted more than a request can ask for, and was refused for ever.
    ("fuzz-4002638.yaml", Holds),
    // The checkers: utilisation was judged where nothing could be used.
    ("fuzz-933.yaml", Holds),
    // The checkers: a lowered capacity and a new root within one lease length counted as overshoot,
    // although old leases may run down.
    ("fuzz-1433.yaml", Holds),
    ("fuzz-2527.yaml", Holds),
    ("fuzz-2761.yaml", Holds),
    ("fuzz-9138.yaml", Holds),
    // The simulator: after a partition, an answer about another resource made a server forget that
    // the request before it was lost on the same stream.
    ("fuzz-10645.yaml", Holds),
    ("fuzz-10952.yaml", Holds),
    ("fuzz-11880.yaml", Holds),
    // The engine: a child server reported an amount that had been outstanding until a moment
    // before, without its remaining time; its parent, without a lease itself, passed that on for a
    // whole lease length.
    ("fuzz-6879.yaml", Holds),
    // The engine: leases counted to the last moment on clocks of different speed.
    ("fuzz-10142.yaml", Holds),
    ("fuzz-10768.yaml", Holds),
    // The checkers: a root that starts again after a freeze learns like one that is elected.
    ("fuzz-11283.yaml", Holds),
];

/// A child ended its learning mode while its parent, which it could not reach, still learned. The
/// child granted its whole lease, more than was ever in use.
const OUT_OF_REACH: &[(&str, Expected)] = &[
    ("fuzz-223676.yaml", Holds),
    ("fuzz-240912.yaml", Holds),
    // Its estimate for holders that it had not heard of was granted to it as a lease.
    ("fuzz-241476.yaml", Holds),
];

/// The capacity is lowered, the root restarts, and a child has another master. Reports were
/// confirmed in order of arrival and not in parts that fit together.
const LOWERED_AND_RESTARTED: &[(&str, Expected)] = &[
    ("lowered-and-restarted-365.yaml", Holds),
    // Then a child server had a short lease of a larger amount beside a longer one of a smaller
    // amount.
    ("fuzz-307110.yaml", Holds),
];

/// A case that no process can detect: etcd is restored, within a TTL, to a time at which a master
/// had the key that is now cut off and has been succeeded. Its key is there again, and its
/// successor has not yet learned that its own is gone.
const RESTORED: &[(&str, Expected)] = &[
    ("restored-at-once.yaml", MayFail(&["mastership"])),
    // Or no server of the root runs that remembers, and its templates have given shorter leases
    // since. No server knows that the former leases are still valid.
    ("fuzz-10009706.yaml", MayFail(&["nesting"])),
];

/// A master lapses, another one decides, and etcd is restored to a time before that. The first one
/// finds its key unchanged, and learned only for the rest of its own leases.
const REVIVED: &[(&str, Expected)] = &[
    ("fuzz-1007000293.yaml", Holds),
    // No process remembers the other master.
    ("fuzz-1007001985.yaml", Holds),
    // A process remembers it, and reports it too late.
    ("fuzz-1007003345.yaml", Holds),
];

/// Leases become shorter; then a child's master changes or the child shrinks. A shorter lease of a
/// larger amount counted no longer after its end, although some holders continued by a later lease
/// while others still had a longer one of a smaller amount.
const SHORTER_OF_MORE: &[(&str, Expected)] = &[
    ("fuzz-1007002534.yaml", Holds),
    ("fuzz-7011476.yaml", Holds),
];

/// A client gets its ideal share a little late.
const LATE: &[(&str, Expected)] = &[("fuzz-21931.yaml", MayFail(&["settled fairness"]))];

/// Worlds that broke a promise when the code had a bug on purpose. They hold without it.
const MUTATIONS: &[(&str, Expected)] = &[
    ("fuzz-20247.yaml", Holds),
    ("fuzz-30000.yaml", Holds),
    ("fuzz-50000.yaml", Holds),
    ("fuzz-50003.yaml", Holds),
    ("fuzz-1000000000.yaml", Holds),
    ("fuzz-1000000007.yaml", Holds),
    ("fuzz-1000000034.yaml", Holds),
    ("fuzz-1000000237.yaml", Holds),
];

/// Work in flight was reported as held, even if the client's mode had admitted it. A server
/// reserves only leases.
const IN_FLIGHT: &[(&str, Expected)] = &[
    // A learning master leased it, beside amounts not yet reported to it.
    ("fuzz-1700.yaml", Holds),
    // The simulator: it counted as use by a former lease although the client had reported less
    // since.
    ("fuzz-1728.yaml", Holds),
    ("fuzz-4003357.yaml", Holds),
];

/// After the capacity was lowered, holders report more to a learning server than there is. A
/// child's parts were cut from a lease that had ended, and took a part of other holders' true
/// amounts.
const SHARED_OUT: &[(&str, Expected)] = &[("fuzz-1007004934.yaml", Holds)];

/// A client's report is under way for 400 ms, and its lease ends meanwhile. The report was counted
/// as a part of what the parent leaves afterwards.
const ON_ITS_WAY: &[(&str, Expected)] = &[("fuzz-1400050.yaml", Holds)];

/// A child server's outstanding amount is a sum of leases. All of it was taken to last as long as
/// the last of them.
const OUT_FOR_LESS: &[(&str, Expected)] =
    &[("fuzz-4005496.yaml", Holds), ("fuzz-9100431.yaml", Holds)];

/// A client asks as its lease ends, while a learning parent has nothing for its server yet. It got 0 for a whole
/// refresh interval of 6 s.
const LOWERED_WHILE_LEARNING: &[(&str, Expected)] = &[("lowered-while-learning-59.yaml", Holds)];

/// All kept worlds.
const KEPT: [&[(&str, Expected)]; 20] = [
    LOWERED_WHILE_LEARNING,
    SHORTER_OF_MORE,
    OUT_FOR_LESS,
    IN_FLIGHT,
    LATE,
    MUTATIONS,
    SHARED_OUT,
    ON_ITS_WAY,
    TWICE,
    GROWN,
    SHORTENED,
    LOWERED_AND_CHANGED,
    LOWERED,
    WIPED,
    TWINS,
    OUT_OF_REACH,
    LOWERED_AND_RESTARTED,
    RESTORED,
    REVIVED,
    MENDED,
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kept")
}

#[test]
fn kept_worlds_hold_or_fail_as_expected() {
    for (name, expected) in KEPT.into_iter().flatten() {
        let scenario = Scenario::read(&folder().join(name)).unwrap();
        let verdicts = played(&scenario).verdicts;
        assert!(verdicts.iter().any(|it| it.limit.is_some()), "{name}");
        let broken = verdicts.iter().filter(|it| !it.holds);
        let mut broken: Vec<&str> = broken.map(|it| it.checker.as_str()).collect();
        broken.dedup();
        let known = match expected {
            MayFail(known) if !broken.is_empty() => *known,
            Holds | MayFail(_) => &[][..],
        };
        assert_eq!(
            broken, known,
            "doorward-sim run simulator/tests/kept/{name}"
        );
    }
}

#[test]
fn every_kept_world_is_in_the_table() {
    let files = std::fs::read_dir(folder()).unwrap();
    let files = files.map(|it| it.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = files.collect();
    files.sort();
    let known = KEPT.into_iter().flatten();
    let mut known: Vec<&str> = known.map(|(name, _)| *name).collect();
    known.sort_unstable();
    assert_eq!(files, known);
}

#[test]
fn a_world_that_is_written_as_a_file_plays_the_same_run() {
    for focus in super::focuses() {
        for seed in 0..25 {
            let scenario = fuzz::scenario(seed, focus);
            let text = scenario.to_yaml().unwrap();
            let again = Scenario::parse(&text, "f.yaml", &Files::BuiltIn(&[]));
            let again = again.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
            assert_eq!(
                format!("{again:#?}"),
                format!("{scenario:#?}"),
                "seed {seed}"
            );
            if seed < 3 {
                let (first, second) = (played(&scenario), played(&again));
                assert_eq!(first.trace_hash, second.trace_hash, "seed {seed}");
                assert_eq!(first.verdicts, second.verdicts, "seed {seed}");
            }
        }
    }
}
