//! `doorward rules try`: the answers of rules to requests, on a virtual clock.

use std::collections::BTreeSet;
use std::fmt;
use std::io::Write as _;
use std::iter;
use std::time::Duration;

use doorward::rules::{Advice, Decision, Descriptor, Entry, Limiter, Rules};
use doorward_etcd::DocumentPlace;
use doorward_limits::Moment;
use doorward_session::time::millis_up;
use serde_json::json;

use crate::common::{Common, Output};
use crate::documents::{Document, Store};
use crate::failure::Result;
use crate::output;
use crate::rules::document::RuleDocument;
use crate::rules::flags::TryFlags;
use crate::rules::request::TriedRequest;

pub(crate) async fn run(common: &Common, at: Option<&DocumentPlace>, flags: &TryFlags) -> Result {
    let rules = match &flags.file {
        Some(file) => Document::<RuleDocument>::read(file)?,
        None => Store::open::<RuleDocument>(common, at)?.in_force().await?,
    };
    let rules = rules.valid("")?.0.clone();
    // A valid document has one domain.
    let domain = rules.domains().first().copied().unwrap_or_default();
    note_unknown_keys(&rules, domain, &flags.request)?;
    // All keys of a try fit.
    let limiter = Limiter::new(rules.clone(), usize::MAX, [0, 0]);
    let mut now = Moment::ORIGIN;
    let mut out = output::stdout();
    for _ in 0..flags.repeat {
        for request in &flags.request {
            let decision = ask(&rules, &limiter, domain, request, flags.hits, now);
            let answer = Answer {
                request,
                is_one_of_several: flags.request.len() > 1,
                decision: &decision,
                at: Duration::from_nanos(now.nanos_since(Moment::ORIGIN)),
            };
            match common.output {
                Output::Json => output::json(&mut out, &answer.json())?,
                _ => writeln!(out, "{answer}")?,
            }
            now = now.after(flags.every);
        }
    }
    Ok(())
}

/// Tells of entries that no rule asks for: perhaps their key is misspelt.
fn note_unknown_keys(rules: &Rules, domain: &str, requests: &[TriedRequest]) -> Result {
    let keys = requests.iter().flat_map(TriedRequest::written_keys);
    let keys: BTreeSet<_> = keys.collect();
    let is_known = |key: &str| rules.key_paths(domain).flatten().any(|known| known == key);
    for key in keys.into_iter().filter(|key| !is_known(key)) {
        writeln!(output::stderr(), "note: no rule has the key {key}")?;
    }
    Ok(())
}

/// Asks with each combination of keys, as a service does. An entry that the request lacks has no value.
fn ask(
    rules: &Rules,
    limiter: &Limiter,
    domain: &str,
    request: &TriedRequest,
    hits: Option<u64>,
    now: Moment,
) -> Decision {
    let all = rules.key_paths(domain).map(|keys| {
        let entries = keys.iter().map(|key| Entry {
            key,
            value: request.value(key),
        });
        entries.collect()
    });
    let all: Vec<Vec<_>> = all.collect();
    let descriptors = all.iter().map(|entries| Descriptor {
        entries,
        hits: None,
    });
    let descriptors: Vec<_> = descriptors.collect();
    limiter.decide(domain, &descriptors, hits, now)
}

/// One line of the output.
struct Answer<'a> {
    request: &'a TriedRequest,
    is_one_of_several: bool,
    decision: &'a Decision,
    /// Time since the first request.
    at: Duration,
}

impl Answer<'_> {
    /// Returns the reason, and the entries of the rule that the request lacks.
    fn why(&self) -> String {
        let levels = self.decision.rule().into_iter().flat_map(|it| &it.levels);
        let lacks = levels.filter(|(key, _)| self.request.value(key).is_none());
        let lacks = lacks.map(|(key, _)| format!(", {key} missing"));
        let why = iter::once(self.decision.why.to_string());
        why.chain(lacks).collect()
    }

    fn json(&self) -> serde_json::Value {
        let rule = self.decision.rule();
        let seconds = |span: Duration| span.as_secs_f64();
        json!({
            "at_seconds": seconds(self.at),
            "request": self.request.text,
            "allowed": self.decision.is_allowed,
            "status": self.decision.http_status(),
            "rule": rule.map(|rule| &rule.path),
            "limit": rule.map(|rule| rule.limit.to_string()),
            "remaining": self.decision.remaining(),
            "reset_seconds": self.decision.reset().map(seconds),
            "retry_after_seconds": self.decision.retry_after().map(seconds),
            "why": self.why(),
            "advice": advice(self.decision.advice),
        })
    }
}

impl fmt::Display for Answer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<9}", format!("+{}", span(self.at)))?;
        if self.is_one_of_several {
            write!(f, "  {}", self.request.text)?;
        }
        match self.decision.http_status() {
            None => f.write_str("  allowed    ")?,
            Some(status) => write!(f, "  refused {status}")?,
        }
        if let Some(rule) = self.decision.rule() {
            write!(f, "  {} ({})", rule.path, rule.limit)?;
        }
        if let Some(remaining) = self.decision.remaining() {
            let reset = self.decision.reset().map_or("never".to_owned(), span);
            write!(f, "  remaining {remaining}  reset {reset}")?;
        }
        write!(f, "  {}", self.why())?;
        if let Some(wait) = self.decision.retry_after() {
            write!(f, ", passes after {}", span(wait))?;
        }
        match self.decision.advice {
            Advice::Proceed | Advice::Reject => Ok(()),
            other => write!(f, ": {}", advice(other)),
        }
    }
}

fn advice(advice: Advice) -> String {
    match advice {
        Advice::Proceed => "serve".to_owned(),
        Advice::ProceedAfter(wait) => format!("serve after {}", span(wait)),
        Advice::Degrade => "serve less".to_owned(),
        Advice::Reject => "reject".to_owned(),
        Advice::Drop => "close without an answer".to_owned(),
        Advice::Redirect => "redirect".to_owned(),
    }
}

/// Returns a time, rounded up to a millisecond.
fn span(span: Duration) -> String {
    let text = humantime::format_duration(Duration::from_millis(millis_up(span))).to_string();
    text.replace(' ', "")
}
