//! What a session has seen: taint, what it came from, and what may be repeated of it.
//!
//! All of it is told by the session's records, so that it is found again after a restart.

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use wardkeep_detect::finding::{Scan, Verdict as ScanVerdict};
use wardkeep_detect::leak::OutputGuard;
use wardkeep_detect::scan::Detector;
use wardkeep_evidence::hash::RecordId;
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{Payload, Principal, Record, RecordType};
use wardkeep_evidence::time::Timestamp;
use wardkeep_guard::conversation::{Conversation, Signal};
use wardkeep_guard::overlap::{Sketch, Sketches};
use wardkeep_guard::surface::{Act, Surface};
use wardkeep_guard::taint::Taint;

use super::begin::PolicyFiles;
use super::flood::Flood;
use super::seen::Bound;
use super::taints::known_of;
use super::{Monitor, MonitorError, Result, Who, held};
use crate::index::Filter;
use crate::journal::parse_line;

/// Sessions that are kept in memory; others are read again when they go on.
const MOST: usize = 1024;
/// Records of a session that are read when it goes on.
const READ: u32 = 4096;
/// Sessions that one may descend from, near or far.
const ANCESTORS: usize = 32;
/// Sessions that descend from one and are still listened to; the oldest are let go.
const CHILDREN: usize = 64;
/// Workspaces of one session that are told apart.
const WORKSPACES: usize = 8;
/// Hashes of texts that all sessions in memory hold together: some hundred megabytes.
pub(super) const HASHES: usize = 1 << 23;
/// Texts that a session can hand on to those that descend from it.
const KEPT: usize = 4096;
/// Hashes of those texts.
const OF_SESSION: usize = 1 << 20;
/// Seconds after which denials may call for a way back again.
const CALL_SECONDS: u64 = 120;

/// Hosts of attacks that a session keeps.
const HOSTS: usize = 1024;
/// Calls of tools whose results may still come.
const CALLS: usize = 64;
/// Requests that left for those calls.
const REQUESTS: usize = 256;

/// A scan that found nothing.
const NOTHING: Scan = Scan { verdict: ScanVerdict::Clean, score: 0.0, findings: Vec::new() };

/// A session in memory.
#[derive(Debug)]
pub(super) struct Session {
    /// Taint of everything that it has seen.
    pub(super) ambient: Taint,
    /// The last record that entered the model's context.
    pub(super) context: Option<RecordId>,
    /// The first of those that looked like an attack.
    pub(super) suspect: Option<RecordId>,
    pub(super) flood: Flood,
    /// The newest record that sums denials up.
    pub(super) summary: Option<RecordId>,
    sketches: Sketches,
    // The same, record by record, for those that descend from it.
    seen: Vec<(RecordId, Taint, Arc<Sketch>)>,
    // Hashes in those.
    hashes: usize,
    // Taint of what was seen and cannot be recognised.
    unknown: Taint,
    // Where it has worked.
    workspaces: Vec<PathBuf>,
    // Those that descend from it, and how many of their texts it knows.
    children: Vec<(String, usize)>,
    conversation: Conversation,
    // While it is read from its records.
    signals: Vec<Signal>,
    guard: Arc<OutputGuard>,
    // What it weighs, in hashes.
    guard_weight: usize,
    /// The profiles that it was made of, by their names.
    pub(super) profiles: Vec<String>,
    /// The registration of its prompt.
    pub(super) prompt: Option<RecordId>,
    /// The workspace of its first question.
    pub(super) workspace: Option<PathBuf>,
    /// Who acts in it, where that is known.
    pub(super) bound: Option<Bound>,
    /// When something last happened in it, in seconds since 1970.
    pub(super) used: i64,
    /// Whether it has ended since it last began.
    pub(super) ended: bool,
    /// Whether a door has begun it; if so, whether it was to do nothing.
    pub(super) begun: Option<bool>,
    /// The files of the policy as they were when it was last verified for it.
    pub(super) policy: Option<PolicyFiles>,
    /// How often it was kept from writing something protected.
    pub(super) blocked: u32,
    /// What it was told is wrong with agents' hooks.
    pub(super) unprotected: Vec<String>,
    // Hosts that something named which looked like an attack.
    hosts: Vec<(RecordId, String)>,
    // The newest calls of tools: the tool, what it was given, the record.
    called_for: VecDeque<(String, [u8; 32], RecordId)>,
    // What left for a call: the call, the request.
    requested: VecDeque<(RecordId, RecordId)>,
    /// Up to which alert of this process it was told.
    pub(super) told: u64,
    // When denials last called for a way back, and whether for one by itself.
    called: HashMap<(Principal, bool), i64>,
}

