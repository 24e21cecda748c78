//! Links that were made in a run and lead out of what may be written: whoever writes to them later writes there.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{Access, access};
use serde::Serialize;

use crate::denial::{Denial, DenialKind};
use crate::view::{is_of_programs, trace};

/// Places that hold no files of anybody's.
const KERNELS: &[&str] = &["/dev", "/proc", "/sys"];

/// A link that was made, is still there and leads out of what may be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinkOut {
    /// Where it is.
    pub path: String,
    /// Where it leads.
    pub to: String,
}

/// Takes the links that were told of out of a list, and gives those that matter.
pub(super) fn take(denials: &mut Vec<Denial>, workspace: &Path) -> Vec<LinkOut> {
    let told = denials.extract_if(.., |one| one.kind == DenialKind::Link);
    told.filter_map(|one| leads_out(one.path, workspace)).collect()
}

/// Where a link leads, if what is written there is neither the program's own nor out of the user's reach.
fn leads_out(path: String, workspace: &Path) -> Option<LinkOut> {
    let link = Path::new(&path);
    link.symlink_metadata().ok().filter(std::fs::Metadata::is_symlink)?;
    let (_, end) = trace(link)?;
    let kernels = KERNELS.iter().any(|place| end.starts_with(place));
    if kernels || end.starts_with(workspace) || is_of_programs(&end) {
        return None;
    }
    let (there, data) =
        end.ancestors().find_map(|above| Some((above, above.symlink_metadata().ok()?)))?;
    // What is not there yet in a folder that is everybody's.
    if data.mode() & 0o1002 == 0o1002 {
        return None;
    }
    // By one that leads to what the workspace is in, others lead anywhere.
    let counts = workspace.starts_with(&end) || access(there, Access::WRITE_OK).is_ok();
    counts.then(|| LinkOut { path, to: end.display().to_string() })
}
