//! The tree drawn in little room and in much.

use super::*;

fn outline(clients: usize) -> Outline {
    Outline::new((0..clients).map(|index| format!("c{index}")))
}

fn drawn(outline: &Outline, room: usize) -> String {
    let lines = outline.lines(room).into_iter().map(|line| line.label);
    lines.collect::<Vec<_>>().join("\n")
}

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
    assert_eq!(drawn(&outline(5), 12), expected);
}

#[test]
fn where_there_is_no_room_the_leaves_show_how_many_more_they_have() {
    let expected = "\
root
├ eu
│ ├ eu-1
│ │ ├ c0
│ │ └ … 2 more
│ └ eu-2
│   ├ c1
│   └ … 2 more
└ us
  ├ us-1
  │ ├ c2
  │ └ c6
  └ us-2
    ├ c3
    └ c7";
    assert_eq!(drawn(&outline(10), 16), expected);
    // However little room there is, servers are drawn.
    for room in 0..11 {
        assert_eq!(outline(10).lines(room).len(), 7, "{room}");
    }
}

#[test]
fn no_drawing_is_longer_than_its_room() {
    for clients in 0..60 {
        for room in 7..70 {
            let lines = outline(clients).lines(room).len();
            assert!(lines <= room, "{clients} clients take {lines} of {room}");
        }
    }
}
