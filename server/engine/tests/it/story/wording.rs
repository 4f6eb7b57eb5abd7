//! Texts of numbers, times, messages and leases in a story.

use std::fmt::Write;
use std::time::Duration;

use doorward_engine::messages::{
    ClientLease, GetServerCapacity, Has, LimitedBy, RefusalReason, ServerAsk, ServerLease,
};
use doorward_engine::node::mastership::Mastership;
use doorward_engine::templates::SafeCapacity;

use super::mail::Message;
use super::world::World;

/// Writes a number to six decimals. The rest is rounding.
pub fn number(number: f64) -> String {
    if number >= 1e15 {
        return format!("{number:e}");
    }
    // This writes a zero without a sign.
    let rounded = format!("{:.6}", number + 0.0);
    let short = rounded.trim_end_matches('0').trim_end_matches('.');
    short.to_owned()
}

/// Writes a time to a millisecond.
pub fn span(span: Duration) -> String {
    format!("{}s", number((span.as_secs_f64() * 1e3).round() / 1e3))
}

/// Writes a refresh interval. The spread of early ones is random, so it says only that they are
/// early.
pub fn roughly(span: Duration) -> String {
    if span.subsec_millis() == 0 {
        format!("{span:?}")
    } else {
        format!("about {:.1}s", span.as_secs_f64())
    }
}

pub fn safe(safe: Option<SafeCapacity>) -> String {
    match safe {
        None => "unknown".to_owned(),
        Some(SafeCapacity::Unlimited) => "unlimited".to_owned(),
        Some(SafeCapacity::Limited(amount)) => number(amount.get()),
    }
}

/// Writes the lease of a holder and its remaining time.
fn has(has: Option<Has>) -> String {
    match has {
        None => "nothing".to_owned(),
        Some(has) => match has.expires_in {
            None => number(has.capacity.get()),
            Some(lasts) => format!("{} for {}", number(has.capacity.get()), span(lasts)),
        },
    }
}

/// Writes the sender and the receiver of a message.
pub fn who_sends(world: &World, message: u64) -> String {
    let name = |number: usize| &world.servers[number].name;
    let parent = |child: usize| {
        world.servers[child]
            .parent
            .map_or("?", |it| name(it).as_str())
    };
    match world.mail.get(message) {
        Some(Message::ServerRequest(child, ..)) => {
            format!("{} asks {}", name(*child), parent(*child))
        }
        Some(Message::ServerAnswer(child, ..)) => {
            format!("{} tells {}", parent(*child), name(*child))
        }
        other => format!("{other:?}"),
    }
}

/// Writes a message between servers, a line for each resource.
pub fn what_is_said(world: &World, message: u64) -> String {
    let name = |number: usize| &world.servers[number].name;
    let parent = |child: usize| {
        world.servers[child]
            .parent
            .map_or("?", |it| name(it).as_str())
    };
    let mut output = String::new();
    match world.mail.get(message) {
        Some(Message::ServerRequest(child, _, request)) => {
            let way = format!("{} → {}", name(*child), parent(*child));
            for line in asked(request) {
                writeln!(output, "{way}: {line}").unwrap();
            }
        }
        Some(Message::ServerAnswer(child, _, reply)) => {
            let way = format!("{} → {}", parent(*child), name(*child));
            for lease in &reply.leases {
                writeln!(output, "{way}: {}", server_lease(lease)).unwrap();
            }
            for refused in &reply.refused {
                let reason = refusal(refused.reason);
                writeln!(output, "{way}: {} is refused: {reason}", refused.resource).unwrap();
            }
        }
        _ => {}
    }
    output
}

/// Writes the asks of a child server, a line for each resource.
pub fn asked(request: &GetServerCapacity) -> Vec<String> {
    let by = request
        .epoch
        .map_or(String::new(), |it| format!(", epoch {it}"));
    let asks = request.asks.iter();
    asks.map(|ask| server_ask(ask) + &by).collect()
}

