//! Files that a program asks for although they are not shown: looked at, asked about, handed in.

use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, IoSlice};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use super::outside::{Found, Looked, Outside};
use super::running::Question;
use crate::child;
use crate::denial::{Denial, DenialKind};
use crate::notify::{Answer, Wanted};

/// Looks at once: a file system that does not answer holds up one each.
const MOST_LOOKS: usize = 64;
/// Questions of a run that nobody has answered with a yes.
const MOST_QUESTIONS: usize = 200;
/// Paths that are remembered.
const MOST_KNOWN: usize = 1 << 16;

/// What others have for the thread that waits for the program.
#[derive(Debug)]
pub(super) enum Heard {
    /// The owner is to be asked.
    Ask(Question),
    /// Something was kept from the program.
    Denied(Denial),
    /// Somebody else wants the file for which the owner has said yes once.
    Again(Wanted),
}

/// Which files a program has asked for, and what became of it.
#[derive(Debug)]
pub(super) struct Reading {
    outside: Outside,
    life: OwnedFd,
    /// Can be read when there is something to hear.
    bell: OwnedFd,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    heard: Vec<Heard>,
    looks: usize,
    /// What is looked for, unless nobody waits for it any more.
    wanted: BTreeSet<u32>,
    questions: usize,
    open: Vec<Open>,
    /// Files that may be read until the run ends, and those that may not, by their real paths.
    session: BTreeSet<PathBuf>,
    refused: BTreeSet<PathBuf>,
}

/// A question that waits for its answer, and who else waits for that.
#[derive(Debug)]
struct Open {
    path: PathBuf,
    number: u32,
    waiting: Vec<Wanted>,
    withdrawn: Arc<AtomicBool>,
}

impl Reading {
    pub(super) fn new(outside: Outside, life: OwnedFd) -> Result<Arc<Self>, Errno> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Arc::new(Self { outside, life, bell, state: Mutex::default() }))
    }

    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// What there is to hear.
    pub(super) fn heard(&self) -> Vec<Heard> {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.bell, &mut count);
        std::mem::take(&mut self.state().heard)
    }

    /// Somebody inside wants a file. Looks for it in a thread of its own: a file system may take its time.
    pub(super) fn want(self: &Arc<Self>, wanted: Wanted) {
        let number = wanted.number;
        {
            let mut state = self.state();
            if state.looks >= MOST_LOOKS {
                drop(state);
                return self.answer(number, None, false);
            }
            state.looks += 1;
            state.wanted.insert(number);
        }
        let own = Arc::clone(self);
        let look = move || {
            let looked = own.outside.look(&wanted);
            own.state().looks -= 1;
            own.decide(wanted, looked);
        };
        if std::thread::Builder::new().stack_size(256 << 10).spawn(look).is_err() {
            let mut state = self.state();
            state.looks -= 1;
            state.wanted.remove(&number);
            drop(state);
            self.answer(number, None, false);
        }
    }

    /// Says that a file is not there, where nobody can look.
    pub(super) fn refuse(life: BorrowedFd<'_>, number: u32) {
        let message = child::answer(number, b'n');
        let _ = rustix::net::send(life, &message, SendFlags::NOSIGNAL);
    }

    fn decide(&self, wanted: Wanted, looked: Looked) {
        let number = wanted.number;
        // Held until it is waited for: whoever stops waiting is found in one of the two.
        let mut state = self.state();
        if !state.wanted.remove(&number) {
            return;
        }
        let found = match looked {
            Looked::Absent => {
                drop(state);
                return self.answer(number, None, false);
            }
            Looked::Kept(path, rule) => {
                drop(state);
                self.say(Heard::Denied(denial(&path, rule, &wanted.program)));
                return self.answer(number, None, false);
            }
            Looked::Found(found) => found,
        };
        let denial = denial(&found.path, found.rule, &wanted.program);
        if state.session.contains(&found.path) {
            drop(state);
            return self.answer(number, self.outside.open(&found), true);
        }
        if let Some(open) = state.open.iter_mut().find(|open| open.path == found.path) {
            open.waiting.push(wanted);
            return;
        }
        if state.refused.contains(&found.path) || state.questions >= MOST_QUESTIONS {
            drop(state);
            self.say(Heard::Denied(denial));
            return self.answer(number, None, false);
        }
        state.questions += 1;
        let withdrawn = Arc::new(AtomicBool::new(false));
        state.open.push(Open {
            path: found.path.clone(),
            number,
            waiting: vec![wanted],
            withdrawn: Arc::clone(&withdrawn),
        });
        drop(state);
        let found = Some(Arc::new(found));
        self.say(Heard::Ask(Question { number, denial, withdrawn, found }));
    }

    /// Nobody waits for this file any more.
    pub(super) fn withdraw(&self, number: u32) {
        let mut state = self.state();
        state.wanted.remove(&number);
        for open in &mut state.open {
            open.waiting.retain(|one| one.number != number);
            if open.waiting.is_empty() {
                open.withdrawn.store(true, Ordering::Relaxed);
            }
        }
        // Whoever wants it now is asked about anew.
        state.open.retain(|open| !open.waiting.is_empty());
    }

    /// The owner's word.
    pub(super) fn answered(&self, question: &Question, found: &Found, answer: Answer) {
        let yes = answer != Answer::No;
        // The word was about the file that the question showed; another in its place is asked about.
        let stays = answer == Answer::Session && self.outside.open(found).is_some();
        let mut state = self.state();
        let at = state.open.iter().position(|open| open.number == question.number);
        let Some(at) = at else { return };
        let Open { path, waiting, .. } = state.open.swap_remove(at);
        if yes {
            state.questions = state.questions.saturating_sub(1);
        }
        // Known before anybody is answered: whoever has the file may open it again at once.
        if stays && state.session.len() < MOST_KNOWN {
            state.session.insert(path);
        } else if !yes && state.refused.len() < MOST_KNOWN {
            state.refused.insert(path);
        }
        drop(state);
        if !yes {
            self.say(Heard::Denied(question.denial.clone()));
        }
        for (at, one) in waiting.into_iter().enumerate() {
            match answer {
                Answer::No => self.answer(one.number, None, false),
                Answer::Once if at > 0 => self.say(Heard::Again(one)),
                // Each gets a place in the file of its own.
                Answer::Once | Answer::Session => {
                    let file = self.outside.open(found);
                    self.answer(one.number, file, answer == Answer::Session);
                }
            }
        }
    }

    /// Tells the confined side; without a file it is not there.
    fn answer(&self, number: u32, file: Option<OwnedFd>, session: bool) {
        let word = match (&file, session) {
            (None, _) => b'n',
            (Some(_), true) => b's',
            (Some(_), false) => b'o',
        };
        let message = child::answer(number, word);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files: Vec<_> = file.iter().map(OwnedFd::as_fd).collect();
        if !files.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&files)) {
            return;
        }
        let text = [IoSlice::new(&message)];
        let _ = rustix::net::sendmsg(&self.life, &text, &mut control, SendFlags::NOSIGNAL);
    }

    fn say(&self, heard: Heard) {
        self.state().heard.push(heard);
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn denial(path: &std::path::Path, rule: &str, program: &str) -> Denial {
    Denial {
        kind: DenialKind::Unshown,
        call: "read".to_owned(),
        path: path.display().to_string(),
        rule: rule.to_owned(),
        program: program.to_owned(),
        times: 1,
    }
}
