//! Texts of the demonstration's end.

use doorward_engine::time::Time;

use super::*;
use crate::demo::demo_figures::Amounts;

fn figures() -> DemoFigures {
    let outline = Outline::new(["a", "b", "c", "d", "e"].map(str::to_owned));
    let mut figures = DemoFigures::new(outline, 10.0, Time::ZERO);
    let server = Amounts {
        wants: 15.0,
        has: 5.5,
        granted: 5.0,
        used: 0.0,
    };
    let client = Amounts {
        wants: 3.0,
        has: 2.0,
        granted: 0.0,
        used: 1.5,
    };
    let at_first = Amounts {
        used: 0.0,
        ..client
    };
    figures.measure(&[server; 7], &[at_first; 5], Time::ZERO);
    figures.measure(&[server; 7], &[client; 5], Time::from_secs(1));
    figures
}

#[test]
fn a_line_shows_the_whole_and_of_what_each_part_has_leased() {
    assert_eq!(
        line(&figures(), None),
        "   1 s  wanted  15.0  granted  10.0  used   7.5 of 10   eu   5.5 (5.5 + 5.5)     us   5.5 (5.5 + 5.5)"
    );
}

#[test]
fn the_tree_shows_who_is_where() {
    let mut out = Vec::new();
    let pages = [SocketAddr::from(([127, 0, 0, 1], 6971)); 7];
    write_tree(&mut out, &figures().outline, &pages).unwrap();
    let expected = "  root      http://127.0.0.1:6971/
  ├ eu      http://127.0.0.1:6971/
  │ ├ eu-1  http://127.0.0.1:6971/  a e
  │ └ eu-2  http://127.0.0.1:6971/  b
  └ us      http://127.0.0.1:6971/
    ├ us-1  http://127.0.0.1:6971/  c
    └ us-2  http://127.0.0.1:6971/  d
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[test]
fn the_summary_shows_the_whole_and_of_every_part() {
    let mut out = Vec::new();
    write(&mut out, &figures()).unwrap();
    let expected = "
1.0 s, capacity 10 requests/s
  utilisation       75.0 % of the usable amount (the demand, up to the capacity)
  most granted      10.0 at any moment, 100.0 % of the capacity
  most used          7.5 in any second, 75.0 % of the capacity

  mean per second  wanted  leased  used
  root              15.00    5.50  7.50
  ├ eu              15.00    5.50  4.50
  │ ├ eu-1          15.00    5.50  3.00
  │ │ ├ a            3.00    2.00  1.50
  │ │ └ e            3.00    2.00  1.50
  │ └ eu-2          15.00    5.50  1.50
  │   └ b            3.00    2.00  1.50
  └ us              15.00    5.50  3.00
    ├ us-1          15.00    5.50  1.50
    │ └ c            3.00    2.00  1.50
    └ us-2          15.00    5.50  1.50
      └ d            3.00    2.00  1.50
  The root owns the whole capacity. Any part that no child leases stays free.
";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}
