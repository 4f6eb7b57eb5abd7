//! What clients want over time.

use crate::scenario::demand::{Demand, Trace};
use crate::scenario::write::CannotWrite;
use crate::scenario::write::yaml::Yaml;
use crate::trace::Source;

pub(super) fn written(demand: &Demand) -> Result<Yaml, CannotWrite> {
    let (amount, time) = (|amount: f64| Yaml::plain(amount), Yaml::duration);
    let of = |kind: &str, keys: Vec<(&str, Yaml)>| {
        let (mut out, mut inner) = (Yaml::map(), Yaml::map());
        for (key, value) in keys {
            inner.put(key, value);
        }
        out.put(kind, inner);
        Ok(out)
    };
    match demand {
        Demand::Constant(wants) => Ok(amount(*wants)),
        Demand::Step { from, to, at } => of(
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
        } => of(
            "ramp",
            vec![
                ("from", amount(*from)),
                ("to", amount(*to)),
                ("at", time(*at)),
                ("over", time(*length)),
                ("every", time(*every)),
            ],
        ),
        Demand::Sine {
            mean,
            amplitude,
            period,
            shift,
            every,
        } => of(
            "sine",
            vec![
                ("mean", amount(*mean)),
                ("amplitude", amount(*amplitude)),
                ("period", time(*period)),
                ("shift", amount(*shift)),
                ("every", time(*every)),
            ],
        ),
        Demand::Diurnal(day) => of(
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
        Demand::Spike {
            base,
            peak,
            at,
            length,
        } => of(
            "spike",
            vec![
                ("base", amount(*base)),
                ("peak", amount(*peak)),
                ("at", time(*at)),
                ("for", time(*length)),
            ],
        ),
        Demand::Walk {
            start,
            factor,
            every,
        } => of(
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
        } => of(
            "on_off",
            vec![
                ("peak", amount(*on)),
                ("base", amount(*off)),
                ("on_for", time(*on_for)),
                ("off_for", time(*off_for)),
            ],
        ),
        Demand::FlashCrowd {
            base,
            peak,
            at,
            rise,
            half_life,
            every,
        } => of(
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
        Demand::Trace(trace) => of("trace", traced(trace)?),
    }
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
