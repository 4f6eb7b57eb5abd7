//! Parts of a document as fields of text, and the changes from one document to another. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use doorward_pages::terminal::Tone;
use similar::{Algorithm, DiffTag, capture_diff_slices};

/// Value of a field that a part does not have.
pub(crate) const NONE: &str = "none";

/// A part: its name, which no other one has, and its fields.
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

/// Returns the changes from the old parts to the new ones; none if they mean the same. `has_order`: the first part that
/// matches counts, so places are told.
pub(crate) fn changes(old: &[Part], new: &[Part], has_order: bool) -> Vec<ChangeLine> {
    let (was, is) = (by_name(old), by_name(new));
    let moved = match has_order {
        true => moved(old, new),
        false => BTreeSet::new(),
    };
    let of_old = old.iter().enumerate();
    let of_old = of_old.filter_map(|(place, (name, fields))| {
        let Some((new_place, now)) = is.get(&**name) else {
            let text = format!("{name} removed: {}", described(fields));
            return Some(ChangeLine { sign: '-', text });
        };
        let mut differing = differing(fields, now);
        if moved.contains(&**name) {
            let (from, to) = (place + 1, new_place + 1);
            differing.push(format!("moved from place {from} to {to}"));
        }
        let text = format!("{name} {}", differing.join("; "));
        (!differing.is_empty()).then_some(ChangeLine { sign: '~', text })
    });
    let added = new.iter().enumerate();
    let added = added.filter(|(_, (name, _))| !was.contains_key(&**name));
    let added = added.map(|(place, (name, fields))| {
        let at = match has_order {
            true => format!(" at place {}", place + 1),
            false => String::new(),
        };
        let text = format!("{name} added{at}: {}", described(fields));
        ChangeLine { sign: '+', text }
    });
    of_old.chain(added).collect()
}

type ByName<'a> = BTreeMap<&'a str, (usize, &'a [Field])>;

fn by_name(parts: &[Part]) -> ByName<'_> {
    let parts = parts.iter().enumerate();
    let by_name = parts.map(|(place, (name, fields))| (&**name, (place, &**fields)));
    by_name.collect()
}

/// Returns the names of parts that stand before others than they did: as few as explain it.
fn moved<'a>(old: &'a [Part], new: &[Part]) -> BTreeSet<&'a str> {
    fn common<'p>(parts: &'p [Part], others: &ByName<'_>) -> Vec<&'p str> {
        let names = parts.iter().map(|(name, _)| &**name);
        names.filter(|name| others.contains_key(name)).collect()
    }
    let (before, after) = (common(old, &by_name(new)), common(new, &by_name(old)));
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
