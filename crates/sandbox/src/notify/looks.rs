//! Calls that only look for something, in a run that learns. What they find is not for the supervisor to say:
//! the kernel carries them out, and what they ask for lies in registers.

use rustix::fs::{AtFlags, OFlags, statat};
use rustix::io::Errno;

use super::caller::Caller;
use super::filter::LOOKS;
use super::place::{Place, path_buf};
use super::supervisor::{Done, Stop, Supervisor};
use crate::denial::DenialKind;
use std::os::fd::AsFd as _;

impl Supervisor {
    /// Whether an open can neither make a name nor change a file.
    pub(super) fn only_looks(&self, flags: OFlags) -> bool {
        let makes = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::RDWR;
        let tmpfile = OFlags::TMPFILE - OFlags::DIRECTORY;
        let told = self.learns || self.reads.is_some();
        told && (flags.contains(OFlags::PATH) || !flags.intersects(makes | tmpfile))
    }

    pub(super) fn look(&mut self, caller: &Caller<'_>, number: libc::c_long) -> Result<Done, Stop> {
        let known = LOOKS.iter().find(|(call, _, _)| *call == number);
        let (_, path, from_directory) = known.ok_or(Errno::NOSYS)?;
        let directory = match path.checked_sub(1) {
            Some(before) if *from_directory => caller.number(before),
            _ => libc::AT_FDCWD.cast_unsigned(),
        };
        if self.learns {
            self.look_at(caller, directory, *path, "look for")?;
        }
        self.stat(caller, number, directory, *path)
    }

    /// Tells of a path that is not there, or must not be seen, and lets the kernel answer.
    pub(super) fn look_at(
        &mut self,
        caller: &Caller<'_>,
        directory: u32,
        path: usize,
        call: &'static str,
    ) -> Result<Done, Stop> {
        if let Ok(Some(missing)) = self.missing(caller, directory, path) {
            let rule = "it is not shown".to_owned();
            self.tell(caller.call, DenialKind::Unseen, call, missing, rule);
        }
        Ok(Done::Continue)
    }

    /// The path that a caller looks for, if it is not there.
    fn missing(
        &self,
        caller: &Caller<'_>,
        directory: u32,
        path: usize,
    ) -> Result<Option<std::path::PathBuf>, Stop> {
        let text = caller.text(path)?;
        if text.as_bytes().is_empty() {
            return Ok(None);
        }
        let anchor = caller.anchor(directory, &text)?;
        caller.is_there()?;
        // As far up as there is nothing, the text is all that is known.
        let place = match Place::of(self.own.as_fd(), &anchor, &text) {
            Ok(place) if place.is_proc || place.name.is_empty() => return Ok(None),
            Ok(place) => place,
            Err(Stop::Error(Errno::NOENT | Errno::ACCESS)) if text.as_bytes()[0] == b'/' => {
                return Ok(Some(path_buf(text.as_bytes())));
            }
            Err(_) => return Ok(None),
        };
        let found = statat(&place.parent, &place.name, AtFlags::SYMLINK_NOFOLLOW);
        let missing = matches!(found, Err(Errno::NOENT | Errno::ACCESS));
        Ok(missing.then(|| path_buf(&place.full())))
    }
}