impl Session {
    /// One that has seen nothing.
    pub(super) fn new(key: &[u8; 32]) -> Self {
        Self {
            ambient: Taint::NONE,
            context: None,
            suspect: None,
            flood: Flood::default(),
            summary: None,
            sketches: Sketches::new(key),
            seen: Vec::new(),
            hashes: 0,
            unknown: Taint::NONE,
            workspaces: Vec::new(),
            children: Vec::new(),
            conversation: Conversation::default(),
            signals: Vec::new(),
            guard: Arc::new(OutputGuard::new()),
            guard_weight: 0,
            profiles: Vec::new(),
            prompt: None,
            workspace: None,
            bound: None,
            used: 0,
            ended: false,
            begun: None,
            policy: None,
            blocked: 0,
            unprotected: Vec::new(),
            hosts: Vec::new(),
            called_for: VecDeque::new(),
            requested: VecDeque::new(),
            told: 0,
            called: HashMap::new(),
        }
    }
}

/// The sessions in memory, the one used last at the end.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    open: HashMap<String, (u64, Arc<Mutex<Session>>)>,
    used: u64,
    // Hashes that were added since they were last weighed.
    grown: usize,
}

impl Sessions {
    fn get(&mut self, name: &str) -> Option<Arc<Mutex<Session>>> {
        self.used += 1;
        let (used, session) = self.open.get_mut(name)?;
        *used = self.used;
        Some(Arc::clone(session))
    }

    /// Adds one; gives back those that were let go.
    fn add(&mut self, name: &str, session: Arc<Mutex<Session>>) -> Vec<(String, Session)> {
        self.used += 1;
        self.open.insert(name.to_owned(), (self.used, session));
        if self.open.len() > MOST { self.let_go() } else { self.grown(HASHES / 256) }
    }

    /// Lets go those that were used longest ago, as long as all together are too many or too large.
    fn let_go(&mut self) -> Vec<(String, Session)> {
        let mut gone = Vec::new();
        while self.open.len() > MOST || self.weight() > HASHES {
            let idle = self.open.iter().filter(|(_, (_, session))| Arc::strong_count(session) == 1);
            let oldest = idle.min_by_key(|(_, (used, _))| *used).map(|(name, _)| name.clone());
            let Some((oldest, (_, session))) =
                oldest.and_then(|name| self.open.remove_entry(&name))
            else {
                break;
            };
            let session = Arc::into_inner(session).and_then(|session| session.into_inner().ok());
            gone.extend(session.map(|session| (oldest, session)));
        }
        gone
    }

    /// Something of a size was added to one of them; gives back those that were let go for it.
    fn grown(&mut self, hashes: usize) -> Vec<(String, Session)> {
        self.grown += hashes;
        if self.grown < HASHES / 16 {
            return Vec::new();
        }
        self.grown = 0;
        self.let_go()
    }

    /// What those that nobody uses at this moment take.
    pub(super) fn weight(&self) -> usize {
        let sessions = self.open.values().filter_map(|(_, session)| session.try_lock().ok());
        sessions.map(|session| session.weight()).sum()
    }

    /// Has one read from its records when it goes on.
    pub(super) fn forget(&mut self, name: &str) {
        self.open.remove(name);
    }

    pub(super) fn drain(&mut self) -> impl Iterator<Item = (String, Arc<Mutex<Session>>)> {
        self.open.drain().map(|(name, (_, session))| (name, session))
    }
}

