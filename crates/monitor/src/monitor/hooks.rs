//! The hooks, one method each.

use std::path::{Path, PathBuf};

use wardkeep_detect::leak::{Canary, OutputGuard, PromptProfile};
use wardkeep_evidence::hash::{BlobHash, RecordId, encode_hex, sha256};
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_guard::action::Action;
use wardkeep_guard::facts::{Compliance, SkillFacts};
use wardkeep_guard::network;
use wardkeep_guard::proxy;
use wardkeep_guard::surface::{Act, Surface, is_untrusted};
use wardkeep_guard::taint::Taint;
use wardkeep_guard::verdict::Verdict;

use super::content::shortened;
use super::past::{Held, Past, Replaces};
use super::pipeline::{Crossing, Shown, Taker};
use super::settings::Settings;
use super::subjects::{Deed, Ground, Subject};
use super::{Monitor, MonitorError, Outcome, Result, Who, held};
use crate::daemon::Reach;
use crate::journal::JournalError;
use crate::provenance::place_of;
use crate::resolve::{protect_lists, protected_set};
use crate::store::StoreError;

/// What is sent with a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sent<'a> {
    /// Bytes in all.
    pub size: u64,
    /// The bytes, as far as they are at hand.
    pub content: Option<&'a [u8]>,
}

impl Monitor {
    /// A session begins. A session of a sub-agent names the one that it descends from, and
    /// inherits what that one has seen.
    ///
    /// # Errors
    /// When it cannot be told or recorded: it must not begin then.
    pub fn on_session_start(
        &self,
        who: &Who<'_>,
        channel: &str,
        parent: Option<&str>,
    ) -> Result<Outcome> {
        self.session_start(who, channel, parent, None)
    }

    /// As [`Monitor::on_session_start`], with what an audit of the confinement found.
    ///
    /// # Errors
    /// When it cannot be told or recorded: it must not begin then.
    pub fn session_start(
        &self,
        who: &Who<'_>,
        channel: &str,
        parent: Option<&str>,
        sandbox: Option<Compliance>,
    ) -> Result<Outcome> {
        self.start_with(who, channel, parent, (sandbox, false), Vec::new())
    }

    /// As [`Monitor::session_start`], with more that its record holds, and whether the owner knows of
    /// the confinement.
    pub(super) fn start_with(
        &self,
        who: &Who<'_>,
        channel: &str,
        parent: Option<&str>,
        (sandbox, told): (Option<Compliance>, bool),
        more: Vec<(&'static str, Value<'static>)>,
    ) -> Result<Outcome> {
        let mut action =
            Action::new(who.principal, Surface::SandboxCompliance, Act::Start, channel);
        action.sandbox = sandbox;
        let mut crossing = Crossing::new(who, RecordType::SessionStart, action);
        crossing.enters = true;
        crossing.told = told;
        crossing.more = more;
        let session = self.session(who.session)?;
        if let Some(parent) = parent.filter(|parent| *parent != who.session) {
            let other = self.session(parent)?;
            // One after the other, so that two sessions never wait for each other.
            let seen = {
                let other = held(&other);
                let mut seen = super::session::Session::new(&self.sketch_key);
                seen.inherit(&other);
                seen
            };
            let known = {
                let mut session = held(&session);
                session.inherit(&seen);
                session.texts()
            };
            // What it finds out comes back to the one that it descends from.
            let above = Who { session: parent, parents: &[], taint: Taint::NONE, ..*who };
            let content = Value::from([
                ("kind", Value::from("descent")),
                ("v", Value::from(1u64)),
                ("child", Value::from(who.session.to_owned())),
            ]);
            let mut other = held(&other);
            self.note(&above, Principal::Sys, content)?;
            other.begets(who.session, known);
            drop(other);
            crossing.more.push(("inherits", Value::from(parent.to_owned())));
        }
        self.cross(crossing)
    }

