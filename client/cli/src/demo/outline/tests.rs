//! The tree as it is drawn.

use super::*;

#[test]
fn every_server_and_client_has_its_line_below_its_parent() {
    let expected = "\
root
├ eu
│ ├ eu-1
│ │ ├ c0
│ │ └ c4
│ └ eu-2
│   └ c1
└ us
  ├ us-1
  │ └ c2
  └ us-2
    └ c3";
    let outline = Outline::new((0..5).map(|index| format!("c{index}")));
    let lines = outline.lines().into_iter().map(|(_, label)| label);
    assert_eq!(lines.collect::<Vec<_>>().join("\n"), expected);
}
