//! Skills that the owner trusts: what was approved, under which name, down to the byte.
//!
//! `pins/skills.json` belongs to the signed set, as standing approvals do: whoever changes it, or puts an
//! older one back, makes the set invalid, and then no pin counts. Each pin carries its own signature
//! besides. The skill itself is kept as a blob under its hash, so that a later change can be shown.

pub mod folder;
pub mod install;
pub mod options;
mod pin;

use std::path::{Path, PathBuf};

use wardkeep_evidence::hash::{BlobHash, RecordId, sha256};
use wardkeep_evidence::json::{Object, Value};
use wardkeep_evidence::record::{Principal, RecordType};
use wardkeep_evidence::time::Timestamp;
use wardkeep_guard::action::Action;
use wardkeep_guard::alert::{self, Severity};
use wardkeep_guard::assess::{self, Around};
use wardkeep_guard::decide;
use wardkeep_guard::facts::SkillFacts;
use wardkeep_guard::skill::{Options, Report, Tree, Verdict, verify};
use wardkeep_guard::surface::{Act, Surface};
use wardkeep_guard::verdict::Verdict as Decided;
use wardkeep_policy::sign::Request;
use wardkeep_policy::signed_set::SetState;
use wardkeep_policy::store::PolicyStore;

use crate::approvals::{ApprovalsError, sign_along};
use crate::daemon::Root;
use crate::files::read_plain;
use crate::policy::Desk;
use crate::store::{Event, Store, StoreError};

pub use pin::Pin;
use pin::PinKey;

/// The file, below the state directory.
const FILE: &str = "pins/skills.json";
/// Most skills that are pinned.
const MOST: usize = 1000;
/// Largest skill that is read back.
const LARGEST: u64 = 64 << 20;
/// Findings that a record names.
const FINDINGS: usize = 32;
/// Longest name that is kept.
const NAME: usize = 200;

