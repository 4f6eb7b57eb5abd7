//! Learning mode in words: the resource is in it, the remaining time, and the remedy.
//!
//! Clients without a lease get nothing meanwhile. That looks like a fault to people who do not know learning mode.

use std::time::Duration;

use doorward_pages::numbers::{self, span};
use doorward_session::time::millis;

/// Returns the remedy. `is_root`: the templates that set the length of learning mode are this node's.
const fn advice(is_root: bool) -> &'static str {
    if is_root {
        "It ends by itself. If nobody held anything before, or if more than the capacity may be in use for a lease \
         length, `doorward learning end` ends it now."
    } else {
        "It ends by itself. How long it lasts, the templates of the root say."
    }
}

/// Returns the text for a resource that is in learning mode here, or else in a server above. `above` is absent at the
/// root.
pub fn of(own: Option<Duration>, above: Option<Option<Duration>>) -> Option<String> {
    match (own, above) {
        (Some(left), above) => Some(sentence(left, above.is_none())),
        (None, above) => above.flatten().map(sentence_of_parent),
    }
}

/// Returns the text for a resource of which holders may use an amount that they have not reported to this master.
pub(super) fn unreported(amount: f64, left: Duration) -> String {
    format!(
        "{} may be in use by holders that have not reported since the master changed, {} more: that much is kept for \
         them, and everything else is divided.",
        numbers::amount(amount),
        span(millis(left)),
    )
}

/// Returns the text for a resource that stays in learning mode for `left`.
fn sentence(left: Duration, is_root: bool) -> String {
    format!(
        "learning mode, {} left: holders keep what they say they have, and newcomers wait. {}",
        span(millis(left)),
        advice(is_root)
    )
}

/// Returns the text for a resource that a server above keeps in learning mode for `left`.
fn sentence_of_parent(left: Duration) -> String {
    format!(
        "learning mode of a server above, {} left: it only confirms what is out, so newcomers wait here, too. {}",
        span(millis(left)),
        advice(false)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_for_how_long_and_what_to_do() {
        let root = sentence(Duration::from_secs(41), true);
        assert!(root.starts_with("learning mode, 41 s left: "), "{root}");
        assert!(root.contains("`doorward learning end`"), "{root}");
        let below = sentence(Duration::from_millis(900), false);
        assert!(below.starts_with("learning mode, 900 ms left"), "{below}");
        assert!(below.contains("templates of the root"), "{below}");
    }

    #[test]
    fn what_is_not_reported_is_told_with_its_end() {
        let text = unreported(2.5, Duration::from_secs(21));
        assert!(text.starts_with("2.5 may be in use"), "{text}");
        assert!(text.contains(", 21 s more: "), "{text}");
    }

    #[test]
    fn a_server_above_that_learns_is_named_unless_this_one_learns_itself() {
        let (own, above) = (Duration::from_secs(5), Duration::from_secs(41));
        assert_eq!(of(None, None), None);
        assert_eq!(of(None, Some(None)), None);
        let said = of(None, Some(Some(above))).unwrap();
        assert!(
            said.starts_with("learning mode of a server above, 41 s left"),
            "{said}"
        );
        let said = of(Some(own), Some(Some(above))).unwrap();
        assert!(said.starts_with("learning mode, 5 s left"), "{said}");
    }
}
