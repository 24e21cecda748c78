//! The owner's rules: Cedar, and only what forbids.

use std::collections::HashMap;
use std::ops::Range;
use std::str::FromStr as _;
use std::sync::OnceLock;

use cedar_policy::{
    ActionConstraint, Effect, Policy, PolicyId, PolicySet, ResourceConstraint, ValidationMode,
    ValidationWarning, Validator,
};
use miette::Diagnostic;
use wardkeep_evidence::check::printable;

use super::engine::Engine;
use super::names::Named as _;
use super::problem::RuleProblem;
use super::text::{self, Piece};
use super::{BUILT_IN_CEDAR, built_in};
use crate::facts::Facts;
use crate::rules::vocabulary::unknown_words;
use crate::surface::{Act, Surface};
use crate::verdict::{Hit, Verdict};

/// Largest text of all files together.
pub const MAX_BYTES: usize = 256 << 10;
/// Most rules of all files together.
pub const MAX_RULES: usize = 500;
/// Most problems that are told.
const MAX_PROBLEMS: usize = 50;
/// Longest id and reason, in bytes and in characters.
const LONGEST_ID: usize = 64;
const LONGEST_REASON: usize = 160;
/// What stands before the id of an owner's rule in records.
const PREFIX: &str = "own:";
/// A rule of the owner's could not be asked.
const FAILED: &str = "rules-deny-error";

/// A file with rules.
#[derive(Debug, Clone, Copy)]
pub struct RuleFile<'a> {
    /// Its name, for messages.
    pub name: &'a str,
    /// Its bytes.
    pub text: &'a [u8],
}

/// A rule of the owner's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnRule {
    /// Its id in records: `own:` and what `@id` says.
    pub id: String,
    /// What it demands.
    pub verdict: Verdict,
    /// What `@reason` says.
    pub reason: Option<String>,
    /// The file it is in.
    pub file: String,
    /// The line it begins in.
    pub line: usize,
}

/// The owner's rules, checked.
#[derive(Debug, Default)]
pub struct OwnRules {
    rules: Vec<OwnRule>,
    warnings: Vec<RuleProblem>,
    loaded: Option<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    engine: Engine,
    /// One for each of the rules.
    policies: Vec<Policy>,
    /// Those that can match at all, by surface and act, made when they are first needed.
    sets: Vec<OnceLock<Option<PolicySet>>>,
}

/// Whose rules are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Owner,
    BuiltIn,
}

/// The built-in rules as they are written in Cedar.
///
/// # Errors
/// Never, as a test shows.
pub fn built_in_as_cedar() -> Result<OwnRules, Vec<RuleProblem>> {
    let file = RuleFile { name: "builtin.cedar", text: BUILT_IN_CEDAR.as_bytes() };
    Reader::new(Origin::BuiltIn).read(&[file])
}

impl OwnRules {
    /// Reads and checks the text of one file.
    ///
    /// # Errors
    /// With everything that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Vec<RuleProblem>> {
        Self::parse_files(&[RuleFile { name: "rules.cedar", text: text.as_bytes() }])
    }

    /// Reads and checks several files, which are one set of rules.
    ///
    /// # Errors
    /// With everything that is wrong with them.
    pub fn parse_files(files: &[RuleFile<'_>]) -> Result<Self, Vec<RuleProblem>> {
        Reader::new(Origin::Owner).read(files)
    }

    /// The rules, in their order.
    #[must_use]
    pub fn rules(&self) -> &[OwnRule] {
        &self.rules
    }

    /// What is odd about them and yet allowed.
    #[must_use]
    pub fn warnings(&self) -> &[RuleProblem] {
        &self.warnings
    }

    /// Those that match, the strictest first. Where one cannot be evaluated, that is a denial.
    #[must_use]
    pub fn judge(&self, facts: &Facts) -> Vec<Hit> {
        let Some(loaded) = &self.loaded else { return Vec::new() };
        let Some(set) = loaded.set(facts) else { return Vec::new() };
        let request = match loaded.engine.request(facts) {
            Ok(request) => request,
            Err(error) => return vec![failed(FAILED.to_owned(), &error)],
        };
        let matched = loaded.engine.matching(&request, set);
        let rule = |id: &PolicyId| number(id).and_then(|number| self.rules.get(number));
        let mut hits: Vec<Hit> = matched
            .policies
            .iter()
            .filter_map(rule)
            // The permit, and questions that the owner has answered.
            .filter(|rule| rule.verdict != Verdict::Allow)
            .filter(|rule| !(rule.verdict == Verdict::Ask && facts.approved))
            .map(|rule| hit(rule, facts))
            .collect();
        hits.extend(matched.failed.iter().map(|(id, error)| {
            failed(rule(id).map_or_else(|| FAILED.to_owned(), |rule| rule.id.clone()), error)
        }));
        hits.sort_by(|one, other| {
            other.verdict.cmp(&one.verdict).then_with(|| one.rule.cmp(&other.rule))
        });
        hits
    }
}

