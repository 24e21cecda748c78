//! `wardkeep top`

mod app;
mod feed;
mod view;

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use wardkeep_evidence::time::Timestamp;
use wardkeep_guard::taint::Taint;
use wardkeep_monitor::approvals::{Scope, Wish};

use self::app::{Answer, App};
use self::feed::Feed;
use super::approvals::open;
use super::marks;
use super::md::sign::request;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;

/// Shows live what agents do, and answers by key what they ask
///
/// The grade, how much is staged, the requests that wait, and the newest records of the journal as they come.
/// Up, down, PgUp, PgDn, Home and End choose a request or a record; Enter shows all of it and Esc goes back; a
/// approves a request once and d denies it, after a question that shows its short code, the one of `wardkeep
/// approvals list`. The answer is for exactly the action that was shown. q ends it.
///
/// Needs a terminal; `wardkeep status` and `wardkeep log` tell the same without one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Between two looks at the journal.
const EVERY: Duration = Duration::from_millis(500);
/// Between two looks at what is staged, at least.
const STAGED: Duration = Duration::from_secs(3);
/// Longest wait for a key.
const PATIENCE: Duration = Duration::from_millis(100);
/// Signals that end it.
const SIGNALS: [i32; 3] =
    [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT, signal_hook::consts::SIGHUP];

pub(crate) fn run(context: &mut Context, _: Args) -> Result<Exit, CliError> {
    let terminal = context.has_terminal() && std::io::stdout().is_terminal();
    if !terminal || context.ui.is_json() {
        return Err(CliError::refused(
            "there is no terminal to show it on",
            "`wardkeep status --json` and `wardkeep log --json` tell the same",
        ));
    }
    // Says at once where there is nothing to look at.
    context.open_reader()?;
    let standing = marks::look(context)?;
    let feed = Feed::new(context)?;
    let mut app = App::new(marks::headline(&standing.grade).text());
    feed.look(&mut app, context.now()?);
    app.staged = feed.staged();
    let ended = Arc::new(AtomicBool::new(false));
    for signal in SIGNALS {
        signal_hook::flag::register(signal, Arc::clone(&ended)).map_err(|error| broken(&error))?;
    }
    // From here on the terminal is given back: at the end, after a panic, after a signal.
    let mut terminal = ratatui::try_init().map_err(|error| broken(&error))?;
    let ran = serve(context, &mut terminal, &mut app, &feed, &ended);
    ratatui::restore();
    ran.map(|()| Exit::Success)
}

fn broken(error: &std::io::Error) -> CliError {
    CliError::new(
        Exit::Unreadable,
        format!("the terminal cannot be used: {error}"),
        "use `wardkeep status` instead",
    )
}

fn serve(
    context: &Context,
    terminal: &mut DefaultTerminal,
    app: &mut App,
    feed: &Feed,
    ended: &AtomicBool,
) -> Result<(), CliError> {
    let mut looked = Instant::now();
    let mut staged_again = looked + STAGED;
    while !ended.load(Ordering::Relaxed) {
        terminal.draw(|frame| view::draw(frame, app)).map_err(|error| broken(&error))?;
        if event::poll(PATIENCE).map_err(|error| broken(&error))? {
            match event::read().map_err(|error| broken(&error))? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match app.key(key) {
                    app::Asked::Nothing => {}
                    app::Asked::End => return Ok(()),
                    app::Asked::Show(request) => match feed.show(&request, context.now()?) {
                        Ok(shown) => app.shown(shown),
                        Err(why) => app.say(why),
                    },
                    app::Asked::Record(id) => match feed.record(&id) {
                        Ok(members) => app.record(members),
                        Err(why) => app.say(why),
                    },
                    app::Asked::Answer(answer) => {
                        let said = answered(context, feed, &answer).unwrap_or_else(|error| {
                            format!("not done: {}: {}", error.message, error.hint)
                        });
                        app.say(said);
                        feed.look(app, context.now()?);
                    }
                },
                // A change of size is drawn with the next frame.
                _ => {}
            }
        }
        if looked.elapsed() >= EVERY {
            looked = Instant::now();
            feed.look(app, context.now()?);
        }
        if Instant::now() >= staged_again {
            let begun = Instant::now();
            app.staged = feed.staged();
            // Large workspaces are looked at less often, so that keys are answered.
            staged_again = begun + STAGED.max(begun.elapsed() * 20);
        }
    }
    Ok(())
}

/// Answers a request, if it still asks for exactly what was shown.
fn answered(context: &Context, feed: &Feed, answer: &Answer) -> Result<String, CliError> {
    let now: Timestamp = context.now()?;
    let shown =
        feed.show(&answer.request, now).map_err(|why| CliError::refused(why, "look again"))?;
    if shown.action != answer.action || (answer.approve && !shown.consistent) {
        return Err(CliError::refused("it asks for something else by now", "look at it again"));
    }
    let who = request(context, false)?;
    if who.confined {
        return Err(wardkeep_monitor::approvals::ApprovalsError::Confined.into());
    }
    let approvals = open(context)?;
    let store = context.open_store()?;
    if answer.approve {
        let wish = Wish { scope: Scope::Once, until: None, declassifies: Taint::NONE };
        approvals.approve(&store, &shown.request, wish, &who)?;
        return Ok(format!("approved once: {}", app::code(&answer.request)));
    }
    approvals.deny(&store, &shown.request, &who)?;
    Ok(format!("denied: {}", app::code(&answer.request)))
}
