//! What clients want over time.

use std::time::Duration;

use crate::scenario::demand::{Demand, Trace};
use crate::scenario::write::CannotWrite;
use crate::scenario::write::yaml::Yaml;
use crate::trace::Source;

/// What a kind of demand is called, and its keys.
type Kind = (&'static str, Vec<(&'static str, Yaml)>);

fn amount(amount: f64) -> Yaml {
    Yaml::plain(amount)
}

fn time(span: Duration) -> Yaml {
    Yaml::duration(span)
}

pub(super) fn written(demand: &Demand) -> Result<Yaml, CannotWrite> {
    let kind = match demand {
        Demand::Constant(wants) => return Ok(amount(*wants)),
        Demand::Trace(trace) => Some(("trace", traced(trace)?)),
        Demand::Step { .. }
        | Demand::Ramp { .. }
        | Demand::Spike { .. }
        | Demand::FlashCrowd { .. } => changes_at_a_time(demand),
        Demand::Sine { .. } | Demand::Diurnal(_) | Demand::Walk { .. } | Demand::OnOff { .. } => {
            changes_all_the_time(demand)
        }
    };
    let (kind, keys) = kind.ok_or_else(|| CannotWrite::new("demand of a kind without a name"))?;
    let (mut out, mut inner) = (Yaml::map(), Yaml::map());
    for (key, value) in keys {
        inner.put(key, value);
    }
    out.put(kind, inner);
    Ok(out)
}

fn changes_at_a_time(demand: &Demand) -> Option<Kind> {
    Some(match demand {
        Demand::Step { from, to, at } => (
            "step",
            vec![
                ("from", amount(*from)),
                ("to", amount(*to)),
                ("at", time(*at)),
            ],
        ),
        Demand::Ramp {
            from,
            to,
            at,
            length,
            every,
        } => (
            "ramp",
            vec![
                ("from", amount(*from)),
                ("to", amount(*to)),
                ("at", time(*at)),
                ("over", time(*length)),
                ("every", time(*every)),
            ],
        ),
        Demand::Spike {
            base,
            peak,
            at,
            length,
        } => (
            "spike",
            vec![
                ("base", amount(*base)),
                ("peak", amount(*peak)),
                ("at", time(*at)),
                ("for", time(*length)),
            ],
        ),
        Demand::FlashCrowd {
            base,
            peak,
            at,
            rise,
            half_life,
            every,
        } => (
            "flash_crowd",
            vec![
                ("base", amount(*base)),
                ("peak", amount(*peak)),
                ("at", time(*at)),
                ("rise", time(*rise)),
                ("half_life", time(*half_life)),
                ("every", time(*every)),
            ],
        ),
        _ => return None,
    })
}

fn changes_all_the_time(demand: &Demand) -> Option<Kind> {
    Some(match demand {
        Demand::Sine {
            mean,
            amplitude,
            period,
            shift,
            every,
        } => (
            "sine",
            vec![
                ("mean", amount(*mean)),
                ("amplitude", amount(*amplitude)),
                ("period", time(*period)),
                ("shift", amount(*shift)),
                ("every", time(*every)),
            ],
        ),
        Demand::Diurnal(day) => (
            "diurnal",
            vec![
                ("least", amount(day.least)),
                ("most", amount(day.most)),
                ("peak", time(day.peak)),
                ("period", time(day.period)),
                ("shift", amount(day.shift)),
                ("every", time(day.every)),
            ],
        ),
        Demand::Walk {
            start,
            factor,
            every,
        } => (
            "walk",
            vec![
                ("start", amount(*start)),
                (
                    "factor",
                    Yaml::List(vec![amount(factor.0), amount(factor.1)]),
                ),
                ("every", time(*every)),
            ],
        ),
        Demand::OnOff {
            on,
            off,
            on_for,
            off_for,
        } => (
            "on_off",
            vec![
                ("peak", amount(*on)),
                ("base", amount(*off)),
                ("on_for", time(*on_for)),
                ("off_for", time(*off_for)),
            ],
        ),
        _ => return None,
    })
}

fn traced(trace: &Trace) -> Result<Vec<(&'static str, Yaml)>, CannotWrite> {
    let Source::File(path) = &trace.source else {
        return Err(CannotWrite::new("a trace that is part of the program"));
    };
    let mut keys = vec![("file", Yaml::text(&path.display().to_string()))];
    for (key, value) in [
        ("speed", trace.speed),
        ("scale", trace.scale),
        ("repeat", f64::from(trace.repeat)),
    ] {
        if value != 1.0 {
            keys.push((key, Yaml::plain(value)));
        }
    }
    Ok(keys)
}
