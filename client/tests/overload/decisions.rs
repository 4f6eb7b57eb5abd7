//! Decisions as tables: which request is served, which one waits, which one is refused.

use std::time::Duration;

use doorward::overload::Criticality::{self, Critical, High, Low, NotCritical};
use doorward::overload::{Admission, Ask, Config, Offer, Place, Reason, Throttler};
use doorward_limits::Moment;

const MILLI: Duration = Duration::from_millis(1);

/// A throttler with a clock, whose requests have numbers.
struct Stand {
    throttler: Throttler<u32>,
    now: Moment,
    served: Vec<(u32, Admission)>,
}

/// The answer to a request, in words.
#[derive(Debug, PartialEq)]
enum Heard {
    Served,
    Waits(Place),
    Refused(Reason),
}

impl Stand {
    /// Creates a throttler that serves two requests at once, and knows that each takes 100 ms.
    fn new(config: Config) -> Self {
        let config = Config {
            fixed_limit: Some(2),
            ..config
        };
        let mut stand = Self {
            throttler: Throttler::new(config),
            now: Moment::ORIGIN,
            served: Vec::new(),
        };
        // Others wait all the time, so the throttler learns the speed of the service.
        for number in 0..80 {
            if stand.ask(number, NotCritical) != Heard::Served {
                stand.after(50 * MILLI);
                stand.end();
            }
        }
        while !stand.served.is_empty() {
            stand.after(50 * MILLI);
            stand.end();
        }
        stand
    }

    fn after(&mut self, time: Duration) {
        self.now = self.now.after(time);
    }

    fn ask(&mut self, number: u32, criticality: Criticality) -> Heard {
        self.ask_by(number, criticality, None)
    }

    fn ask_by(&mut self, number: u32, criticality: Criticality, wait: Option<Duration>) -> Heard {
        let ask = Ask {
            criticality,
            user: Some(1),
            deadline: wait.map(|wait| self.now.after(wait)),
            ..Ask::default()
        };
        match self.throttler.offer(&ask, || number, self.now) {
            Offer::Admitted(admission) => {
                self.served.push((number, admission));
                Heard::Served
            }
            Offer::Queued(place) => Heard::Waits(place),
            Offer::Refused(refusal) => {
                assert!(refusal.retry_after >= Some(Duration::from_secs(1)));
                Heard::Refused(refusal.overloaded().unwrap())
            }
        }
    }

    /// Ends the oldest request that is served.
    fn end(&mut self) {
        let (_, admission) = self.served.remove(0);
        self.throttler.handle_end(admission, None, self.now);
        self.decided();
    }

    /// Returns the decisions about waiting requests: the number, and the reason if it is refused.
    fn decided(&mut self) -> Vec<(u32, Option<Reason>)> {
        let mut decided = Vec::new();
        while let Some((number, decision)) = self.throttler.poll_decided() {
            let reason = match decision {
                Ok(admission) => {
                    self.served.push((number, admission));
                    None
                }
                Err(refusal) => refusal.overloaded(),
            };
            decided.push((number, reason));
        }
        decided
    }

    fn timeout(&mut self, time: Duration) -> Vec<(u32, Option<Reason>)> {
        self.after(time);
        self.throttler.handle_timeout(self.now);
        self.decided()
    }
}

