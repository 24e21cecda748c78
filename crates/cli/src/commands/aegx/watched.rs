//! `verify` with a progress line.

use std::io::{self, Read};
use std::path::Path;

use wardkeep_evidence::source::{self, Member, Source, SourceError};
use wardkeep_evidence::verify::{self, Options, Report};

use crate::context::Context;
use crate::error::CliError;
use crate::ui::Progress;

/// Verifies the bundle at `path`.
pub(super) fn verify(
    context: &Context,
    path: &Path,
    options: &Options,
) -> Result<Report, CliError> {
    let inner = source::open(path)?;
    let progress = context.ui.progress("verifying");
    let mut watched = Watched { inner, progress, done: 0, total: 0 };
    Ok(verify::verify(&mut watched, options))
}

/// A source that counts what is read from it.
#[derive(Debug)]
struct Watched {
    inner: Box<dyn Source>,
    progress: Progress,
    done: u64,
    total: u64,
}

impl Source for Watched {
    fn members(&mut self) -> Result<Vec<Member>, SourceError> {
        let members = self.inner.members()?;
        self.total = members.iter().map(|member| member.size).fold(0, u64::saturating_add);
        Ok(members)
    }

    fn open(&mut self, name: &str) -> Result<Box<dyn Read + '_>, SourceError> {
        let Self { inner, progress, done, total } = self;
        Ok(Box::new(Counted { inner: inner.open(name)?, progress, done, total: *total }))
    }
}

struct Counted<'a> {
    inner: Box<dyn Read + 'a>,
    progress: &'a mut Progress,
    done: &'a mut u64,
    total: u64,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        *self.done += count as u64;
        self.progress.update(*self.done, self.total);
        Ok(count)
    }
}
