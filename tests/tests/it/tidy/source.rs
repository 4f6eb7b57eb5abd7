//! Rust source for the rules: without comments, texts and tests, with the same line numbers.

/// Returns the text without comments and string contents.
pub(crate) fn bare(source: &str) -> String {
    let mut kept = Vec::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let skipped = skipped_at(rest, kept.last().copied());
        let (piece, after) = rest.split_at(skipped.unwrap_or(first.len_utf8()));
        match skipped {
            Some(_) => kept.extend(piece.bytes().filter(|byte| *byte == b'\n')),
            None => kept.extend_from_slice(piece.as_bytes()),
        }
        if skipped.is_some() && !piece.starts_with('/') {
            kept.push(b'0');
        }
        rest = after;
    }
    String::from_utf8(kept).unwrap()
}

/// Returns the number of bytes of a comment, a text or a character that begins here.
fn skipped_at(rest: &str, before: Option<u8>) -> Option<usize> {
    let end_of = |end: &str, from: usize| {
        let at = rest.get(from..)?.find(end)?;
        Some(from + at + end.len())
    };
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return end_of("*/", 2);
    }
    let is_in_word = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let raw = rest.strip_prefix('b').unwrap_or(rest).strip_prefix('r');
    if let Some(raw) = raw.filter(|_| !is_in_word) {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let opening = rest.len() - raw.len() + hashes + 1;
            return end_of(&format!("\"{}", "#".repeat(hashes)), opening);
        }
    }
    let mut characters = rest.char_indices();
    match characters.next()?.1 {
        '"' => loop {
            match characters.next()? {
                (_, '\\') => _ = characters.next()?,
                (at, '"') => return Some(at + 1),
                _ => {}
            }
        },
        '\'' => match characters.next()?.1 {
            '\\' => {
                characters.next()?;
                characters.find(|it| it.1 == '\'').map(|(at, _)| at + 1)
            }
            // Otherwise it is a lifetime.
            _ => characters
                .next()
                .filter(|it| it.1 == '\'')
                .map(|(at, _)| at + 1),
        },
        _ => None,
    }
}

/// Returns the place where the first bracket of `bare`, from `from` on, is closed.
pub(crate) fn closing(bare: &str, from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in bare.bytes().enumerate().skip(from) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns the source without code that is only for tests.
pub(crate) fn without_tests(bare: &str) -> String {
    const TEST: &str = "#[cfg(test)]";
    let mut kept = String::with_capacity(bare.len());
    let mut rest = bare;
    while let Some(at) = rest.find(TEST) {
        let (before, from) = rest.split_at(at);
        kept.push_str(before);
        let item = from.find([';', '{']).unwrap();
        let end = match from.as_bytes()[item] {
            b'{' => closing(from, item).unwrap(),
            _ => item,
        };
        kept.extend(from[..=end].matches('\n'));
        rest = &from[end + 1..];
    }
    kept + rest
}
