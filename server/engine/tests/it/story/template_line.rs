//! A template in one line: `GLOB KIND CAPACITY [key=value …]`, with keys `lease`, `refresh`, `learning`, `safe`,
//! `wants_max`, and named parameters. By default leases last 60 s, refreshes come every 5 s, and a new master does not
//! learn. `learning=lease` is a learning mode of the lease length.

use doorward_engine::templates::{AlgorithmKind, TemplateSpec};

use super::script::{CommandResult, span};
use crate::asking;

pub fn template(line: &str) -> CommandResult<TemplateSpec> {
    let mut words = line.split_whitespace();
    let glob = words.next().ok_or("a template needs a glob")?;
    let kind = words.next().ok_or("a template needs an algorithm")?;
    let find = |name: &str| {
        AlgorithmKind::ALL
            .into_iter()
            .find(|it| it.as_str() == name)
    };
    let kind = find(kind).ok_or_else(|| format!("{kind:?} is no algorithm"))?;
    let capacity = words.next().ok_or("a template needs a capacity")?;
    let mut spec = asking::template(glob, kind, number(capacity)?);
    for word in words {
        let (key, value) = word
            .split_once('=')
            .ok_or_else(|| format!("what is {word:?} in a template? say key=value"))?;
        match key {
            "lease" => spec.lease_length = Some(span(value)?),
            "refresh" => spec.refresh_interval = Some(span(value)?),
            "learning" if value == "lease" => spec.learning_mode_duration = None,
            "learning" => spec.learning_mode_duration = Some(span(value)?),
            "safe" => spec.safe_capacity = Some(number(value)?),
            "wants_max" => spec.wants_max = Some(number(value)?),
            "share_floor" => spec.share_floor = Some(number(value)?),
            "subclients_max" => spec.subclients_max = Some(number(value)?),
            _ => {
                let parameter = (key.to_owned(), Some(value.to_owned()));
                spec.parameters.push(parameter);
            }
        }
    }
    Ok(spec)
}

fn number(text: &str) -> CommandResult<f64> {
    text.parse().map_err(|_| format!("{text:?} is no number"))
}
