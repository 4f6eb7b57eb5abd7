//! `doorward status --limits`: what a server takes on at most, how full that is, and what it refused; and
//! the line about it in every `doorward status`.
//!
//! A server of an earlier version does not say its limits: with `--limits` that is a failure, without it
//! there is no line.

use std::io::{self, Write};

use doorward_pages::numbers::bytes;
use doorward_pages::terminal::table::Cell;
use doorward_proto::admin::v1::LimitStatus;
use doorward_proto::admin::v1::limit_status::Unit;
use doorward_session::named;

use crate::granted::number;
use doorward_pages::terminal::palette::{Palette, Tone};
use doorward_pages::terminal::table::Table;

/// Limits that the line names.
const NAMED_MAX: usize = 3;

named! {
    /// How a limit stands.
    LimitState {
        /// At its bound.
        Full = "FULL",
        /// Close to it.
        NearlyFull = "nearly full",
        /// Neither, but it was full.
        HasRefused = "has refused",
        /// It has room, and refused nothing.
        Well = "",
    }
}

impl LimitState {
    const fn tone(self) -> Tone {
        match self {
            Self::Full => Tone::Bad,
            Self::NearlyFull | Self::HasRefused => Tone::Partial,
            Self::Well => Tone::Quiet,
        }
    }

    /// In front of its line, for who sees no colour.
    const fn mark(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::NearlyFull | Self::HasRefused => "!",
            Self::Well => "",
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
        let state = state_of(limit);
        let what = match state {
            LimitState::Well => Cell::new(&limit.description),
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
            palette.cell(state.tone(), state.mark()),
            what,
            Cell::new(shown(limit, limit.used)),
            Cell::new(shown(limit, limit.max)),
            palette.cell(state.tone(), share),
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
    let states = [
        LimitState::Full,
        LimitState::NearlyFull,
        LimitState::HasRefused,
    ];
    let in_order = states
        .iter()
        .flat_map(|state| limits.iter().filter(move |it| state_of(it) == *state));
    let mut named: Vec<String> = in_order
        .map(|limit| {
            let (flag, state) = (limit.flag.trim_start_matches('-'), state_of(limit).as_str());
            match limit.refused_count {
                0 => format!("{flag} is {state}"),
                refused if state_of(limit) == LimitState::HasRefused => {
                    format!("{flag} {state} {refused}")
                }
                refused => format!("{flag} is {state}, has refused {refused}"),
            }
        })
        .collect();
    if named.is_empty() {
        return Ok(());
    }
    let left = named.len().saturating_sub(NAMED_MAX);
    named.truncate(NAMED_MAX);
    if left > 0 {
        named.push(format!("{left} more"));
    }
    let is_full = limits
        .iter()
        .any(|limit| state_of(limit) == LimitState::Full);
    let tone = if is_full { Tone::Bad } else { Tone::Partial };
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