/// Why a skill is not approved, pinned or installed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SkillError {
    /// Some of it was not read.
    #[error(
        "not all of it could be read, and what was not read cannot be approved: see `wardkeep skill verify`"
    )]
    Incomplete,
    /// There is nothing in it.
    #[error("there is no skill in `{}`: name the folder that holds its SKILL.md", .0.display())]
    Empty(PathBuf),
    /// There are too many.
    #[error(
        "{MOST} skills are pinned already: take those out that are gone, with `wardkeep skill pin --remove NAME`"
    )]
    Full,
    /// No such pin.
    #[error("no skill is pinned under the name `{0}`: see `wardkeep skill list`")]
    Unknown(String),
    /// The set cannot be signed, or nobody is there to do so.
    #[error(transparent)]
    Approvals(#[from] ApprovalsError),
    /// It cannot be recorded.
    #[error(transparent)]
    Store(#[from] StoreError),
}

type Result<T> = std::result::Result<T, SkillError>;

/// A skill that was read once: what is judged is what is hashed, kept and installed.
#[derive(Debug)]
pub struct Candidate {
    /// What it is called: as it says itself, or as its folder is.
    pub name: String,
    /// Where it was read.
    pub source: PathBuf,
    /// Its files.
    pub tree: Tree,
    /// What was made of it.
    pub report: Report,
    bytes: Vec<u8>,
    /// Hash of names, modes and contents.
    pub hash: BlobHash,
}

impl Candidate {
    /// Reads and judges a folder.
    ///
    /// # Errors
    /// When there is nothing, or not all of it can be read.
    pub fn read(source: &Path, options: &Options) -> Result<Self> {
        let tree = folder::read(source, &options.limits);
        let folder = source.canonicalize().ok().and_then(|path| name_of(&path));
        Self::of(source, tree, folder, options)
    }

    /// The same of what someone else sees: nothing but that is read.
    fn read_below(view: &Root, source: &Path, options: &Options) -> Result<Self> {
        let name = name_of(source);
        let opened = view.open(source, folder::SAFE).map_err(|_| SkillError::Incomplete)?;
        let tree =
            folder::read_opened(opened, name.as_deref().unwrap_or_default(), &options.limits);
        Self::of(source, tree, name, options)
    }

    fn of(source: &Path, tree: Tree, folder: Option<String>, options: &Options) -> Result<Self> {
        if tree.entries.is_empty() && tree.gaps.is_empty() {
            return Err(SkillError::Empty(source.to_owned()));
        }
        let options = Options { folder: folder.clone(), ..options.clone() };
        let report = verify(&tree, &options);
        let bytes = tree.to_bytes().ok_or(SkillError::Incomplete)?;
        let name = report.name.clone().or(folder).unwrap_or_default();
        let name: String = name.trim().chars().take(NAME).collect();
        let hash = BlobHash(sha256(&bytes));
        Ok(Self { name, source: source.to_owned(), tree, report, bytes, hash })
    }
}

fn name_of(path: &Path) -> Option<String> {
    path.file_name().map(|name| name.to_string_lossy().into_owned())
}

/// What verification makes of a skill that an agent is about to install, and that in words. What the owner approved,
/// down to the byte, is clean.
pub(crate) fn looked_into(
    policy: &PolicyStore,
    folder: &Path,
    view: Option<&Root>,
    now: Timestamp,
) -> (SkillFacts, String) {
    let options = options::options(policy, now).options;
    let candidate = match view {
        None => Candidate::read(folder, &options),
        Some(view) => Candidate::read_below(view, folder, &options),
    };
    let candidate = match candidate {
        Ok(candidate) => candidate,
        Err(why) => return (SkillFacts::Doubtful, format!("not verified: {why}")),
    };
    let pins = Pins::load(policy);
    let changed = pins.named(&candidate.name).is_some_and(|pin| pin.tree != candidate.hash);
    let found = match candidate.report.verdict {
        _ if pins.approval(candidate.hash).is_some() => SkillFacts::Clean,
        Verdict::Allow if !changed => SkillFacts::Clean,
        Verdict::Deny => SkillFacts::Malicious,
        _ => SkillFacts::Doubtful,
    };
    let mut rules: Vec<&str> =
        candidate.report.findings.iter().map(|finding| finding.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    rules.truncate(FINDINGS);
    let told = format!("verified: tree {}, found: {}", candidate.hash, rules.join(" "));
    (found, told)
}

/// The hash of a folder as it is now; `None` where there is none that can be read.
#[must_use]
pub fn hash_of(folder: &Path, options: &Options) -> Option<BlobHash> {
    let tree = folder::read(folder, &options.limits);
    tree.to_bytes().map(|bytes| BlobHash(sha256(&bytes)))
}

/// What is pinned, as far as it is in force.
#[derive(Debug, Clone, Default)]
pub struct Pins {
    /// The pins, by name.
    pub pins: Vec<Pin>,
    /// Why none counts, where there would be some.
    pub void: Option<String>,
}

impl Pins {
    /// Reads them. None is in force unless the signed set as a whole is valid.
    #[must_use]
    pub fn load(policy: &PolicyStore) -> Self {
        let set = policy.settings().set;
        let there = set.files.contains_key(FILE);
        let Some(bytes) = set.signed(FILE) else {
            let void = there.then(|| format!("config, rules and pins are {}", words(&set.state)));
            return Self { pins: Vec::new(), void };
        };
        match policy.key() {
            Ok(key) => Self { pins: pin::read(bytes, &PinKey::new(&key)), void: None },
            Err(error) => Self { pins: Vec::new(), void: Some(error.to_string()) },
        }
    }

    /// Whether a tree is the one that is pinned under a name, or was before.
    #[must_use]
    pub fn holds(&self, name: &str, tree: BlobHash) -> bool {
        self.named(name).is_some_and(|pin| pin.tree == tree || pin.before == Some(tree))
    }

    /// The pin of a name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Pin> {
        self.pins.iter().find(|pin| pin.name == name)
    }

    /// The owner's approval of exactly these bytes.
    #[must_use]
    pub fn approval(&self, hash: BlobHash) -> Option<&Pin> {
        self.pins.iter().find(|pin| pin.approved && pin.tree == hash)
    }
}

fn words(state: &SetState) -> &'static str {
    match state {
        SetState::Unsigned => "not signed",
        SetState::Changed(_) => "not as they were signed",
        other => other.name(),
    }
}

/// A skill as it was pinned; `None` where it is gone or was changed.
#[must_use]
pub fn kept(state: &Path, hash: BlobHash) -> Option<Tree> {
    let bytes = read_plain(&state.join("blobs").join(hash.to_string()), LARGEST).ok()?;
    (sha256(&bytes) == hash.0).then(|| Tree::from_bytes(&bytes)).flatten()
}

/// What may happen with a skill that is to be installed.
#[derive(Debug)]
pub struct Judged {
    /// `Allow`, `Ask` or `Deny`.
    pub verdict: Verdict,
    /// Why, in words.
    pub reason: String,
    /// The record of it.
    pub record: RecordId,
}

/// What is done with skills on an open store.
#[derive(Debug)]
pub struct Skills<'s> {
    store: &'s Store,
    desk: Desk<'s>,
}

impl<'s> Skills<'s> {
    /// Of an open store and the user who owns it.
    #[must_use]
    pub fn new(store: &'s Store, owner: u32) -> Self {
        Self { store, desk: Desk::new(store, owner) }
    }

    /// What is pinned.
    #[must_use]
    pub fn pins(&self) -> Pins {
        Pins::load(self.desk.policy())
    }

