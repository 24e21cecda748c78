//! What is on the screen, and what a key means. Knows neither terminal nor journal.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use wardkeep_monitor::approvals::Shown;

use crate::ui::{Member, harmless};

/// A record, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) index: u64,
    pub(super) id: String,
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
    pub(super) seconds: i64,
    pub(super) session: String,
    pub(super) what: String,
}

/// An answer that a person gave, to exactly this action.
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
    /// Shows all of a record.
    Record(String),
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
    /// All of a record, from this line on.
    Record {
        members: Vec<Member>,
        from: u16,
    },
}

/// The screen.
#[derive(Debug)]
pub(super) struct App {
    pub(super) grade: String,
    pub(super) counts: String,
    /// What is staged, in words; empty, where nothing is.
    pub(super) staged: String,
    /// Newest first.
    pub(super) rows: Vec<Row>,
    pub(super) waiting: Vec<Waiting>,
    /// The request that is chosen, unless a record is.
    pub(super) chosen: usize,
    /// The index of the record that is chosen. It stays so while others come.
    event: Option<u64>,
    pub(super) over: Over,
    pub(super) said: Option<String>,
    /// What to ask as soon as the request that was chosen is shown.
    wanted: Option<bool>,
}

const TOO_LONG: &str = "too long to be shown whole: use `wardkeep approvals approve`";
const NO_REQUEST: &str = "choose a request first: Home goes to the first one";
/// How far a page goes.
const PAGE: usize = 10;

/// Whether all of a request can be shown.
pub(super) fn is_short(shown: &Shown) -> bool {
    const MOST: usize = 32 << 10;
    let content = shown.content.as_ref().and_then(|content| content.text.as_ref());
    let texts = [&shown.subject, &shown.reason, &shown.session, &shown.agent, &shown.workspace];
    let texts = texts.into_iter().chain(&shown.how).chain(content);
    texts.map(String::len).sum::<usize>() <= MOST
}

/// The short code of a request, the one that `wardkeep approvals list` and `wardkeep status` show. A request is
/// named by the hash of its content, the action included.
pub(super) fn code(request: &str) -> String {
    const DIGITS: usize = 10;
    harmless(request).chars().take(DIGITS).collect()
}

impl App {
    pub(super) fn new(grade: String) -> Self {
        Self {
            grade,
            counts: String::new(),
            staged: String::new(),
            rows: Vec::new(),
            waiting: Vec::new(),
            chosen: 0,
            event: None,
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

    /// A record as it was read.
    pub(super) fn record(&mut self, members: Vec<Member>) {
        self.over = Over::Record { members, from: 0 };
    }

    /// Where the record that is chosen stands in the list.
    pub(super) fn event(&self) -> Option<usize> {
        let event = self.event?;
        let at = self.rows.iter().position(|row| row.index <= event);
        // One that is too old for the list by now leaves the last one chosen.
        at.or_else(|| self.rows.len().checked_sub(1))
    }

    pub(super) fn key(&mut self, key: KeyEvent) -> Asked {
        self.said = None;
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return Asked::End;
        }
        match &mut self.over {
            Over::Nothing => self.key_in_lists(key.code),
            Over::Record { from, .. } => {
                match scrolled(*from, key.code) {
                    Some(line) => *from = line,
                    None => self.over = Over::Nothing,
                }
                Asked::Nothing
            }
            Over::Request { shown, from, question } => match (key.code, &question) {
                (key, _) if scrolled(*from, key).is_some() => {
                    *from = scrolled(*from, key).unwrap_or_default();
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
        self.wanted = match key {
            KeyCode::Char('a') => Some(true),
            KeyCode::Char('d') => Some(false),
            _ => None,
        };
        match key {
            KeyCode::Char('q') | KeyCode::Esc => return Asked::End,
            KeyCode::Up | KeyCode::Char('k') => self.step(1, true),
            KeyCode::Down | KeyCode::Char('j') => self.step(1, false),
            KeyCode::PageUp => self.step(PAGE, true),
            KeyCode::PageDown => self.step(PAGE, false),
            KeyCode::Home => (self.chosen, self.event) = (0, None),
            KeyCode::End => self.event = self.rows.last().map(|row| row.index),
            KeyCode::Char('a' | 'd') if self.event.is_some() && !self.waiting.is_empty() => {
                self.said = Some(NO_REQUEST.to_owned());
            }
            KeyCode::Enter | KeyCode::Char('a' | 'd') => return self.open(key),
            _ => {}
        }
        Asked::Nothing
    }

    /// Shows what is chosen; without any choice, there is nothing to show.
    fn open(&self, key: KeyCode) -> Asked {
        if let Some(row) = self.event().and_then(|at| self.rows.get(at)) {
            return match key {
                KeyCode::Enter => Asked::Record(row.id.clone()),
                _ => Asked::Nothing,
            };
        }
        let request = self.waiting.get(self.chosen).map(|one| one.request.clone());
        request.map_or(Asked::Nothing, Asked::Show)
    }

    /// Goes up or down: through the requests, then through the records, as they stand on the screen.
    fn step(&mut self, by: usize, up: bool) {
        // Without a request nothing is chosen above the first record.
        let above = self.waiting.len().max(1);
        let now = self.event().map_or(self.chosen, |at| above + at);
        let last = (above + self.rows.len()).saturating_sub(1);
        let next = if up { now.saturating_sub(by) } else { now.saturating_add(by).min(last) };
        match next.checked_sub(above) {
            None => (self.chosen, self.event) = (next, None),
            Some(at) => self.event = self.rows.get(at).map(|row| row.index),
        }
    }
}

/// The line from which on a text is shown after a key; nothing, where the key is none that scrolls.
fn scrolled(from: u16, key: KeyCode) -> Option<u16> {
    const LINES: u16 = 10;
    match key {
        KeyCode::Up | KeyCode::Char('k') => Some(from.saturating_sub(1)),
        KeyCode::Down | KeyCode::Char('j') => Some(from.saturating_add(1)),
        KeyCode::PageUp => Some(from.saturating_sub(LINES)),
        KeyCode::PageDown => Some(from.saturating_add(LINES)),
        KeyCode::Home => Some(0),
        _ => None,
    }
}