impl Session {
    /// It becomes another's: where it is and how it began was said by those that it belonged to. What it has
    /// seen stays, so that nobody is rid of it in that way.
    pub(super) fn changes_hands(&mut self) {
        self.workspace = None;
        self.policy = None;
        self.begun = None;
        self.blocked = 0;
        self.unprotected.clear();
    }

    /// Something entered the model's context.
    pub(super) fn entered(&mut self, record: RecordId, taint: Taint, sketch: Option<Sketch>) {
        self.ambient |= taint;
        self.context = Some(record);
        if taint.intersects(Taint::INJECTION_SUSPECT) && self.suspect.is_none() {
            self.suspect = Some(record);
        }
        if let Some(sketch) = sketch {
            self.keep(record, taint, Arc::new(sketch));
        }
    }

    fn keep(&mut self, record: RecordId, taint: Taint, sketch: Arc<Sketch>) {
        // What many texts have in common is held once to compare, and by each to be handed on.
        let fits = self.seen.len() < KEPT && self.hashes + sketch.len() <= OF_SESSION;
        if self.sketches.add(record, taint, &sketch) && fits {
            self.hashes += sketch.len();
            self.seen.push((record, taint, sketch));
        } else {
            self.unknown |= taint;
        }
    }

    /// What a text repeats of what was seen, beyond what stood in its place before.
    pub(super) fn repeats(&self, text: &str, before: &str) -> Vec<(RecordId, Taint)> {
        let found = self.sketches.overlaps_added(text, before);
        found.into_iter().map(|overlap| (overlap.record, overlap.taint)).collect()
    }

    /// Taint of what was seen and cannot be recognised: anything may repeat it.
    pub(super) fn unrecognised(&self) -> Taint {
        self.unknown | self.sketches.forgotten()
    }

    /// What was seen, and cannot be compared: anything may repeat it.
    pub(super) fn missed(&mut self, taint: Taint) {
        self.unknown |= taint;
    }

    /// Where it works and has worked. An agent that goes to another folder leaves none of them.
    pub(super) fn works_in(&mut self, workspace: &Path) -> Vec<PathBuf> {
        if self.workspaces.len() < WORKSPACES && !self.workspaces.iter().any(|one| one == workspace)
        {
            self.workspaces.push(workspace.to_owned());
        }
        self.workspaces.clone()
    }

    /// What it takes in memory, in hashes.
    fn weight(&self) -> usize {
        self.hashes + self.sketches.len() + self.guard_weight
    }

    /// Whether denials may call for a way back again: once within some time for each principal.
    pub(super) fn calls(&mut self, principal: Principal, automatic: bool, now: i64) -> bool {
        let last = self.called.insert((principal, automatic), now);
        match last {
            Some(last) if now.abs_diff(last) < CALL_SECONDS => {
                self.called.insert((principal, automatic), last);
                false
            }
            _ => true,
        }
    }

    /// A message of the conversation: what it adds up to with those before it.
    pub(super) fn heard(
        &mut self,
        text: &str,
        scan: &mut Scan,
        now: Timestamp,
        detector: &Detector,
    ) -> (&'static str, Value<'static>) {
        let now = u64::try_from(now.unix()).unwrap_or(0);
        let turn = self.conversation.receive(now, text, scan, detector);
        *scan = turn.complete(std::mem::replace(scan, NOTHING));
        ("signal", Value::from(turn.signal.to_string()))
    }

    pub(super) fn guard(&self) -> Arc<OutputGuard> {
        Arc::clone(&self.guard)
    }

    pub(super) fn set_guard(&mut self, guard: OutputGuard, weight: usize, record: RecordId) {
        self.guard = Arc::new(guard);
        self.guard_weight = weight;
        self.prompt = Some(record);
    }

    /// Another session descends from it, whose results will come back to it.
    pub(super) fn begets(&mut self, child: &str, known: usize) {
        if self.children.iter().any(|(name, _)| name == child) {
            return;
        }
        if self.children.len() == CHILDREN {
            self.children.remove(0);
        }
        self.children.push((child.to_owned(), known));
    }

