//! Parts of a document as fields of text, and the changes from one document to another. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use doorward_pages::terminal::Tone;
use similar::{Algorithm, DiffTag, capture_diff_slices};

/// Value of a field that a part does not have.
pub(crate) const NONE: &str = "none";

/// A part: its name and its fields. Rules may share a name, since `a_b` may be a key or a key with a value.
pub(crate) type Part = (String, Vec<Field>);

/// A field of a part.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) value: String,
    /// A field with its default is not described.
    default: String,
}

/// Change in meaning, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChangeLine {
    /// `+`, `-` or `~`.
    pub(crate) sign: char,
    pub(crate) text: String,
}

impl ChangeLine {
    pub(super) const fn tone(&self) -> Tone {
        match self.sign {
            '+' => Tone::Good,
            '-' => Tone::Bad,
            _ => Tone::Partial,
        }
    }
}

impl fmt::Display for ChangeLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.sign, self.text)
    }
}

pub(crate) fn field(name: &str, value: impl ToString, default: &str) -> Field {
    Field {
        name: name.to_owned(),
        value: value.to_string(),
        default: default.to_owned(),
    }
}

/// Returns the text of a value that may be absent.
pub(crate) fn or_none(value: Option<impl ToString>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| value.to_string())
}

/// Returns the fields that are not the default.
pub(crate) fn described(fields: &[Field]) -> String {
    let fields = fields.iter().filter(|it| it.value != it.default);
    let fields = fields.map(|it| format!("{} {}", it.name, it.value));
    fields.collect::<Vec<_>>().join(", ")
}

/// Returns the changes from the old parts to the new ones, by name; none if they mean the same. `has_order`: the first
/// part that matches counts, so places are told.
pub(crate) fn changes(old: &[Part], new: &[Part], has_order: bool) -> Vec<ChangeLine> {
    let (was, is) = (by_name(old), by_name(new));
    let moved = match has_order {
        true => moved(&was, &is),
        false => BTreeSet::new(),
    };
    let line = |key: &Key<'_>| {
        let name = key.0;
        let (sign, text) = match (was.get(key), is.get(key)) {
            (Some((_, old)), None) => ('-', format!("{name} removed: {}", described(old))),
            (None, Some((place, new))) => {
                let at = match has_order {
                    true => format!(" at place {}", place + 1),
                    false => String::new(),
                };
                ('+', format!("{name} added{at}: {}", described(new)))
            }
            (Some((from, old)), Some((to, new))) => {
                let mut differing = differing(old, new);
                if moved.contains(key) {
                    differing.push(format!("moved from place {} to {}", from + 1, to + 1));
                }
                if differing.is_empty() {
                    return None;
                }
                ('~', format!("{name} {}", differing.join("; ")))
            }
            (None, None) => return None,
        };
        Some(ChangeLine { sign, text })
    };
    let keys: BTreeSet<_> = was.keys().chain(is.keys()).collect();
    keys.into_iter().filter_map(line).collect()
}

/// Name of a part, and the number of parts before it that share it.
type Key<'a> = (&'a str, usize);

/// Parts with their places.
type ByName<'a> = BTreeMap<Key<'a>, (usize, &'a [Field])>;

fn by_name(parts: &[Part]) -> ByName<'_> {
    let mut by_name = ByName::new();
    for (place, (name, fields)) in parts.iter().enumerate() {
        let name = name.as_str();
        let same = by_name.range((name, 0)..=(name, usize::MAX)).count();
        by_name.insert((name, same), (place, fields));
    }
    by_name
}

/// Returns the parts that stand before others than they did: as few as explain it.
fn moved<'a>(was: &ByName<'a>, is: &ByName<'a>) -> BTreeSet<Key<'a>> {
    let common = |of: &ByName<'a>, others: &ByName<'a>| -> Vec<Key<'a>> {
        let common = of.iter().filter(|(key, _)| others.contains_key(*key));
        let common: BTreeMap<_, _> = common.map(|(key, (place, _))| (*place, *key)).collect();
        common.into_values().collect()
    };
    let (before, after) = (common(was, is), common(is, was));
    let ops = capture_diff_slices(Algorithm::Patience, &before, &after);
    let gone = ops.iter().filter(|op| op.tag() != DiffTag::Equal);
    let gone = gone.filter_map(|op| before.get(op.old_range()));
    gone.flatten().copied().collect()
}

/// Returns the fields that differ, with both values.
fn differing(old: &[Field], new: &[Field]) -> Vec<String> {
    let value = |of: &[Field], name: &str| {
        let found = of.iter().find(|it| it.name == name);
        or_none(found.map(|it| &it.value))
    };
    let is_added = |it: &&Field| old.iter().all(|other| other.name != it.name);
    let fields = old.iter().chain(new.iter().filter(is_added));
    let differing = fields.filter_map(|Field { name, .. }| {
        let (was, is) = (value(old, name), value(new, name));
        (was != is).then(|| format!("{name} {was} → {is}"))
    });
    differing.collect()
}
