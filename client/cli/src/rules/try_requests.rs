//! `doorward rules try`: the answers of rules to requests, on a virtual clock.

use std::fmt;
use std::io::Write as _;
use std::time::Duration;

use doorward_etcd::DocumentPlace;
use doorward_limits::Moment;
use doorward_rules::{Advice, Decision, Descriptor, Entry, Limiter, Rule, Rules, Status};
use serde_json::json;

use crate::documents::{Document, Store};
use crate::failure::Failure;
use crate::flags::{Common, Output};
use crate::output;
use crate::rules::document::RuleDocument;
use crate::rules::flags::TryFlags;
use crate::rules::request::TriedRequest;

pub(crate) async fn run(
    common: &Common,
    at: Option<&DocumentPlace>,
    flags: &TryFlags,
) -> Result<(), Failure> {
    let rules = match &flags.file {
        Some(file) => Document::<RuleDocument>::read(file)?,
        None => Store::open::<RuleDocument>(common, at)?.in_force().await?,
    };
    let rules = rules.valid("")?.0.clone();
    let domain = match rules.domains()[..] {
        [domain] => domain.to_owned(),
        _ => {
            return Err(Failure::Usage(
                "there are several domains; give the file of one".to_owned(),
            ));
        }
    };
    note_unknown_keys(&rules, &domain, &flags.request)?;
    // All keys of a try fit.
    let limiter = Limiter::new(rules.clone(), usize::MAX, [0, 0]);
    let mut now = Moment::ORIGIN;
    let mut out = output::stdout();
    for _ in 0..flags.repeat {
        for request in &flags.request {
            let decision = ask(&rules, &limiter, &domain, request, flags.hits, now);
            let answer = Answer {
                request: (flags.request.len() > 1).then_some(&request.text),
                decision: &decision,
                at: Duration::from_nanos(now.nanos_since(Moment::ORIGIN)),
            };
            match common.output {
                Output::Table => writeln!(out, "{answer}")?,
                Output::Json => output::json(&mut out, &answer.json(request))?,
            }
            now = now.after(flags.every);
        }
    }
    Ok(())
}

/// Tells of entries that no rule asks for: perhaps their key is misspelt.
fn note_unknown_keys(
    rules: &Rules,
    domain: &str,
    requests: &[TriedRequest],
) -> Result<(), Failure> {
    let mut unknown: Vec<_> = requests
        .iter()
        .flat_map(TriedRequest::written_keys)
        .collect();
    unknown.retain(|key| !rules.key_paths(domain).flatten().any(|known| known == key));
    unknown.sort_unstable();
    unknown.dedup();
    for key in unknown {
        writeln!(output::stderr(), "note: no rule has the key {key}")?;
    }
    Ok(())
}

/// Asks with each combination of keys whose entries the request has.
fn ask(
    rules: &Rules,
    limiter: &Limiter,
    domain: &str,
    request: &TriedRequest,
    hits: Option<u64>,
    now: Moment,
) -> Decision {
    let entry = |key: &'_ String| {
        let value = request.value(key)?;
        Some((key.clone(), value))
    };
    let all = rules
        .key_paths(domain)
        .map(|keys| keys.iter().map(entry).collect());
    let all: Vec<Vec<_>> = all.flat_map(|entries: Option<Vec<_>>| entries).collect();
    let borrowed = all.iter().map(|entries| {
        let entries = entries.iter().map(|(key, value)| {
            let value = Some(*value);
            Entry { key, value }
        });
        entries.collect()
    });
    let borrowed: Vec<Vec<_>> = borrowed.collect();
    let descriptors = borrowed.iter().map(|entries| Descriptor {
        entries,
        hits: None,
    });
    let descriptors: Vec<_> = descriptors.collect();
    limiter.decide(domain, &descriptors, hits, now)
}

/// One line of the output.
struct Answer<'a> {
    /// The request, if there are several.
    request: Option<&'a String>,
    decision: &'a Decision,
    /// Time since the first request.
    at: Duration,
}

impl Answer<'_> {
    /// Returns the status that the line tells: the strictest, or else the first one with a rule.
    fn status(&self) -> Option<&Status> {
        let mut statuses = self.decision.statuses.iter();
        let refused = statuses.clone().find(|status| status.is_over);
        let counted = self.decision.status();
        counted
            .or(refused)
            .or_else(|| statuses.find(|status| status.rule.is_some()))
    }

    fn rule(&self) -> Option<&Rule> {
        self.status()?.rule.as_deref()
    }

    fn json(&self, request: &TriedRequest) -> serde_json::Value {
        let counted = self.status().filter(|status| status.answer.is_some());
        let seconds = |span: Duration| span.as_secs_f64();
        json!({
            "at_seconds": seconds(self.at),
            "request": request.text,
            "allowed": self.decision.is_allowed,
            "status": self.decision.http_status(),
            "rule": self.rule().map(|rule| &rule.path),
            "limit": self.rule().map(|rule| rule.limit.to_string()),
            "remaining": counted.map(Status::remaining),
            "reset_seconds": counted.map(|status| seconds(status.reset())),
            "retry_after_seconds": self.decision.retry_after().map(seconds),
            "why": self.decision.why.to_string(),
            "advice": advice(self.decision.advice),
        })
    }
}

impl fmt::Display for Answer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<9}", format!("+{}", span(self.at)))?;
        if let Some(request) = self.request {
            write!(f, "  {request}")?;
        }
        match self.decision.http_status() {
            None => f.write_str("  allowed    ")?,
            Some(status) => write!(f, "  refused {status}")?,
        }
        if let Some(rule) = self.rule() {
            write!(f, "  {} ({})", rule.path, rule.limit)?;
        }
        if let Some(status) = self.status().filter(|status| status.answer.is_some()) {
            write!(
                f,
                "  remaining {}  reset {}",
                status.remaining(),
                span(status.reset())
            )?;
        }
        write!(f, "  {}", self.decision.why)?;
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
    let millis = u64::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
    let text = humantime::format_duration(Duration::from_millis(millis)).to_string();
    text.replace(' ', "")
}
