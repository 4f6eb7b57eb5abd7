//! The laws of `testdata/vectors/properties.md`, by number, for random sequences; and each algorithm's bounds over any
//! window.
//!
//! Laws 1, 3, 4, 5 and 12 hold for every algorithm that equals its reference (`reference`). Law 14, about many threads, is
//! tested with the limits for threads.

mod bounds;
mod subject;

use doorward_limits::{Decision, Moment, Units};
use proptest::prelude::*;
use subject::{
    KINDS, Kind, Op, Setting, Subject, UNIT, assert_restored, assert_same, cost, history, play,
    setting, subject, try_subject,
};

const START: i64 = 1_767_225_600_000_000_000;

/// Creates a limit of a kind with a history. Returns it with the time and the settings after that.
fn with_past(kind: Kind, setting: &Setting, history: &[Op]) -> (Box<dyn Subject>, i64, Setting) {
    let mut it = subject(kind, setting);
    let (now, setting, _) = play(it.as_mut(), setting, history, START);
    (it, now, setting)
}

fn at(now: i64) -> Moment {
    Moment::from_nanos(now)
}

fn nanos(wait: std::time::Duration) -> i64 {
    i64::try_from(wait.as_nanos()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn law_2_refusals_and_peeks_leave_no_trace(
        setting in setting(), history in history(-2), cost in cost(),
    ) {
        for kind in KINDS {
            let (mut it, now, _) = with_past(kind, &setting, &history);
            let (before, units) = (it.memory(), Units::from_parts(cost));
            let told = it.peek(units, at(now));
            prop_assert_eq!(it.peek(units, at(now)), told);
            let _ = (it.standing(at(now)), it.is_fresh(at(now)));
            let answer = it.take(units, at(now));
            prop_assert_eq!(answer, told, "{:?}", kind);
            if !answer.is_allowed() || cost == 0 {
                let attempts_count = kind == Kind::Ban && cost > 0;
                prop_assert!(attempts_count || it.memory() == before, "{:?}", kind);
            }
        }
    }

    #[test]
    fn law_6_undo(setting in setting(), history in history(-2), cost in cost()) {
        for kind in KINDS {
            let (it, now, setting) = with_past(kind, &setting, &history);
            if matches!(kind, Kind::WarmUp | Kind::Ban) {
                continue;
            }
            let (mut other, units) = (it.boxed(), Units::from_parts(cost));
            if other.take(units, at(now)).is_allowed() {
                other.refund(units, at(now));
                assert_same(it.as_ref(), other.as_ref(), &setting, now);
            }
        }
    }

    #[test]
    fn law_7_split(setting in setting(), history in history(-2), a in cost(), b in cost()) {
        for kind in KINDS {
            let (it, now, setting) = with_past(kind, &setting, &history);
            let (mut one, mut two) = (it.boxed(), it.boxed());
            let whole = one.take(Units::from_parts(a + b), at(now));
            let first = two.take(Units::from_parts(a), at(now));
            let second = two.take(Units::from_parts(b), at(now));
            let all = [whole, first, second].iter().all(Decision::is_allowed);
            if !all {
                continue;
            }
            if kind == Kind::WarmUp {
                let reset = |it: &dyn Subject| nanos(it.standing(at(now)).reset);
                prop_assert!(reset(one.as_ref()).abs_diff(reset(two.as_ref())) <= 2);
            } else {
                assert_same(one.as_ref(), two.as_ref(), &setting, now);
            }
        }
    }

    #[test]
    fn law_8_shift(setting in setting(), history in history(-2), by in -1_000..1_000_i64) {
        for kind in KINDS {
            let (mut one, mut two) = (subject(kind, &setting), subject(kind, &setting));
            let window = i64::try_from(setting.window).unwrap();
            let shift = by * window;
            let first = play(one.as_mut(), &setting, &history, START);
            let second = play(two.as_mut(), &setting, &history, START + shift);
            prop_assert_eq!(first.2, second.2, "{:?}", kind);
            let (one, two) = (one.standing(at(first.0)), two.standing(at(second.0)));
            prop_assert_eq!(one, two, "{:?}", kind);
        }
    }

    #[test]
    fn law_9_scale(setting in setting(), history in history(-2), by in 2..1_000_u128) {
        let larger = Setting {
            limit: setting.limit * by,
            rate: (setting.rate.0 * by, setting.rate.1),
            ..setting
        };
        let scaled: Vec<Op> = history.iter().map(|op| scaled(op, by)).collect();
        for kind in KINDS {
            // Counters round to whole units; a warm-up's slope is not linear.
            if matches!(kind, Kind::SlidingCounter | Kind::WarmUp) {
                continue;
            }
            let (mut one, mut two) = (subject(kind, &setting), subject(kind, &larger));
            let small = play(one.as_mut(), &setting, &history, START);
            let large = play(two.as_mut(), &larger, &scaled, START);
            let allowed = |answers: &[Decision]| {
                answers.iter().map(Decision::is_allowed).collect::<Vec<_>>()
            };
            prop_assert_eq!(allowed(&small.2), allowed(&large.2), "{:?}", kind);
            let one = one.standing(at(small.0));
            let two = two.standing(at(small.0));
            prop_assert_eq!(one.reset, two.reset, "{:?}", kind);
            // Parts are rounded down on both sides.
            let off = two.remaining.parts() - one.remaining.parts() * by;
            prop_assert!(off < by, "{:?}: {} of {}", kind, two.remaining, one.remaining);
        }
    }

    #[test]
    fn law_10_there_and_back_again(
        setting in setting(), history in history(0), limits in prop::collection::vec(1..1_000_u128, 1..4),
    ) {
        for kind in KINDS {
            let (it, now, setting) = with_past(kind, &setting, &history);
            let mut other = it.boxed();
            other.set_limit(&setting, at(now));
            assert_same(it.as_ref(), other.as_ref(), &setting, now);
            // In debt, the amount stays, and not the ratio.
            let may_owe = it.standing(at(now)).remaining == Units::ZERO;
            if may_owe && kind != Kind::WarmUp {
                continue;
            }
            for limit in &limits {
                other.set_limit(&Setting { limit: limit * UNIT, ..setting }, at(now));
            }
            other.set_limit(&setting, at(now));
            let changes = limits.len() + 1;
            assert_restored(it.as_ref(), other.as_ref(), &setting, now, changes);
        }
    }

    #[test]
    fn law_11_equal_three(setting in setting(), history in history(0)) {
        let answers = |kind: Kind, setting: &Setting| {
            let mut it = subject(kind, setting);
            let (now, setting, answers) = play(it.as_mut(), setting, &history, START);
            (it, now, setting, answers)
        };
        let (bucket, now, after, told) = answers(Kind::TokenBucket, &setting);
        for kind in [Kind::Gcra, Kind::LeakyMeter] {
            let (it, _, _, answers) = answers(kind, &setting);
            prop_assert_eq!(&answers, &told, "{:?}", kind);
            assert_same(bucket.as_ref(), it.as_ref(), &after, now);
        }
        let patient = Setting { wait: u64::MAX, ..setting };
        let (_, _, _, queue) = answers(Kind::LeakyQueue, &patient);
        for (queue, bucket) in queue.iter().zip(&told) {
            prop_assert_eq!(queue.is_allowed(), bucket.is_allowed());
        }
    }

}

/// Returns the same operation with larger amounts.
fn scaled(op: &Op, by: u128) -> Op {
    use subject::What;
    let what = match op.what {
        What::Take(cost) => What::Take(cost * by),
        What::Charge(cost) => What::Charge(cost * by),
        What::Refund(cost) => What::Refund(cost * by),
        What::SetLimit(limit) => What::SetLimit(limit * by),
    };
    Op { what, ..*op }
}

/// Plays law 13: bytes become operations of any kind, at any time, with any amount.
fn play_bytes(kind: Kind, bytes: &[u8]) {
    let mut chunks = bytes.chunks_exact(26);
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let setting = |bytes: &[u8]| Setting {
        limit: u128::from(number(&bytes[..8])) << (bytes[16] % 64),
        rate: (
            u128::from(number(&bytes[8..16])),
            number(&bytes[16..24]).max(1),
        ),
        window: number(&bytes[..8]).max(1),
        wait: number(&bytes[8..16]),
    };
    let Some(first) = chunks.next() else { return };
    let first = setting(first);
    // Settings that cannot be counted give an error.
    let Some(mut it) = try_subject(kind, &first) else {
        return;
    };
    for chunk in chunks {
        let now = at(number(&chunk[..8]).cast_signed());
        let cost = Units::from_parts(u128::from(number(&chunk[8..16])) << (chunk[25] % 64));
        match chunk[24] % 5 {
            0 | 1 => _ = it.take(cost, now),
            2 => it.charge(cost, now),
            3 => it.refund(cost, now),
            _ => it.set_limit(&setting(chunk), now),
        }
        let _ = (it.peek(cost, now), it.standing(now), it.is_fresh(now));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn law_13_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..1_000)) {
        for kind in KINDS {
            play_bytes(kind, &bytes);
        }
    }

    #[test]
    fn law_13_never_a_panic_at_the_ends(
        bytes in prop::collection::vec(prop::sample::select(vec![0_u8, 1, 0x7f, 0x80, 0xff]), 0..1_000),
    ) {
        for kind in KINDS {
            play_bytes(kind, &bytes);
        }
    }
}
