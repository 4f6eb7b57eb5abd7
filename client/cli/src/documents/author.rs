//! Author of a change, and texts of other authors as they may be printed.

use std::borrow::Cow;

use doorward_session::visible;

use super::flags::ChangeFlags;
use crate::failure::{Failure, Result};

/// The longest name or reason, in characters: they go into tables.
const CHARS_MAX: usize = 500;

/// Author and reason of a change, as the history keeps them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Author {
    pub(crate) who: String,
    pub(crate) why: Option<String>,
}

impl Author {
    pub(crate) fn of(flags: &ChangeFlags) -> Result<Self> {
        Ok(Self {
            who: line("--who", flags.who.as_deref())?.unwrap_or_else(user_at_host),
            why: line("--why", flags.why.as_deref())?,
        })
    }
}

/// Returns the text of a flag in one line. None: it is empty.
fn line(flag: &str, text: Option<&str>) -> Result<Option<String>> {
    let text = text.unwrap_or_default().trim();
    if text.chars().count() > CHARS_MAX {
        let problem = format!("{flag} is too long: at most {CHARS_MAX} characters");
        return Err(Failure::Usage(problem));
    }
    Ok((!text.is_empty()).then(|| plain(text).replace('\n', " ")))
}

fn user_at_host() -> String {
    let set = |name| std::env::var(name).ok().filter(|user| !user.is_empty());
    let user = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(set);
    let user = user.unwrap_or_else(|| "unknown".to_owned());
    let host = gethostname::gethostname();
    let name = format!("{user}@{}", host.to_string_lossy());
    let name = plain(&name);
    name.chars().take(CHARS_MAX).collect()
}

/// Makes characters visible that cannot be seen in a foreign text. A line may end as on any system.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        let text = text.replace("\r\n", "\n");
        return Cow::Owned(visible::lines(&text).into_owned());
    }
    visible::lines(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(who: Option<&str>, why: Option<&str>) -> ChangeFlags {
        ChangeFlags {
            why: why.map(str::to_owned),
            who: who.map(str::to_owned),
            expect: None,
            yes: true,
            force: false,
        }
    }

    #[test]
    fn who_and_why_are_lines_that_steer_no_terminal() {
        let author = Author::of(&flags(Some(" ann "), Some("a\nb\u{1b}[31m"))).unwrap();
        assert_eq!(author.who, "ann");
        assert_eq!(author.why.as_deref(), Some("a b\\u{1b}[31m"));
        assert!(Author::of(&flags(Some("ann"), Some(&"x".repeat(501)))).is_err());
    }

    #[test]
    fn every_author_has_a_name_and_no_reason_is_none() {
        for who in [None, Some(" ")] {
            let author = Author::of(&flags(who, Some(" "))).unwrap();
            assert!(author.who.contains('@'), "{author:?}");
            assert_eq!(author.why, None);
        }
    }
}
