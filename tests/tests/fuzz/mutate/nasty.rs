//! Values at which programs often break.

use crate::chance::Chance;

const WHOLE: [u64; 22] = [
    0,
    1,
    2,
    3,
    9,
    10,
    59,
    60,
    63,
    64,
    65,
    127,
    1_000,
    1_001,
    999_999,
    1 << 31,
    (1 << 32) - 1,
    1 << 53,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];

const NUMBERS: [f64; 24] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    0.5,
    1.5,
    10.0,
    99.0,
    100.0,
    1e-9,
    1e-38,
    1e9,
    1e12,
    1e15,
    1.000_000_000_000_000_2e15,
    1e16,
    1e300,
    f64::MAX,
    f64::MIN_POSITIVE,
    5e-324,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
];

const WORDS: [&str; 64] = [
    "",
    "0",
    "-0",
    "-1",
    "1",
    "0.5",
    "1e15",
    "1e16",
    "1e309",
    "-1e309",
    "NaN",
    ".nan",
    ".inf",
    "inf",
    "9223372036854775808",
    "18446744073709551616",
    "-9223372036854775809",
    "0x10",
    "0o17",
    "1_000",
    "~",
    "null",
    "true",
    "no",
    "*",
    "**",
    "?",
    "[a-z]",
    "[^a]",
    "[",
    "[]",
    "[a-",
    "\\",
    "a\\",
    "{}",
    "[[[[",
    "{a: ",
    "&a",
    "*a",
    "<<: *a",
    "!!binary",
    "!!str",
    "--- ",
    "...",
    "|",
    ">-",
    "# ",
    "%2F",
    "%",
    "%zz",
    "etcd://",
    "etcd:///",
    "etcd:",
    ":0",
    "[::1]:1",
    "10ms",
    "1h",
    "7d",
    "-1s",
    "1ns",
    "100000000y",
    "\u{202e}",
    "\u{1b}[2J",
    "\u{0}",
];

/// Returns a whole number: one of the above, a small one, or any.
pub fn whole(chance: &mut Chance) -> u64 {
    match chance.below(4) {
        0 => chance.number(),
        1 => chance.number() % 100_000,
        _ => WHOLE[chance.below(WHOLE.len())],
    }
}

/// Returns a number: one of the above, a plausible one, or any.
pub fn number(chance: &mut Chance) -> f64 {
    match chance.below(4) {
        0 => f64::from_bits(chance.number()),
        1 => (chance.number() % 100_000) as f64 / 100.0,
        _ => NUMBERS[chance.below(NUMBERS.len())],
    }
}

/// Returns a word: one of the above, a number, or a very long one.
pub fn word(chance: &mut Chance) -> String {
    match chance.below(16) {
        0 => "a".repeat(chance.below(2_000)),
        1 => "\u{1f600}/".repeat(chance.below(200)),
        2 | 3 => number(chance).to_string(),
        4 | 5 => whole(chance).to_string(),
        6 => format!("{}ms", whole(chance)),
        _ => WORDS[chance.below(WORDS.len())].to_owned(),
    }
}
