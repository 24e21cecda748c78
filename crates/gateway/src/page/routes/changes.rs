//! What changes something: each is shown once more, and done when that is confirmed.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use serde::Deserialize;

use super::{Desk, Instead, Page, shown, whole};
use crate::page::confirm::Change;
use crate::page::door::Refusal;
use crate::page::html::Said;
use crate::page::office::{Answer, Scope, Trouble};
use crate::page::views;

#[derive(Deserialize)]
pub(super) struct Answering {
    #[serde(default)]
    form: String,
    #[serde(default)]
    action: String,
    #[serde(default)]
    answer: String,
}

/// Shows once more what is answered, and asks.
pub(super) async fn answer(
    State(desk): State<Arc<Desk>>,
    Path(id): Path<String>,
    Form(said): Form<Answering>,
) -> Page {
    checked(&desk, &said.form)?;
    let answer = match said.answer.as_str() {
        "once" => Answer::Approve(Scope::Once),
        "session" => Answer::Approve(Scope::Session),
        "deny" => Answer::Deny,
        _ => return Err(Trouble::new("this is no answer", "go back and choose one").into()),
    };
    let asked = id.clone();
    let found = desk.ask(move |office| office.request(&asked)).await?;
    if found.action != said.action || !found.consistent {
        let why = Trouble::new("it asks for something else by now", "look at it again");
        return Err(why.into());
    }
    let change = Change::Answer { id: found.request.clone(), action: said.action, answer };
    let word = desk.keep(change)?;
    let body = views::requests::sure(&found, answer, &views::confirmation(desk.door.form(), &word));
    Ok(whole(StatusCode::OK, "/requests", "Are you sure?", &body))
}

#[derive(Deserialize)]
pub(super) struct Proposing {
    #[serde(default)]
    form: String,
    #[serde(default)]
    workspace: String,
    #[serde(default)]
    hash: String,
    #[serde(default)]
    answer: String,
}

pub(super) async fn propose(State(desk): State<Arc<Desk>>, Form(said): Form<Proposing>) -> Page {
    checked(&desk, &said.form)?;
    let staged = desk.ask(|office| office.staged()).await?;
    let same = staged
        .iter()
        .find(|one| one.workspace == said.workspace && one.hash.as_deref() == Some(&said.hash));
    let Some(one) = same else {
        let why = Trouble::new("something else is staged by now", "look at it again");
        return Err(why.into());
    };
    let (workspace, hash) = (said.workspace.clone(), said.hash.clone());
    let (approve, change) = match said.answer.as_str() {
        "approve" => (true, Change::Apply { workspace, hash }),
        "refuse" => (false, Change::Drop { workspace, hash }),
        _ => return Err(Trouble::new("this is no answer", "go back and choose one").into()),
    };
    let word = desk.keep(change)?;
    let body = views::proposals::sure(one, approve, &views::confirmation(desk.door.form(), &word));
    Ok(whole(StatusCode::OK, "/proposals", "Are you sure?", &body))
}

#[derive(Deserialize)]
pub(super) struct Editing {
    #[serde(default)]
    form: String,
    #[serde(default)]
    workspace: String,
    #[serde(default)]
    before: String,
    #[serde(default)]
    text: String,
}

pub(super) async fn edit(State(desk): State<Arc<Desk>>, Form(said): Form<Editing>) -> Page {
    checked(&desk, &said.form)?;
    // A form sends every end of a line as two characters.
    let text = said.text.replace("\r\n", "\n");
    let before = said.before.replace("\r\n", "\n");
    let body = views::policy::sure(&said.workspace, &before, &text);
    let change = Change::Sign { workspace: said.workspace, before, text };
    let word = desk.keep(change)?;
    let body = format!("{body}{}", views::confirmation(desk.door.form(), &word));
    Ok(whole(StatusCode::OK, "/policy", "Sign this?", &body))
}

#[derive(Deserialize)]
pub(super) struct Confirming {
    #[serde(default)]
    form: String,
    #[serde(default)]
    word: String,
}

/// Does what was shown and confirmed.
pub(super) async fn confirm(State(desk): State<Arc<Desk>>, Form(said): Form<Confirming>) -> Page {
    checked(&desk, &said.form)?;
    let change = desk.take(&said.word)?;
    let back = match &change {
        Change::Answer { .. } => "/requests",
        Change::Apply { .. } | Change::Drop { .. } => "/proposals",
        Change::Sign { .. } => "/policy",
    };
    let done = desk
        .ask(move |office| match change {
            Change::Answer { id, action, answer } => office.answer(&id, &action, answer),
            Change::Apply { workspace, hash } => office.apply(&workspace, &hash),
            Change::Drop { workspace, hash } => office.drop_staged(&workspace, &hash),
            Change::Sign { workspace, before, text } => office.sign(&workspace, &before, &text),
        })
        .await;
    shown(done, back, "Done", |said| {
        let mut body = String::new();
        let _ = write!(
            body,
            "<p class=\"good\" role=\"status\">{}</p>\n<p><a href=\"{back}\">Back</a></p>\n",
            Said(said)
        );
        body
    })
}

fn checked(desk: &Desk, form: &str) -> Result<(), Instead> {
    if desk.door.is_form(form) { Ok(()) } else { Err(Instead::Refusal(Refusal::Origin)) }
}

#[derive(Deserialize)]
pub(super) struct Verifying {
    #[serde(default)]
    form: String,
}

/// Changes nothing, but costs: so it needs a form.
pub(super) async fn verify(State(desk): State<Arc<Desk>>, Form(said): Form<Verifying>) -> Page {
    checked(&desk, &said.form)?;
    let full = desk.ask(|office| office.verify()).await;
    shown(full, "/evidence", "Evidence", |full| {
        format!("{}<p><a href=\"/evidence\">Back</a></p>\n", views::chain::check(full))
    })
}
