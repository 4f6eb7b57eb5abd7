//! Worlds that failed once, kept as files: they stay what they are, whatever chance draws by now.
//! `doorward-sim fuzz --seed N --print-scenario` makes one of any seed.
//!
//! What chance decides while they are played changes whenever the engine or the simulator changes what
//! it says and when. So what was mended has a test of its own besides, where it was mended.

use std::path::{Path, PathBuf};

use doorward_simulator::fuzz;
use doorward_simulator::scenario::Scenario;
use doorward_simulator::scenario::read::Files;

use super::played;

/// What comes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// All its limits hold.
    Holds,
    /// Not today, and not whatever chance decides: if limits do not hold, it is these. What mends it says
    /// `Holds` here.
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
    // By luck: a root that is cut off from etcd goes by other templates only later now.
    ("fuzz-1015725.yaml", Holds),
    ("fuzz-30524.yaml", Holds),
    ("fuzz-31184.yaml", Holds),
    ("fuzz-31726.yaml", Holds),
    ("fuzz-32717.yaml", Holds),
    ("fuzz-34143.yaml", Holds),
    ("fuzz-36743.yaml", Holds),
];

/// A node that learns hands out what its lease has grown by.
const GROWN: &[(&str, Expected)] = &[
    ("fuzz-31747.yaml", Holds),
    ("fuzz-70224.yaml", Holds),
    ("fuzz-61008.yaml", Holds),
    ("fuzz-33137.yaml", Holds),
];

/// A lease length is shortened, and then the master changes.
const SHORTENED: &[(&str, Expected)] = &[
    ("short.yaml", Holds),
    // Below the root: a node whose parent learns for longer leases learns for the new ones only.
    ("fuzz-153593.yaml", Holds),
    ("fuzz-700741.yaml", Holds),
    // Below the root: what a holder has of a longer lease was counted for as long as leases last now.
    ("fuzz-225107.yaml", Holds),
    ("fuzz-231305.yaml", Holds),
    // The checker's fault: a root that is cut off from its election has not read the templates yet.
    ("fuzz-235176.yaml", Holds),
];

/// What a node may have is lowered, and then its master changes: the next one confirms what is reported
/// to it, up to what there is beside what was not reported yet.
const LOWERED_AND_CHANGED: &[(&str, Expected)] = &[
    ("fuzz-49438.yaml", Holds),
    ("fuzz-48729.yaml", Holds),
    // Of a child server it confirmed what was out, though its predecessor had lowered the child's lease below that.
    ("fuzz-10037305.yaml", Holds),
];

/// etcd is wiped, and nobody who is alive remembers the epoch of a node.
const WIPED: &[(&str, Expected)] = &[
    // The parent refused the node's master for ever, as it had seen a later epoch.
    ("fuzz-51729.yaml", Holds),
    // The simulator: a server never noticed that the stream of a child was gone which had ended in a partition,
    // and refused those of its successors, whose epochs are lower.
    ("fuzz-50236.yaml", Holds),
    // Another one was elected in an etcd that was wiped, and was wiped again before the next master saw its term, which
    // learned only for what was left of its own leases. (And the checkers: the capacity is lowered meanwhile, so a
    // root that learns cannot know that all that is reported to it is true, and has less in its books until it has come down.)
    ("fuzz-4000778.yaml", Holds),
    // The next master was frozen while another one decided and etcd was wiped.
    ("fuzz-4005245.yaml", Holds),
];

