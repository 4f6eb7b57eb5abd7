//! Work on all cores, with results in the order of the items.

use std::io;
use std::num::NonZeroUsize;
use std::sync::mpsc;
use std::thread;

use indicatif::ProgressBar;

/// Does `work` for each item on all cores, and gives the results to `handle` in the order of the items. Stops at the
/// first error of `handle`.
pub(crate) fn in_order<T, R: Send>(
    items: impl Iterator<Item = T> + Clone + Send,
    bar: &ProgressBar,
    work: impl Fn(T) -> R + Sync,
    mut handle: impl FnMut(R) -> io::Result<()>,
) -> io::Result<()> {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let handled = thread::scope(|scope| {
        let of_core = |core| {
            let (sender, results) = mpsc::channel();
            let (items, work) = (items.clone().skip(core).step_by(cores), &work);
            // Without a receiver, a result was not handled.
            scope.spawn(move || items.map(work).try_for_each(|it| sender.send(it)));
            results
        };
        let of_cores: Vec<_> = (0..cores).map(of_core).collect();
        let mut in_turn = of_cores.iter().cycle();
        while let Some(Ok(result)) = in_turn.next().map(mpsc::Receiver::recv) {
            bar.inc(1);
            handle(result)?;
        }
        Ok(())
    });
    bar.finish_and_clear();
    handled
}
