//! Foreign text in a log line.

use super::*;

const COLOURED: Style = Style::Text { is_coloured: true };
const TEXT: Style = Style::Text { is_coloured: false };

#[track_caller]
fn check(style: Style, line: &str, expected: &str) {
    let written = plain(line.as_bytes(), style);
    assert_eq!(String::from_utf8(written).unwrap(), expected);
}

#[test]
fn what_can_be_seen_is_written_as_it_is() {
    for style in [TEXT, COLOURED, Style::Json] {
        for line in ["a=\"b\" \\ {}\n", "größer, 東京 🦀\n", "no end", "\n", ""] {
            check(style, line, line);
        }
    }
}

#[test]
fn no_text_begins_a_line_of_its_own_and_what_steers_or_hides_is_its_number() {
    let evil = "a\nb\r\u{7}\u{202e}\u{9b}\u{e0001}\n";
    let text = "a\n    b\\u{d}\\u{7}\\u{202e}\\u{9b}\\u{e0001}\n";
    check(TEXT, evil, text);
    check(COLOURED, evil, text);
    let json = "\u{7}\u{202e}\u{9b}\u{e0001}\n";
    check(Style::Json, json, "\\u0007\\u202e\\u009b\\udb40\\udc01\n");
}

#[test]
fn only_colours_pass_and_only_where_there_are_any() {
    let coloured = "\u{1b}[2m12:00\u{1b}[0m \u{1b}[1;31mERROR\u{1b}[0m\n";
    check(COLOURED, coloured, coloured);
    check(TEXT, "\u{1b}[31mred\n", "\\u{1b}[31mred\n");
    for (evil, shown) in [
        ("\u{1b}[2J\n", "\\u{1b}[2J\n"),
        ("\u{1b}]0;title\u{7}\n", "\\u{1b}]0;title\\u{7}\n"),
        ("\u{1b}[31\n", "\\u{1b}[31\n"),
        ("\u{1b}\n", "\\u{1b}\n"),
    ] {
        check(COLOURED, evil, shown);
    }
}

#[test]
fn what_is_no_text_is_written_as_the_mark_for_that() {
    let written = plain(b"a\xff\x1bb\n", TEXT);
    assert_eq!(written, "a\u{fffd}\\u{1b}b\n".as_bytes());
}
