//! Rules as a kind of document: how they are read, listed and compared.

use std::collections::{BTreeMap, BTreeSet};

use doorward::rules::{Problems, Rules};
use doorward_pages::terminal::{Palette, Table, Tone, cell};
use serde_json::{Map, Value, json};

use crate::documents::parts::{self, Part};
use crate::documents::{Change, ChangeLine, Effect, Shown, refusal};
use crate::rules::fields;

/// The rules of one document.
impl Shown for Rules {
    const NOUN: &'static str = "rule";
    const KEY: &'static str = "/doorward/rules";
    const VARIABLE: &'static str = "DOORWARD_RULES";
    const EXAMPLE: &'static str = include_str!("example.yaml");
    type Error = Problems;

    fn parse(name: &str, bytes: &[u8]) -> Result<Self, Problems> {
        Rules::load_bytes([(name, bytes)])
    }

    fn problems(error: &Problems) -> Vec<(u64, String)> {
        let problems = error.0.iter();
        problems.map(|it| (it.line, it.message.clone())).collect()
    }

    fn changes(old: &Self, new: &Self) -> Vec<ChangeLine> {
        let mut lines = parts::changes(&parts(old), &parts(new), false);
        if lines.is_empty() && old != new {
            let text = "the order of rules, or descriptors without a limit".to_owned();
            lines.push(ChangeLine { sign: '~', text });
        }
        lines
    }

    async fn effect(change: Change<'_, Self>, _asks: bool) -> Effect {
        let paths = |rules: &Self| -> BTreeSet<String> {
            let rules = rules.rules().iter();
            rules.map(|rule| rule.path.clone()).collect()
        };
        let old = change.old.map(paths).unwrap_or_default();
        let are_gone = !old.is_empty() && old.is_disjoint(&paths(change.new));
        let message = "warning: no rule of those in force stays";
        let gone = are_gone.then(|| format!("{}: {message}", change.name));
        let of_rules = change.new.warnings().into_iter();
        let of_rules = of_rules.map(|it| format!("warning: {it}"));
        let refusal = gone.as_deref().map(refusal);
        let warnings: Vec<String> = of_rules.chain(gone).collect();
        Effect {
            json: json!({"warnings": warnings, "needs_force": refusal.is_some()}),
            refusal,
            warnings: warnings.into_iter().map(|it| (Tone::Bad, it)).collect(),
            ..Effect::default()
        }
    }

    fn clash(&self, other: &Self) -> Option<String> {
        let others = other.domains();
        let mut domains = self.domains().into_iter();
        let both = domains.find(|name| others.contains(name))?;
        Some(format!("domain: {both}"))
    }

    fn len(&self) -> usize {
        self.rules().len()
    }

    fn table(&self, palette: Palette) -> Table {
        let mut table = Table::new(["rule", "limit", ""], 0..0, palette);
        for rule in self.rules() {
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
        let rules = self.rules().iter().map(|rule| {
            let fields = fields::of_rule(rule).into_iter();
            let fields = fields.map(|it| (it.name, json!(it.value)));
            let path = ("rule".to_owned(), json!(rule.path));
            fields.chain([path]).collect::<Map<_, _>>()
        });
        rules.collect()
    }
}

/// Returns the domains and the rules by their path. `a_b` may be a key, or a key with a value; the second one has a number.
fn parts(rules: &Rules) -> Vec<Part> {
    let domains = rules.domains().into_iter();
    let domains = domains.map(|name| (name, fields::of_domain(rules, name)));
    let all = rules.rules().iter();
    let all = domains.chain(all.map(|rule| (&*rule.path, fields::of_rule(rule))));
    let mut seen = BTreeMap::<&str, u32>::new();
    let parts = all.map(|(path, fields)| {
        let same = seen.entry(path).or_default();
        *same += 1;
        match *same {
            1 => (path.to_owned(), fields),
            number => (format!("{path} ({number})"), fields),
        }
    });
    parts.collect()
}