/// A second process of a node runs, and confirms what the first one goes on handing out.
const TWINS: &[(&str, Expected)] = &[
    ("fuzz-60036.yaml", Holds),
    // Beside a second process of a client: nobody sees both (decision 10). With a quarter of all seeds it fails.
    ("fuzz-61377.yaml", MayFail(&["overshoot", "nesting"])),
    ("twins-of-both-13.yaml", MayFail(&["overshoot", "nesting"])),
    // The second process of a leaf, to which the first one counted as gone, confirmed a lease that it had not reported
    // yet when the first one was heard again, which freed it.
    ("fuzz-50000338.yaml", Holds),
    // A second process of a client that has work in flight, beyond a lease that shrank: when the first one was
    // heard again, what it had was reserved until it was to be heard next, and no longer until its lease ended.
    ("fuzz-550.yaml", Holds),
    // A leaf lost one request, and was taken to be gone before it could notice that.
    ("fuzz-1438.yaml", Holds),
    // A second process that had learned took the name at a parent that did not know it yet, and its word freed what
    // the first one had.
    ("fuzz-2000109.yaml", Holds),
    ("fuzz-4002103.yaml", Holds),
    ("fuzz-4009141.yaml", Holds),
    // The second process hands on what one of its clients gave back.
    ("fuzz-63381.yaml", Holds),
    ("fuzz-63781.yaml", Holds),
    ("fuzz-60111.yaml", Holds),
    ("fuzz-60180.yaml", Holds),
    // Two processes of a leaf took the place of each other's stream in turns, and each stood back for longer
    // and longer. So the first one was silent for longer than its parent waits for it when the second one
    // asked for something.
    ("fuzz-1460071.yaml", Holds),
    // The second process of a leaf confirmed work in flight for as long as the client's present lease lasted, and
    // a former one that allowed it was over before.
    ("fuzz-8005112.yaml", Holds),
];

/// A capacity is lowered where clocks are slow. The checkers took what runs down to be over a lease
/// length later by a true clock, and not by the root's.
const LOWERED: &[(&str, Expected)] = &[("fuzz-5010487.yaml", Holds), ("lowered-slow.yaml", Holds)];

/// Mended long ago; and what it was.
const MENDED: &[(&str, Expected)] = &[
    // The simulator: a client waited for ever for a server that had vanished.
    ("fuzz-18.yaml", Holds),
    ("fuzz-193.yaml", Holds),
    // The simulator: an answer to an older call counted for a newer one.
    ("fuzz-54.yaml", Holds),
    // The simulator: a client wanted more than can be asked for, and was refused for ever.
    ("fuzz-4002638.yaml", Holds),
    // The checkers: utilisation was judged where there was nothing to use.
    ("fuzz-933.yaml", Holds),
    // The checkers: a lowered capacity and a new root within one lease length counted as overshoot,
    // though what is out is promised to run down.
    ("fuzz-1433.yaml", Holds),
    ("fuzz-2527.yaml", Holds),
    ("fuzz-2761.yaml", Holds),
    ("fuzz-9138.yaml", Holds),
    // The simulator: after a partition, an answer to a later question about another resource made a
    // server forget that the one before it was lost on the same stream.
    ("fuzz-10645.yaml", Holds),
    ("fuzz-10952.yaml", Holds),
    ("fuzz-11880.yaml", Holds),
    // The engine: a child server reported what was outstanding until a moment ago without saying for how
    // long; its parent, without a lease itself, passed that on for a whole lease length.
    ("fuzz-6879.yaml", Holds),
    // The engine: leases were counted to the last moment, on clocks of different speed.
    ("fuzz-10142.yaml", Holds),
    ("fuzz-10768.yaml", Holds),
    // The checkers: a root that begins anew after it was frozen learns like one that is elected.
    ("fuzz-11283.yaml", Holds),
];

/// A child ended its learning mode while its parent, which it could not ask, still learned: it handed out all
/// that it had been granted, which was more than was ever out.
const OUT_OF_REACH: &[(&str, Expected)] = &[
    ("fuzz-223676.yaml", Holds),
    ("fuzz-240912.yaml", Holds),
    // What it counted for holders that it had not heard of was granted to it as a lease.
    ("fuzz-241476.yaml", Holds),
];