impl Loaded {
    fn set(&self, facts: &Facts) -> Option<&PolicySet> {
        let place = facts.surface as usize * Act::ALL.len() + facts.act as usize;
        let make = || {
            let mut set = PolicySet::new();
            for policy in self.policies.iter().filter(|one| can_match(one, facts)) {
                // INVARIANT: ids are numbers in order, so none is there twice.
                let _ = set.add(policy.clone());
            }
            (!set.is_empty()).then_some(set)
        };
        self.sets.get(place)?.get_or_init(make).as_ref()
    }
}

/// Whether the head of a rule leaves it open that it matches.
fn can_match(policy: &Policy, facts: &Facts) -> bool {
    let named = |uid: &cedar_policy::EntityUid| uid.id().unescaped() == facts.act.name();
    let group =
        |uid: &cedar_policy::EntityUid| uid.id().unescaped() == "alter" && facts.act.changes_file();
    let act = match policy.action_constraint() {
        ActionConstraint::Any => true,
        ActionConstraint::Eq(uid) => named(&uid),
        ActionConstraint::In(uids) => uids.iter().any(|uid| named(uid) || group(uid)),
    };
    let surface = match policy.resource_constraint() {
        ResourceConstraint::Eq(uid) => uid.id().unescaped() == facts.surface.name(),
        _ => true,
    };
    act && surface
}

fn hit(rule: &OwnRule, facts: &Facts) -> Hit {
    let reason = match &rule.reason {
        Some(reason) => reason.clone(),
        None => {
            let id = rule.id.trim_start_matches(PREFIX);
            format!("the owner's rule `{id}` forbids {} this act ({})", facts.principal, facts.act)
        }
    };
    Hit { rule: rule.id.clone().into(), verdict: rule.verdict, reason: reason.into() }
}

fn failed(rule: String, error: &str) -> Hit {
    let reason = format!("the rule cannot be evaluated, which is a denial: {}", printable(error));
    Hit { rule: rule.into(), verdict: Verdict::Deny, reason: reason.into() }
}

/// Policies are numbered from 0, here and by Cedar's reader.
fn number(id: &PolicyId) -> Option<usize> {
    let text: &str = id.as_ref();
    text.strip_prefix("policy").unwrap_or(text).parse().ok()
}

struct Reader {
    origin: Origin,
    problems: Vec<RuleProblem>,
    rules: OwnRules,
    policies: Vec<Policy>,
    ids: HashMap<String, String>,
}

/// A file that is being read.
struct Source<'t> {
    name: &'t str,
    text: &'t str,
    pieces: Vec<Piece<'t>>,
}

impl Source<'_> {
    fn problem(&self, span: Range<usize>, message: impl Into<String>) -> RuleProblem {
        RuleProblem::new(self.name, self.text, span, message)
    }

    /// Where a policy begins: from its first token to the word `forbid` and no further.
    fn head(&self, number: usize) -> Range<usize> {
        let piece = self.pieces.get(number);
        let effect = piece.and_then(|piece| {
            piece.tokens.iter().find(|token| matches!(token.text, "permit" | "forbid"))
        });
        effect.map_or_else(|| piece.map_or(0..1, Piece::span), text::Token::span)
    }

    /// What Cedar says, at the place it says.
    fn told(&self, diagnostic: &dyn Diagnostic, otherwise: Range<usize>) -> RuleProblem {
        let label = diagnostic.labels().and_then(|mut labels| labels.next());
        let span = label.as_ref().map_or(otherwise, |label| {
            label.offset()..label.offset().saturating_add(label.len().max(1))
        });
        let problem = self.problem(span, diagnostic.to_string());
        match (label.and_then(|label| label.label().map(str::to_owned)), diagnostic.help()) {
            (_, Some(help)) => problem.help(help.to_string()),
            (Some(label), None) => problem.help(label),
            (None, None) => problem,
        }
    }
}