    /// Fixes a name to these bytes. `approved` says that the owner wants exactly these, whatever
    /// was found; else nothing is said of them but that they are these.
    ///
    /// # Errors
    /// When no person is there, the signed set is not valid, or it cannot be recorded.
    pub fn pin(
        &self,
        candidate: &Candidate,
        place: Option<&Path>,
        approved: bool,
        who: &Request,
    ) -> Result<Pin> {
        crate::approvals::permitted(who)?;
        let pins = self.pins();
        let known = pins.named(&candidate.name);
        let same = known.filter(|pin| pin.tree == candidate.hash);
        let mut places = known.map(|pin| pin.places.clone()).unwrap_or_default();
        if let Some(place) = place.map(|place| place.to_string_lossy().into_owned())
            && !places.contains(&place)
        {
            places.push(place);
        }
        // What was approved stays approved as long as it is the same.
        let approved = approved || same.is_some_and(|pin| pin.approved);
        self.store.put_blob(&candidate.bytes)?;
        let record = self.tell(candidate, if approved { "skill-approval" } else { "skill-pin" })?;
        let pin = Pin {
            name: candidate.name.clone(),
            tree: candidate.hash,
            before: match same {
                Some(pin) => pin.before,
                None => known.map(|pin| pin.tree),
            },
            approved,
            verdict: candidate.report.verdict.as_str().to_owned(),
            hosts: candidate.report.capabilities.hosts.clone(),
            runs_commands: candidate.report.capabilities.runs_commands,
            variables: candidate.report.capabilities.variables.clone(),
            at: who.now.to_string(),
            record: record.to_string(),
            places,
        };
        let new = pin.clone();
        self.change(who, move |pins| {
            pins.retain(|one| one.name != new.name);
            pins.push(new);
            Ok(())
        })?;
        Ok(pin)
    }

    /// Takes a pin out, and with it the approval.
    ///
    /// # Errors
    /// When there is none, the signed set is not valid, or it cannot be recorded.
    pub fn unpin(&self, name: &str, who: &Request) -> Result<()> {
        crate::approvals::permitted(who)?;
        self.change(who, |pins| {
            let before = pins.len();
            pins.retain(|one| one.name != name);
            if pins.len() == before {
                return Err(SkillError::Unknown(name.to_owned()));
            }
            Ok(())
        })
    }

    /// Puts back what was pinned under a name before something went wrong.
    ///
    /// # Errors
    /// When the signed set is not valid, or it cannot be recorded.
    pub fn put_back(&self, name: &str, before: Option<Pin>, who: &Request) -> Result<()> {
        self.change(who, |pins| {
            pins.retain(|one| one.name != name);
            pins.extend(before);
            Ok(())
        })
    }

    fn change(
        &self,
        who: &Request,
        change: impl FnOnce(&mut Vec<Pin>) -> Result<()>,
    ) -> Result<()> {
        let policy = self.desk.policy();
        let set = policy.settings().set;
        let key = policy.key().map_err(|error| ApprovalsError::Key(error.to_string()))?;
        let key = PinKey::new(&key);
        let mut pins = set.signed(FILE).map(|bytes| pin::read(bytes, &key)).unwrap_or_default();
        change(&mut pins)?;
        if pins.len() > MOST {
            return Err(SkillError::Full);
        }
        pins.sort_by(|one, two| one.name.cmp(&two.name));
        Ok(sign_along(&self.desk, set, FILE, pin::write(&pins, &key), who)?)
    }

