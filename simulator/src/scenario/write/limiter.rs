//! The limiters of clients.

use crate::scenario::usage::{Limiter, Work};
use crate::scenario::write::yaml::Yaml;

pub(super) fn written(limiter: &Limiter) -> Yaml {
    let mut out = Yaml::map();
    match limiter.work {
        Work::Rate { cost } => out.put("rate", Yaml::plain(cost)),
        Work::Concurrency { permits, takes } => {
            out.put("concurrency", Yaml::plain(permits));
            out.put("for", Yaml::span(takes));
        }
    }
    if let Some(adaptive) = &limiter.adaptive {
        let mut measured = Yaml::map();
        measured.put("window", Yaml::duration(adaptive.window));
        measured.put("headroom", Yaml::plain(adaptive.headroom));
        measured.put("least", Yaml::plain(adaptive.least));
        measured.put("most", Yaml::plain(adaptive.most));
        out.put("adaptive", measured);
    }
    out
}
