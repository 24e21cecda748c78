//! Taint by lookup: what a parent's own record says, never what a caller says of it.

use std::collections::{HashMap, VecDeque};

use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::record::Record;
use wardkeep_guard::taint::Taint;

use super::{Monitor, held};
use crate::journal::parse_line;

/// Records whose taint is kept in memory.
const KEPT: usize = 1 << 16;

/// The taint of a record, and the session it is of.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) taint: Taint,
    pub(super) session: String,
}

/// The newest records.
#[derive(Debug, Default)]
pub(super) struct Recent {
    known: HashMap<RecordId, Known>,
    order: VecDeque<RecordId>,
}

impl Recent {
    pub(super) fn add(&mut self, id: RecordId, taint: Taint, session: &str) {
        if self.known.insert(id, Known { taint, session: session.to_owned() }).is_none() {
            self.order.push_back(id);
        }
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

/// What a record says of itself.
pub(super) fn known_of(record: &Record<'_>) -> Known {
    Known {
        taint: Taint::from_names(record.taint.iter().map(AsRef::as_ref)),
        session: record.meta_str("session").unwrap_or_default().to_owned(),
    }
}

impl Monitor {
    /// The taint that a parent brings into a session. One that cannot be found brings all.
    pub(super) fn taint_from(&self, parent: RecordId, session: &str) -> Taint {
        let kept = held(&self.recent).known.get(&parent).cloned();
        let Some(known) = kept.or_else(|| self.look_up(parent)) else { return Taint::ALL };
        if known.session == session { known.taint } else { known.taint | Taint::CROSS_SESSION }
    }

    /// Reads a record's line, and believes it only if its id recomputes.
    fn look_up(&self, id: RecordId) -> Option<Known> {
        let folder = self.store.journal().folder();
        let place = {
            let mut index = held(&self.index);
            match index.location(id).ok()? {
                Some(place) => place,
                None => {
                    index.catch_up(folder, &mut |_| {}).ok()?;
                    index.location(id).ok()??
                }
            }
        };
        let line = folder.read_line(place).ok()?;
        let line = parse_line(&line)?;
        if line.record.id != id || line.record.compute_id(&mut Vec::new()) != id {
            return None;
        }
        let known = known_of(&line.record);
        held(&self.recent).add(id, known.taint, &known.session);
        Some(known)
    }
}
