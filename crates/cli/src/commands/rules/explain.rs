//! `wardkeep rules explain`

use std::path::PathBuf;

use serde::Serialize;
use wardkeep_guard::network::judge;
use wardkeep_guard::rules::explain::{Explanation, explain};
use wardkeep_guard::rules::form::{FactsForm, Gaps, NetworkForm};
use wardkeep_monitor::monitor::egress_in_force;
use wardkeep_policy::store::PolicyStore;

use super::facts::{Flags, Recorded, from_json, from_record};
use super::{load, toned, warn_of_doubt};
use crate::commands::md::policy_store;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::ui::Line;

/// Says which rules match facts, which decides, why, and what would have been needed
///
/// The facts are given as options, as JSON, or are those of a decision in the journal. A record is
/// judged by the rules as they are now; if they were others then, that is said. Of a request to a URL
/// your lists of hosts are asked first, as a hook asks them. Exit 0, whatever the verdict is.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Explain this record of the journal: its id, or at least the first 8 digits of it
    #[arg(conflicts_with_all = ["principal", "surface", "act", "facts"])]
    record: Option<String>,
    /// Read the facts from this file, one JSON object, or `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["principal", "surface", "act"])]
    facts: Option<PathBuf>,
    /// Use the rules of this file instead of those of the state directory
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
}

#[derive(Serialize)]
struct MatchJson<'a> {
    rule: &'a str,
    verdict: &'static str,
    reason: &'a str,
    condition: &'a str,
    needed: &'a str,
}

#[derive(Serialize)]
struct RecordedJson {
    record: String,
    verdict: Option<String>,
    rule: Option<String>,
    same_rules: Option<bool>,
}

#[derive(Serialize)]
struct Answer<'a> {
    verdict: &'static str,
    rule: &'a str,
    reason: &'a str,
    matched: Vec<MatchJson<'a>>,
    taint: Vec<&'static str>,
    answered: &'a [String],
    considered: usize,
    facts: FactsForm,
    recorded: Option<RecordedJson>,
    notes: Vec<String>,
    digest: &'a str,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Exit, CliError> {
    let (mut form, gaps, recorded) = match (&args.record, &args.facts) {
        (Some(record), _) => {
            let recorded = from_record(context, record)?;
            (recorded.form.clone(), Gaps::Left, Some(recorded))
        }
        (None, Some(file)) => (from_json(file)?, Gaps::Filled, None),
        (None, None) => (args.flags.form(), Gaps::Filled, None),
    };
    let listed = match &recorded {
        Some(_) => Vec::new(),
        None => ask_lists(&mut form, &policy_store(context)?),
    };
    let facts = form.facts(gaps).map_err(|error| {
        let text = error.to_string();
        let (message, hint) = text.split_once(": ").unwrap_or((&text, "see --help"));
        CliError::refused(message, hint)
    })?;
    let loaded = load(context, args.rules.as_deref())?;
    let explanation = explain(&loaded.rules, &facts);
    let notes = recorded
        .as_ref()
        .map_or(listed, |recorded| notes(recorded, &explanation, loaded.rules.digest()));
    show(context, &explanation);
    notes.iter().for_each(|note| context.ui.note(note));
    warn_of_doubt(context, &loaded.rules);
    let answer = Answer {
        verdict: explanation.verdict.as_str(),
        rule: &explanation.rule,
        reason: &explanation.reason,
        matched: explanation
            .matched
            .iter()
            .map(|one| MatchJson {
                rule: &one.rule,
                verdict: one.verdict.as_str(),
                reason: &one.reason,
                condition: &one.condition,
                needed: &one.needed,
            })
            .collect(),
        taint: explanation.annotated.iter().flat_map(|(_, taint)| taint.names()).collect(),
        answered: &explanation.answered,
        considered: explanation.considered,
        facts: FactsForm::from(&facts),
        recorded: recorded.map(|recorded| RecordedJson {
            record: recorded.id,
            verdict: recorded.verdict,
            rule: recorded.rule,
            same_rules: recorded.digest.map(|digest| digest == loaded.rules.digest()),
        }),
        notes,
        digest: loaded.rules.digest(),
    };
    Ok(context.done(&answer))
}

/// Adds what the owner's lists say of the host that a request goes to, where the facts do not; and says
/// so in words.
fn ask_lists(form: &mut FactsForm, policy: &PolicyStore) -> Vec<String> {
    let given = form.network.as_ref();
    let told = given.is_some_and(|network| network.url.is_some() || network.host.is_some());
    if form.act != "send" || form.subject.is_empty() || told {
        return Vec::new();
    }
    let given = form.network.take().unwrap_or_default();
    let method = given.method.clone().unwrap_or_else(|| "GET".to_owned());
    let judged = judge(&form.subject, &method, given.payload, &egress_in_force(policy));
    let found = judged.facts;
    let mut notes: Vec<String> = judged.notes.iter().map(ToString::to_string).collect();
    let list = match (found.blocked, found.allowed, found.listed) {
        (true, ..) => Some("is blocked by your lists, or by those that are built in"),
        (_, true, _) => Some("is on your list `allowed_domains`"),
        (_, false, true) => Some("is not on your list `allowed_domains`"),
        _ => None,
    };
    notes.extend(list.map(|list| format!("`{}` {list} (`[egress]` in config.toml)", found.host)));
    form.network = Some(NetworkForm {
        allowed: found.allowed || given.allowed,
        listed: found.listed || given.listed,
        blocked: found.blocked || given.blocked,
        internal: found.internal || given.internal,
        metadata: found.metadata || given.metadata,
        oversized: found.oversized || given.oversized,
        exfiltration: found.exfiltration || given.exfiltration,
        ..NetworkForm::from(&found)
    });
    notes
}

fn notes(recorded: &Recorded, explanation: &Explanation, digest: &str) -> Vec<String> {
    let mut notes = Vec::new();
    if recorded.digest.as_deref().is_some_and(|then| then != digest) {
        notes.push("the rules were others when this was decided".to_owned());
    }
    if let Some(verdict) = &recorded.verdict
        && *verdict != explanation.verdict.as_str()
    {
        let rule = recorded.rule.as_deref().unwrap_or("no rule that is named");
        notes.push(format!("it was decided otherwise then: {verdict}, by {rule}"));
    }
    if !recorded.untold.is_empty() {
        let untold = recorded.untold.join(", ");
        notes.push(format!(
            "the record does not tell {untold}, which are taken as clean and not so"
        ));
    }
    notes
}

fn show(context: &mut Context, explanation: &Explanation) {
    let line = toned(Line::default(), explanation.verdict);
    context.ui.answer(line.plain(" by ").strong(&explanation.rule));
    context.ui.answer(format!("  {}", explanation.reason));
    for (position, one) in explanation.matched.iter().enumerate() {
        let decided = if position == 0 { ", which decided" } else { "" };
        let line = toned(Line::from("matched ").strong(&one.rule).plain(": "), one.verdict);
        context.ui.say(line.plain(decided));
        if position > 0 {
            context.ui.say(format!("  {}", one.reason));
        }
        context.ui.say(format!("  when    {}", one.condition));
        context.ui.say(format!("  needed  {}", one.needed));
    }
    for id in &explanation.answered {
        context.ui.say(Line::from("answered by the approval: ").strong(id));
    }
    for (id, taint) in &explanation.annotated {
        context.ui.say(Line::from("adds ").plain(taint.to_string()).plain(" by ").strong(id));
    }
    context.ui.say(format!("{} rules apply to such an act there", explanation.considered));
}
