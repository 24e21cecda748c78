//! Which conversation a request belongs to, told by what it repeats.
//!
//! A request goes on with a session if it repeats all that the session has said and adds to it, if it
//! names a response of that session that the provider keeps, if it shows tool calls or answers to them
//! that only that session knows, or if the client itself calls both by one name. Otherwise it begins a new one, which is then told everything that the request holds: so nothing
//! that is in a model's context is unknown to its session, and nothing is in it that is not.

use std::collections::{HashMap, HashSet, VecDeque};

use sha2::{Digest as _, Sha256};

use super::ask::{Asked, Piece, Print, Role, What};

/// Sessions that are remembered.
const SESSIONS: usize = 1024;
/// Prefixes that one session is known by.
const PREFIXES: usize = 4096;
/// Shortest id of a call that no other session has.
const CALL: usize = 8;
/// Pieces that one session remembers to have seen.
const SEEN: usize = 16_384;
/// Bytes of texts that stand in the place of others, in one session.
const INSTEAD: usize = 4 << 20;
/// Lines of what the model said that one session is known by, those of what tools gave it, and how long they are
/// at least.
const LINES: usize = 512;
const GIVEN: usize = 256;
const LINE: usize = 32;
/// Longest word for whose a line is, in a history that is told as a text: `[Tool result]: `.
const WHOSE: usize = 40;
/// Sessions that one line of a tool's result may be of.
const SHARED: usize = 8;

/// All sessions of a proxy.
#[derive(Debug)]
pub(crate) struct Sessions {
    seed: [u8; 16],
    made: u64,
    clock: u64,
    by_prefix: HashMap<Print, u64>,
    by_hint: HashMap<Print, u64>,
    by_call: HashMap<Print, u64>,
    by_line: HashMap<Print, u64>,
    /// Lines of results; the same file is read in several sessions.
    by_given: HashMap<Print, Vec<u64>>,
    all: HashMap<u64, Session>,
}

#[derive(Debug, Default)]
struct Session {
    name: String,
    used: u64,
    /// The last print is that of the whole conversation.
    prefixes: VecDeque<Print>,
    head: Option<Print>,
    calls: HashSet<Print>,
    /// Lines that the model said, the newest last.
    lines: VecDeque<Print>,
    /// Lines that tools gave it, the newest last.
    given: VecDeque<Print>,
    seen: HashSet<Print>,
    instead: HashMap<Print, String>,
    instead_bytes: usize,
    system: Option<Print>,
    hint: Option<Print>,
}

/// A request's place among the sessions.
#[derive(Debug)]
pub(crate) struct Found {
    key: u64,
    /// The session's name.
    pub(crate) name: String,
    /// Whether it begins with this request.
    pub(crate) new: bool,
    /// The session that it goes on from under another history, as after compaction.
    pub(crate) parent: Option<String>,
    /// Whether it goes on from something that the provider keeps and this proxy has not seen.
    pub(crate) unread: bool,
    /// Whether the system prompt is another than in the session's last request.
    pub(crate) system: bool,
    /// Knows the system prompt.
    pub(crate) prompt: Print,
    /// Pieces that the session has not seen: message and piece, with the print.
    pub(crate) unseen: Vec<(usize, usize, Print)>,
    /// What stands in the place of pieces.
    pub(crate) instead: HashMap<Print, String>,
}

impl Found {
    /// Knows the session again.
    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// The same with other pieces that were not seen.
    pub(crate) fn with_unseen(&self, unseen: Vec<(usize, usize, Print)>) -> Self {
        Self {
            key: self.key,
            name: self.name.clone(),
            new: self.new,
            parent: self.parent.clone(),
            unread: self.unread,
            system: self.system,
            prompt: self.prompt,
            unseen,
            instead: HashMap::new(),
        }
    }
}

impl Sessions {
    /// `seed` makes names that no other proxy has.
    pub(crate) fn new(seed: [u8; 16]) -> Self {
        Self {
            seed,
            made: 0,
            clock: 0,
            by_prefix: HashMap::new(),
            by_hint: HashMap::new(),
            by_call: HashMap::new(),
            by_line: HashMap::new(),
            by_given: HashMap::new(),
            all: HashMap::new(),
        }
    }

