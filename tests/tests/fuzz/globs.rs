//! Identifier globs: an input has two globs and a text, a line each. If one glob covers the other, it matches every
//! text that the other matches.

use doorward_engine::id::ResourceId;
use doorward_engine::templates::glob::Glob;

use crate::mutate::Format;
use crate::runner::fuzz;

#[test]
fn globs() {
    fuzz!("globs", Format::Word, share: 8, read);
}

fn read(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines();
    let mut line = || lines.next().unwrap_or_default();
    let (first, second, text) = (line(), line(), line());
    let _ = ResourceId::new(text);
    let (Ok(one), Ok(other)) = (Glob::parse(first), Glob::parse(second)) else {
        return;
    };
    assert!(one.covers(&one) && other.covers(&other));
    if one.covers(&other) && other.matches(text) {
        assert!(one.matches(text), "{first:?} covers {second:?}: {text:?}");
    }
    if one.matches_nothing() {
        assert!(!one.matches(text), "{first:?}: {text:?}");
    }
}