    /// Something was said in a session that nobody can stop any more: it is scanned and recorded.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub fn on_session_message(&self, who: &Who<'_>, text: &str) -> Result<Outcome> {
        let mut action =
            Action::new(who.principal, Surface::ConversationIO, Act::Receive, "message");
        action.content = Some(text);
        let mut crossing = Crossing::new(who, RecordType::SessionMessage, action);
        crossing.enters = true;
        crossing.observed = true;
        self.cross(crossing)
    }

    /// The agent asks for a tool.
    ///
    /// # Errors
    /// When it cannot be told or recorded: the tool must not run then.
    pub fn on_tool_call(&self, who: &Who<'_>, tool: &str, arguments: &str) -> Result<Outcome> {
        let mut action = Action::new(who.principal, Surface::ConversationIO, Act::Call, tool);
        action.content = Some(arguments);
        let outcome = self.cross(Crossing::new(who, RecordType::ToolCall, action))?;
        self.called_for(who, tool, arguments, &outcome)?;
        Ok(outcome)
    }

    /// A call that is allowed is remembered: its result comes from it.
    pub(super) fn called_for(
        &self,
        who: &Who<'_>,
        tool: &str,
        arguments: &str,
        outcome: &Outcome,
    ) -> Result<()> {
        if outcome.verdict == Verdict::Allow {
            let given = sha256(arguments.as_bytes());
            held(&*self.session(who.session)?).calls_tool(tool, &given, outcome.record);
        }
        Ok(())
    }

    /// A tool gives something back. `call` is the record of the call, where it is known; the
    /// principal of `who` says where the content comes from: `TOOL`, `WEB`, `SKILL` …
    ///
    /// # Errors
    /// When it cannot be told or recorded: the model must not see it then.
    pub fn on_tool_result(
        &self,
        who: &Who<'_>,
        tool: &str,
        call: Option<RecordId>,
        text: &str,
    ) -> Result<Outcome> {
        self.tool_result(who, tool, call, text, None)
    }

    /// As [`Monitor::on_tool_result`]; the call is found by what the tool was given.
    pub(super) fn result_of(
        &self,
        who: &Who<'_>,
        tool: &str,
        call: Option<RecordId>,
        arguments: Option<&str>,
        text: &str,
    ) -> Result<Outcome> {
        let Some(arguments) = arguments else { return self.on_tool_result(who, tool, call, text) };
        let given = sha256(arguments.as_bytes());
        let call = held(&*self.session(who.session)?).call_of(tool, &given);
        let mut crossing = self.result_crossing(who, tool, call, text)?;
        if let Some(place) = place_in(arguments) {
            crossing.more.push(("place", Value::from(shortened(&place))));
        }
        self.cross(crossing)
    }

    pub(super) fn tool_result(
        &self,
        who: &Who<'_>,
        tool: &str,
        call: Option<RecordId>,
        text: &str,
        taker: Option<Taker<'_>>,
    ) -> Result<Outcome> {
        let mut crossing = self.result_crossing(who, tool, call, text)?;
        crossing.taker = taker;
        self.cross(crossing)
    }

    fn result_crossing<'a>(
        &self,
        who: &'a Who<'a>,
        tool: &'a str,
        call: Option<RecordId>,
        text: &'a str,
    ) -> Result<Crossing<'a>> {
        let mut action = Action::new(who.principal, Surface::ConversationIO, Act::Return, tool);
        action.content = Some(text);
        let mut crossing = Crossing::new(who, RecordType::ToolResult, action);
        crossing.enters = true;
        if let Some(call) = call {
            crossing.parents.push(call);
            // What comes back comes from what was asked for as well.
            crossing.parents.extend(held(&*self.session(who.session)?).requests_of(call));
        }
        let (children, last) = self.hear_of_children(who.session)?;
        if !children.is_empty() {
            crossing.more.push(("inherits", Value::Array(children)));
            crossing.parents.extend(last);
        }
        Ok(crossing)
    }

    /// Someone wants to change what steers the agent: a setting, a tool, a schedule.
    ///
    /// # Errors
    /// When it cannot be told or recorded: it must not be changed then.
    pub fn on_control_plane_change(
        &self,
        who: &Who<'_>,
        key: &str,
        detail: &str,
    ) -> Result<Outcome> {
        let mut action = Action::new(who.principal, Surface::ControlPlane, Act::Change, key);
        action.content = Some(detail);
        self.cross(Crossing::new(who, RecordType::ControlPlaneChangeRequest, action))
    }

    /// A file is to be written.
    ///
    /// # Errors
    /// When it cannot be told or recorded: it must not be written then.
    pub fn on_file_write(&self, who: &Who<'_>, path: &Path, content: &[u8]) -> Result<Outcome> {
        let subject = self.subject(who, path, Deed::Write)?;
        let text = String::from_utf8_lossy(content);
        let mut action = file_action(who, &subject, Deed::Write);
        action.content = Some(&text);
        let mut crossing = Crossing::new(who, RecordType::FileWrite, action);
        crossing.bytes = Some(content);
        crossing.before = before(&subject);
        crossing.stays = {
            let past = if subject.identity.is_some() {
                self.past(&subject.path)?
            } else {
                Past::default()
            };
            crossing.replaces = Some(Replaces::new(Held::Before, past.clone()));
            let held = crossing.before.as_deref().map(String::from_utf8_lossy);
            self.stays(past, who.session, held.as_deref(), &text)
        };
        crossing.file = Some(&subject);
        self.cross(crossing)
    }

    /// A file is to be read. What was written to it before is a parent of what is read.
    ///
    /// # Errors
    /// When it cannot be told or recorded: it must not be read then.
    pub fn on_file_read(&self, who: &Who<'_>, path: &Path) -> Result<Outcome> {
        let subject = self.subject(who, path, Deed::Read)?;
        let action = file_action(who, &subject, Deed::Read);
        let mut crossing = Crossing::new(who, RecordType::FileRead, action);
        crossing.enters = true;
        self.comes_from(&mut crossing, &subject)?;
        crossing.file = Some(&subject);
        self.cross(crossing)
    }

    /// What is read from a file comes from what was written to it before.
    pub(super) fn comes_from(&self, crossing: &mut Crossing<'_>, subject: &Subject) -> Result<()> {
        let past = self.past(&subject.path)?;
        if past.unknown {
            crossing.action.taint = Taint::ALL;
        }
        // Text that was copied into the file is known again when it is copied out of it.
        if subject.identity.is_some() && (past.unknown || past.holds.intersects(COPIED)) {
            crossing.shown = before(subject).map_or(Shown::Unread, |bytes| {
                Shown::Text(String::from_utf8_lossy(&bytes).into_owned())
            });
        }
        crossing.parents.extend(past.records);
        Ok(())
    }

    /// A file is to be removed.
    ///
    /// # Errors
    /// When it cannot be told or recorded: it must not be removed then.
    pub fn on_file_delete(&self, who: &Who<'_>, path: &Path) -> Result<Outcome> {
        let subject = self.subject(who, path, Deed::Delete)?;
        let action = file_action(who, &subject, Deed::Delete);
        let mut crossing = Crossing::new(who, RecordType::FileDelete, action);
        crossing.before = before(&subject);
        let past = self.past(&subject.path)?;
        crossing.replaces = Some(Replaces::new(Held::Before, past));
        crossing.file = Some(&subject);
        self.cross(crossing)
    }

    /// A file is to get another name: both names are judged, and the stricter answer is given.
    ///
    /// # Errors
    /// When it cannot be told or recorded: it must not be renamed then.
    pub fn on_file_rename(&self, who: &Who<'_>, from: &Path, to: &Path) -> Result<Outcome> {
        let away = self.subject(who, from, Deed::MoveAway)?;
        let here = self.subject(who, to, Deed::MoveHere)?;
        let (judged, deed) = if here.strictness() >= away.strictness() {
            (&here, Deed::MoveHere)
        } else {
            (&away, Deed::MoveAway)
        };
        let mut action = file_action(who, judged, deed);
        action.subject = &here.facts.path;
        // What comes to where the agent remembers, or is steered from, is judged as if it were written.
        let matters = action.surface != Surface::FileSystem || here.facts.memory;
        let bytes = if matters { before(&away) } else { None };
        let text = bytes.as_deref().map(String::from_utf8_lossy);
        action.content = text.as_deref();
        // Whatever it is called, it is the stricter of the two.
        if let Some(file) = &mut action.file {
            file.sensitivity = away.facts.sensitivity.max(here.facts.sensitivity);
            file.memory = away.facts.memory || here.facts.memory;
        }
        let mut crossing = Crossing::new(who, RecordType::FileRename, action);
        crossing.before = before(judged);
        crossing.file = Some(judged);
        crossing.bytes = bytes.as_deref();
        if matters && bytes.is_none() && away.identity.is_some() {
            crossing.shown = Shown::Unread;
        }
        let there = self.past(&here.path)?;
        crossing.replaces = Some(Replaces::new(Held::Other(before(&here)), there));
        // What the file holds moves with it.
        let past = self.past(&away.path)?;
        if past.unknown {
            crossing.action.taint = Taint::ALL;
        }
        crossing.parents.extend(past.records);
        crossing.how = format!("from {}", away.facts.path);
        crossing.from = Some(away.path.clone());
        crossing.to = Some(here.path.clone());
        crossing.more.push(("from", Value::from(shortened(&away.facts.path))));
        crossing.more.push(("to", Value::from(shortened(&here.facts.path))));
        self.cross(crossing)
    }

    /// A request is to leave the machine. What comes back goes through
    /// [`Monitor::on_tool_result`] on behalf of `WEB`.
    ///
    /// # Errors
    /// When it cannot be told or recorded: it must not leave then.
    pub fn on_outbound_request(
        &self,
        who: &Who<'_>,
        url: &str,
        method: &str,
        sent: Sent<'_>,
    ) -> Result<Outcome> {
        self.outbound(who, url, method, sent, (&self.settings(), None), |_| {})
    }

    /// As [`Monitor::on_outbound_request`], for a call of a tool: its result comes from the request, too.
    pub(super) fn request_for(
        &self,
        who: &Who<'_>,
        call: Option<RecordId>,
        url: &str,
        method: &str,
        sent: Sent<'_>,
    ) -> Result<Outcome> {
        let of = call.map(|call| ("call", Value::from(call.to_string())));
        let more = |crossing: &mut Crossing<'_>| crossing.more.extend(of);
        let outcome = self.outbound(who, url, method, sent, (&self.settings(), None), more)?;
        if let Some(call) = call.filter(|_| outcome.verdict == Verdict::Allow) {
            held(&*self.session(who.session)?).sends_for(call, outcome.record);
        }
        Ok(outcome)
    }

    /// As [`Monitor::on_outbound_request`], with more that is known of the request.
    pub(super) fn outbound(
        &self,
        who: &Who<'_>,
        url: &str,
        method: &str,
        sent: Sent<'_>,
        (settings, taker): (&Settings, Option<Taker<'_>>),
        more: impl FnOnce(&mut Crossing<'_>),
    ) -> Result<Outcome> {
        let size = sent.size.max(sent.content.map_or(0, |bytes| bytes.len() as u64));
        let text = sent.content.map(String::from_utf8_lossy);
        // What is in the address leaves as well.
        let content = match &text {
            Some(text) => format!("{url}\n{text}"),
            None => url.to_owned(),
        };
        let mut action = Action::new(who.principal, Surface::NetworkIO, Act::Send, url);
        action.content = Some(&content);
        let judged = network::judge(url, method, size, &settings.egress);
        action.network = Some(judged.facts);
        let mut crossing = Crossing::new(who, RecordType::NetworkRequest, action);
        crossing.why = (!judged.notes.is_empty()).then(|| judged.notes.join(" "));
        crossing.how = format!("{method}, {size} bytes");
        crossing.bytes = sent.content;
        crossing.taker = taker;
        more(&mut crossing);
        self.cross_by(crossing, settings)
    }

    /// A message is to reach the model.
    ///
    /// # Errors
    /// When it cannot be told or recorded: the model must not see it then.
    pub fn on_message_input(&self, who: &Who<'_>, text: &str) -> Result<Outcome> {
        self.message_input(who, text, None)
    }

    pub(super) fn message_input(
        &self,
        who: &Who<'_>,
        text: &str,
        taker: Option<Taker<'_>>,
    ) -> Result<Outcome> {
        let mut action =
            Action::new(who.principal, Surface::ConversationIO, Act::Receive, "message");
        action.content = Some(text);
        let mut crossing = Crossing::new(who, RecordType::SessionMessage, action);
        crossing.enters = true;
        crossing.taker = taker;
        self.cross(crossing)
    }

    /// The model's reply is to leave. It is held against `guard` if the caller has one, else
    /// against the prompt that was registered, else against what all agents have in common.
    ///
    /// # Errors
    /// When it cannot be told or recorded: nobody must see it then.
    pub fn on_message_output(
        &self,
        who: &Who<'_>,
        text: &str,
        guard: Option<&OutputGuard>,
    ) -> Result<Outcome> {
        let mut action = Action::new(who.principal, Surface::ConversationIO, Act::Reply, "reply");
        action.content = Some(text);
        let mut crossing = Crossing::new(who, RecordType::SessionMessage, action);
        crossing.guard = guard;
        self.cross(crossing)
    }

    /// A skill, plugin or server is to join the agent; `found` is what a verification made of it.
    ///
    /// # Errors
    /// When it cannot be told or recorded: it must not be installed then.
    pub fn on_skill_install(
        &self,
        who: &Who<'_>,
        name: &str,
        found: Option<SkillFacts>,
        text: &str,
    ) -> Result<Outcome> {
        let mut action = Action::new(who.principal, Surface::SkillInstall, Act::Install, name);
        action.skill = found;
        action.content = Some(text);
        // What nobody looked into is no verification.
        let kind = match found {
            Some(_) => RecordType::SkillVerification,
            None => RecordType::GuardDecision,
        };
        let mut crossing = Crossing::new(who, kind, action);
        crossing.enters = true;
        self.cross(crossing)
    }

    /// Whether the trusted proxies of a gateway are proxies, and not everyone.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub fn check_proxy_trust(
        &self,
        who: &Who<'_>,
        trusted: &[&str],
        gateway: &str,
    ) -> Result<Outcome> {
        let mut action = Action::new(who.principal, Surface::ControlPlane, Act::Trust, gateway);
        let trust = proxy::check_proxy_trust(trusted, gateway);
        action.open_proxy = trust.open;
        if action.open_proxy {
            action.taint |= Taint::PROXY_DERIVED;
        }
        let mut crossing = Crossing::new(who, RecordType::GuardDecision, action);
        crossing.why = Some(trust.why);
        crossing.how = format!("trusting {}", trusted.join(", "));
        let list = trusted.iter().take(64).map(|one| Value::from(shortened(one)));
        crossing.more.push(("trusted", Value::Array(list.collect())));
        self.cross(crossing)
    }

    /// The system prompt of a session is known from now on; gives the number of names in it that
    /// replies are watched for. A later registration takes the place of an earlier one. What is longer than
    /// 256 KiB is watched for as far as that; the record says so.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub fn on_system_prompt_available(
        &self,
        who: &Who<'_>,
        prompt: &str,
        canary: Option<&Canary>,
    ) -> Result<(RecordId, usize)> {
        let mut given = Given::prompt(prompt);
        if let Some(canary) = canary {
            given.profile = given.profile.with_canary(canary);
        }
        self.register(who, &given, &[])
    }

    /// As [`Monitor::on_system_prompt_available`], told by an agent: it is added to what is known of the
    /// session's prompt and takes nothing away.
    pub(super) fn prompt_told(&self, who: &Who<'_>, prompt: &str) -> Result<(RecordId, usize)> {
        self.add_prompt(who, &Given::prompt(prompt))
    }

    /// As [`Monitor::register_tokens_only`], told by an agent.
    pub(super) fn tokens_told(
        &self,
        who: &Who<'_>,
        tokens: &[String],
    ) -> Result<(RecordId, usize)> {
        self.add_prompt(who, &Given::tokens(tokens.iter().map(String::as_str)))
    }

    /// As [`Monitor::on_system_prompt_available`], where only some names of the prompt are known.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub fn register_tokens_only(
        &self,
        who: &Who<'_>,
        tokens: &[&str],
    ) -> Result<(RecordId, usize)> {
        self.register(who, &Given::tokens(tokens.iter().copied()), &[])
    }

    fn add_prompt(&self, who: &Who<'_>, given: &Given) -> Result<(RecordId, usize)> {
        let (known, record) = {
            let session = self.session(who.session)?;
            let session = held(&session);
            (session.profiles.clone(), session.prompt)
        };
        let name = BlobHash(sha256(&self.written(&given.profile)?)).to_string();
        match record {
            // It was told already.
            Some(record) if known.contains(&name) => Ok((record, given.profile.tokens().len())),
            _ => {
                let weight = weight_of(&self.joined(&given.profile, &known).0);
                if known.len() >= PROMPTS || (!known.is_empty() && weight > WEIGHT) {
                    return Err(MonitorError::Prompts);
                }
                self.register(who, given, &known)
            }
        }
    }

    fn written(&self, profile: &PromptProfile) -> Result<Vec<u8>> {
        let failed = |error: serde_json::Error| {
            StoreError::from(JournalError::io("write", self.store.path(), error))
        };
        Ok(serde_json::to_vec(profile).map_err(failed)?)
    }

    /// Registers a prompt beside those that are known by the names of their profiles.
    fn register(
        &self,
        who: &Who<'_>,
        given: &Given,
        known: &[String],
    ) -> Result<(RecordId, usize)> {
        let tokens = given.profile.tokens().len();
        let (all, kept) = self.joined(&given.profile, known);
        // It holds names out of the prompt, so that it is kept beside the journal and not in it.
        let name = self.store.put_blob(&self.written(&given.profile)?)?.to_string();
        let mut content = Object::from([
            ("kind", Value::from("prompt")),
            ("v", Value::from(1u64)),
            ("rule", Value::from("system-prompt-registered")),
            ("sha256", given.hash.map_or(Value::Null, |hash| Value::from(encode_hex(&hash)))),
            ("tokens", Value::from(tokens as u64)),
            ("mode", Value::from(given.mode)),
            ("profile", Value::from(name.clone())),
        ]);
        if given.cut {
            content.push("cut", Value::from(true));
        }
        let session = self.session(who.session)?;
        let mut session = held(&session);
        if let Some(bound) = &session.bound {
            content.push("sight", Value::from(bound.as_str().to_owned()));
        }
        if !kept.is_empty() {
            let names = kept.iter().map(|name| Value::from(name.clone())).collect();
            content.push("with", Value::Array(names));
        }
        let record = self.note(who, Principal::Sys, Value::Object(content))?;
        let weight = weight_of(&all);
        session.set_guard(OutputGuard::for_prompt(&all), weight, record);
        session.profiles = kept.into_iter().chain([name]).collect();
        self.lighten(weight)?;
        Ok((record, tokens))
    }

    /// A profile with those that are known, and the names of those that could be read.
    fn joined(&self, profile: &PromptProfile, known: &[String]) -> (PromptProfile, Vec<String>) {
        let (mut all, mut kept) = (profile.clone(), Vec::new());
        for name in known {
            let Some(one) = self.profile_of(name) else { continue };
            all = all.and(one);
            kept.push(name.clone());
        }
        (all, kept)
    }

    /// Takes over what sub-agents have seen, because a result may be theirs: which of them had news,
    /// and the last that each had seen.
    fn hear_of_children(&self, name: &str) -> Result<(Vec<Value<'static>>, Vec<RecordId>)> {
        let session = self.session(name)?;
        let (children, ambient) = {
            let session = held(&session);
            (session.children(), session.ambient)
        };
        let (mut heard, mut last) = (Vec::new(), Vec::new());
        for (child, known) in children {
            let other = self.session(&child)?;
            // One after the other, so that two sessions never wait for each other.
            let news = held(&other).news(known, ambient, &self.sketch_key);
            if let Some((news, known)) = news {
                held(&session).hears_of(&child, &news, known);
                last.extend(news.context);
                heard.push(Value::from(child));
            }
        }
        Ok((heard, last))
    }

    pub(super) fn subject(&self, who: &Who<'_>, path: &Path, deed: Deed) -> Result<Subject> {
        let settings = self.settings();
        let home = self.config.home.as_deref();
        let lists = protect_lists(self.store.path(), home);
        let look = |workspace: &Path, path: &Path| -> Result<Subject> {
            let set = protected_set(workspace, self.store.path(), &lists)?;
            let sensitive = &settings.sensitive;
            let ground = Ground { workspace, home, set: &set, sensitive, view: who.view };
            Ok(ground.subject(path, deed))
        };
        let mut subject = look(who.workspace, path)?;
        let worked = held(&*self.session(who.session)?).works_in(who.workspace);
        let inside = |one: &&PathBuf| {
            subject.path.starts_with(one) || one.starts_with(&subject.path) || worked.contains(one)
        };
        // A file of another workspace is what it is there, wherever the agent stands.
        let others: Vec<&PathBuf> =
            worked.iter().chain(&settings.workspaces).filter(inside).collect();
        for other in others {
            // Of one that the caller does not see, nothing is told.
            let unseen = who.view.is_some_and(|view| view.reach(other) == Reach::None);
            if other == who.workspace || unseen {
                continue;
            }
            // One that is gone has no files.
            if let Ok(there) = look(other, &who.workspace.join(path)) {
                subject = subject.or_stricter(there);
            }
        }
        Ok(subject)
    }
}