#[track_caller]
fn assert_waits(heard: &Heard) -> Place {
    match heard {
        Heard::Waits(place) => *place,
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_are_served_up_to_the_limit_and_then_wait() {
    let mut stand = Stand::new(Config::default());
    assert_eq!(stand.ask(101, NotCritical), Heard::Served);
    assert_eq!(stand.ask(102, NotCritical), Heard::Served);
    assert_waits(&stand.ask(103, NotCritical));
    assert_eq!(stand.throttler.in_flight(), 2);
    assert_eq!(stand.throttler.waiting(NotCritical), 1);
    stand.end();
    assert_eq!(stand.served.last().unwrap().0, 103);
    assert_eq!(stand.throttler.in_flight(), 2);
}

#[test]
fn the_most_critical_is_served_first_and_of_equals_the_oldest() {
    let mut stand = Stand::new(Config::default());
    for number in 101..=102 {
        stand.ask(number, NotCritical);
    }
    let waiting = [
        (103, Low),
        (104, NotCritical),
        (105, Critical),
        (106, High),
        (107, Critical),
    ];
    for (number, tier) in waiting {
        assert_waits(&stand.ask(number, tier));
    }
    let mut order = Vec::new();
    for _ in 0..5 {
        stand.end();
        order.push(stand.served.last().unwrap().0);
    }
    assert_eq!(order, [105, 107, 106, 103, 104]);
}

/// Fills the service and the queue: the service works off 20 requests a second, so 20 wait.
fn full(config: Config) -> (Stand, u32) {
    let mut stand = Stand::new(config);
    let mut number = 200;
    while stand.ask(number, Low) != Heard::Refused(Reason::Full) {
        number += 1;
        assert!(number < 300, "the queue is never full");
    }
    (stand, number)
}

#[test]
fn the_queue_is_full_when_it_takes_longer_than_a_request_can_wait() {
    let (stand, _) = full(Config::default());
    let waiting = stand.throttler.waiting(Low);
    assert!((18..=23).contains(&waiting), "{waiting}");
    let (stand, _) = full(Config {
        max_wait: 500 * MILLI,
        ..Config::default()
    });
    let waiting = stand.throttler.waiting(Low);
    assert!((8..=12).contains(&waiting), "{waiting}");
}

#[test]
fn a_critical_arrival_pushes_out_the_newest_of_the_least_critical() {
    let (mut stand, next) = full(Config::default());
    assert_eq!(stand.ask(400, NotCritical), Heard::Refused(Reason::Full));
    assert_eq!(stand.ask(401, Low), Heard::Refused(Reason::Full));
    assert_waits(&stand.ask(402, High));
    assert_eq!(stand.decided(), [(next - 1, Some(Reason::PushedOut))]);
    assert_waits(&stand.ask(403, Critical));
    assert_eq!(stand.decided(), [(next - 2, Some(Reason::PushedOut))]);
    // As long as a less critical request waits, a critical one is not refused.
    let mut more = 0;
    while stand.throttler.waiting(Low) > 0 {
        assert_waits(&stand.ask(500 + more, Critical));
        more += 1;
    }
    assert_eq!(stand.throttler.waiting(High), 1);
    assert_waits(&stand.ask(600, Critical));
    assert_eq!(stand.ask(601, Critical), Heard::Refused(Reason::Full));
}

#[test]
fn a_critical_request_pushes_nobody_out_who_has_time_behind_it() {
    let mut stand = Stand::new(Config::default());
    for number in 101..=102 {
        stand.ask(number, NotCritical);
    }
    for number in 103..113 {
        assert_waits(&stand.ask(number, Low));
    }
    assert_waits(&stand.ask_by(201, Critical, Some(160 * MILLI)));
    assert_eq!(stand.decided(), []);
}

#[test]
fn callers_that_give_up_show_that_the_service_is_slow() {
    let mut stand = Stand::new(Config::default());
    // Requests take ten times as long, and each caller gives up after 500 ms.
    for number in 0..200 {
        stand.ask(1_000 + number, NotCritical);
        if stand.served.len() == 2 {
            stand.after(250 * MILLI);
            let (_, admission) = stand.served.remove(0);
            stand.throttler.cancel(admission, stand.now);
            stand.decided();
        }
    }
    while stand.ask(2_000, NotCritical) == Heard::Served {}
    let late = stand.ask_by(2_001, Critical, Some(400 * MILLI));
    assert_eq!(late, Heard::Refused(Reason::TooLate));
}

#[test]
fn a_passed_deadline_is_refused_even_by_a_free_service() {
    let mut stand = Stand::new(Config::default());
    let heard = stand.ask_by(101, Critical, Some(Duration::ZERO));
    assert_eq!(heard, Heard::Refused(Reason::TooLate));
}

#[test]
fn a_deadline_in_centuries_does_not_fill_the_queue() {
    let mut stand = Stand::new(Config::default());
    let century = Some(Duration::from_secs(100 * 366 * 24 * 3_600));
    let mut number = 200;
    while stand.ask_by(number, Low, century) != Heard::Refused(Reason::Full) {
        number += 1;
        assert!(number < 300, "the queue is never full");
    }
}

#[test]
fn a_report_that_is_no_cost_counts_as_the_time() {
    for report in [f64::NAN, f64::INFINITY, -1.0] {
        let mut stand = Stand::new(Config::default());
        stand.ask(101, NotCritical);
        stand.after(70 * MILLI);
        let (_, admission) = stand.served.remove(0);
        let used = stand
            .throttler
            .handle_end(admission, Some(report), stand.now);
        assert!((used - 70.0).abs() < 0.01, "{report}: {used}");
    }
}

#[test]
fn a_new_service_soon_knows_its_speed_whatever_the_unit_of_costs() {
    for report in [Some(0.05), None, Some(5_000.0)] {
        let config = Config {
            fixed_limit: Some(2),
            ..Config::default()
        };
        let mut stand = Stand {
            throttler: Throttler::new(config),
            now: Moment::ORIGIN,
            served: Vec::new(),
        };
        let mut served = Vec::new();
        for burst in 0..4 {
            for number in 0..60 {
                stand.ask(100 * burst + number, Critical);
            }
            let mut count = 0;
            while !stand.served.is_empty() {
                stand.after(50 * MILLI);
                let (_, admission) = stand.served.remove(0);
                stand.throttler.handle_end(admission, report, stand.now);
                stand.decided();
                count += 1;
            }
            stand.after(Duration::from_secs(5));
            served.push(count);
        }
        // In the second for which a request waits, 20 are served.
        assert!(
            served.iter().all(|count| (18..=24).contains(count)),
            "{report:?}: {served:?}"
        );
    }
}

#[test]
fn the_number_of_waiting_requests_is_bounded() {
    let (mut stand, _) = full(Config {
        waiting_max: 5,
        ..Config::default()
    });
    assert_eq!(stand.throttler.waiting(Low), 5);
    assert_waits(&stand.ask(400, Critical));
    assert_eq!(stand.throttler.waiting(Low), 4);
}

#[test]
fn a_request_that_cannot_make_its_deadline_is_refused() {
    let mut stand = Stand::new(Config::default());
    for number in 101..=102 {
        stand.ask(number, NotCritical);
    }
    // Each takes 100 ms.
    let later = Some(250 * MILLI);
    assert_waits(&stand.ask_by(103, Critical, later));
    assert_eq!(stand.timeout(140 * MILLI), []);
    assert_eq!(stand.timeout(20 * MILLI), [(103, Some(Reason::TooLate))]);
    assert_waits(&stand.ask(104, Critical));
    let soon = Some(90 * MILLI);
    let heard = stand.ask_by(105, Critical, soon);
    assert_eq!(heard, Heard::Refused(Reason::TooLate));
}

#[test]
fn a_free_service_serves_even_a_request_that_seems_late() {
    // The prediction may be wrong, and only requests that are served correct it.
    let mut stand = Stand::new(Config::default());
    assert_eq!(stand.ask_by(101, NotCritical, Some(MILLI)), Heard::Served);
}

#[test]
fn a_queue_that_never_empties_lets_new_requests_wait_for_less() {
    let mut stand = Stand::new(Config {
        max_wait: Duration::from_secs(20),
        ..Config::default()
    });
    for number in 101..=102 {
        stand.ask(number, NotCritical);
    }
    // With few places, up to 16 may wait.
    for number in 103..=118 {
        assert_waits(&stand.ask(number, NotCritical));
    }
    // 10 times the usual latency of 100 ms.
    assert_eq!(stand.timeout(1_100 * MILLI), []);
    assert_eq!(stand.ask(119, NotCritical), Heard::Refused(Reason::Full));
    // Another tier has not waited so long.
    assert_waits(&stand.ask(120, High));
    assert_eq!(stand.timeout(1_000 * MILLI), []);
}

#[test]
fn what_was_not_served_to_its_end_frees_its_place_and_teaches_nothing() {
    let mut stand = Stand::new(Config::default());
    let cost = stand.throttler.predicted_cost(0);
    for number in 101..=102 {
        stand.ask(number, NotCritical);
    }
    let place = assert_waits(&stand.ask(103, NotCritical));
    assert_waits(&stand.ask(104, NotCritical));
    stand.throttler.leave(place);
    assert_eq!(stand.throttler.waiting(NotCritical), 1);
    stand.after(Duration::from_millis(900));
    let (_, admission) = stand.served.remove(0);
    stand.throttler.cancel(admission, stand.now);
    assert_eq!(stand.decided(), [(104, None)]);
    assert_eq!(stand.throttler.predicted_cost(0), cost);
}

#[test]
fn refused_callers_come_back_at_different_times() {
    let (mut stand, _) = full(Config::default());
    let mut times = std::collections::BTreeSet::new();
    for _ in 0..50 {
        match stand.throttler.offer(&Ask::default(), || 0, stand.now) {
            Offer::Refused(refusal) => times.insert(refusal.retry_after.unwrap()),
            other => panic!("{other:?}"),
        };
    }
    assert_eq!(times.len(), 50);
    let (first, last) = (*times.first().unwrap(), *times.last().unwrap());
    assert!(
        first >= Duration::from_secs(1) && last <= Duration::from_millis(3_500),
        "{times:?}"
    );
    assert!(last - first >= Duration::from_millis(700), "{times:?}");
}
