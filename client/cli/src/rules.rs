//! `doorward rules`: the rules by which a service limits its callers.
//!
//! The commands are those for all documents, and `try`:
//!
//! - `request`: a request as people write it;
//! - `try_requests`: the answers of rules to requests.

pub(crate) mod flags;
mod request;
mod try_requests;

use std::collections::BTreeMap;
use std::io::{self, Write};

use doorward_documents::Kind;
use doorward_pages::terminal::palette::{Palette, Tone};
use doorward_pages::terminal::table::{Table, cell};
use doorward_rules::document::DOCUMENT_BYTES_MAX;
use doorward_rules::{Problem, Rule, Rules};
use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::documents::{self, Change, ChangeLine, Effect, Shown};
use crate::failure::Failure;
use crate::flags::Common;
use crate::rules::flags::{RulesCommand, RulesFlags};

pub(crate) async fn run(common: &Common, flags: &RulesFlags) -> Result<(), Failure> {
    match &flags.command {
        RulesCommand::Try(flags) => try_requests::run(common, flags),
        RulesCommand::Document(command) => {
            documents::run::<RuleDocument>(common, flags.at.as_ref(), command).await
        }
    }
}

/// A document with the rules of one domain.
#[derive(Debug, Default)]
pub(crate) struct RuleDocument(Rules);

/// All problems of a document.
#[derive(Debug, Error)]
#[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub(crate) struct RuleProblems(Vec<Problem>);

impl Kind for RuleDocument {
    const NOUN: &'static str = "rule";
    const KEY: &'static str = "/doorward/rules";
    const VARIABLE: &'static str = "DOORWARD_RULES";
    const EXAMPLE: &'static str =
        "domain: my-service\ndescriptors:\n- key: user\n  rate_limit: {rate: 100/min}\n";
    const BYTES_MAX: usize = DOCUMENT_BYTES_MAX;
    type Error = RuleProblems;

    fn parse(bytes: &[u8], file: &str) -> Result<Self, RuleProblems> {
        let text = str::from_utf8(bytes).map_err(|_| {
            let message = "the document is no UTF-8; write it as UTF-8".to_owned();
            let file = file.to_owned();
            RuleProblems(vec![Problem {
                file,
                line: 1,
                message,
            }])
        })?;
        Rules::load(&[(file, text)]).map(Self).map_err(RuleProblems)
    }

    fn problems(error: &RuleProblems) -> Vec<(u64, String)> {
        let problems = error.0.iter();
        problems.map(|it| (it.line, it.to_string())).collect()
    }
}

impl Shown for RuleDocument {
    type Effect = NoEffect;

    fn changes(old: &Self, new: &Self) -> Vec<ChangeLine> {
        let (before, after) = (by_path(&old.0), by_path(&new.0));
        let removed = before.iter().filter(|(path, _)| !after.contains_key(*path));
        let removed =
            removed.map(|(path, rule)| ChangeLine::new('-', format!("{path}: {}", shown(rule))));
        let others = after.iter().filter_map(|(path, rule)| {
            let shown_now = shown(rule);
            match before.get(path) {
                None => Some(ChangeLine::new('+', format!("{path}: {shown_now}"))),
                Some(former) if former == rule => None,
                Some(former) => {
                    let text = match shown(former) {
                        before if before == shown_now => "other settings".to_owned(),
                        before => format!("{before} becomes {shown_now}"),
                    };
                    Some(ChangeLine::new('~', format!("{path}: {text}")))
                }
            }
        });
        removed.chain(others).collect()
    }

    async fn effect(_: Change<'_, Self>, _: bool) -> NoEffect {
        NoEffect
    }

    fn len(&self) -> usize {
        self.0.rules().len()
    }

    fn table(&self, palette: Palette) -> Table {
        let mut table = Table::new(["rule", "limit", "scope", "above it"], 4..4, palette);
        for rule in self.0.rules() {
            table.add([
                palette.cell(Tone::Strong, &rule.path),
                cell(shown(rule)),
                cell(format!("{:?}", rule.scope).to_lowercase()),
                cell(above(rule)),
            ]);
        }
        table
    }

    fn to_json(&self) -> Value {
        let rules = self.0.rules().iter().map(|rule| {
            json!({
                "rule": rule.path,
                "limit": rule.limit.to_string(),
                "scope": format!("{:?}", rule.scope).to_lowercase(),
                "above": above(rule),
            })
        });
        rules.collect()
    }
}

fn by_path(rules: &Rules) -> BTreeMap<&str, &Rule> {
    rules
        .rules()
        .iter()
        .map(|rule| (rule.path.as_str(), &**rule))
        .collect()
}

/// Returns the limit of a rule, with the details that people change most.
fn shown(rule: &Rule) -> String {
    let ban = rule
        .counted()
        .and_then(|counted| counted.settings.hard().bans.as_ref());
    let ban = ban.map_or_else(String::new, |ban| format!(", ban above {}", ban.threshold));
    format!("{}{ban}", rule.limit)
}

/// Returns the answer of a rule above its limit.
fn above(rule: &Rule) -> String {
    if rule.counted().is_none() {
        "-".to_owned()
    } else if rule.shadow {
        "shadow".to_owned()
    } else {
        format!("{:?}", rule.action).to_lowercase()
    }
}

/// A change of rules has no forecast: services count by themselves.
#[derive(Debug, Default)]
pub(crate) struct NoEffect;

impl Effect for NoEffect {
    fn write_warnings(&self, _: &mut impl Write, _: Palette) -> io::Result<()> {
        Ok(())
    }

    fn refusal(&self) -> Option<String> {
        None
    }

    fn write(&self, _: &mut impl Write, _: Palette) -> io::Result<()> {
        Ok(())
    }

    fn to_json(&self) -> Map<String, Value> {
        Map::from_iter([("warnings".to_owned(), json!([]))])
    }
}
