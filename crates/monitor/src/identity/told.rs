//! What a record of an operation says.

use wardkeep_evidence::json::{Object, Value};
use wardkeep_identity::changes::Changes;
use wardkeep_identity::name::Name;

/// Files that one record names; of more only the number is told.
const NAMED: usize = 100;

/// The members of a record that an operation adds.
#[derive(Debug, Default)]
pub struct Told(Vec<(&'static str, Value<'static>)>);

impl Told {
    /// With a text.
    #[must_use]
    pub fn with(mut self, key: &'static str, text: impl Into<String>) -> Self {
        self.0.push((key, Value::from(text.into())));
        self
    }

    /// With the names of files.
    #[must_use]
    pub fn with_files<'n>(self, names: impl IntoIterator<Item = &'n Name>) -> Self {
        let rows = names.into_iter().map(|name| Value::from(name.to_string()));
        self.with_rows(rows.collect())
    }

    /// With what was replaced and is kept, and whose it was.
    #[must_use]
    pub fn with_kept<'n>(mut self, kept: impl IntoIterator<Item = (&'n Name, u32)>) -> Self {
        let rows = kept.into_iter().take(NAMED).map(|(name, uid)| {
            Value::from([
                ("name", Value::from(name.to_string())),
                ("uid", Value::from(u64::from(uid))),
            ])
        });
        let rows: Vec<Value<'static>> = rows.map(Value::into_owned).collect();
        if !rows.is_empty() {
            self.0.push(("kept", Value::Array(rows)));
        }
        self
    }

    fn with_rows(mut self, mut rows: Vec<Value<'static>>) -> Self {
        self.0.push(("count", Value::from(rows.len() as u64)));
        rows.truncate(NAMED);
        self.0.push(("files", Value::Array(rows)));
        self
    }

    pub(super) fn into_members(self) -> Vec<(&'static str, Value<'static>)> {
        self.0
    }
}

/// What is proposed: the hash by which it is approved, and each file with what happens to it.
#[must_use]
pub fn files_of(changes: &Changes) -> Told {
    let rows = changes.changes.iter().map(|change| {
        let mut row = Object::from([
            ("name", Value::from(change.name.to_string())),
            ("status", Value::from(change.status())),
        ]);
        for (key, hash) in [("old", change.old), ("new", change.new)] {
            if let Some(hash) = hash {
                row.push(key, Value::from(hash.to_string()));
            }
        }
        Value::Object(row)
    });
    Told::default().with("hash", changes.hash().to_string()).with_rows(rows.collect())
}
