//! `doorward status --limits`: what a server takes on at most, how full that is, and what it refused; and
//! the line about it in every `doorward status`.
//!
//! A server of an earlier version does not tell its limits: with `--limits` that is a failure, without it
//! there is no line.

use std::io::{self, Write};

use comfy_table::Cell;
use doorward_proto::admin::v1 as admin;
use doorward_proto::admin::v1::limit_status::Unit;
use serde::Serialize;

use crate::numbers::number;
use crate::palette::{Palette, Tone};
use crate::table::Table;

/// From this part of its bound on a limit is nearly full.
const NEARLY_PERCENT: u64 = 80;

/// Limits that the line names.
const NAMED_MAX: usize = 3;

/// A limit, as `--output json` prints it.
#[derive(Serialize)]
pub(super) struct LimitStatus {
    name: String,
    what: String,
    flag: String,
    /// `count`, `bytes`, `per_second` or `millis`.
    unit: &'static str,
    /// Absent: nobody counts it.
    used: Option<u64>,
    /// Absent: there is none.
    max: Option<u64>,
    refused: u64,
}

/// How a limit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Full,
    NearlyFull,
    HasRefused,
    Well,
}

impl State {
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

    const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::NearlyFull => "nearly full",
            Self::HasRefused => "has refused",
            Self::Well => "",
        }
    }
}

impl LimitStatus {
    /// How much of the bound is in use, in whole percent, rounded down.
    fn percent(&self) -> Option<u64> {
        let (used, max) = (u128::from(self.used?), u128::from(self.max?));
        match max {
            0 => Some(100),
            _ => Some(u64::try_from(used * 100 / max).unwrap_or(u64::MAX)),
        }
    }

    fn state(&self) -> State {
        match self.percent() {
            Some(100..) => State::Full,
            Some(NEARLY_PERCENT..) => State::NearlyFull,
            _ if self.refused > 0 => State::HasRefused,
            _ => State::Well,
        }
    }

    /// A number in its unit.
    fn shown(&self, value: Option<u64>) -> String {
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let float = |value: u64| value as f64;
        match (value, self.unit) {
            (None, _) => "-".to_owned(),
            (Some(value), "bytes") => format!("{} MiB", mib(value)),
            (Some(value), "per_second") => format!("{value}/s"),
            (Some(value), "millis") => format!("{} s", number(float(value) / 1_000.0)),
            (Some(value), _) => value.to_string(),
        }
    }
}

/// A size in MiB: whole from ten on, else with two digits that matter.
fn mib(bytes: u64) -> String {
    const MIB: u64 = 1_024 * 1_024;
    if bytes >= 10 * MIB || bytes.is_multiple_of(MIB) {
        return (bytes / MIB).to_string();
    }
    let hundredths = bytes * 100 / MIB;
    if hundredths == 0 {
        return "<0.01".to_owned();
    }
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
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
        let state = limit.state();
        let what = match state {
            State::Well => Cell::new(&limit.what),
            _ => palette.cell(Tone::Strong, &limit.what),
        };
        let share = match limit.percent() {
            None => "-".to_owned(),
            Some(0) if limit.used != Some(0) => "<1 %".to_owned(),
            Some(percent) => format!("{percent} %"),
        };
        let refused = match limit.refused {
            0 => Cell::new(0),
            refused => palette.cell(Tone::Partial, refused),
        };
        table.add([
            palette.cell(state.tone(), state.mark()),
            what,
            Cell::new(limit.shown(limit.used)),
            Cell::new(limit.shown(limit.max)),
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
    let states = [State::Full, State::NearlyFull, State::HasRefused];
    let in_order = states
        .iter()
        .flat_map(|state| limits.iter().filter(move |it| it.state() == *state));
    let mut named: Vec<String> = in_order
        .map(|limit| {
            let (flag, state) = (limit.flag.trim_start_matches('-'), limit.state().as_str());
            match limit.refused {
                0 => format!("{flag} is {state}"),
                refused if limit.state() == State::HasRefused => {
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
    let is_full = limits.iter().any(|limit| limit.state() == State::Full);
    let tone = if is_full { Tone::Bad } else { Tone::Partial };
    let limits = palette.paint(tone, "limits");
    let named = named.join("; ");
    writeln!(
        out,
        "{limits}: {named} (refusals since the start); doorward status --limits tells all"
    )
}

impl From<admin::LimitStatus> for LimitStatus {
    fn from(limit: admin::LimitStatus) -> Self {
        let unit = match limit.unit() {
            Unit::Count => "count",
            Unit::Bytes => "bytes",
            Unit::PerSecond => "per_second",
            Unit::Millis => "millis",
        };
        Self {
            name: limit.name,
            what: limit.what,
            flag: limit.flag,
            unit,
            used: limit.used,
            max: limit.max,
            refused: limit.refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_mib() {
        for (bytes, expected) in [
            (0, "0"),
            (1, "<0.01"),
            (262_144, "0.25"),
            (1_048_576, "1"),
            (1_572_864, "1.5"),
            (4_194_304, "4"),
            (11_000_000, "10"),
            (268_435_456, "256"),
        ] {
            assert_eq!(mib(bytes), expected);
        }
    }

    #[test]
    fn a_limit_is_full_before_it_is_anything_else() {
        for (used, max, refused, expected) in [
            (Some(10), Some(10), 3, State::Full),
            (Some(8), Some(10), 3, State::NearlyFull),
            (Some(7), Some(10), 3, State::HasRefused),
            (Some(7), Some(10), 0, State::Well),
            (Some(0), Some(0), 0, State::Full),
            (None, Some(10), 0, State::Well),
            (Some(10), None, 1, State::HasRefused),
            (Some(u64::MAX), Some(u64::MAX), 0, State::Full),
        ] {
            let limit = LimitStatus::from(admin::LimitStatus {
                used,
                max,
                refused,
                ..admin::LimitStatus::default()
            });
            assert_eq!(limit.state(), expected, "{used:?} of {max:?}, {refused}");
        }
    }
}