    /// How many texts it could hand on.
    pub(super) fn texts(&self) -> usize {
        self.seen.len()
    }

    pub(super) fn children(&self) -> Vec<(String, usize)> {
        self.children.clone()
    }

    /// What it has seen since it had so many texts, for those that it descends from; nothing if
    /// that is nothing.
    pub(super) fn news(
        &self,
        known: usize,
        ambient: Taint,
        key: &[u8; 32],
    ) -> Option<(Self, usize)> {
        let more = self.seen.get(known..).unwrap_or_default();
        if more.is_empty() && ambient.contains(self.ambient) {
            return None;
        }
        let mut news = Self::new(key);
        news.context = self.context;
        news.ambient = self.ambient;
        news.suspect = self.suspect;
        news.unknown = self.unrecognised();
        news.hosts.clone_from(&self.hosts);
        for (record, taint, sketch) in more {
            news.keep(*record, *taint, Arc::clone(sketch));
        }
        Some((news, self.seen.len()))
    }

    /// Takes over what one that descends from it has seen.
    pub(super) fn hears_of(&mut self, child: &str, news: &Self, known: usize) {
        // It has a context of its own, or none.
        let context = self.context;
        self.inherit(news);
        self.context = context;
        if let Some((_, count)) = self.children.iter_mut().find(|(name, _)| name == child) {
            *count = known;
        }
    }

    /// Takes over what another session has seen.
    pub(super) fn inherit(&mut self, other: &Self) {
        self.ambient |= other.ambient;
        self.context = self.context.or(other.context);
        self.suspect = self.suspect.or(other.suspect);
        self.unknown |= other.unrecognised();
        for workspace in &other.workspaces {
            self.works_in(workspace);
        }
        for (record, host) in &other.hosts {
            self.names_host(*record, host);
        }
        let known: HashSet<RecordId> = self.seen.iter().map(|(record, ..)| *record).collect();
        for (record, taint, sketch) in &other.seen {
            if known.contains(record) {
                continue;
            }
            self.keep(*record, *taint, Arc::clone(sketch));
        }
    }

    /// Something that looked like an attack names a host.
    pub(super) fn names_host(&mut self, record: RecordId, host: &str) {
        if self.hosts.len() < HOSTS && !self.hosts.iter().any(|(_, known)| known == host) {
            self.hosts.push((record, host.to_owned()));
        }
    }

    /// What looked like an attack and named this host.
    pub(super) fn named_by(&self, host: &str) -> Option<RecordId> {
        let is = |known: &str| {
            host == known || host.strip_suffix(known).is_some_and(|front| front.ends_with('.'))
        };
        self.hosts.iter().find(|(_, known)| is(known)).map(|(record, _)| *record)
    }

    /// A tool was called, and may give something back.
    pub(super) fn calls_tool(&mut self, tool: &str, given: &[u8; 32], record: RecordId) {
        if self.called_for.len() >= CALLS {
            self.called_for.pop_front();
        }
        self.called_for.push_back((tool.to_owned(), *given, record));
    }

    /// The newest call of a tool that was given this.
    pub(super) fn call_of(&self, tool: &str, given: &[u8; 32]) -> Option<RecordId> {
        let same = |(name, of, _): &&(String, [u8; 32], RecordId)| name == tool && of == given;
        self.called_for.iter().rev().find(same).map(|(.., record)| *record)
    }

    /// A request left for a call of a tool.
    pub(super) fn sends_for(&mut self, call: RecordId, request: RecordId) {
        if self.requested.len() >= REQUESTS {
            self.requested.pop_front();
        }
        self.requested.push_back((call, request));
    }

    /// What left for a call, the first one first.
    pub(super) fn requests_of(&self, call: RecordId) -> impl Iterator<Item = RecordId> {
        let own = self.requested.iter().filter(move |(of, _)| *of == call);
        own.map(|(_, request)| *request)
    }

