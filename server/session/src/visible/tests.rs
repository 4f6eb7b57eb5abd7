//! Escaping of text from others.

use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(line(text), expected);
    assert_eq!(line(expected), expected, "escaping twice changes nothing");
}

#[test]
fn visible_text_stays_as_it_is() {
    for text in [
        "",
        "db/orders/reads",
        r#"a "quoted" 'text' with \ and {braces}"#,
        "größer als Łódź, 東京, हिन्दी, עברית, 𝄞 and 🦀",
        // An accent of its own.
        "cafe\u{301}",
    ] {
        assert!(
            matches!(line(text), Cow::Borrowed(it) if it == text),
            "{text}"
        );
    }
}

#[test]
fn invisible_characters_are_shown_as_their_numbers() {
    check("\u{1b}[2J", r"\u{1b}[2J");
    check("a\u{7}b\rc\0", r"a\u{7}b\u{d}c\u{0}");
    check("\u{202e}gpj.exe", r"\u{202e}gpj.exe");
    for c in [
        '\u{7f}',
        '\u{80}',
        '\u{9b}',
        '\u{ad}',
        '\u{34f}',
        '\u{61c}',
        '\u{115f}',
        '\u{200b}',
        '\u{200d}',
        '\u{200e}',
        '\u{200f}',
        '\u{2028}',
        '\u{2029}',
        '\u{202a}',
        '\u{202b}',
        '\u{202c}',
        '\u{202d}',
        '\u{2060}',
        '\u{2066}',
        '\u{2067}',
        '\u{2068}',
        '\u{2069}',
        '\u{2800}',
        '\u{3164}',
        '\u{e000}',
        '\u{fe0f}',
        '\u{feff}',
        '\u{fff9}',
        '\u{e0001}',
        '\u{e0020}',
        '\u{e0100}',
        '\u{10ffff}',
        '\u{a0}',
        '\u{3000}',
    ] {
        check(&format!("a{c}b"), &format!("a{}b", c.escape_unicode()));
    }
}

#[test]
fn a_line_ends_where_it_ends() {
    check("a\nb\tc", r"a\u{a}b\u{9}c");
    assert_eq!(lines("a\nb\tc\r\n"), "a\nb\tc\\u{d}\n");
    assert!(matches!(lines("a\n\tb\n"), Cow::Borrowed(_)));
}

#[test]
fn json_keeps_its_value_with_its_own_escapes() {
    let text = "{\"a\":\t\"\u{202e}\u{7f}\u{e0001}ä\"}\n";
    assert_eq!(json(text), "{\"a\":\t\"\\u202e\\u007f\\udb40\\udc01ä\"}\n");
}

#[test]
fn marks_need_a_letter_and_do_not_pile_up() {
    check("\u{301}a", r"\u{301}a");
    let piled: String = std::iter::once('a').chain(['\u{301}'; 6]).collect();
    check(&piled, "a\u{301}\u{301}\u{301}\u{301}\\u{301}\\u{301}");
    assert_eq!(line("\u{200b}\u{301}"), r"\u{200b}\u{301}");
}

#[test]
fn a_message_is_cut_between_characters() {
    assert_eq!(cut("short"), "short");
    let long = "ä".repeat(1_000);
    let shown = cut(&long);
    assert!(shown.ends_with("… (and 1000 bytes more)"), "{shown}");
    assert_eq!(shown.chars().filter(|c| *c == 'ä').count(), 500);
    let odd = format!("a{long}");
    assert!(cut(&odd).ends_with("… (and 1002 bytes more)"));
}
