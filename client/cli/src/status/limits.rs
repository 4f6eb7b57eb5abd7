//! `doorward status --limits`: what a server takes on at most, how full that is, and what it refused; and
//! the line about it in every `doorward status`.
//!
//! A server of an earlier version does not say its limits: with `--limits` that is a failure, without it
//! there is no line.

use std::io::{self, Write};

use doorward_pages::numbers::bytes;
use doorward_pages::terminal::{Cell, Palette, Table, Tone};
use doorward_proto::admin::v1::LimitStatus;
use doorward_proto::admin::v1::limit_status::Unit;

use crate::granted::number;

/// Limits that the line names.
const NAMED_MAX: usize = 3;

/// How a limit stands, the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LimitState {
    /// At its bound.
    Full,
    /// Close to it.
    NearlyFull,
    /// Neither, but it was full.
    HasRefused,
    /// It has room, and refused nothing.
    Well,
}

impl LimitState {
    /// Returns its tone, and the mark in front of its line, for who sees no colour.
    const fn shown(self) -> (Tone, &'static str) {
        match self {
            Self::Full => (Tone::Bad, "FULL"),
            Self::NearlyFull | Self::HasRefused => (Tone::Partial, "!"),
            Self::Well => (Tone::Quiet, ""),
        }
    }
}

fn state_of(limit: &LimitStatus) -> LimitState {
    match limit.percent() {
        Some(100..) => LimitState::Full,
        Some(LimitStatus::NEARLY_PERCENT..) => LimitState::NearlyFull,
        _ if limit.refused_count > 0 => LimitState::HasRefused,
        _ => LimitState::Well,
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
pub(super) fn write_table(
    out: &mut impl Write,
    limits: &[LimitStatus],
    palette: Palette,
) -> io::Result<()> {
    let header = ["", "limit", "used", "bound", "share", "refused", "flag"];
    let mut table = Table::new(header, 2..6, palette);
    table.keep_whole(6);
    for limit in limits {
        let (tone, mark) = state_of(limit).shown();
        let what = match tone {
            Tone::Quiet => Cell::new(&limit.description),
            _ => palette.cell(Tone::Strong, &limit.description),
        };
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
            what,
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
pub(super) fn write_line(
    out: &mut impl Write,
    limits: &[LimitStatus],
    palette: Palette,
) -> io::Result<()> {
    let mut limits: Vec<&LimitStatus> = limits.iter().collect();
    limits.retain(|limit| state_of(limit) != LimitState::Well);
    limits.sort_by_key(|limit| state_of(limit));
    let Some(worst) = limits.first() else {
        return Ok(());
    };
    let said = |limit: &&LimitStatus| {
        let flag = limit.flag.trim_start_matches('-');
        let is = match state_of(limit) {
            LimitState::Full => Some("is FULL".to_owned()),
            LimitState::NearlyFull => Some("is nearly full".to_owned()),
            LimitState::HasRefused | LimitState::Well => None,
        };
        let refused = limit.refused_count;
        let refused = (refused > 0).then(|| format!("has refused {refused}"));
        let parts: Vec<String> = is.into_iter().chain(refused).collect();
        format!("{flag} {}", parts.join(", "))
    };
    let mut named: Vec<String> = limits.iter().map(said).collect();
    let left = named.len().saturating_sub(NAMED_MAX);
    named.truncate(NAMED_MAX);
    if left > 0 {
        named.push(format!("{left} more"));
    }
    let (tone, _) = state_of(worst).shown();
    let limits = palette.paint(tone, "limits");
    let named = named.join("; ");
    writeln!(
        out,
        "{limits}: {named} (refusals since the start); doorward status --limits lists all"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_full_before_it_is_anything_else() {
        for (used, max, refused, expected) in [
            (Some(10), Some(10), 3, LimitState::Full),
            (Some(8), Some(10), 3, LimitState::NearlyFull),
            (Some(7), Some(10), 3, LimitState::HasRefused),
            (Some(7), Some(10), 0, LimitState::Well),
            (Some(0), Some(0), 0, LimitState::Full),
            (None, Some(10), 0, LimitState::Well),
            (Some(10), None, 1, LimitState::HasRefused),
            (Some(u64::MAX), Some(u64::MAX), 0, LimitState::Full),
        ] {
            let limit = LimitStatus {
                used,
                max,
                refused_count: refused,
                ..LimitStatus::default()
            };
            assert_eq!(state_of(&limit), expected, "{used:?} of {max:?}, {refused}");
        }
    }
}