/// The capacity is lowered, the root restarts, and a child has another master: what holders say that they
/// have was confirmed first come first served, and not in parts that fit together.
const LOWERED_AND_RESTARTED: &[(&str, Expected)] = &[
    ("lowered-and-restarted-365.yaml", Holds),
    // Then a child server had a short lease of more beside a longer one of less.
    ("fuzz-307110.yaml", Holds),
];

/// What nobody can know: etcd is restored within a TTL, to when somebody was the master who is cut off from it
/// and was succeeded since. Its key is there again, and its successor has not heard yet that its own is not.
const RESTORED: &[(&str, Expected)] = &[
    ("restored-at-once.yaml", MayFail(&["mastership"])),
    // Or no server of the root runs that remembers, and its templates have given shorter leases since: nobody knows
    // that the former ones are still out.
    ("fuzz-10009706.yaml", MayFail(&["nesting"])),
];

/// A master lapses, another one decides, and etcd is restored to before that. The first one finds its key as it
/// left it, and learned only for what was left of its own leases.
const REVIVED: &[(&str, Expected)] = &[
    ("fuzz-1007000293.yaml", Holds),
    // Nobody remembers the other one.
    ("fuzz-1007001985.yaml", Holds),
    // Somebody does, and speaks up too late.
    ("fuzz-1007003345.yaml", Holds),
];

/// Leases become shorter, and then the master of a child changes or the child shrinks: what it was granted by a shorter
/// lease of more counted no longer when that was over, although some of its holders went on by a later one while
/// others still had theirs by a longer one of less.
const SHORTER_OF_MORE: &[(&str, Expected)] = &[
    ("fuzz-1007002534.yaml", Holds),
    ("fuzz-7011476.yaml", Holds),
];

/// Somebody has what is right a little late.
const LATE: &[(&str, Expected)] = &[("fuzz-21931.yaml", MayFail(&["settled fairness"]))];

/// Worlds in which planted bugs were found (`simulator/planted`): without them they hold.
const PLANTED: &[(&str, Expected)] = &[
    ("fuzz-20247.yaml", Holds),
    ("fuzz-30000.yaml", Holds),
    ("fuzz-50000.yaml", Holds),
    ("fuzz-50003.yaml", Holds),
    ("fuzz-1000000000.yaml", Holds),
    ("fuzz-1000000007.yaml", Holds),
    ("fuzz-1000000034.yaml", Holds),
    ("fuzz-1000000237.yaml", Holds),
];

/// Work in flight was reported as had, also what a client's mode had admitted, and nobody reserves more than leases.
const IN_FLIGHT: &[(&str, Expected)] = &[
    // A master that learns leased it, beside what it had not heard of yet.
    ("fuzz-1700.yaml", Holds),
    // The simulator: it counted as used by a former lease, though the client had said since that it had less.
    ("fuzz-1728.yaml", Holds),
    ("fuzz-4003357.yaml", Holds),
];

/// While a server learns after the capacity was lowered, holders say that they have more than there is. What some
/// were cut from took a part of what others have, which was true, though theirs was over by then.
const SHARED_OUT: &[(&str, Expected)] = &[("fuzz-1007004934.yaml", Holds)];

/// A client's word is on its way for 400 ms, and its lease ends meanwhile: it was taken for a part of what
/// the parent said is left afterwards.
const ON_ITS_WAY: &[(&str, Expected)] = &[("fuzz-1400050.yaml", Holds)];

/// What a child server has out is a sum of leases. All of it was taken to last as long as the last of them.
const OUT_FOR_LESS: &[(&str, Expected)] =
    &[("fuzz-4005496.yaml", Holds), ("fuzz-9100431.yaml", Holds)];

/// All of them.
const KEPT: [&[(&str, Expected)]; 19] = [
    SHORTER_OF_MORE,
    OUT_FOR_LESS,
    IN_FLIGHT,
    LATE,
    PLANTED,
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
fn worlds_that_failed_once_hold_or_fail_as_is_known() {
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
