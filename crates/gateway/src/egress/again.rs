//! Connections to hosts that are used again: whoever has just answered a request is not dialled anew for the next one.
//!
//! INVARIANT: a connection is used again only for the host and port that it was dialled for, and only where its address
//! is among those that were checked for the new request. What a request is allowed is decided and recorded before, as if
//! it were dialled. A host that answers what was not asked confuses its own answers, and no other's.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::head::{Answer, Framing, Head};
use super::host::Target;
use super::stream::Stream;

/// How long one may wait for the next request: less than hosts usually do.
const HOLDS: Duration = Duration::from_secs(4);
/// How long a host may take to acknowledge what is sent: it may have gone without a word.
const GIVES_UP: Duration = Duration::from_secs(10);
/// Most connections that wait; the oldest go.
const MOST: usize = 64;

/// Whether a request may be sent on a connection that was used before, and sent once more if that turns out to be gone:
/// it changes nothing, nothing behind its head could be taken for another request, and nobody logs in by it, since some
/// hosts take all that follows on the connection for the same one's.
pub(super) fn may_be_repeated(head: &Head, scheme: &str) -> bool {
    scheme == "http"
        && head.method == "GET"
        && head.framing == Framing::Absent
        && !head.upgrades()
        && head.other_methods().next().is_none()
        && !head.has("authorization")
}

/// Whether the connection is as it was before the request, by what the host says of it; whether something came behind
/// the answer is another question.
pub(super) fn stays_open(answer: &Answer, head: &Head) -> bool {
    let delimited = answer.framing != Framing::Absent;
    let usual = head.minor == 1 && answer.minor == 1;
    let ends = answer.connection("close");
    answer.status == 200 && delimited && !ends && (usual || answer.connection("keep-alive"))
}

/// Connections that wait for another request.
#[derive(Debug, Default)]
pub(super) struct Again(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    /// The oldest first.
    all: Vec<One>,
    /// Whether somebody ends those that nobody uses.
    swept: bool,
}

#[derive(Debug)]
struct One {
    target: Target,
    address: IpAddr,
    since: Instant,
    stream: Stream,
}

impl Again {
    /// The connection to a host that was used last, if it is still good.
    pub(super) fn take(&self, target: &Target, checked: &[IpAddr]) -> Option<(IpAddr, Stream)> {
        loop {
            let one = {
                let all = &mut self.waiting().all;
                let fits = |one: &One| one.target == *target && checked.contains(&one.address);
                let at = all.iter().rposition(fits)?;
                all.remove(at)
            };
            // Whoever says something that was not asked for is not asked again on this one.
            if one.since.elapsed() < HOLDS && one.stream.is_quiet() {
                return Some((one.address, one.stream));
            }
        }
    }

    /// Keeps a connection for a while. Nothing is owed on it by either side.
    pub(super) fn keep(self: &Arc<Self>, target: Target, address: IpAddr, stream: Stream) {
        stream.give_up_after(GIVES_UP);
        let mut waiting = self.waiting();
        let oldest = (waiting.all.len() >= MOST).then(|| waiting.all.remove(0));
        waiting.all.push(One { target, address, since: Instant::now(), stream });
        let sweeps = !std::mem::replace(&mut waiting.swept, true);
        drop(waiting);
        drop(oldest);
        if sweeps {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends what waits for too long, until nothing is left.
async fn sweep(again: std::sync::Weak<Again>) {
    loop {
        tokio::time::sleep(HOLDS).await;
        let Some(again) = again.upgrade() else { return };
        let mut waiting = again.waiting();
        waiting.all.retain(|one| one.since.elapsed() < HOLDS);
        if waiting.all.is_empty() {
            waiting.swept = false;
            return;
        }
    }
}
