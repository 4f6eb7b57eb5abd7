//! Limits on pages: the striking ones on the front page, and all of them on a page of their own.

use askama::Template;

use doorward_proto::admin::v1::limit_status::Unit;

use crate::status::{LimitStatus, Status};
use crate::web::pages::Head;
use crate::web::pages::bar_width;
use doorward_pages::numbers::{bytes, count, span};

/// A limit in a table.
#[derive(Debug)]
pub struct LimitRow {
    /// Limited thing.
    pub description: String,
    /// Flag that sets the limit.
    pub flag: String,
    /// Present use; `-` if it is not counted.
    pub used: String,
    /// Bound; `-` if there is none.
    pub max: String,
    /// Number of refusals. Empty: none.
    pub refused: String,
    /// Used percentage, for the bar.
    pub percent: f64,
    /// Used percentage in words. Empty: it is unknown.
    pub label: String,
    /// Whether all is in use.
    pub is_full: bool,
    /// Whether nearly all is in use.
    pub is_nearly_full: bool,
    /// Whether an operator should look at it.
    pub stands_out: bool,
}

impl LimitRow {
    fn new(limit: &LimitStatus) -> Self {
        let unit = limit.unit();
        let known = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |it| shown(unit, it));
        let full = limit.percent();
        Self {
            description: limit.description.clone(),
            flag: limit.flag.clone(),
            used: known(limit.used),
            max: known(limit.max),
            refused: match limit.refused_count {
                0 => String::new(),
                refused => count(refused),
            },
            #[expect(clippy::cast_precision_loss, reason = "the width of a bar")]
            percent: full.map_or(0.0, |full| bar_width(full as f64, 100.0)),
            label: full.map_or_else(String::new, |full| format!("{full} %")),
            is_full: full.is_some_and(|full| full >= 100),
            is_nearly_full: full.is_some_and(|full| full >= LimitStatus::NEARLY_PERCENT),
            stands_out: limit.stands_out(),
        }
    }
}

/// Returns a number with its unit.
fn shown(unit: Unit, value: u64) -> String {
    let number = count(value);
    match unit {
        Unit::Count => number,
        Unit::Bytes => bytes(value),
        Unit::PerSecond => format!("{number}/s"),
        Unit::Millis => span(value),
    }
}

/// Returns the limits that an operator should look at.
pub fn standing_out(limits: &[LimitStatus]) -> Vec<LimitRow> {
    let limits = limits.iter().filter(|limit| limit.stands_out());
    limits.map(LimitRow::new).collect()
}

/// The page of all limits.
#[derive(Debug, Template)]
#[template(path = "limits.html")]
pub struct LimitsPage {
    head: Head,
    limits: Vec<LimitRow>,
}

impl LimitsPage {
    /// Returns the page with the limits of a status.
    pub fn new(status: &Status) -> Self {
        Self {
            head: Head::new(status),
            limits: status.limits.iter().map(LimitRow::new).collect(),
        }
    }
}
