//! What files are before a tool of the agent changes them, kept so that it can be undone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use wardkeep_detect::effects::{Access, EffectKind, effects};
use wardkeep_evidence::hash::BlobHash;
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::Principal;
use wardkeep_guard::verdict::Verdict;
use wardkeep_policy::protect::{Operation, Surroundings, judge_command};

use super::commands::{Command, named};
use super::content::shortened;
use super::event::Part;
use super::{AnswerBody, AskError, Hook, Monitor, Result, Who, WhoBody};
use crate::resolve::{Resolver, protect_lists, protected_names, resolve_seen};
use crate::snapshot::{
    Blobs, Hurry, Limits, Manifest, RelativePath, Root, Scope, Seen, SnapshotError, Snapshots,
};

/// How much is kept for one call of a tool: an agent waits for it.
const LIMITS: Limits =
    Limits { files: 5_000, file_bytes: 16 << 20, total_bytes: 64 << 20, names: 20_000, depth: 32 };
/// How long it may take.
const HURRY: Duration = Duration::from_millis(800);
/// Names that are looked at for a glob.
const NAMES: usize = 4096;
/// Files of one call that are kept one by one.
const FEW: usize = 16;
/// Paths of one call.
const PATHS: usize = 256;

impl Monitor {
    /// Keeps what an event that may happen is about to change. That something could not be kept is
    /// written down; it is no reason to stop the agent.
    pub(super) fn keep_for_undo(
        &self,
        body: &WhoBody,
        parts: &[Part],
        answers: &[AnswerBody],
        view: Option<&crate::daemon::Root>,
    ) -> std::result::Result<(), AskError> {
        let goes_on = |answer: &AnswerBody| answer.verdict == Verdict::Allow.as_str();
        let stops = [Verdict::Deny.as_str(), Verdict::Ask.as_str()];
        if answers.iter().any(|answer| stops.contains(&answer.verdict.as_str())) {
            return Ok(());
        }
        let who =
            Who::new(&body.agent, &body.session, &body.workspace, Principal::Sys).seeing(view);
        let mut changed = BTreeSet::new();
        let mut tool = "file";
        for (part, _) in parts.iter().zip(answers).filter(|(_, answer)| goes_on(answer)) {
            let at = |path: &Path| body.workspace.join(path);
            match &part.what {
                Hook::FileWrite { path, .. } => changed.extend(written(&at(path))),
                Hook::FileDelete { path } => changed.extend(own(&at(path))),
                Hook::FileRename { from, to } => {
                    changed.extend([at(from), at(to)].iter().filter_map(|path| own(path)));
                }
                Hook::Command { tool: name, arguments, command, directory } => {
                    tool = name;
                    let command = Command { tool: name, arguments, text: command, directory };
                    changed.extend(self.changed_by(&who, &command)?);
                }
                _ => {}
            }
        }
        // What the agent does not see it does not change.
        changed.retain(|path| view.is_none_or(|view| view.agrees(path)));
        if changed.is_empty() {
            return Ok(());
        }
        let more = changed.len().saturating_sub(PATHS);
        let workspace = body.workspace.canonicalize().unwrap_or_else(|_| body.workspace.clone());
        let below = |root: &Path, inside: bool| {
            let meant =
                changed.iter().filter(|path| path.starts_with(&workspace) == inside).take(PATHS);
            let relative =
                meant.filter_map(|path| RelativePath::new(path.strip_prefix(root).ok()?));
            relative.collect::<Vec<_>>()
        };
        let roots = [(workspace.as_path(), true), (Path::new("/"), false)];
        for (root, covers) in roots.map(|(root, inside)| (root, below(root, inside))) {
            if !covers.is_empty() {
                self.keep(&who, root, covers, tool, more as u64)?;
            }
        }
        Ok(())
    }

    fn keep(
        &self,
        who: &Who<'_>,
        root: &Path,
        covers: Vec<RelativePath>,
        tool: &str,
        more: u64,
    ) -> Result<()> {
        let named = covers.len() as u64;
        let mut content = Object::from([
            ("kind", Value::from("undo")),
            ("v", Value::from(1u64)),
            ("tool", Value::from(shortened(tool))),
        ]);
        let left_out = match self.copied(root, covers) {
            Ok((hash, manifest)) => {
                content.push("manifest", Value::from(hash.to_string()));
                content.push("files", Value::from(manifest.files.len() as u64));
                manifest.left_out.len() as u64 + manifest.more_left_out
            }
            Err(error) => {
                content.push("failed", Value::from(shortened(&error.to_string())));
                named
            }
        };
        content.push("left_out", Value::from(left_out + more));
        self.note(who, Principal::Sys, Value::Object(content))?;
        Ok(())
    }

