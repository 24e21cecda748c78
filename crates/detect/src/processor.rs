//! Time on the processor, for tests: other work on the machine does not count.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// What this thread has used so far.
pub(crate) fn time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}
