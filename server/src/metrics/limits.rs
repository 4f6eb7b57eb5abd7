//! Metrics of limits: bound, use and refusals of each. The number of time series is fixed. A limit without a bound, or
//! whose use is not counted, has no series of that kind.

use std::fmt;

use doorward_proto::admin::v1::LimitStatus;

use crate::metrics::families::{Column, Families, float, metrics};
use crate::status::ServerState;

const LIMIT_GAUGES: [Column<LimitStatus, Option<u64>>; 2] = metrics! {
    /// The bound, in what the limit's name says: things, bytes, milliseconds, or things each second
    "limit_max": |figure| figure.max;
    /// What is in use; of a limit for each address, template or resource, the most that one of them uses
    "limit_used": |figure| figure.used;
};

pub(super) fn write(state: &ServerState, families: &mut Families<'_>) -> fmt::Result {
    let figures = state.limit_figures();
    for (name, help, value_of) in LIMIT_GAUGES {
        let rows = figures.iter();
        let value = |it| usize::try_from(value_of(it)?).ok().map(float);
        let rows = rows.filter_map(|it| Some(([("limit", &*it.name)], value(it)?)));
        families.gauges(name, help, rows)?;
    }
    let help = "How often something was refused, or ended, for the limit";
    let rows = figures.iter();
    let rows = rows.map(|it| ([("limit", &*it.name)], it.refused_count));
    families.counters("limit_refused", help, rows)
}
