//! Law 13 of `testdata/vectors/properties.md`: no operation panics, at any time, with any amount, in any order.
//!
//! The other laws follow from the references (`reference`), which all algorithms equal; law 14, about threads, is
//! tested with the limits for threads.

use doorward_limits::{Moment, Units};
use proptest::prelude::*;

use crate::rule::{ALL, Create, Rule, UNIT};

/// Makes operations of any kind from bytes.
fn play_bytes(create: Create, bytes: &[u8]) {
    let mut chunks = bytes.chunks_exact(26);
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let rule = |bytes: &[u8]| Rule {
        limit: u128::from(number(&bytes[..8])) << (bytes[16] % 64),
        rate: (
            u128::from(number(&bytes[8..16])),
            number(&bytes[16..24]).max(1),
        ),
        window: number(&bytes[..8]).max(1),
        wait: number(&bytes[8..16]),
        more: 3 * UNIT,
    };
    // Settings that cannot be counted give an error.
    let Some(mut it) = chunks.next().and_then(|chunk| create(&rule(chunk))) else {
        return;
    };
    for chunk in chunks {
        let now = Moment::from_nanos(number(&chunk[..8]).cast_signed());
        let cost = Units::from_parts(u128::from(number(&chunk[8..16])) << (chunk[25] % 64));
        match chunk[24] % 5 {
            0 | 1 => _ = it.take(cost, now),
            2 => it.charge(cost, now),
            3 => it.refund(cost, now),
            _ => it.set_limit(&rule(chunk), now),
        }
        let _ = (it.peek(cost, now), it.standing(now), it.is_fresh(now));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn law_13_never_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..1_000)) {
        for (_, create, create_soft) in ALL {
            play_bytes(create, &bytes);
            play_bytes(create_soft, &bytes);
        }
    }

    #[test]
    fn law_13_never_a_panic_at_the_ends(
        bytes in prop::collection::vec(prop::sample::select(vec![0_u8, 1, 0x7f, 0x80, 0xff]), 0..1_000),
    ) {
        for (_, create, create_soft) in ALL {
            play_bytes(create, &bytes);
            play_bytes(create_soft, &bytes);
        }
    }
}