    /// Finds or makes the session of a request.
    pub(crate) fn find(&mut self, asked: &Asked<'_>) -> Found {
        self.clock += 1;
        // What goes on from something that is not in it has no beginning to be known by.
        let prefixes = if asked.kept.is_empty() { asked.prefixes() } else { Vec::new() };
        let hint = asked.hint.as_ref().filter(|hint| is_of_one_session(hint));
        let hint = hint.map(|hint| print(hint.as_bytes()));
        let kept: Vec<Print> = asked.kept.iter().map(|id| print_of_kept(id)).collect();
        let from = kept.iter().find_map(|id| self.by_call.get(id).copied());
        let from = from.filter(|key| self.all.contains_key(key));
        let unread = !kept.is_empty() && from.is_none();
        let (goes_on, parent) = match from {
            Some(key) => (Some(key), None),
            None => self.goes_on(asked, &prefixes, hint),
        };
        let new = goes_on.is_none();
        let key = goes_on.unwrap_or_else(|| self.make());
        let system = print(asked.system.as_bytes());
        let used = self.clock;
        let session = self.all.entry(key).or_default();
        session.used = used;
        let changed = !asked.system.is_empty() && session.system != Some(system);
        session.system = Some(system);
        let mut unseen = Vec::new();
        let mut given = Vec::new();
        for (message, said) in asked.messages.iter().enumerate() {
            if said.role == Role::Assistant && !said.pieces.iter().any(is_result) {
                continue;
            }
            for (place, piece) in said.pieces.iter().enumerate() {
                let counts = match piece.what {
                    What::Text => said.role == Role::User,
                    What::Result { .. } => true,
                    What::Call { .. } | What::Other => false,
                };
                if counts && !piece.text.trim().is_empty() {
                    let print = piece.print();
                    if !session.seen.contains(&print) {
                        unseen.push((message, place, print));
                        if is_result(piece) && given.len() < GIVEN {
                            given.extend(lines(&piece.text).take(GIVEN));
                        }
                    }
                }
            }
        }
        let found = Found {
            key,
            name: session.name.clone(),
            new,
            parent,
            unread,
            system: changed,
            prompt: system,
            unseen,
            instead: session.instead.clone(),
        };
        self.note(key, asked, prefixes, hint);
        kept.into_iter().for_each(|id| self.tie(key, id));
        self.was_given(key, given);
        self.forget();
        found
    }

    /// The session that a request goes on with; or else the one that it follows from.
    fn goes_on(
        &self,
        asked: &Asked<'_>,
        prefixes: &[Print],
        hint: Option<Print>,
    ) -> (Option<u64>, Option<String>) {
        let hinted = hint.and_then(|hint| self.by_hint.get(&hint).copied());
        let longest = prefixes.iter().rev().find_map(|prefix| {
            let key = *self.by_prefix.get(prefix)?;
            Some((key, self.all.get(&key)?, *prefix))
        });
        if let Some((key, session, prefix)) = longest {
            if session.head == Some(prefix) {
                return (Some(key), None);
            }
            let knows = calls(asked).filter(|call| session.calls.contains(call)).count();
            if hinted == Some(key) || knows > 0 {
                return (Some(key), None);
            }
        } else if let Some(key) = self.by_calls(asked) {
            return (Some(key), None);
        }
        let from = hinted.or_else(|| self.by_lines(asked));
        let parent = from.and_then(|key| self.all.get(&key)).map(|session| session.name.clone());
        (None, parent)
    }

    /// The session that made a call which stands under a beginning that nobody knows.
    fn by_calls(&self, asked: &Asked<'_>) -> Option<u64> {
        let known: HashSet<u64> =
            calls(asked).filter_map(|call| self.by_call.get(&call).copied()).collect();
        let only = known.iter().next().copied().filter(|_| known.len() == 1)?;
        self.all.contains_key(&only).then_some(only)
    }

