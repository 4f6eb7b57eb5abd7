//! `doorward status --limits`: what a server takes on at most, how full that is, and what it refused; and
//! the line about it in every `doorward status`.
//!
//! A server of an earlier version does not say its limits: with `--limits` that is a failure, without it
//! there is no line.

use std::cmp::Reverse;
use std::io::{self, Write};

use doorward_pages::numbers::bytes;
use doorward_pages::terminal::{Cell, Table, Tone};
use doorward_proto::admin::v1::LimitStatus;
use doorward_proto::admin::v1::limit_status::Unit;

use crate::granted::number;
use crate::output::Out;

/// Limits that the line names.
const NAMED_MAX: usize = 3;

/// A limit in trouble: its tone, the mark in front of its line for readers without colours, and words.
type Trouble = (Tone, &'static str, &'static str);

/// Returns the trouble of a limit. None: it has room, and refused nothing.
fn trouble_of(limit: &LimitStatus) -> Option<Trouble> {
    match limit.percent() {
        Some(100..) => Some((Tone::Bad, "FULL", "is FULL")),
        Some(LimitStatus::NEARLY_PERCENT..) => Some((Tone::Partial, "!", "is nearly full")),
        _ => (limit.refused_count > 0).then_some((Tone::Partial, "!", "")),
    }
}

/// A number in the limit's unit.
fn shown(limit: &LimitStatus, value: Option<u64>) -> String {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let float = |value: u64| value as f64;
    match (value, limit.unit()) {
        (None, _) => "-".to_owned(),
        (Some(value), Unit::Bytes) => bytes(value).replace(',', ""),
        (Some(value), Unit::PerSecond) => format!("{value}/s"),
        (Some(value), Unit::Millis) => format!("{} s", number(float(value) / 1_000.0)),
        (Some(value), Unit::Count) => value.to_string(),
    }
}

/// Every limit, a line each.
pub(super) fn write_table(out: &mut Out<impl Write>, limits: &[LimitStatus]) -> io::Result<()> {
    let header = ["", "limit", "used", "bound", "share", "refused", "flag"];
    let palette = out.palette;
    let mut table = Table::new(header, 2..6, palette);
    table.keep_whole(6);
    for limit in limits {
        let trouble = trouble_of(limit);
        let (tone, mark, _) = trouble.unwrap_or((Tone::Quiet, "", ""));
        let what = trouble.map_or(Tone::Plain, |_| Tone::Strong);
        let share = match limit.percent() {
            None => "-".to_owned(),
            Some(0) if limit.used != Some(0) => "<1 %".to_owned(),
            Some(percent) => format!("{percent} %"),
        };
        let refused = match limit.refused_count {
            0 => Cell::new(0),
            refused => palette.cell(Tone::Partial, refused),
        };
        table.add([
            palette.cell(tone, mark),
            palette.cell(what, &limit.description),
            Cell::new(shown(limit, limit.used)),
            Cell::new(shown(limit, limit.max)),
            palette.cell(tone, share),
            refused,
            Cell::new(&limit.flag),
        ]);
    }
    table.write(out)
}

/// A line if there is something to look at, with the worst first.
pub(super) fn write_line(out: &mut Out<impl Write>, limits: &[LimitStatus]) -> io::Result<()> {
    let troubles = limits.iter().filter_map(|it| Some((it, trouble_of(it)?)));
    let mut troubles: Vec<(&LimitStatus, Trouble)> = troubles.collect();
    troubles.sort_by_key(|(limit, _)| Reverse(limit.percent()));
    let Some((_, (tone, ..))) = troubles.first() else {
        return Ok(());
    };
    let said = |(limit, (_, _, is)): &(&LimitStatus, Trouble)| {
        let flag = limit.flag.trim_start_matches('-');
        match (*is, limit.refused_count) {
            (is, 0) => format!("{flag} {is}"),
            ("", refused) => format!("{flag} has refused {refused}"),
            (is, refused) => format!("{flag} {is}, has refused {refused}"),
        }
    };
    let mut named: Vec<String> = troubles.iter().take(NAMED_MAX).map(said).collect();
    let left = troubles.len().saturating_sub(NAMED_MAX);
    if left > 0 {
        named.push(format!("{left} more"));
    }
    let (limits, named) = (out.paint(*tone, "limits"), named.join("; "));
    let all = "doorward status --limits lists all";
    writeln!(out, "{limits}: {named} (refusals since the start); {all}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_full_before_it_is_anything_else() {
        for (used, max, refused, expected) in [
            (Some(10), Some(10), 3, Some("is FULL")),
            (Some(8), Some(10), 3, Some("is nearly full")),
            (Some(7), Some(10), 3, Some("")),
            (Some(7), Some(10), 0, None),
            (Some(0), Some(0), 0, Some("is FULL")),
            (None, Some(10), 0, None),
            (Some(10), None, 1, Some("")),
            (Some(u64::MAX), Some(u64::MAX), 0, Some("is FULL")),
        ] {
            let limit = LimitStatus {
                used,
                max,
                refused_count: refused,
                ..LimitStatus::default()
            };
            let found = trouble_of(&limit).map(|(_, _, words)| words);
            assert_eq!(found, expected, "{used:?} of {max:?}, {refused}");
        }
    }
}
