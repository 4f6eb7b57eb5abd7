//! Sizes, as people write them: `65536`, `256KiB`, `4MiB`, `2GiB`.

/// Parses a number of bytes.
///
/// # Errors
///
/// What to give instead.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 4] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("B", 1),
    ];
    let (number, unit) = UNITS
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))
        .unwrap_or((text, 1));
    let number: Option<u64> = number.trim().parse().ok();
    number
        .and_then(|number| number.checked_mul(unit))
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "give bytes, as in 65536, 256KiB, 4MiB or 2GiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, expected) in [
            ("65536", Some(65_536)),
            ("1B", Some(1)),
            ("256KiB", Some(256 * 1024)),
            ("4 MiB", Some(4 * 1024 * 1024)),
            ("2GiB", Some(2 * 1024 * 1024 * 1024)),
            ("0", None),
            ("", None),
            ("-1", None),
            ("many", None),
            ("1.5MiB", None),
            ("99999999999999999999GiB", None),
        ] {
            assert_eq!(bytes(text).ok(), expected, "{text:?}");
        }
    }
}