    /// The session whose model said what is now told to one: a summary, or a task for a helper. Or else the one
    /// whose tools gave most of what is told as results of tools: a whole history as a text, to be summed up.
    fn by_lines(&self, asked: &Asked<'_>) -> Option<u64> {
        let said = asked.messages.iter().filter(|said| said.role == Role::User);
        let texts = said.flat_map(|said| &said.pieces).filter(|piece| piece.what == What::Text);
        let told: Vec<Line> =
            texts.flat_map(|piece| lines_of_anyone(&piece.text)).take(SEEN).collect();
        let spoken = told.iter().find_map(|line| self.by_line.get(&line.print).copied());
        if let Some(key) = spoken.filter(|key| self.all.contains_key(key)) {
            return Some(key);
        }
        let mut found: HashMap<u64, usize> = HashMap::new();
        for line in told.iter().filter(|line| line.given) {
            let known = self.by_given.get(&line.print).into_iter().flatten();
            known.for_each(|key| *found.entry(*key).or_default() += 1);
        }
        let found = found.into_iter().filter(|(key, _)| self.all.contains_key(key));
        found.max_by_key(|(key, lines)| (*lines, *key)).map(|(key, _)| key)
    }

    /// Remembers what the model said in a session.
    pub(crate) fn spoke(&mut self, key: u64, spoken: &str) {
        let Some(session) = self.all.get_mut(&key) else { return };
        for line in lines(spoken) {
            if self.by_line.insert(line, key) != Some(key) {
                session.lines.push_back(line);
            }
            if session.lines.len() > LINES
                && let Some(old) = session.lines.pop_front()
                && self.by_line.get(&old) == Some(&key)
            {
                self.by_line.remove(&old);
            }
        }
    }

    /// Remembers what tools gave in a session.
    fn was_given(&mut self, key: u64, lines: Vec<Print>) {
        let Some(session) = self.all.get_mut(&key) else { return };
        for line in lines {
            let known = self.by_given.entry(line).or_default();
            if known.contains(&key) || known.len() >= SHARED {
                continue;
            }
            known.push(key);
            session.given.push_back(line);
            if session.given.len() > GIVEN
                && let Some(old) = session.given.pop_front()
            {
                forget_line(&mut self.by_given, &old, key);
            }
        }
    }

    /// Remembers a call that the model made in a session, before a client can repeat it.
    pub(crate) fn called(&mut self, key: u64, id: &str) {
        if let Some(call) = print_of_call(id) {
            self.tie(key, call);
        }
    }

    /// Remembers a response of a session that the provider keeps.
    pub(crate) fn answered(&mut self, key: u64, id: &str) {
        self.tie(key, print_of_kept(id));
    }

    /// The session of a response that the provider keeps; a new one where nobody knows it.
    pub(crate) fn of_answer(&mut self, id: &str) -> Found {
        self.clock += 1;
        let known = self.by_call.get(&print_of_kept(id)).copied();
        let known = known.filter(|key| self.all.contains_key(key));
        let key = known.unwrap_or_else(|| self.make());
        let used = self.clock;
        let session = self.all.entry(key).or_default();
        session.used = used;
        let found = Found {
            key,
            name: session.name.clone(),
            new: known.is_none(),
            parent: None,
            unread: known.is_none(),
            system: false,
            prompt: session.system.unwrap_or_default(),
            unseen: Vec::new(),
            instead: HashMap::new(),
        };
        self.answered(key, id);
        self.forget();
        found
    }

    /// Knows a session by something that only it has. The newest counts; what is too much is forgotten,
    /// and then not known.
    fn tie(&mut self, key: u64, tie: Print) {
        let Some(session) = self.all.get_mut(&key) else { return };
        if session.calls.len() < SEEN && session.calls.insert(tie) {
            self.by_call.insert(tie, key);
        }
    }

    fn make(&mut self) -> u64 {
        self.made += 1;
        let mut hash = Sha256::new();
        hash.update(self.seed);
        hash.update(self.made.to_le_bytes());
        let name: String = hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        self.all.insert(self.made, Session { name, ..Session::default() });
        self.made
    }