    /// Decides whether a skill may be installed, and writes that down: what was found, whether the
    /// owner approved exactly it, whether another one is pinned under its name, and what the owner's
    /// own rules say.
    ///
    /// # Errors
    /// When it cannot be recorded: it must not be installed then.
    pub fn judge(&self, candidate: &Candidate, place: &Path) -> Result<Judged> {
        let pins = self.pins();
        let approved = pins.approval(candidate.hash).is_some();
        let changed = pins.named(&candidate.name).is_some_and(|pin| pin.tree != candidate.hash);
        let found = candidate.report.verdict;
        let facts = match found {
            Verdict::Allow if !changed => SkillFacts::Clean,
            Verdict::Deny if !approved => SkillFacts::Malicious,
            // What the owner approved was looked at by a person, however bad it looks.
            _ => SkillFacts::Doubtful,
        };
        let mut action =
            Action::new(Principal::User, Surface::SkillInstall, Act::Install, &candidate.name);
        action.skill = Some(facts);
        let around = Around { approved, ..Around::default() };
        let facts = assess::facts(&action, around, None);
        let rules = crate::rules::in_force(&self.desk.policy().settings().set);
        let mut decision = decide::judge(&facts, &rules);
        if changed && !approved && decision.verdict == Decided::Ask {
            decision.reason = format!(
                "another skill is pinned under the name {}: a person has to look at what changed",
                candidate.name
            );
        }
        let verdict = match decision.verdict {
            Decided::Allow => Verdict::Allow,
            Decided::Deny => Verdict::Deny,
            _ => Verdict::Ask,
        };
        let category = alert::category(&facts, &decision).unwrap_or(alert::Category::Skill);
        let severity = alert::severity(&facts, &decision);
        let mut content = Object::default();
        // A question that the owner answers elsewhere is told of, and is no request of its own.
        match verdict {
            Verdict::Ask => {
                content.push("kind", Value::from("alert"));
                content.push("v", Value::from(1u64));
                content.push("alert", Value::from("SkillHeld"));
                content.push("blocked", Value::from(true));
                content.push("message", Value::from(decision.reason.clone()));
                let next = "look at it with `wardkeep skill verify`, then `wardkeep skill approve`";
                content.push("suggestion", Value::from(next));
            }
            _ => {
                content.push("kind", Value::from("decision"));
                content.push("v", Value::from(1u64));
            }
        }
        content.push("act", Value::from(facts.act.as_str()));
        content.push("surface", Value::from(facts.surface.as_str()));
        content.push("subject", Value::from(candidate.name.clone()));
        content.push("verdict", Value::from(decision.verdict.as_str()));
        content.push("rule", Value::from(decision.rule.clone().into_owned()));
        content.push("reason", Value::from(decision.reason.clone()));
        content.push("approved", Value::from(approved));
        content.push("category", Value::from(category.as_str()));
        content.push("severity", Value::from(severity.max(Severity::Info).as_str()));
        describe(candidate, &mut content);
        content.push("place", Value::from(place.to_string_lossy().into_owned()));
        let kind = match verdict {
            Verdict::Allow => RecordType::SkillVerification,
            _ => RecordType::GuardDecision,
        };
        let mut event = Event::new(kind, Principal::User, Value::Object(content));
        event.agent = "wardkeep";
        let record = self.store.append(event)?.id;
        Ok(Judged { verdict, reason: decision.reason, record })
    }

    /// Writes down that it lies in its place.
    ///
    /// # Errors
    /// When it cannot be recorded.
    pub fn installed(&self, judged: &Judged, place: &Path) -> Result<RecordId> {
        let mut content = kind("outcome");
        content.push("done", Value::from("skill installed"));
        content.push("place", Value::from(place.to_string_lossy().into_owned()));
        let mut event =
            Event::new(RecordType::GuardDecision, Principal::User, Value::Object(content));
        event.agent = "wardkeep";
        event.parents = vec![judged.record];
        Ok(self.store.append(event)?.id)
    }

    fn tell(&self, candidate: &Candidate, name: &'static str) -> Result<RecordId> {
        let mut content = kind(name);
        content.push("subject", Value::from(candidate.name.clone()));
        content.push("category", Value::from("SKILL"));
        describe(candidate, &mut content);
        let mut event =
            Event::new(RecordType::GuardDecision, Principal::User, Value::Object(content));
        event.agent = "wardkeep";
        Ok(self.store.append(event)?.id)
    }
}

fn kind(name: &'static str) -> Object<'static> {
    let mut content = Object::default();
    content.push("kind", Value::from(name));
    content.push("v", Value::from(1u64));
    content
}

/// What a record says of a skill.
fn describe(candidate: &Candidate, content: &mut Object<'static>) {
    let report = &candidate.report;
    let list = |texts: &[String]| {
        Value::Array(texts.iter().take(FINDINGS).map(|text| Value::from(text.clone())).collect())
    };
    content.push("tree", Value::from(candidate.hash.to_string()));
    content.push("files", Value::from(candidate.tree.entries.len() as u64));
    content.push("found", Value::from(report.verdict.as_str()));
    content.push("complete", Value::from(report.complete));
    let findings = report.findings.iter().filter(|finding| finding.verdict > Verdict::Allow);
    let findings = findings.take(FINDINGS).map(|finding| {
        Value::from([
            ("rule", Value::from(finding.rule)),
            ("id", Value::from(finding.id.clone())),
            ("verdict", Value::from(finding.verdict.as_str())),
            ("path", Value::from(finding.path.clone())),
            ("line", Value::from(finding.line as u64)),
        ])
    });
    content.push("findings", Value::Array(findings.collect()));
    content.push("suppressed", Value::from(report.suppressed.len() as u64));
    content.push("hosts", list(&report.capabilities.hosts));
    content.push("runs_commands", Value::from(report.capabilities.runs_commands));
    content.push("variables", list(&report.capabilities.variables));
    content.push("source", Value::from(candidate.source.to_string_lossy().into_owned()));
}
