//! Ids that are made up from globs. Pure.

/// Bound on comparisons of a template with ids, in each search: a fraction of a second.
pub(super) const LOOKS_MAX: usize = 5_000_000;

/// Something like what the glob matches, with `star` for what its stars match.
pub(super) fn filled(glob: &str, star: &str) -> String {
    let mut text = String::new();
    let mut rest = glob.chars();
    while let Some(c) = rest.next() {
        match c {
            '*' => text.push_str(star),
            '?' => text.push('x'),
            '\\' => text.extend(rest.next()),
            '[' => {
                let class: String = rest.by_ref().take_while(|c| *c != ']').collect();
                match class.strip_prefix('^') {
                    // Hardly ever in a class.
                    Some(_) => text.push('_'),
                    None => text.extend(class.chars().next()),
                }
            }
            c => text.push(c),
        }
    }
    text
}
