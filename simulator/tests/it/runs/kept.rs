//! Worlds that failed once by a fault of the engine, kept as files: they stay the same whatever later releases draw.
//! `doorward-sim fuzz --seed N --print-scenario` makes such a file from any seed. A fault that any fresh seed finds
//! again needs none.
//!
//! Random decisions during a run still change whenever the engine or the simulator sends other messages or sends them
//! at other times. Each fixed error therefore also has a test of its own, beside its fix.

use std::path::{Path, PathBuf};

use doorward_simulator::scenario::Scenario;

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

/// All kept worlds: one for each fault of the engine, and those that no process can detect.
const KEPT: &[(&str, Expected)] = &[
    // A child's master changes twice while its parent learns.
    ("chain-5.yaml", Holds),
    ("few2-259.yaml", Holds),
    ("few3-10.yaml", Holds),
    ("few3-60.yaml", Holds),
    // A learning node granted the amount by which its lease had grown.
    ("fuzz-33137.yaml", Holds),
    // A lease length is shortened, and then the master changes.
    ("short.yaml", Holds),
    // Below the root: a node whose parent learns for longer leases learned only for the new ones.
    ("fuzz-153593.yaml", Holds),
    // Below the root: amounts of a longer lease counted only for the present lease length.
    ("fuzz-225107.yaml", Holds),
    // Leases become shorter; then a child's master changes. A shorter lease of a larger amount counted no longer after
    // its end, although some holders continued by a later lease while others still had a longer one of less.
    ("fuzz-1007002534.yaml", Holds),
    // The allowance of a node is lowered, and then its master changes. It confirmed a child server's outstanding amount
    // although its predecessor had lowered the child's lease below that.
    ("fuzz-10037305.yaml", Holds),
    // A client asks as its lease ends, while a learning parent has nothing for its server yet. It got 0 for a whole
    // refresh interval of 6 s.
    ("lowered-while-learning-59.yaml", Holds),
    // The capacity is lowered, the root restarts, and a child has another master. Reports were confirmed in order of
    // arrival and not in parts that fit together.
    ("lowered-and-restarted-365.yaml", Holds),
    // Then a child server had a short lease of a larger amount beside a longer one of a smaller amount.
    ("fuzz-307110.yaml", Holds),
    // A child's parts were cut from a lease that had ended, and took a part of other holders' true amounts.
    ("fuzz-1007004934.yaml", Holds),
    // The capacity is lowered where clocks are slow.
    ("lowered-slow.yaml", Holds),
    // Etcd is wiped, and no process remembers the epoch of a node. The parent refused the node's master for ever.
    ("fuzz-51729.yaml", Holds),
    // Etcd is wiped, a master is elected in it, and etcd is wiped again before the next master sees that term. The next
    // master learned only for the rest of its own leases.
    ("fuzz-4000778.yaml", Holds),
    // The next master was frozen while another one decided and etcd was wiped.
    ("fuzz-4005245.yaml", Holds),
    // A master lapses, another one decides, and etcd is restored to a time before that. The first one finds its key
    // unchanged, and learned only for the rest of its own leases.
    ("fuzz-1007000293.yaml", Holds),
    // No process remembers the other master.
    ("fuzz-1007001985.yaml", Holds),
    // A process remembers it, and reports it too late.
    ("fuzz-1007003345.yaml", Holds),
    // Etcd is restored, within a TTL, to a time at which a master had the key that is now cut off and has been
    // succeeded. No process can detect that.
    ("restored-at-once.yaml", MayFail(&["mastership"])),
    // Or no server of the root runs that remembers, and its templates have given shorter leases since.
    ("fuzz-10009706.yaml", MayFail(&["nesting"])),
    // A second process of a node and one of a client run, and no server sees both (decision 10).
    ("twins-of-both-13.yaml", MayFail(&["overshoot", "nesting"])),
    // A process of a leaf was refused, since another one had been heard before. The next master of the root heard it
    // first, and leased it what it had out, which it granted again when the other process had extended the lease.
    ("twins-252.yaml", Holds),
    // A second process of a leaf was learning when the next master of the root leased capacity to the first one again. It
    // ended its recovery by what the former master had said.
    ("twins-179.yaml", Holds),
    // The first process went on to grant from its lease, after a second one with a newer start had confirmed the leases of
    // its former clients.
    ("twins-179-newer-start.yaml", Holds),
    // The second process of a leaf had counted the first one as gone. It confirmed a lease that it had not reported yet
    // when the first one was heard again, which freed that lease.
    ("fuzz-50000338.yaml", Holds),
    // A second process of a client has work in flight beyond a lease that shrank. When the first one was heard again,
    // its amount stayed reserved only until its next request and not until its lease ended.
    ("fuzz-550.yaml", Holds),
    // A leaf lost one request, and its parent took it for gone before the leaf could notice.
    ("fuzz-1438.yaml", Holds),
    // A second process that had learned took the name at a parent that did not know it yet, and its report freed the
    // leases of the first.
    ("fuzz-2000109.yaml", Holds),
    // The second process passes on an amount that one of its clients has released.
    ("fuzz-63381.yaml", Holds),
    // Two processes of a leaf replaced each other's stream in turns, and each waited longer each time. So the first one
    // was silent for longer than its parent waits when the second one asked for capacity.
    ("fuzz-1460071.yaml", Holds),
    // The second process of a leaf confirmed work in flight for the length of the client's present lease. The former
    // lease that allowed the work ended earlier.
    ("fuzz-8005112.yaml", Holds),
    // A child ended its learning mode while its parent, which it could not reach, still learned. It granted its whole
    // lease, more than was ever in use.
    ("fuzz-240912.yaml", Holds),
    // Its estimate for holders that it had not heard of was granted to it as a lease.
    ("fuzz-241476.yaml", Holds),
    // Work in flight that a client's mode had admitted was reported as held. A learning master leased it, beside amounts
    // not yet reported to it.
    ("fuzz-1700.yaml", Holds),
    // A client's report is under way for 400 ms, and its lease ends meanwhile. The report counted as a part of what the
    // parent leaves afterwards.
    ("fuzz-1400050.yaml", Holds),
    // A child server's outstanding amount is a sum of leases. All of it was taken to last as long as the last of them.
    ("fuzz-4005496.yaml", Holds),
    // A child server reported what had been outstanding until a moment before, without its remaining time. Its parent,
    // without a lease itself, passed that on for a whole lease length.
    ("fuzz-6879.yaml", Holds),
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kept")
}

#[test]
fn kept_worlds_hold_or_fail_as_expected() {
    for (name, expected) in KEPT {
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
    let mut known: Vec<&str> = KEPT.iter().map(|(name, _)| *name).collect();
    known.sort_unstable();
    assert_eq!(files, known);
}
