//! A JSON file in which an agent is told what to run for which event.

use std::path::{Path, PathBuf};

use jsonc_parser::cst::CstObject;
use serde_json::Value;

use super::json::{Dialect, array, input, object, parse, set, take_out, text_of, value_of};
use super::{Change, InstallError, Result, files, is_ours};
use crate::agent::Agent;

/// What such a file must say.
pub(super) struct Settings {
    pub(super) agent: Agent,
    pub(super) path: PathBuf,
    pub(super) dialect: Dialect,
    /// For each event, an element of its list.
    pub(super) entries: Vec<(&'static str, Value)>,
    /// Members outside of the lists, each with the object that it is in.
    pub(super) members: Vec<(Option<&'static str>, &'static str, Value)>,
}

impl Settings {
    /// The file with the entries in it.
    pub(super) fn change(self) -> Result<Change> {
        let Self { agent, path, dialect, entries, members } = self;
        let before = files::read(&path)?;
        let root = parse(&path, before.as_deref().unwrap_or_default(), dialect)?;
        let settings = root
            .object_value_or_create()
            .ok_or_else(|| InstallError::unusable(&path, "holds something else than an object"))?;
        for (parent, name, value) in members {
            let place = match parent {
                Some(parent) => object(&path, &settings, parent)?,
                None => settings.clone(),
            };
            set(&path, &place, name, &value)?;
        }
        let hooks = object(&path, &settings, "hooks")?;
        for (event, entry) in entries {
            let list = array(&path, &hooks, event)?;
            if !list.elements().iter().any(|one| value_of(one).as_ref() == Some(&entry)) {
                take_out(&list, &|text| is_ours(agent, text));
                list.append(input(&entry));
            }
        }
        let after = text_of(&root, before.as_deref());
        Ok(Change { path, before, after })
    }
}

/// The file without what is ours.
pub(super) fn without(
    agent: Agent,
    path: &Path,
    bytes: &[u8],
    dialect: Dialect,
) -> Result<Vec<u8>> {
    let root = parse(path, bytes, dialect)?;
    let hooks = root.object_value().and_then(|settings| settings.object_value("hooks"));
    let mut taken = false;
    for prop in hooks.iter().flat_map(CstObject::properties) {
        let Some(list) = prop.value().and_then(|value| value.as_array()) else { continue };
        let many = list.elements().len();
        take_out(&list, &|text| is_ours(agent, text));
        if many > 0 && list.elements().is_empty() {
            prop.remove();
            taken = true;
        }
    }
    // What held only ours goes with it.
    if taken
        && hooks.is_some_and(|hooks| hooks.properties().is_empty())
        && let Some(prop) = root.object_value().and_then(|settings| settings.get("hooks"))
    {
        prop.remove();
    }
    Ok(root.to_string().into_bytes())
}

/// What a file of settings says, as far as it can be read.
pub(super) fn look(path: &Path, dialect: Dialect) -> Option<CstObject> {
    let bytes = files::read(path).ok().flatten()?;
    parse(path, &bytes, dialect).ok()?.object_value()
}