/// Where a tool was sent, by what it was given: an address or a file, and nothing that may hold a
/// secret by its nature.
fn place_in(arguments: &str) -> Option<String> {
    const NAMES: [&str; 5] = ["url", "file_path", "path", "notebook_path", "filePath"];
    let given: serde_json::Value = serde_json::from_str(arguments).ok()?;
    let place = NAMES.iter().find_map(|name| given.get(name)?.as_str())?;
    Some(place_of(place))
}

pub(super) fn file_action<'a>(who: &Who<'_>, subject: &'a Subject, deed: Deed) -> Action<'a> {
    let mut action = Action::new(who.principal, subject.surface, deed.act(), &subject.facts.path);
    // Whoever is not trusted leaves a mark on what it reads, so that reading launders nothing.
    if deed == Deed::Read && is_untrusted(who.principal) {
        action.taint |= Taint::UNTRUSTED;
    }
    action.file = Some(subject.facts.clone());
    action
}

/// What a file holds, where it is a plain one of bearable size.
pub(super) fn before(subject: &Subject) -> Option<Vec<u8>> {
    subject.identity?;
    crate::files::read_plain(&subject.path, super::pipeline::KEPT as u64).ok()
}

/// Taint of text that must not come out of a file as if it were the file's own.
const COPIED: Taint = Taint::UNTRUSTED
    .union(Taint::INJECTION_SUSPECT)
    .union(Taint::WEB_DERIVED)
    .union(Taint::SKILL_OUTPUT)
    .union(Taint::PROXY_DERIVED)
    .union(Taint::SECRET_RISK);

