//! Text written in slices is the same as text written at once.

use std::io::Write as _;

use super::*;

#[test]
fn what_is_written_is_there() {
    let mut bytes = YieldingWriter::default();
    for number in 0..20_000 {
        write!(bytes, "{number} ").unwrap();
    }
    let expected: String = (0..20_000).map(|number| format!("{number} ")).collect();
    assert_eq!(bytes.into, expected.into_bytes());
}

#[test]
fn slices_show_what_the_whole_shows() {
    let odd = [
        "a\u{301}", ",\u{301}", "\u{202e}", "\n", "東京", "\"", "ok ",
    ];
    for period in 1..odd.len() {
        let mut text = String::new();
        for at in 0..200_000 {
            text.push_str(odd[at * period % odd.len()]);
        }
        for make in [
            doorward_session::visible::lines,
            doorward_session::visible::json,
        ] {
            assert!(visible(&text, make) == make(&text), "every {period}");
        }
    }
    let marks = "a".repeat(READ - 1) + &"\u{301}".repeat(10);
    assert!(
        visible(&marks, doorward_session::visible::line) == doorward_session::visible::line(&marks)
    );
}
