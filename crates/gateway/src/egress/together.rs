//! Questions to the monitor that are put together: what is asked while it is busy goes in one message, and what
//! it has to write down is flushed once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use wardkeep_monitor::monitor::{
    EGRESS, EGRESS_SEVERAL, EgressAnswer, EgressAnswers, EgressBody, EgressSeveral, Monitor,
    SEVERAL,
};

use crate::place::Place;

/// How long what nobody waits for may be kept, for something to go along with.
const LINGERS: Duration = Duration::from_millis(2);
/// Bytes of one message, as far as they are counted; a longer question goes alone.
const LONGEST: usize = 1 << 20;
/// More than what is around the texts of a question.
const AROUND: usize = 1 << 10;

type Reply = Result<EgressAnswer, String>;

/// Whether somebody waits for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Urgency {
    /// A request waits for it.
    Now,
    /// It is told, and may go along with what is asked next.
    Soon,
}

/// Puts questions, several in one message where there are several.
#[derive(Debug)]
pub(super) struct Together {
    place: Place,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// How many of those are urgent.
    urgent: usize,
    /// Whether a message is not answered yet. One at a time: what comes meanwhile is more, and flushed together, so that
    /// the disk and the processors are asked less often than with several on their way.
    sent: bool,
    /// Whether somebody will look after [`LINGERS`].
    lingers: bool,
}

#[derive(Debug)]
struct Waiting {
    asked: EgressBody,
    urgency: Urgency,
    answer: oneshot::Sender<Reply>,
}

/// A message on its way. However that ends, another may follow.
struct Answered<'a>(&'a Together);

impl Drop for Answered<'_> {
    fn drop(&mut self) {
        self.0.queue().sent = false;
    }
}

impl Queue {
    /// Whether a message is to be sent now; then it counts as sent.
    fn may_send(&mut self) -> bool {
        let due = self.urgent > 0 || self.waiting.len() >= SEVERAL;
        let sends = due && !self.sent;
        self.sent |= sends;
        sends
    }

    /// What goes into the next message, in the order in which it was asked.
    fn next(&mut self) -> Vec<Waiting> {
        let mut bytes = 0_usize;
        let mut message: Vec<Waiting> = Vec::new();
        while let Some(first) = self.waiting.pop_front_if(|first| {
            bytes = bytes.saturating_add(weight(&first.asked));
            message.is_empty() || (message.len() < SEVERAL && bytes <= LONGEST)
        }) {
            self.urgent -= usize::from(first.urgency == Urgency::Now);
            message.push(first);
        }
        message
    }
}

impl Together {
    pub(super) fn new(place: Place) -> Self {
        Self { place, queue: Mutex::default() }
    }

    /// Asks, and waits for the answer. Whatever goes wrong is an error, and an error is a denial.
    pub(super) async fn ask(self: &Arc<Self>, asked: EgressBody, urgency: Urgency) -> Reply {
        let (answer, answered) = oneshot::channel();
        let (sends, lingers) = {
            let mut queue = self.queue();
            queue.waiting.push_back(Waiting { asked, urgency, answer });
            queue.urgent += usize::from(urgency == Urgency::Now);
            let sends = queue.may_send();
            let lingers = !sends && !queue.sent && !queue.lingers;
            queue.lingers |= lingers;
            (sends, lingers)
        };
        // In a task of its own: whoever asks may go away before the answer is there.
        if sends || lingers {
            tokio::spawn(Arc::clone(self).send(lingers));
        }
        answered.await.unwrap_or_else(|_| Err("the monitor was not asked".to_owned()))
    }

    /// Sends one message after the other, as long as there is something urgent; what is not urgent waits for a
    /// moment whether something comes to go along with.
    async fn send(self: Arc<Self>, mut lingers: bool) {
        loop {
            if lingers {
                tokio::time::sleep(LINGERS).await;
                let mut queue = self.queue();
                queue.lingers = false;
                // Where a message is on its way, whoever sent it looks again.
                if queue.waiting.is_empty() || queue.sent {
                    return;
                }
                queue.sent = true;
            }
            let message = self.queue().next();
            let answered = Answered(&self);
            self.put(message).await;
            drop(answered);
            let mut queue = self.queue();
            if queue.may_send() {
                lingers = false;
                continue;
            }
            lingers = !queue.waiting.is_empty() && !queue.lingers;
            if !lingers {
                return;
            }
            queue.lingers = true;
        }
    }

    async fn put(&self, message: Vec<Waiting>) {
        let (mut asked, mut answers) = (Vec::new(), Vec::new());
        for Waiting { asked: one, answer, .. } in message {
            asked.push(one);
            answers.push(answer);
        }
        let answered = match asked.len() {
            0 => return,
            1 => {
                let one = asked.swap_remove(0);
                self.place.ask(EGRESS, one, Monitor::egress).await.map(|one| vec![Ok(one)])
            }
            _ => {
                let all = EgressSeveral { all: asked };
                let answered = self.place.ask(EGRESS_SEVERAL, all, Monitor::egress_several).await;
                answered.map(|EgressAnswers { all }| all)
            }
        };
        let mut answered = answered.map(Vec::into_iter);
        for answer in answers {
            let one = match &mut answered {
                Ok(all) => all.next().unwrap_or_else(|| Err("the answer is too short".to_owned())),
                Err(why) => Err(why.clone()),
            };
            // Who has gone needs none.
            let _ = answer.send(one);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// About how long a question is.
fn weight(asked: &EgressBody) -> usize {
    match asked {
        EgressBody::Request { url, content, .. } => {
            AROUND + url.len() + content.as_ref().map_or(0, String::len)
        }
        _ => AROUND,
    }
}