    fn note(&mut self, key: u64, asked: &Asked<'_>, prefixes: Vec<Print>, hint: Option<Print>) {
        let Some(session) = self.all.get_mut(&key) else { return };
        session.head = prefixes.last().copied().or(session.head);
        let from = prefixes.len().saturating_sub(PREFIXES);
        for prefix in &prefixes[from..] {
            // Who shares a beginning with another is found by what comes after.
            if self.by_prefix.insert(*prefix, key) != Some(key) {
                session.prefixes.push_back(*prefix);
            }
        }
        while session.prefixes.len() > PREFIXES {
            let Some(old) = session.prefixes.pop_front() else { break };
            if self.by_prefix.get(&old) == Some(&key) {
                self.by_prefix.remove(&old);
            }
        }
        if let Some(hint) = hint {
            session.hint = Some(hint);
            self.by_hint.insert(hint, key);
        }
        calls(asked).for_each(|call| self.tie(key, call));
    }

    /// Notes that pieces were judged, and what stands in their place.
    pub(crate) fn judged(&mut self, found: &Found, instead: &HashMap<Print, String>) {
        let Some(session) = self.all.get_mut(&found.key) else { return };
        if session.seen.len() + found.unseen.len() > SEEN {
            // They are judged once more, that is all.
            session.seen.clear();
        }
        session.seen.extend(found.unseen.iter().map(|(_, _, print)| *print));
        for (print, text) in instead {
            if session.instead_bytes + text.len() > INSTEAD {
                // What is not remembered is judged again instead.
                session.seen.remove(print);
                continue;
            }
            session.instead_bytes += text.len();
            session.instead.insert(*print, text.clone());
        }
    }

    fn forget(&mut self) {
        while self.all.len() > SESSIONS {
            let oldest =
                self.all.iter().min_by_key(|(_, session)| session.used).map(|(key, _)| *key);
            let Some(session) = oldest.and_then(|key| self.all.remove(&key)) else { return };
            let key = oldest.unwrap_or_default();
            for prefix in session.prefixes {
                if self.by_prefix.get(&prefix) == Some(&key) {
                    self.by_prefix.remove(&prefix);
                }
            }
            for call in session.calls {
                if self.by_call.get(&call) == Some(&key) {
                    self.by_call.remove(&call);
                }
            }
            for line in session.given {
                forget_line(&mut self.by_given, &line, key);
            }
            for line in session.lines {
                if self.by_line.get(&line) == Some(&key) {
                    self.by_line.remove(&line);
                }
            }
            if let Some(hint) = session.hint
                && self.by_hint.get(&hint) == Some(&key)
            {
                self.by_hint.remove(&hint);
            }
        }
    }
}

/// Whether a client's name looks like that of one conversation, and not of a user or a program.
fn is_of_one_session(hint: &str) -> bool {
    let digits = hint.bytes().filter(u8::is_ascii_digit).count();
    hint.contains("session") || hint.len() >= 20 && digits >= 6
}

fn is_result(piece: &Piece<'_>) -> bool {
    matches!(piece.what, What::Result { .. })
}

fn calls<'a>(asked: &'a Asked<'_>) -> impl Iterator<Item = Print> + 'a {
    asked.messages.iter().flat_map(|said| &said.pieces).filter_map(|piece| match &piece.what {
        // Some wires have no ids but names, which every session knows.
        What::Call { id } if *id != piece.text => print_of_call(id),
        // Where the provider keeps the history, only the answer is there.
        What::Result { id, tool, .. } if tool.as_ref() != Some(id) => print_of_call(id),
        _ => None,
    })
}

/// What knows a call again. Clients leave out signs that another model's API would not take (`call_1`, `call1`).
fn print_of_call(id: &str) -> Option<Print> {
    let id: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
    (id.len() >= CALL).then(|| print(id.as_bytes()))
}

/// What knows a response again that the provider keeps, or a conversation.
fn print_of_kept(id: &str) -> Print {
    print(format!("kept {id}").as_bytes())
}

/// The lines of a text that are long enough to know them again.
fn lines(text: &str) -> impl Iterator<Item = Print> + '_ {
    let lines = text.lines().map(str::trim).filter(|line| line.len() >= LINE);
    lines.map(|line| print(line.as_bytes()))
}

/// A line of a text.
struct Line {
    print: Print,
    /// Whether the text says that a tool gave it.
    given: bool,
}