impl Reader {
    fn new(origin: Origin) -> Self {
        Self {
            origin,
            problems: Vec::new(),
            rules: OwnRules::default(),
            policies: Vec::new(),
            ids: HashMap::new(),
        }
    }

    fn read(mut self, files: &[RuleFile<'_>]) -> Result<OwnRules, Vec<RuleProblem>> {
        let bytes: usize = files.iter().map(|file| file.text.len()).sum();
        if bytes > MAX_BYTES {
            let name = files.last().map_or("", |file| file.name);
            let message = format!("the rules have {bytes} bytes, over the limit of {MAX_BYTES}");
            return Err(vec![RuleProblem::new(name, "", 0..0, message)]);
        }
        let mut sources = Vec::new();
        for file in files {
            sources.extend(self.source(file));
        }
        let count: usize = sources.iter().map(|source| source.pieces.len()).sum();
        if count > MAX_RULES {
            let name = files.last().map_or("", |file| file.name);
            let message = format!("there are {count} rules, over the limit of {MAX_RULES}");
            return Err(vec![RuleProblem::new(name, "", 0..0, message)]);
        }
        if count > 0 {
            let engine = Engine::new()
                .map_err(|error| vec![RuleProblem::new("wardkeep.cedarschema", "", 0..0, error)])?;
            let validator = Validator::new(engine.schema.clone());
            for source in &sources {
                self.file(source, &validator);
            }
            let policies = std::mem::take(&mut self.policies);
            let places = Surface::ALL.len() * Act::ALL.len();
            let sets = (0..places).map(|_| OnceLock::new()).collect();
            self.rules.loaded = Some(Loaded { engine, policies, sets });
        }
        if self.problems.is_empty() {
            return Ok(self.rules);
        }
        self.problems.truncate(MAX_PROBLEMS);
        Err(self.problems)
    }

    fn source<'t>(&mut self, file: &RuleFile<'t>) -> Option<Source<'t>> {
        let name = file.name;
        let text = match std::str::from_utf8(file.text) {
            Ok(text) => text,
            Err(error) => {
                let message = format!("byte {} is not UTF-8 text", error.valid_up_to());
                self.problems.push(RuleProblem::new(name, "", 0..0, message));
                return None;
            }
        };
        match text::pieces(text) {
            Ok(pieces) => Some(Source { name, text, pieces }),
            Err(refused) => {
                let problem = RuleProblem::new(name, text, refused.span, refused.message);
                self.problems.push(problem);
                None
            }
        }
    }

    fn file(&mut self, source: &Source<'_>, validator: &Validator) {
        if source.pieces.is_empty() {
            return;
        }
        let set = match PolicySet::from_str(source.text) {
            Ok(set) => set,
            Err(errors) => {
                let told = errors.iter().map(|error| source.told(error, 0..1));
                self.problems.extend(told);
                return;
            }
        };
        let before = self.problems.len();
        for template in set.templates() {
            let at = source.head(number(template.id()).unwrap_or(0));
            let problem =
                source.problem(at, "a rule with a slot is a template, and nothing fills it");
            self.problems.push(problem.help("name the principal or the surface"));
        }
        let count = set.policies().count() + set.templates().count();
        if count != source.pieces.len() {
            let message =
                format!("Cedar reads {count} rules where {} end with `;`", source.pieces.len());
            self.problems.push(source.problem(0..1, message));
        }
        let mut policies: Vec<(usize, &Policy)> =
            set.policies().filter_map(|policy| Some((number(policy.id())?, policy))).collect();
        policies.sort_by_key(|(number, _)| *number);
        for (number, policy) in policies {
            self.policy(source, number, policy);
        }
        // What Cedar finds in a rule that is refused anyway only repeats that.
        if self.problems.len() == before {
            self.validate(source, &set, validator);
        }
    }

    fn policy(&mut self, source: &Source<'_>, number: usize, policy: &Policy) {
        let Some(piece) = source.pieces.get(number) else { return };
        let owner = self.origin == Origin::Owner;
        if owner && policy.effect() == Effect::Permit {
            let problem = source.problem(source.head(number), "an owner's rule cannot permit");
            self.problems.push(problem.help(
                "what no rule forbids is allowed; write `forbid`, or remove a rule of your own",
            ));
            return;
        }
        let place = |name: &str| piece.annotation(name).unwrap_or_else(|| source.head(number));
        let mut found = Vec::new();
        for (name, _) in policy.annotations() {
            if !matches!(name, "id" | "verdict" | "reason") {
                let message = format!("there is no annotation `@{name}`");
                found.push(source.problem(place(name), message).help("@id, @verdict, @reason"));
            }
        }
        let id = policy.annotation("id").unwrap_or_default();
        match check_id(id, owner) {
            Some(message) => found.push(source.problem(place("id"), message)),
            None => {
                if let Some(other) = self.ids.insert(id.to_owned(), source.name.to_owned()) {
                    let message = format!("another rule in {other} has the id `{id}`");
                    found.push(source.problem(place("id"), message));
                }
            }
        }
        let verdict = match policy.annotation("verdict") {
            None if policy.effect() == Effect::Permit => Verdict::Allow,
            None => Verdict::Deny,
            Some(name) => match Verdict::named(name) {
                Some(verdict) if verdict != Verdict::Allow => verdict,
                _ => {
                    let message = format!("`{name}` is no verdict of a rule that forbids");
                    let problem = source.problem(place("verdict"), message);
                    found.push(problem.help("deny, ask, stage or redact"));
                    Verdict::Deny
                }
            },
        };
        let reason = policy.annotation("reason").map(str::to_owned);
        if reason.as_ref().is_some_and(|text| !is_reason(text)) {
            let message = format!(
                "a reason is one line of 1 to {LONGEST_REASON} characters that can be printed"
            );
            found.push(source.problem(place("reason"), message));
        }
        let words = unknown_words(piece).into_iter();
        found.extend(words.map(|word| source.problem(word.span, word.message).help(word.help)));
        self.problems.extend(found);
        let prefix = if owner { PREFIX } else { "" };
        let line = source.problem(piece.span(), "").line;
        let file = source.name.to_owned();
        self.rules.rules.push(OwnRule { id: format!("{prefix}{id}"), verdict, reason, file, line });
        self.policies.push(policy.new_id(PolicyId::new(self.policies.len().to_string())));
    }

    fn validate(&mut self, source: &Source<'_>, set: &PolicySet, validator: &Validator) {
        let result = validator.validate(set, ValidationMode::Strict);
        let place = |id: &PolicyId| source.head(number(id).unwrap_or(0));
        for error in result.validation_errors() {
            let problem = plain(source.told(error, place(error.policy_id())));
            // Cedar tells the same for every act.
            let same = |other: &RuleProblem| {
                (&other.file, other.line, other.column)
                    == (&problem.file, problem.line, problem.column)
            };
            if !self.problems.iter().any(same) {
                self.problems.push(problem);
            }
        }
        // What is wrong makes a rule one that never matches, which need not be said besides.
        let warnings = result.validation_warnings().filter(|_| result.validation_passed());
        for warning in warnings {
            let problem = plain(source.told(warning, place(warning.policy_id())));
            match warning {
                ValidationWarning::MixedScriptString(_)
                | ValidationWarning::MixedScriptIdentifier(_)
                | ValidationWarning::ConfusableIdentifier(_) => self.rules.warnings.push(problem),
                // A rule that never matches, or that reads otherwise than it is.
                _ => self.problems.push(problem),
            }
        }
        self.problems.sort_by_key(|problem| (problem.file.clone(), problem.line, problem.column));
    }
}

/// What is wrong with an id.
fn check_id(id: &str, owner: bool) -> Option<String> {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    if id.is_empty() {
        return Some("a rule needs an id: `@id(\"my-rule\")`".to_owned());
    }
    if id.len() > LONGEST_ID || !id.bytes().all(plain) {
        return Some(format!(
            "an id has at most {LONGEST_ID} characters of a-z, 0-9, `-`, `_` and `.`"
        ));
    }
    if owner && (built_in::rule(id).is_some() || id.starts_with("rules-")) {
        return Some(format!("`{id}` is the id of a built-in rule"));
    }
    None
}

fn is_reason(text: &str) -> bool {
    !text.trim().is_empty() && printable(text) == text
}

/// Without the number that Cedar gave the rule, and the act that it happened to look at.
fn plain(mut problem: RuleProblem) -> RuleProblem {
    if let Some((first, rest)) = problem.message.split_once(", ")
        && first.starts_with("for policy `policy")
    {
        problem.message = rest.to_owned();
    }
    if let Some((first, _)) = problem.message.split_once(" in context for Action::") {
        problem.message = first.to_owned();
    }
    problem
}
