//! Rules as a kind of document: how they are read, listed and compared.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use doorward::rules::document::DOCUMENT_BYTES_MAX;
use doorward::rules::source::files;
use doorward::rules::{Problems, Rules};
use doorward_documents::Kind;
use doorward_pages::terminal::{Palette, Table, Tone, cell};
use serde_json::{Map, Value, json};

use crate::documents::parts::{self, Part};
use crate::documents::{Change, ChangeLine, Effect, Shown, Store, refusal};
use crate::rules::fields;

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
    fn changes(old: &Self, new: &Self) -> Vec<ChangeLine> {
        let mut lines = parts::changes(&parts(&old.0), &parts(&new.0), false);
        if lines.is_empty() && old.0 != new.0 {
            let text = "the order of rules, or descriptors without a limit".to_owned();
            lines.push(ChangeLine { sign: '~', text });
        }
        lines
    }

    async fn effect(change: Change<'_, Self>, _asks: bool) -> io::Result<Effect> {
        let paths = |rules: &Self| -> BTreeSet<String> {
            let rules = rules.0.rules().iter();
            rules.map(|rule| rule.path.clone()).collect()
        };
        let old = change.old.map(paths).unwrap_or_default();
        let are_gone = !old.is_empty() && old.is_disjoint(&paths(change.new));
        let message = "warning: no rule of those in force stays";
        let gone = are_gone.then(|| format!("{}: {message}", change.document.name));
        let own = change.store.and_then(Store::file);
        let clash = own.and_then(|own| change.new.clash_beside(own));
        let of_rules = change.new.0.warnings().into_iter();
        let of_rules = of_rules.map(|it| format!("warning: {it}"));
        let refusal = gone.as_deref().map(refusal);
        let warnings: Vec<String> = of_rules.chain(gone).chain(clash).collect();
        Ok(Effect {
            json: json!({"warnings": warnings}),
            warnings: warnings.into_iter().map(|it| (Tone::Bad, it)).collect(),
            refusal,
            ..Effect::default()
        })
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
            let others = parts::described(&fields::of_rule(rule).split_off(1));
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
            let fields = fields.map(|it| (it.name, json!(it.value)));
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

/// Returns the domains and the rules by their path.
fn parts(rules: &Rules) -> Vec<Part> {
    let domains = rules.domains().into_iter();
    let domains = domains.map(|name| (name.to_owned(), fields::of_domain(rules, name)));
    let all = rules.rules().iter();
    let all = all.map(|rule| (rule.path.clone(), fields::of_rule(rule)));
    domains.chain(all).collect()
}