fn server_ask(ask: &ServerAsk) -> String {
    let mut output = format!(
        "{} wants {} for {}, has {}",
        ask.resource,
        number(ask.demand.wants().get()),
        clients(ask.demand.clients()),
        has(ask.has)
    );
    let outstanding = ask.outstanding.filter(|out| !out.capacity.is_zero());
    if outstanding.is_some() {
        write!(output, ", outstanding {}", has(outstanding)).unwrap();
    }
    if ask.learning {
        output += ", learning";
    }
    if !ask.reported.is_empty() {
        let all = ask.reported.iter().map(|it| it.capacity.get()).sum();
        write!(output, ", {} of it by earlier masterships", number(all)).unwrap();
    }
    if !ask.unreported.is_zero() {
        write!(
            output,
            ", {} for whom it has not heard",
            number(ask.unreported.get())
        )
        .unwrap();
    }
    output
}

fn clients(clients: f64) -> String {
    if clients == 1.0 {
        "1 client".to_owned()
    } else {
        format!("{} clients", number(clients))
    }
}

/// Writes a parent's answer for one resource, where it has any content.
pub fn server_lease(lease: &ServerLease) -> String {
    let terms = &lease.terms;
    let mut line = format!(
        "{} gets {} for {}, refresh in {}",
        lease.resource,
        number(lease.capacity.get()),
        span(lease.expires_in),
        roughly(lease.refresh_in)
    );
    if terms.share.get() > lease.capacity.get() * (1.0 + 1e-9) {
        write!(line, ", share {}", number(terms.share.get())).unwrap();
    }
    if let Some(reserved) = terms.reserved.filter(|it| *it > lease.capacity) {
        let lasts = terms.reserved_for.map_or("?".to_owned(), span);
        write!(line, ", reserved {} for {lasts}", number(reserved.get())).unwrap();
    }
    if let Some(lasts) = terms.inherited_for.filter(|lasts| !lasts.is_zero()) {
        let inherited = terms
            .inherited
            .map_or("perhaps all".to_owned(), |it| number(it.get()));
        write!(line, ", inherited {inherited} for {}", span(lasts)).unwrap();
    }
    if let Some(lasts) = terms.predecessor_for {
        write!(line, ", another process may live for {}", span(lasts)).unwrap();
    }
    if terms.learning {
        let lasts = terms.learning_for.map_or("?".to_owned(), span);
        write!(line, ", learning for {lasts}").unwrap();
    }
    if lease.decided == Some(false) {
        line += ", not decided";
    }
    line
}

/// Writes the answer to a client.
pub fn lease(lease: &ClientLease) -> String {
    let mut output = format!(
        "gets {} for {}, refresh in {}",
        number(lease.capacity.get()),
        span(lease.expires_in),
        roughly(lease.refresh_in)
    );
    if lease.limited_by != LimitedBy::Wants {
        write!(output, ", limited by {:?}", lease.limited_by).unwrap();
    }
    if let Some(remaining) = lease.learning_for {
        write!(output, ", learning for {}", span(remaining)).unwrap();
    }
    if !lease.decided {
        output += ", not decided";
    }
    output
}

/// Writes the reason for a refusal, in short.
pub fn refusal(reason: RefusalReason) -> String {
    match reason {
        RefusalReason::UnknownResource => "no template".to_owned(),
        RefusalReason::NotReady => "not ready".to_owned(),
        RefusalReason::AnotherProcess(wait) => {
            format!("another process lives, ask again in {}", roughly(wait))
        }
        RefusalReason::Unnumbered => "the request has no number".to_owned(),
        RefusalReason::RefusedByParent => "the parent refuses it".to_owned(),
        RefusalReason::IsBudget => "it is a budget".to_owned(),
        RefusalReason::IsNoBudget => "it is no budget".to_owned(),
        RefusalReason::TooManyAccounts => "too many accounts".to_owned(),
        RefusalReason::Full(full) => full.to_string(),
    }
}

/// Writes the master, as far as a node knows it.
pub fn mastership(mastership: &Mastership) -> String {
    match mastership {
        Mastership::Master { epoch: None } => "master".to_owned(),
        Mastership::Master { epoch: Some(epoch) } => format!("master of epoch {epoch}"),
        Mastership::Elsewhere { master_address, .. } => {
            format!("the master is at {master_address}")
        }
        Mastership::Unknown => "not the master".to_owned(),
    }
}
