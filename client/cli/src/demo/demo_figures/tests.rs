//! Use, peaks and the usable amount, counted.

use super::*;

/// Four clients, one at each leaf, of which the first uses what it is granted.
fn measured(seconds: &[f64]) -> DemoFigures {
    let outline = Outline::new(["a", "b", "c", "d"].map(str::to_owned));
    let mut figures = DemoFigures::new(outline, 10.0, Time::ZERO);
    let servers = [Amounts {
        wants: 8.0,
        has: 10.0,
        granted: 6.0,
        used: 0.0,
    }; 7];
    let mut used_total = 0.0;
    // At the start nothing was used.
    for (second, used) in (0..).zip([0.0].iter().chain(seconds)) {
        used_total += used;
        let client = |wants, used_total| Amounts {
            wants,
            has: wants / 2.0,
            granted: 0.0,
            used: used_total,
        };
        let clients = [
            client(8.0, used_total),
            client(1.0, 0.0),
            client(0.0, 0.0),
            client(7.0, 3.0 * used_total),
        ];
        figures.measure(&servers, &clients, Time::from_secs(second));
    }
    figures
}

#[test]
fn a_servers_use_is_that_of_the_clients_below_it() {
    let figures = measured(&[2.0, 1.0]);
    let servers = &figures.parts[..7];
    let used = servers.iter().map(|server| server.last_second.used);
    assert_eq!(
        used.collect::<Vec<_>>(),
        [4.0, 1.0, 1.0, 0.0, 3.0, 0.0, 3.0]
    );
    let totals = servers.iter().map(|server| server.total.used);
    assert_eq!(
        totals.collect::<Vec<_>>(),
        [12.0, 3.0, 3.0, 0.0, 9.0, 0.0, 9.0]
    );
}

#[test]
fn the_most_is_of_any_second_and_not_of_the_last() {
    let figures = measured(&[1.0, 2.25, 1.5]);
    assert_eq!(figures.most_used, 9.0);
    assert_eq!(figures.whole.last_second.used, 6.0);
    assert_eq!(figures.most_granted, 8.0);
}

#[test]
fn what_could_be_used_is_what_is_wanted_up_to_the_capacity() {
    // 16 are wanted, 10 are there: 20 in two seconds, of which 12 were used.
    assert!((measured(&[2.0, 1.0]).utilisation().unwrap() - 0.6).abs() < 1e-9);
}

#[test]
fn without_any_time_there_is_no_utilisation() {
    assert_eq!(measured(&[]).utilisation(), None);
}

#[test]
fn all_amounts_are_of_the_same_second_so_that_use_stays_below_the_lease() {
    let outline = Outline::new(["a".to_owned()]);
    let mut figures = DemoFigures::new(outline, 10.0, Time::ZERO);
    let mut at = |millis, has, used_total| {
        let client = Amounts {
            wants: 2.0 * has,
            has,
            granted: 0.0,
            used: used_total,
        };
        let server = Amounts {
            wants: client.wants,
            has: 10.0,
            granted: has,
            used: 0.0,
        };
        let now = Time::ZERO + Duration::from_millis(millis);
        figures.measure(&[server; 7], &[client], now);
        figures.clone()
    };
    at(0, 8.0, 0.0);
    at(500, 8.0, 4.0);
    for (what, figures, expected) in [
        ("the lease shrinks at the end", at(1_000, 1.0, 8.0), 8.0),
        ("it is used until it grows", at(1_500, 1.0, 8.5), 4.5),
        ("it grows between two readings", at(2_000, 9.0, 12.5), 5.0),
    ] {
        let whole = figures.whole.last_second;
        assert!((whole.has - expected).abs() < 1e-9, "{what}: {whole:?}");
        assert!((whole.wants - 2.0 * expected).abs() < 1e-9, "{what}");
        assert!(whole.used <= whole.has, "{what}: {whole:?}");
        for part in &figures.parts {
            let part = part.last_second;
            assert!(
                part.used <= part.has && part.granted <= part.has,
                "{what}: {part:?}"
            );
        }
    }
}