    /// Takes a record of its past in.
    fn recall(&mut self, record: &Record<'_>, key_stays: bool) {
        let Payload::Inline(Value::Object(content)) = &record.payload else { return };
        let text = |key: &str| content.get(key).and_then(Value::as_str);
        let known = known_of(record);
        if let Some(workspace) = record.meta_str("workspace").filter(|path| !path.is_empty()) {
            self.works_in(Path::new(workspace));
        }
        if let Some(bound) = text("sight").map(Bound::from_record) {
            if self.bound.as_ref().is_some_and(|before| *before != bound) {
                self.changes_hands();
            }
            self.bound = Some(bound);
        }
        if self.workspace.is_none() {
            let place = record.meta_str("workspace").filter(|place| !place.is_empty());
            self.workspace = place.map(PathBuf::from);
        }
        if let Some(time) = record.timestamp().and_then(|text| text.parse::<Timestamp>().ok()) {
            self.used = time.unix();
        }
        self.ended = match text("kind") {
            Some("session-end") => true,
            _ => self.ended && record.kind != RecordType::SessionStart,
        };
        if record.kind == RecordType::SessionStart
            && let Some(Value::Bool(aborted)) = content.get("aborted")
        {
            self.begun = Some(*aborted);
        }
        // A beginning that was not let pass: whatever began before it is over.
        if record.kind == RecordType::GuardDecision
            && text("surface") == Some(Surface::SandboxCompliance.as_str())
            && text("act") == Some(Act::Start.as_str())
        {
            self.begun = None;
        }
        match text("kind") {
            Some("decision" | "trial") => {}
            Some("descent") => {
                text("child").into_iter().for_each(|child| self.begets(child, 0));
                return;
            }
            Some("prompt") => {
                let all = strings(content, "with").chain(text("profile")).map(str::to_owned);
                self.profiles = all.collect();
                self.prompt = Some(record.id);
                return;
            }
            _ => return,
        }
        self.ambient |= Taint::from_names(strings(content, "ambient"));
        if self.context.is_none() {
            self.context = text("context").and_then(RecordId::from_hex);
        }
        if let Some(signal) = text("signal").and_then(|text| text.parse::<Signal>().ok()) {
            self.signals.push(signal);
        }
        if record.kind == RecordType::ToolCall
            && let Some(tool) = text("subject")
            && let Some(Value::Object(given)) = content.get("content")
            && let Some(given) = given.get("sha256").and_then(Value::as_str)
            && let Some(given) = RecordId::from_hex(given)
        {
            self.calls_tool(tool, &given.0, record.id);
        }
        if record.kind == RecordType::NetworkRequest
            && let Some(call) = text("call").and_then(RecordId::from_hex)
        {
            self.sends_for(call, record.id);
        }
        if !enters(record.kind, text("act")) {
            return;
        }
        for host in strings(content, "hosts").take(HOSTS) {
            self.names_host(record.id, host);
        }
        let sketch = text("sketch").and_then(|text| Sketch::from_base64(text).ok());
        let sketch = sketch.filter(|_| key_stays);
        // What cannot be compared may be repeated by anything.
        let shown = content.get("content").is_some() || content.get("shown").is_some();
        if sketch.is_none() && shown {
            self.unknown |= known.taint;
        }
        self.entered(record.id, known.taint, sketch);
    }

    /// Ends a recollection.
    fn recalled(&mut self) {
        self.conversation = Conversation::from_signals(std::mem::take(&mut self.signals));
    }
}

/// Whether what a record tells of entered the model's context.
fn enters(kind: RecordType, act: Option<&str>) -> bool {
    match kind {
        RecordType::SessionStart
        | RecordType::ToolResult
        | RecordType::FileRead
        | RecordType::SkillVerification => true,
        RecordType::SessionMessage => act == Some("receive"),
        _ => false,
    }
}

pub(super) fn strings<'a>(content: &'a Object<'_>, key: &str) -> impl Iterator<Item = &'a str> {
    let values = match content.get(key) {
        Some(Value::Array(values)) => values.as_slice(),
        _ => &[],
    };
    values.iter().filter_map(Value::as_str)
}

