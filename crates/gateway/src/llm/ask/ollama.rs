//! Ollama's `/api/chat`: messages as in Chat Completions, a stream unless it is told otherwise.

use super::super::json::{BadJson, Doc};
use super::{Found, chat, flag};

pub(super) fn read<'t>(doc: &Doc<'t>) -> Result<Found<'t>, BadJson> {
    let found = chat::read(doc)?;
    Ok(Found { stream: flag(doc, "stream")? != Some(false), ..found })
}
