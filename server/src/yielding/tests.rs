//! Text written in slices is the same as text written at once.

use std::io::Write as _;

use super::*;

#[test]
fn what_is_written_is_there() {
    let mut bytes = YieldingWriter::<Vec<u8>>::default();
    for number in 0..20_000 {
        write!(bytes, "{number} ").unwrap();
    }
    let expected: String = (0..20_000).map(|number| format!("{number} ")).collect();
    assert_eq!(bytes.into_inner(), expected.into_bytes());
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
            assert!(visible(text.clone(), make) == make(&text), "every {period}");
        }
    }
    let plain = "all is well\n".repeat(50_000);
    let place = plain.as_ptr();
    let shown = visible(plain, doorward_session::visible::lines);
    assert_eq!(shown.as_ptr(), place, "nothing is copied");
    let marks = "a".repeat(READ - 1) + &"\u{301}".repeat(10);
    assert!(
        visible(marks.clone(), doorward_session::visible::line)
            == doorward_session::visible::line(&marks)
    );
}
