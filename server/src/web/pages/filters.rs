//! Filters by which the templates format figures for people.

use std::borrow::Borrow;
use std::fmt::Display;

use askama::{Result, Values, filter_fn};
use doorward_pages::numbers;

/// Formats an amount.
#[filter_fn]
pub(super) fn amount(value: impl Borrow<f64>, _: &dyn Values) -> Result<String> {
    Ok(numbers::amount(*value.borrow()))
}

/// Formats a whole number.
#[filter_fn]
pub(super) fn count(value: impl Display, _: &dyn Values) -> Result<String> {
    Ok(numbers::count(value))
}

/// Formats a span in milliseconds.
#[filter_fn]
pub(super) fn span(millis: &u64, _: &dyn Values) -> Result<String> {
    Ok(numbers::span(*millis))
}
