//! Words about budgets and their states: conversion between the wire and those who use it.

use std::time::Duration;

use doorward_time::budget::{AMOUNT_MAX, BudgetState, BudgetWord, UnixMillis, Window};
use doorward_time::millis;

use crate::doorman as wire;

/// Reads a holder's word. None: it is none. An amount that is too large counts as the largest one.
pub fn word(word: Option<&wire::BudgetWord>) -> Option<BudgetWord> {
    let word = word?;
    Some(BudgetWord {
        holder_book: word.holder_book.filter(|book| *book != 0)?,
        granter_book: word.granter_book,
        window: window(word.window_start_ms, word.window_end_ms),
        taken: word.taken().min(AMOUNT_MAX),
        least: word.least().min(AMOUNT_MAX),
        closes: false,
    })
}

/// Converts a holder's own word.
pub fn word_message(word: &BudgetWord) -> wire::BudgetWord {
    wire::BudgetWord {
        holder_book: Some(word.holder_book),
        granter_book: word.granter_book,
        window_start_ms: word.window.map(|it| it.start),
        window_end_ms: word.window.and_then(end),
        taken: Some(word.taken),
        least: Some(word.least),
    }
}

/// Converts the state of a budget. Rounds the rest of its window down, so that no holder goes on for too long.
pub fn state_message(state: &BudgetState) -> wire::BudgetState {
    wire::BudgetState {
        granter_book: Some(state.granter_book),
        window_start_ms: Some(state.window.start),
        window_end_ms: end(state.window),
        ends_in_ms: state.ends_in.map(millis),
        total: Some(state.total),
        known_taken: Some(state.known_taken),
        soft: state.soft.then_some(true),
    }
}

/// Reads the state of a budget. None: it lacks what names the account.
pub fn state(state: &wire::BudgetState) -> Option<BudgetState> {
    Some(BudgetState {
        granter_book: state.granter_book?,
        window: window(state.window_start_ms, state.window_end_ms)?,
        ends_in: state.ends_in_ms.map(Duration::from_millis),
        total: state.total().min(AMOUNT_MAX),
        known_taken: state.known_taken().min(AMOUNT_MAX),
        soft: state.soft(),
    })
}

fn window(start: Option<UnixMillis>, end: Option<UnixMillis>) -> Option<Window> {
    let (start, end) = (start?, end.unwrap_or(Window::LIFETIME.end));
    Some(Window { start, end })
}

fn end(window: Window) -> Option<UnixMillis> {
    Some(window.end).filter(|end| *end != Window::LIFETIME.end)
}
