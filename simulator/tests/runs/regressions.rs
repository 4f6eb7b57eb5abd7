//! Seeds that failed once, and what it was. A world that is drawn anew tells nothing of what it was:
//! what a seed draws stays as it is, and more is drawn from another stream.

use doorward_simulator::fuzz;

const SEEDS: &[(u64, &str)] = &[
    (
        18,
        "the simulator: a client waited for ever for a server that had vanished",
    ),
    (
        54,
        "the simulator: an answer to an older call counted for a newer one",
    ),
    (
        193,
        "the simulator: a client waited for ever for a server that had vanished",
    ),
    (
        933,
        "the checkers: utilisation was judged where there was nothing to use",
    ),
    (
        1_433,
        "the checkers: a lowered capacity and a new root within one lease length count as \
         overshoot, though what is out is promised to run down",
    ),
    (2_527, "as 1433"),
    (2_761, "as 1433"),
    (9_138, "as 1433"),
    (
        13_011,
        "the checkers: what runs down after the capacity was lowered has the longest lease of any \
         earlier template, not of the last one only",
    ),
    (13_721, "as 13011"),
];

#[test]
fn seeds_that_failed_once_hold() {
    for (seed, what) in SEEDS {
        let (_, failure) = fuzz::play(&fuzz::scenario(*seed));
        assert_eq!(
            failure, None,
            "doorward-sim fuzz --seed {seed}; it was: {what}"
        );
    }
}
