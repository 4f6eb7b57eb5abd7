//! Names like one that nobody holds: what was meant, perhaps. Pure.

use doorward_documents::keys::distance;

/// Names that are shown at most.
const NAMES_MAX: usize = 5;

/// Those of the names that are like one: they begin as it does, or it as they do, or few characters are
/// different. The nearest first.
pub(super) fn near<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let lower = name.to_lowercase();
    // One character is soon wrong, of a long name more of them; any other name of two is as near.
    let far = match name.chars().count() {
        0..3 => 0,
        count => 1 + count / 5,
    };
    let mut near: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|other| {
            let other_lower = other.to_lowercase();
            let begins = begins(&other_lower, &lower) || begins(&lower, &other_lower);
            let longer = lower.len().abs_diff(other_lower.len());
            // Characters have four bytes at most.
            let distance = match longer > 4 * far && !begins {
                true => return None,
                false => distance(&lower, &other_lower),
            };
            (begins || distance <= far).then_some((distance, other))
        })
        .collect();
    near.sort_unstable();
    near.truncate(NAMES_MAX);
    near.into_iter().map(|(_, name)| name).collect()
}

/// Whether a name begins with another one that says something.
fn begins(name: &str, with: &str) -> bool {
    with.len() > 1 && name.starts_with(with)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_like_one_are_found_the_nearest_first() {
        let held = [
            "db/orders",
            "db/orders/eu",
            "db/order",
            "DB/Carts",
            "web",
            "a",
            "ab",
        ];
        for (name, expected) in [
            ("db/ordres", &["db/order", "db/orders"][..]),
            ("db/carts", &["DB/Carts"]),
            ("db", &["DB/Carts", "db/order", "db/orders", "db/orders/eu"]),
            (
                "db/orders/eu/reads",
                &["db/orders/eu", "db/orders", "db/order"],
            ),
            ("wbe", &[]),
            ("we", &["web"]),
            ("b", &[]),
            ("nothing/like/it", &[]),
            ("", &[]),
        ] {
            assert_eq!(near(name, held), expected, "{name}");
        }
    }

    #[test]
    fn few_are_shown() {
        let held: Vec<String> = (0..90).map(|number| format!("db/r{number}")).collect();
        assert_eq!(
            near("db/r", held.iter().map(String::as_str)).len(),
            NAMES_MAX
        );
    }
}
