//! Questions that the index leads to, asked again with a new index if the old one is wrong.

use wardkeep_monitor::index::{Index, LookError};
use wardkeep_monitor::store::StoreReader;

use super::evidence::report::journal_bytes;
use crate::context::Context;
use crate::error::CliError;

/// What `look` finds, and whether the index was made anew for it.
pub(crate) fn with_index<T>(
    context: &mut Context,
    reader: &StoreReader,
    anew: bool,
    mut look: impl FnMut(&Index) -> Result<T, LookError>,
) -> Result<(T, bool), CliError> {
    let mut anew = anew;
    loop {
        let index = {
            let total = journal_bytes(reader);
            let mut progress = context.ui.progress("indexing");
            let mut done = 0;
            Index::ready(reader.path(), reader.folder(), anew, &mut |bytes| {
                done += bytes;
                progress.update(done, total);
            })?
        };
        match look(&index) {
            Err(LookError::Wrong(_) | LookError::Unknown(_)) if !anew => {
                anew = true;
                context.ui.note("the index was wrong: it is made anew from the journal");
            }
            found => return Ok((found?, anew)),
        }
    }
}
