//! Rules as a kind of document: how they are read, listed and compared.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use doorward::rules::document::DOCUMENT_BYTES_MAX;
use doorward::rules::source::files;
use doorward::rules::{Problems, Rules};
use doorward_documents::Kind;
use doorward_pages::terminal::{Palette, Table, Tone, cell};
use serde_json::{Map, Value, json};

use crate::documents::author::plain;
use crate::documents::{Change, ChangeLine, Effect, Shown, Store, refusal};
use crate::rules::fields::{self, Field};

/// The rules of one document.
#[derive(Debug, Default)]
pub(crate) struct RuleDocument(pub(crate) Rules);

impl Kind for RuleDocument {
    const NOUN: &'static str = "rule";
    const KEY: &'static str = "/doorward/rules";
    const VARIABLE: &'static str = "DOORWARD_RULES";
    const EXAMPLE: &'static str = include_str!("example.yaml");
    const BYTES_MAX: usize = DOCUMENT_BYTES_MAX;
    type Error = Problems;

    fn parse(name: &str, bytes: &[u8]) -> Result<Self, Problems> {
        files::load([(name, bytes)]).map(Self)
    }

    fn problems(error: &Problems) -> Vec<(u64, String)> {
        let problems = error.0.iter();
        problems.map(|it| (it.line, it.message.clone())).collect()
    }
}

impl Shown for RuleDocument {
    type Effect = RuleEffect;

    fn changes(old: &Self, new: &Self) -> Vec<ChangeLine> {
        let (was, is) = (parts(&old.0), parts(&new.0));
        let places: BTreeSet<_> = was.keys().chain(is.keys()).collect();
        let line = |place: &(&str, usize)| {
            let path = place.0;
            let (sign, text) = match (was.get(place), is.get(place)) {
                (Some(old), None) => ('-', format!("{path} removed: {}", fields::described(old))),
                (None, Some(new)) => ('+', format!("{path} added: {}", fields::described(new))),
                (Some(old), Some(new)) if old != new => {
                    ('~', format!("{path} {}", fields::difference(old, new)))
                }
                _ => return None,
            };
            Some(ChangeLine::new(sign, text))
        };
        let mut lines: Vec<ChangeLine> = places.into_iter().filter_map(line).collect();
        if lines.is_empty() && old.0 != new.0 {
            let text = "the order of rules, or descriptors without a limit";
            lines.push(ChangeLine::new('~', text.to_owned()));
        }
        lines
    }

    async fn effect(change: Change<'_, Self>, _asks: bool) -> RuleEffect {
        let paths = |rules: &Self| -> BTreeSet<String> {
            let rules = rules.0.rules().iter();
            rules.map(|rule| rule.path.clone()).collect()
        };
        let old = change.old.map(paths).unwrap_or_default();
        let are_gone = !old.is_empty() && old.is_disjoint(&paths(change.new));
        let message = "warning: no rule of those in force stays";
        let gone = are_gone.then(|| format!("{}: {message}", change.name));
        let own = change.store.and_then(Store::file);
        let clash = own.and_then(|own| change.new.clash_beside(own));
        let of_rules = change.new.0.warnings().into_iter();
        let of_rules = of_rules.map(|it| format!("warning: {it}"));
        RuleEffect {
            warnings: of_rules.chain(gone.clone()).chain(clash).collect(),
            gone,
        }
    }

    fn clash(&self, other: &Self) -> Option<String> {
        let others = other.0.domains();
        let mut domains = self.0.domains().into_iter();
        let both = domains.find(|name| others.contains(name))?;
        Some(format!("domain: {both}"))
    }

    fn len(&self) -> usize {
        self.0.rules().len()
    }

    fn table(&self, palette: Palette) -> Table {
        let mut table = Table::new(["rule", "limit", ""], 0..0, palette);
        for rule in self.0.rules() {
            let others = fields::described(&fields::of_rule(rule).split_off(1));
            let others = [Some(others), fields::without_lease(rule)];
            let others: Vec<_> = others.into_iter().flatten().collect();
            table.add([
                palette.cell(Tone::Strong, &rule.path),
                cell(&rule.limit),
                cell(others.join("; ")),
            ]);
        }
        table
    }

    fn to_json(&self) -> Value {
        let rules = self.0.rules().iter().map(|rule| {
            let fields = fields::of_rule(rule).into_iter();
            let fields = fields.map(|it| (it.name.to_owned(), json!(it.value)));
            let path = ("rule".to_owned(), json!(rule.path));
            fields.chain([path]).collect::<Map<_, _>>()
        });
        rules.collect()
    }
}

impl RuleDocument {
    /// Returns a warning if another file of the directory has a domain of this one.
    fn clash_beside(&self, own: &Path) -> Option<String> {
        let folder = doorward_files::folder(own);
        let files = files::read_directory(folder).ok()?.into_iter();
        let mut others = files.filter(|(name, _)| own.file_name() != Some(name.as_ref()));
        others.find_map(|(name, bytes)| {
            let part = self.clash(&Self::parse(&name, &bytes).ok()?)?;
            let other = folder.join(name);
            let other = other.display();
            Some(format!(
                "warning: {part} is in {other} too: servers refuse a directory with both"
            ))
        })
    }
}

/// Returns the fields of domains and rules by their path, and a number, since `a_b` may be a key or a key with a value.
fn parts(rules: &Rules) -> BTreeMap<(&str, usize), Vec<Field>> {
    let domains = rules.domains().into_iter();
    let domains = domains.map(|name| (name, fields::of_domain(rules, name)));
    let all = rules.rules().iter();
    let all = domains.chain(all.map(|rule| (&*rule.path, fields::of_rule(rule))));
    let mut parts = BTreeMap::new();
    for (path, fields) in all {
        let same = parts.range((path, 0)..=(path, usize::MAX)).count();
        parts.insert((path, same), fields);
    }
    parts
}

/// Warnings about a change of rules.
#[derive(Debug, Default)]
pub(crate) struct RuleEffect {
    /// About the rules as such, about rules in force that go, and about another file with the domain.
    warnings: Vec<String>,
    /// The warning if all rules in force go.
    gone: Option<String>,
}

impl Effect for RuleEffect {
    fn write_warnings(&self, out: &mut impl Write, palette: Palette) -> io::Result<()> {
        let mut warnings = self.warnings.iter();
        warnings.try_for_each(|it| writeln!(out, "{}", palette.paint(Tone::Bad, &plain(it))))
    }

    fn refusal(&self) -> Option<String> {
        self.gone.as_deref().map(refusal)
    }

    fn write(&self, _out: &mut impl Write, _palette: Palette) -> io::Result<()> {
        Ok(())
    }

    fn to_json(&self) -> Value {
        json!({"warnings": self.warnings, "needs_force": self.gone.is_some()})
    }
}
