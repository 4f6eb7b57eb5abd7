//! Work on all cores, with results in the order of the items.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::mpsc;
use std::thread;

use indicatif::ProgressBar;

/// Does `work` for each item on all cores, and gives the results to `handle` in the order of the items. Stops at the
/// first error of `handle`.
pub(crate) fn in_order<T: Send, R: Send>(
    items: impl Iterator<Item = T> + Send,
    bar: &ProgressBar,
    work: impl Fn(T) -> R + Sync,
    mut handle: impl FnMut(R) -> io::Result<()>,
) -> io::Result<()> {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let items = Mutex::new((0_u64..).zip(items));
    let next = || items.lock().ok().and_then(|mut items| items.next());
    let handled = thread::scope(|scope| {
        let (sender, results) = mpsc::channel();
        for _ in 0..cores {
            let (sender, next, work) = (sender.clone(), &next, &work);
            scope.spawn(move || {
                while let Some((number, item)) = next() {
                    // Without a receiver, a result was not handled.
                    if sender.send((number, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut waiting = BTreeMap::new();
        let mut due = 0;
        for (number, result) in results {
            bar.inc(1);
            waiting.insert(number, result);
            while let Some(result) = waiting.remove(&due) {
                handle(result)?;
                due += 1;
            }
        }
        Ok(())
    });
    bar.finish_and_clear();
    handled
}