/// The same, and each once more without the word in front that says whose it is (`[Tool result]: `).
fn lines_of_anyone(text: &str) -> impl Iterator<Item = Line> + '_ {
    let mut given = false;
    text.lines().map(str::trim).flat_map(move |line| {
        let whose = line.split_once(": ").or_else(|| line.split_once(':'));
        let whose = whose.filter(|(whose, _)| whose.len() < WHOSE);
        if let Some((whose, _)) = whose.filter(|(whose, _)| whose.starts_with('[')) {
            let whose = whose.to_ascii_lowercase();
            given = whose.contains("tool") || whose.contains("result");
        }
        let rest = whose.map(|(_, rest)| rest.trim());
        let long = [Some(line), rest].into_iter().flatten().filter(|line| line.len() >= LINE);
        long.map(move |line| Line { print: print(line.as_bytes()), given }).collect::<Vec<_>>()
    })
}

fn forget_line(lines: &mut HashMap<Print, Vec<u64>>, line: &Print, key: u64) {
    if let Some(known) = lines.get_mut(line) {
        known.retain(|other| *other != key);
        if known.is_empty() {
            lines.remove(line);
        }
    }
}

fn print(bytes: &[u8]) -> Print {
    let mut print = [0; 16];
    print.copy_from_slice(&Sha256::digest(bytes)[..16]);
    print
}

#[cfg(test)]
mod tests {
    use super::super::wire::Wire;
    use super::*;

    fn find(sessions: &mut Sessions, messages: &str) -> Found {
        let body = format!("{{\"system\":\"s\",\"messages\":[{messages}]}}");
        let asked = Asked::read(Wire::Anthropic, body.as_bytes()).unwrap();
        let found = sessions.find(&asked);
        sessions.judged(&found, &HashMap::new());
        found
    }

    const HELLO: &str = r#"{"role":"user","content":"hello"}"#;
    const MARKED: &str = r#"{"role":"user","content":[{"type":"text","text":"hello","cache_control":{"type":"ephemeral"}}]}"#;
    const REPLY: &str = r#"{"role":"assistant","content":"hi there"}"#;
    const OTHER: &str = r#"{"role":"assistant","content":"good day"}"#;
    const MORE: &str = r#"{"role":"user","content":"more"}"#;

    #[test]
    fn a_conversation_goes_on() {
        let mut sessions = Sessions::new([1; 16]);
        let first = find(&mut sessions, MARKED);
        assert!(first.new && first.unseen.len() == 1 && first.system);
        let second = find(&mut sessions, &format!("{HELLO},{REPLY},{MORE}"));
        assert_eq!((second.new, &second.name), (false, &first.name));
        assert_eq!(second.unseen.len(), 1, "only what is new");
        assert!(!second.system);
        // The same again is the same session.
        let again = find(&mut sessions, &format!("{HELLO},{REPLY},{MORE}"));
        assert_eq!((again.name, again.unseen.len()), (first.name, 0));
    }

    #[test]
    fn two_that_begin_alike_are_told_apart() {
        let mut sessions = Sessions::new([1; 16]);
        let one = find(&mut sessions, HELLO);
        let one_more = find(&mut sessions, &format!("{HELLO},{REPLY},{MORE}"));
        let other = find(&mut sessions, &format!("{HELLO},{OTHER},{MORE}"));
        assert_eq!(one.name, one_more.name);
        assert_ne!(one.name, other.name);
        // The new one is told all that it holds.
        assert_eq!(other.unseen.len(), 2);
        let one_end = find(&mut sessions, &format!("{HELLO},{REPLY},{MORE},{REPLY},{MORE}"));
        assert_eq!(one_end.name, one.name);
    }