/// Bytes of a prompt that replies are watched for.
const PROMPT: usize = 256 << 10;
/// Names that replies are watched for, where only names are given.
const NAMES: usize = 4096;
/// Bytes of one of them that count.
const NAME: usize = 256;
/// Registrations by an agent that one session has, and what they may weigh together.
const PROMPTS: usize = 16;
const WEIGHT: usize = 1 << 19;
/// Largest profile that is read back.
const MAX_PROFILE: u64 = 64 << 20;

/// A prompt as it was given, as far as it counts.
struct Given {
    profile: PromptProfile,
    hash: Option<[u8; 32]>,
    mode: &'static str,
    /// Whether there was more than counts.
    cut: bool,
}

impl Given {
    fn prompt(prompt: &str) -> Self {
        let end = prompt.floor_char_boundary(PROMPT);
        let profile = PromptProfile::of(&prompt[..end]);
        let hash = Some(sha256(prompt.as_bytes()));
        Self { profile, hash, mode: "prompt", cut: end < prompt.len() }
    }

    fn tokens<'a>(tokens: impl Iterator<Item = &'a str>) -> Self {
        let mut cut = false;
        let mut names: Vec<&str> = Vec::new();
        for token in tokens {
            let end = token.floor_char_boundary(NAME);
            if names.len() == NAMES {
                cut = true;
                break;
            }
            cut |= end < token.len();
            names.push(&token[..end]);
        }
        Self { profile: PromptProfile::of_tokens(names), hash: None, mode: "tokens", cut }
    }
}

/// What a guard takes in memory, as many hashes would.
fn weight_of(profile: &PromptProfile) -> usize {
    // Four hashes for eight letters, and three ways to write a name.
    profile.letters() / 2 + profile.tokens().len() * 16
}

impl Monitor {
    /// The guard that registrations stand for, and what it weighs.
    pub(super) fn guard_of(&self, profiles: &[String]) -> (OutputGuard, usize) {
        let (all, _) = self.joined(&PromptProfile::default(), profiles);
        (OutputGuard::for_prompt(&all), weight_of(&all))
    }

    /// A profile that was kept.
    fn profile_of(&self, name: &str) -> Option<PromptProfile> {
        let hash = BlobHash::from_hex(name)?;
        let path = self.store.path().join("blobs").join(hash.to_string());
        let text = crate::files::read_plain(&path, MAX_PROFILE).ok()?;
        if sha256(&text) != hash.0 {
            return None;
        }
        serde_json::from_slice(&text).ok()
    }
}
