//! A debt can be read, and is paid as each algorithm pays it.

use doorward_limits::{Algorithm, Limit};
use doorward_limits::{AtomicBucket, Moment, TokenBucket, Units, WarmUp};
use std::time::Duration;

use crate::rule::{ALL, Rule, UNIT};

#[test]
fn a_debt_can_be_read() {
    #[track_caller]
    fn check(name: &str, limit: &dyn Limit, debts: [&str; 3]) {
        let at = |ms: i64| Moment::from_nanos(ms * 1_000_000);
        let debt = |ms| limit.standing(at(ms)).debt;
        limit.charge(Units::whole(10), at(0));
        assert_eq!(debt(0), Units::ZERO, "{name}");
        limit.charge("2.5".parse().unwrap(), at(100));
        let expected = debts.map(|it| it.parse().unwrap());
        assert_eq!([debt(100), debt(200), debt(1_100)], expected, "{name}");
    }
    let rule = Rule {
        limit: 10 * UNIT,
        rate: (10 * UNIT, 1_000_000_000),
        window: 1_000_000_000,
        wait: 1_000_000_000,
        more: 3 * UNIT,
    };
    for (name, plain, _) in ALL {
        let debts = match name {
            "token_bucket" | "gcra" | "leaky_meter" | "leaky_queue" => ["1.5", "0.5", "0"],
            "fixed_window" | "sliding_log" => ["2.5", "2.5", "0"],
            // The estimate is in whole units, and fades during the next window.
            "sliding_counter" => ["2", "2", "1"],
            "ban" | "warm_up" => ["0", "0", "0"],
            other => panic!("no debts of {other}"),
        };
        check(name, plain(&rule).unwrap().as_ref(), debts);
    }
    let bucket = TokenBucket::new(10, "10/s".parse().unwrap()).unwrap();
    check("word", &AtomicBucket::new(bucket), ["1.5", "0.5", "0"]);
}

#[test]
fn a_refund_at_an_absurd_rate_gives_back_all() {
    let rate = "0.000000001/9223372036854775807ns".parse().unwrap();
    let warm_up = WarmUp::new(rate, Duration::ZERO, Units::ONE, Duration::ZERO).unwrap();
    let (mut state, now) = (warm_up.fresh(), Moment::FIRST);
    // Time for this amount: two nanoseconds less than 2^127.
    warm_up.refund(&mut state, Units::from_parts((1 << 64) + 2), now);
    assert_eq!(warm_up.standing(&state, now).reset, Duration::ZERO);
}