    #[test]
    fn tool_calls_tie_a_rewritten_history_to_its_session() {
        let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"toolu_0123456789","name":"b","input":{}}]}"#;
        let result = |text: &str| {
            format!(
                r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_0123456789","content":"{text}"}}]}}"#
            )
        };
        let mut sessions = Sessions::new([1; 16]);
        let one = find(&mut sessions, &format!("{HELLO},{call},{}", result("long text")));
        let cleared =
            find(&mut sessions, &format!("{HELLO},{call},{},{REPLY},{MORE}", result("[gone]")));
        assert_eq!(one.name, cleared.name);
        assert_eq!(cleared.unseen.len(), 2, "the changed result is judged again");
    }

    #[test]
    fn a_compacted_conversation_follows_from_its_own() {
        let ask = |sessions: &mut Sessions, user: &str, text: &str| {
            let body = format!(
                r#"{{"metadata":{{"user_id":"{user}"}},"messages":[{{"role":"user","content":"{text}"}}]}}"#
            );
            sessions.find(&Asked::read(Wire::Anthropic, body.as_bytes()).unwrap())
        };
        let mut sessions = Sessions::new([1; 16]);
        let one = ask(&mut sessions, "user_1_session_ab12", "hello");
        let two = ask(&mut sessions, "user_1_session_ab12", "This goes on from before: …");
        assert_eq!((two.new, two.parent), (true, Some(one.name)));
        // The name of a user ties nothing together.
        ask(&mut sessions, "user-7", "hello");
        assert_eq!(ask(&mut sessions, "user-7", "another matter").parent, None);
    }

    #[test]
    fn a_summary_and_a_task_follow_from_the_session_that_wrote_them() {
        let mut sessions = Sessions::new([1; 16]);
        let one = find(&mut sessions, HELLO);
        sessions.spoke(one.key(), "Berth nine was read from the register of the harbour.\nShort.");
        let text = "Summary:\\n  Berth nine was read from the register of the harbour.\\nGo on.";
        let two = find(&mut sessions, &format!(r#"{{"role":"user","content":"{text}"}}"#));
        assert_eq!((two.new, two.parent), (true, Some(one.name)));
        let other = find(&mut sessions, r#"{"role":"user","content":"Short."}"#);
        assert_eq!((other.new, other.parent), (true, None));
        for number in 0..10_000 {
            let line = format!("This is line {number} of a very long reply.\n");
            sessions.spoke(one.key, &line);
        }
        assert!(sessions.by_line.len() <= LINES);
    }

    #[test]
    fn a_history_that_is_told_as_a_text_follows_from_the_session_that_it_is_of() {
        let mut sessions = Sessions::new([1; 16]);
        let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"toolu_0123456789","name":"b","input":{}}]}"#;
        let result = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0123456789","content":"Berth nine was read from the register of the harbour.\nShort."}]}"#;
        let one = find(&mut sessions, &format!("{HELLO},{call},{result}"));
        let text =
            "Sum this up.\\n[Tool result]: Berth nine was read from the register of the harbour.";
        let asked = format!(r#"{{"role":"user","content":"{text}"}}"#);
        let sum = find(&mut sessions, &asked);
        assert_eq!((sum.new, sum.parent.as_deref()), (true, Some(one.name.as_str())));
        // And what goes on from the summary follows from that.
        sessions.spoke(sum.key(), "In short, berth nine stands in the register.");
        let text = r#"{"role":"user","content":"In short, berth nine stands in the register."}"#;
        assert_eq!(find(&mut sessions, text).parent, Some(sum.name));
        for number in 0..2_000 {
            let result = result.replace("Berth", &format!("Berth number {number}"));
            find(&mut sessions, &format!("{HELLO},{call},{result}"));
        }
        assert!(sessions.by_given.len() <= GIVEN);
    }

    #[test]
    fn of_sessions_that_read_the_same_the_one_that_read_more_is_meant() {
        const FILE: &str = "This is a line of a file that everybody reads.";
        const PAGE: &str = "This is a line of a page that one has read.";
        let result = |id: &str, text: &str| {
            format!(
                r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"toolu_{id}","name":"b","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{id}","content":"{text}"}}]}}"#
            )
        };
        let mut sessions = Sessions::new([1; 16]);
        let one = find(
            &mut sessions,
            &format!("{HELLO},{}", result("0123456789", &format!("{PAGE}\\n{FILE}"))),
        );
        find(&mut sessions, &format!("{MORE},{}", result("9876543210", FILE)));
        let text = format!("Sum this up.\\n[Tool result]: short\\n{FILE}\\n{PAGE}\\n[User]: so");
        let sum = find(&mut sessions, &format!(r#"{{"role":"user","content":"{text}"}}"#));
        assert_eq!(sum.parent, Some(one.name));
        // What a person, or an agent's own settings, say without that word is nobody's.
        let text = format!("Look at this.\\n[User]: hm\\n{FILE}\\n{PAGE}");
        let own = find(&mut sessions, &format!(r#"{{"role":"user","content":"{text}"}}"#));
        assert_eq!((own.new, own.parent), (true, None));
    }

    #[test]
    fn a_call_of_the_reply_ties_what_follows_to_its_session() {
        let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"toolu_0123456789","name":"b","input":{}}]}"#;
        let result = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0123456789","content":"x"}]}"#;
        let moving = r#"{"role":"user","content":"where I am"}"#;
        let mut sessions = Sessions::new([1; 16]);
        let one = find(&mut sessions, &format!("{HELLO},{moving}"));
        sessions.called(one.key(), "toolu-01_23456789");
        // What stood last stands last again.
        let two = find(&mut sessions, &format!("{HELLO},{call},{result},{moving}"));
        assert_eq!((two.new, two.name), (false, one.name));
    }

    #[test]
    fn calls_tie_what_is_left_of_a_history_to_its_session() {
        let call = r#"{"role":"assistant","content":[{"type":"tool_use","id":"toolu_0123456789","name":"b","input":{}}]}"#;
        let result = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_0123456789","content":"x"}]}"#;
        let mut sessions = Sessions::new([1; 16]);
        let one = find(&mut sessions, &format!("{HELLO},{call},{result}"));
        let rest = find(&mut sessions, &format!("{MORE},{call},{result}"));
        assert_eq!((rest.new, rest.name), (false, one.name));
    }

    #[test]
    fn what_the_provider_keeps_ties_a_request_to_its_session() {
        let ask = |sessions: &mut Sessions, more: &str, input: &str| {
            let body = format!(r#"{{"model":"m"{more},"input":[{input}]}}"#);
            let found = sessions.find(&Asked::read(Wire::Responses, body.as_bytes()).unwrap());
            sessions.judged(&found, &HashMap::new());
            found
        };
        let after = |id: &str| format!(r#","previous_response_id":"{id}""#);
        let said = |text: &str| format!(r#"{{"type":"message","role":"user","content":"{text}"}}"#);
        let gave = |id: &str, text: &str| {
            format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"{text}"}}"#)
        };
        let mut sessions = Sessions::new([1; 16]);
        let one = ask(&mut sessions, "", &said("hello"));
        assert!(!one.unread);
        sessions.answered(one.key(), "resp_1");
        let two = ask(&mut sessions, &after("resp_1"), &said("more"));
        assert_eq!((two.new, &two.name, two.unread), (false, &one.name, false));
        // By the call that is answered, where the response is not known; what was kept is unread then.
        sessions.called(two.key(), "call_0123456789");
        let three = ask(&mut sessions, &after("resp_x"), &gave("call_0123456789", "so"));
        assert_eq!((three.new, &three.name, three.unread), (false, &one.name, true));
        // Neither known: a session of its own, of which something is not known.
        let four = ask(&mut sessions, &after("resp_y"), &gave("call_9876543210", "so"));
        assert!(four.new && four.unread);
        let again = ask(&mut sessions, &after("resp_y"), &said("and"));
        assert_eq!((again.name, again.unread), (four.name, false));
        let stored = sessions.of_answer("resp_1");
        assert_eq!((&stored.name, stored.unread), (&one.name, false));
        assert!(sessions.of_answer("resp_z").unread);
        let conversation = r#","conversation":{"id":"conv_1"}"#;
        let five = ask(&mut sessions, conversation, &said("hello"));
        assert_eq!(ask(&mut sessions, conversation, &said("go on")).name, five.name);
        for number in 0..2 * SEEN {
            sessions.answered(one.key(), &format!("resp_{number}"));
        }
        assert!(sessions.all[&one.key()].calls.len() <= SEEN);
    }

    #[test]
    fn memory_is_bounded() {
        let mut sessions = Sessions::new([1; 16]);
        for number in 0..SESSIONS + 50 {
            find(&mut sessions, &format!("{{\"role\":\"user\",\"content\":\"q{number}\"}}"));
        }
        assert!(sessions.all.len() <= SESSIONS && sessions.by_prefix.len() <= SESSIONS);
    }
}
