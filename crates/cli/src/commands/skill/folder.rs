//! Which skills a path holds.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::CliError;

/// The skills that a path holds: itself, or each folder in it that is one.
pub(super) fn skills(path: &Path) -> Result<Vec<PathBuf>, CliError> {
    let metadata =
        fs::symlink_metadata(path).map_err(|error| CliError::io("read", path, &error))?;
    if !metadata.is_dir() || is_skill(path) {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).map_err(|error| CliError::io("read", path, &error))?;
    let mut inside: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .filter(|folder| is_skill(folder))
        .collect();
    inside.sort();
    // A folder that is neither is judged as it is.
    Ok(if inside.is_empty() { vec![path.to_owned()] } else { inside })
}

fn is_skill(folder: &Path) -> bool {
    ["SKILL.md", "skill.md", "Skill.md", "package.json", "plugin.json"]
        .iter()
        .any(|name| fs::symlink_metadata(folder.join(name)).is_ok())
}