    /// Keeps the files as blobs, and what they were as a manifest.
    fn copied(
        &self,
        root: &Path,
        covers: Vec<RelativePath>,
    ) -> std::result::Result<(BlobHash, Manifest), SnapshotError> {
        let hurry = Hurry { until: Instant::now() + HURRY };
        let snapshots = Snapshots::new(&self.store).in_a_hurry(LIMITS, hurry);
        let root = Root::open(root)?;
        let written = |mut manifest: Manifest| {
            manifest.taken = self.store.now().to_string();
            let text = manifest.to_bytes().map_err(SnapshotError::Unwritable)?;
            Ok::<_, SnapshotError>((manifest, text))
        };
        let folders = covers.iter().any(|path| matches!(root.look(path, 0), Seen::Folder));
        if !folders && covers.len() <= FEW {
            // Many agents may do this at once, and nobody has to wait for another.
            let mut keep = |bytes: &[u8]| Ok(self.store.put_blob(bytes).map(drop)?);
            let (manifest, _) = snapshots.look(&root, Scope::Files, covers, &LIMITS, &mut keep)?;
            let (manifest, text) = written(manifest)?;
            return Ok((self.store.put_blob(&text)?, manifest));
        }
        let _lock = snapshots.lock_until(hurry.until)?;
        let mut blobs = Blobs::create(self.store.path())?;
        let steps = snapshots.steps;
        let mut keep = |bytes: &[u8]| blobs.put(bytes, steps).map(drop);
        let (manifest, _) = snapshots.look(&root, Scope::Files, covers, &LIMITS, &mut keep)?;
        let (manifest, text) = written(manifest)?;
        let hash = blobs.put(&text, steps)?;
        blobs.flush(steps)?;
        Ok((hash, manifest))
    }

    /// The files and folders that a command would change, as far as that can be read off it.
    fn changed_by(&self, who: &Who<'_>, command: &Command<'_>) -> Result<Vec<PathBuf>> {
        let read = effects(command.text);
        let looks = |kind: &EffectKind| match kind {
            EffectKind::File(access, _) => access.only_reads(),
            _ => true,
        };
        if read.effects.iter().all(|effect| effect.remote || looks(&effect.kind)) {
            return Ok(Vec::new());
        }
        let home = self.config.home.as_deref();
        let lists = protect_lists(self.store.path(), home);
        let set = protected_names(who.workspace, self.store.path(), &lists)?;
        let directory = Resolver::from(command.directory, who.view)?;
        let around = Surroundings { directory: directory.base(), home };
        let mut resolve =
            |base: &Path, path: &str, follow| resolve_seen(base, path, follow, who.view);
        let judged = judge_command(&read, &around, &mut resolve, &set);
        let mut found = Vec::new();
        let mut budget = NAMES;
        for touch in &judged.touched {
            for path in match touch.operation {
                Operation::Write
                | Operation::Delete
                | Operation::RenameAway
                | Operation::Replace => named(touch, who.view, &mut budget),
                _ => continue,
            } {
                let follows = touch.operation == Operation::Write;
                found.extend(if follows { written(&path) } else { own(&path) });
            }
        }
        let tree = |kind: &EffectKind| matches!(kind, EffectKind::File(Access::WriteTree, _));
        if read.effects.iter().any(|effect| !effect.remote && tree(&effect.kind)) {
            let base = directory.base();
            let inside = std::fs::read_dir(base).into_iter().flatten().flatten();
            let names = inside.map(|entry| entry.file_name()).filter(|name| name != ".git");
            found.extend(names.take(PATHS).map(|name| base.join(name)));
        }
        Ok(found)
    }
}

/// The file that a write to a path changes: a link leads to another.
fn written(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| own(path))
}

/// A path whose folders are real ones, whatever stands at its end. Folders that are not there yet
/// stand as they are named.
fn own(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    let parent = path.parent()?;
    for above in parent.ancestors() {
        if let Ok(real) = above.canonicalize() {
            return Some(real.join(parent.strip_prefix(above).ok()?).join(name));
        }
    }
    None
}
