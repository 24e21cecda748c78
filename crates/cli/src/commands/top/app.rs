//! What is on the screen, and what a key means. Knows neither terminal nor journal.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use wardkeep_monitor::approvals::Shown;

use crate::ui::harmless;

/// A record, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) index: u64,
    pub(super) time: String,
    pub(super) kind: String,
    pub(super) session: String,
    pub(super) text: String,
    pub(super) grave: Grave,
}

/// How much a record stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grave {
    No,
    Some,
    Much,
}

/// A request that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) request: String,
    pub(super) action: String,
    pub(super) seconds: i64,
    pub(super) session: String,
    pub(super) what: String,
}

/// An answer that a person gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) request: String,
    pub(super) action: String,
    pub(super) approve: bool,
}

/// What a key asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Asked {
    Nothing,
    End,
    /// Shows all of a request.
    Show(String),
    Answer(Answer),
}

/// What lies over the lists.
#[derive(Debug)]
pub(super) enum Over {
    Nothing,
    /// All of a request, from this line on; and, once that was asked, the question whether to answer it so.
    Request {
        shown: Box<Shown>,
        from: u16,
        question: Option<bool>,
    },
}

/// The screen.
#[derive(Debug)]
pub(super) struct App {
    pub(super) grade: String,
    pub(super) counts: String,
    pub(super) rows: Vec<Row>,
    pub(super) waiting: Vec<Waiting>,
    pub(super) chosen: usize,
    pub(super) over: Over,
    pub(super) said: Option<String>,
    /// What to ask as soon as the request that was chosen is shown.
    wanted: Option<bool>,
}

const TOO_LONG: &str = "too long to be shown whole: use `wardkeep approvals approve`";

/// Whether all of a request can be shown.
pub(super) fn is_short(shown: &Shown) -> bool {
    const MOST: usize = 32 << 10;
    let content = shown.content.as_ref().and_then(|content| content.text.as_ref());
    let texts = [&shown.subject, &shown.reason, &shown.session, &shown.agent, &shown.workspace];
    let texts = texts.into_iter().chain(&shown.how).chain(content);
    texts.map(String::len).sum::<usize>() <= MOST
}

/// The short code of an action.
pub(super) fn code(action: &str) -> String {
    const DIGITS: usize = 8;
    harmless(action).chars().take(DIGITS).collect()
}

impl App {
    pub(super) fn new(grade: String) -> Self {
        Self {
            grade,
            counts: String::new(),
            rows: Vec::new(),
            waiting: Vec::new(),
            chosen: 0,
            over: Over::Nothing,
            said: None,
            wanted: None,
        }
    }

    /// Says something in the last line.
    pub(super) fn say(&mut self, text: impl Into<String>) {
        self.said = Some(harmless(&text.into()));
        self.over = Over::Nothing;
    }

    /// Requests as they are now; the one that was chosen stays so.
    pub(super) fn set_waiting(&mut self, waiting: Vec<Waiting>) {
        let chosen = self.waiting.get(self.chosen).map(|one| one.request.clone());
        self.waiting = waiting;
        let again = self.waiting.iter().position(|one| Some(&one.request) == chosen.as_ref());
        self.chosen = again.unwrap_or(0);
    }

    /// A request as it was read. What is too long to be shown here cannot be approved here.
    pub(super) fn shown(&mut self, shown: Shown) {
        let mut question = self.wanted.take();
        if question == Some(true) && !is_short(&shown) {
            question = None;
            self.said = Some(TOO_LONG.to_owned());
        }
        self.over = Over::Request { shown: Box::new(shown), from: 0, question };
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Asked {
        self.said = None;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Asked::End;
        }
        match &mut self.over {
            Over::Nothing => self.key_in_lists(key.code),
            Over::Request { shown, from, question } => match (key.code, &question) {
                (KeyCode::Up, _) => {
                    *from = from.saturating_sub(1);
                    Asked::Nothing
                }
                (KeyCode::Down, _) => {
                    *from = from.saturating_add(1);
                    Asked::Nothing
                }
                (KeyCode::Char('y'), Some(approve)) => {
                    let (request, action) = (shown.request.clone(), shown.action.clone());
                    Asked::Answer(Answer { request, action, approve: *approve })
                }
                (KeyCode::Char('a'), None) if is_short(shown) => {
                    *question = Some(true);
                    Asked::Nothing
                }
                (KeyCode::Char('a'), None) => {
                    self.said = Some(TOO_LONG.to_owned());
                    Asked::Nothing
                }
                (KeyCode::Char('d'), None) => {
                    *question = Some(false);
                    Asked::Nothing
                }
                _ => {
                    self.over = Over::Nothing;
                    Asked::Nothing
                }
            },
        }
    }

    fn key_in_lists(&mut self, key: KeyCode) -> Asked {
        let chosen = self.waiting.get(self.chosen).map(|one| one.request.clone());
        self.wanted = match key {
            KeyCode::Char('a') => Some(true),
            KeyCode::Char('d') => Some(false),
            _ => None,
        };
        match key {
            KeyCode::Char('q') | KeyCode::Esc => Asked::End,
            KeyCode::Up | KeyCode::Char('k') => {
                self.chosen = self.chosen.saturating_sub(1);
                Asked::Nothing
            }
            KeyCode::Down | KeyCode::Char('j') => {
                self.chosen = (self.chosen + 1).min(self.waiting.len().saturating_sub(1));
                Asked::Nothing
            }
            KeyCode::Enter | KeyCode::Char('a' | 'd') => chosen.map_or(Asked::Nothing, Asked::Show),
            _ => Asked::Nothing,
        }
    }
}
