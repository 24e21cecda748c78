//! The same work on many things, by several threads.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many are taken at once.
const CHUNK: usize = 64;

/// The outcome for each, in order. `make` is what a thread has for itself.
pub(crate) fn each<T: Sync, S, R: Send>(
    items: &[T],
    threads: usize,
    make: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, &T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut own = make();
        let mut done = Vec::new();
        loop {
            let start = next.fetch_add(CHUNK, Ordering::Relaxed);
            let Some(rest) = items.get(start..).filter(|rest| !rest.is_empty()) else {
                return done;
            };
            let results: Vec<R> =
                rest.iter().take(CHUNK).map(|item| work(&mut own, item)).collect();
            done.push((start, results));
        }
    };
    let threads = threads.clamp(1, 64).min(items.len().div_ceil(CHUNK).max(1));
    let mut parts = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(run)).collect();
        let mut parts = run();
        for other in others {
            match other.join() {
                Ok(part) => parts.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        parts
    });
    parts.sort_unstable_by_key(|(start, _)| *start);
    parts.into_iter().flat_map(|(_, results)| results).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order() {
        let items: Vec<usize> = (0..1000).collect();
        for threads in [1, 3, 8] {
            assert_eq!(each(&items, threads, || (), |(), item| item * 2)[999], 1998);
            assert_eq!(each(&items, threads, || (), |(), item| *item), items);
        }
        assert!(each(&[], 4, || (), |(), item: &u8| *item).is_empty());
    }
}
