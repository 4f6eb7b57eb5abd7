//! Shrinks scenarios that fail, to fewer faults and fewer clients that still fail in the same way.

use serde_json::Value;

use crate::fuzz::{FoundFailure, WorldFile, play};

/// Shrinks a world for as long as it breaks the same promise.
pub fn shrink(whole: &WorldFile, failure: &FoundFailure) -> WorldFile {
    let fails = |smaller: &WorldFile| {
        let (_, found) = play(&smaller.read());
        found.is_some_and(|found| found.checker == failure.checker)
    };
    let mut kept = whole.clone();
    let mut step = kept.faults.len().div_ceil(2);
    while step > 0 {
        let mut from = 0;
        while from < kept.faults.len() {
            let mut fewer = kept.clone();
            let to = kept.faults.len().min(from + step);
            fewer.faults.drain(from..to);
            if fails(&fewer) {
                kept = fewer;
            } else {
                from += step;
            }
        }
        step /= 2;
    }
    let mut step = kept.clients.len() / 2;
    while step > 0 {
        // Only the first clients, and the faults that affect them.
        let mut fewer = kept.clone();
        let gone = fewer.clients.split_off(kept.clients.len() - step);
        let is_gone = |whom: &Value| gone.iter().any(|group| group["name"] == whom["of"]);
        fewer.faults.retain(|fault| {
            let mut values = fault.as_object().into_iter().flat_map(|it| it.values());
            !values.any(is_gone)
        });
        if !fewer.clients.is_empty() && fails(&fewer) {
            kept = fewer;
            step = step.min(kept.clients.len() / 2);
        } else {
            step /= 2;
        }
    }
    kept
}