impl Monitor {
    /// A session, from memory or from its records.
    pub(super) fn session(&self, name: &str) -> Result<Arc<Mutex<Session>>> {
        if name.is_empty() || name.len() > 256 || name.chars().any(char::is_control) {
            return Err(MonitorError::Session(wardkeep_evidence::check::printable(name)));
        }
        if let Some(session) = held(&self.sessions).get(name) {
            return Ok(session);
        }
        let session = self.read_session(name, &mut HashSet::from([name.to_owned()]))?;
        let mut sessions = held(&self.sessions);
        // Another thread may have been faster.
        if let Some(session) = sessions.get(name) {
            return Ok(session);
        }
        let session = Arc::new(Mutex::new(session));
        let gone = sessions.add(name, Arc::clone(&session));
        drop(sessions);
        for (name, mut gone) in gone {
            self.settle(&name, &mut gone)?;
        }
        Ok(session)
    }

    /// Reads a session and those that it descends from, each once however often it is named.
    fn read_session(&self, name: &str, read: &mut HashSet<String>) -> Result<Session> {
        let folder = self.store.journal().folder();
        let filter = Filter { session: Some(name.to_owned()), ..Filter::default() };
        let places = {
            let mut index = held(&self.index);
            index.catch_up(folder, &mut |_| {})?;
            index.newest(&filter, READ)?
        };
        let mut session = Session::new(&self.sketch_key);
        let mut cut = places.len() >= READ as usize;
        for place in places.into_iter().rev() {
            let text = folder.read_line(place).map_err(crate::store::StoreError::from)?;
            let line = parse_line(&text)
                .filter(|line| line.record.compute_id(&mut Vec::new()) == line.record.id)
                .filter(|line| line.record.meta_str("session") == Some(name));
            let Some(line) = line else {
                // A line that does not hold what the index says may have been anything.
                session.ambient = Taint::ALL;
                session.unknown = Taint::ALL;
                continue;
            };
            for parent in inherited(&line.record) {
                if read.contains(parent) {
                    continue;
                }
                if read.len() <= ANCESTORS {
                    read.insert(parent.to_owned());
                    session.inherit(&self.read_session(parent, read)?);
                } else {
                    cut = true;
                }
            }
            session.recall(&line.record, self.key_stays);
            self.recall_denial(&line.record);
        }
        if cut {
            session.unknown |= session.ambient;
        }
        session.recalled();
        if let Some(record) = session.prompt {
            // Without any, what all agents have in common is still watched for.
            let (guard, weight) = self.guard_of(&session.profiles);
            session.set_guard(guard, weight, record);
        }
        Ok(session)
    }

    /// Lets sessions go that are not in use, where something of that size was added.
    pub(super) fn lighten(&self, hashes: usize) -> Result<()> {
        let gone = held(&self.sessions).grown(hashes);
        for (name, mut gone) in gone {
            self.settle(&name, &mut gone)?;
        }
        Ok(())
    }

    /// Writes down what a session still has to tell.
    pub(super) fn settle(&self, name: &str, session: &mut Session) -> Result<()> {
        if let Some(sum) = session.flood.take() {
            let who = Who::new(
                name.split(':').next().unwrap_or_default(),
                name,
                std::path::Path::new(""),
                Principal::Sys,
            );
            self.write_sum(&who, &sum)?;
        }
        Ok(())
    }
}

/// The sessions that one has taken over what they saw from.
fn inherited<'a>(record: &'a Record<'_>) -> Vec<&'a str> {
    let Payload::Inline(Value::Object(content)) = &record.payload else { return Vec::new() };
    let one = content.get("inherits").and_then(Value::as_str);
    one.into_iter().chain(strings(content, "inherits")).collect()
}

impl Drop for Monitor {
    fn drop(&mut self) {
        let open: Vec<_> = held(&self.sessions).drain().collect();
        for (name, session) in open {
            // Nobody is left to tell of a failure.
            let _ = self.settle(&name, &mut held(&session));
        }
    }
}
