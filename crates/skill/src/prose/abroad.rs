//! What prose in other languages than English tells its reader, or the agent.

use wardkeep_detect::urls::find_urls;

use super::super::foreign::{Ideas, ideas};
use super::super::markdown::BlockKind;
use super::super::places::{Trust, credential, is_memory, runnable, trust};
use super::super::points;
use super::{Passage, Told, cut};
use crate::verdict::Verdict;

/// Paragraphs that are read together: steps of one list.
const STEPS: usize = 6;

/// Reads paragraphs that are not in English.
pub(super) fn read(passages: &[Passage<'_>], out: &mut Vec<Told>) {
    let texts: Vec<String> = passages
        .iter()
        .map(|passage| points::visible(&passage.block.text).to_lowercase())
        .collect();
    let said: Vec<Ideas> = texts.iter().map(|text| ideas(text)).collect();
    for (place, passage) in passages.iter().enumerate() {
        if said[place] == Ideas::default() || passage.block.kind == BlockKind::Heading {
            continue;
        }
        let together = passages[place..]
            .iter()
            .take(STEPS)
            .take_while(|other| other.block.section == passage.block.section)
            .count();
        let all =
            said[place..place + together].iter().fold(Ideas::default(), |all, one| all.and(*one));
        let mut steps = Steps { urls: Vec::new(), credential: false, memory: false, mail: false };
        for other in &passages[place..place + together] {
            steps.add(other);
        }
        let mut own = Steps { urls: Vec::new(), credential: false, memory: false, mail: false };
        own.add(passage);
        for (rule, verdict, why) in told(said[place], all, &own, &steps) {
            let verdict = match (passage.block.kind == BlockKind::Row, verdict) {
                (true, Verdict::Deny) => Verdict::Ask,
                (true, _) => Verdict::Allow,
                (false, verdict) => verdict,
            };
            out.push(Told {
                rule,
                verdict,
                at: passage.block.at.clone(),
                reason: format!("{why}: “{}”", cut(&passage.block.text)),
            });
        }
    }
}

/// What stands in paragraphs beside words.
struct Steps {
    urls: Vec<String>,
    credential: bool,
    memory: bool,
    mail: bool,
}

impl Steps {
    fn add(&mut self, passage: &Passage<'_>) {
        let block = passage.block;
        self.urls.extend(find_urls(&block.text).into_iter().map(|found| found.url.raw.to_string()));
        let words = block
            .text
            .split(|sign: char| sign.is_whitespace() || "`\"'(),;，。、（）「」".contains(sign))
            .map(|word| word.trim_end_matches(['.', ':', '!']));
        for word in words.chain(block.codes.iter().map(|(code, _)| code.as_str())) {
            let dotted = word.starts_with(['~', '.', '/', '$']) || word.contains('/');
            self.credential |=
                dotted && !word.contains("://") && credential(word).is_some() || word == ".env";
            self.memory |= is_memory(word);
            self.mail |= word.split_once('@').is_some_and(|(_, host)| host.contains('.'));
        }
    }
}

fn told(
    own: Ideas,
    all: Ideas,
    here: &Steps,
    steps: &Steps,
) -> Vec<(&'static str, Verdict, &'static str)> {
    let mut out = Vec::new();
    let secret = own.any(Ideas::SECRET) || own.all(Ideas::NOT.and(Ideas::TELL).and(Ideas::USER));
    let acts = Ideas::RUN.and(Ideas::SEND).and(Ideas::FETCH).and(Ideas::READ).and(Ideas::ADD);
    let outside = !here.urls.is_empty() || here.mail;
    if here.credential && own.any(Ideas::SEND) && outside {
        let verdict = if secret { Verdict::Deny } else { Verdict::Ask };
        out.push(("credentials.asked", verdict, "credentials are to be read and passed on"));
    }
    if secret && (own.any(acts) || outside) {
        out.push(("prompt.secrecy", Verdict::Ask, "the agent is to keep something from you"));
    }
    if own.all(Ideas::IGNORE.and(Ideas::RULES).and(Ideas::EARLIER)) {
        out.push(("prompt.override", Verdict::Ask, "the agent is to drop its rules"));
    }
    if own.any(Ideas::UNASKED) && own.any(Ideas::RUN.and(Ideas::SEND)) {
        out.push(("prompt.unasked", Verdict::Ask, "the agent is to act without asking"));
    }
    if here.memory && own.any(Ideas::ADD) && (own.any(Ideas::ALWAYS) || secret) {
        out.push(("memory.told", Verdict::Ask, "the agent is to change its own instructions"));
    }
    let worst = steps.urls.iter().map(|url| trust(url)).max();
    let program = steps.urls.iter().any(|url| runnable(url));
    let fetches = own.any(Ideas::FETCH) && !steps.urls.is_empty();
    if fetches
        && all.any(Ideas::PASSWORD)
        && (program || all.any(Ideas::UNPACK))
        && all.any(Ideas::UNPACK.and(Ideas::RUN))
    {
        out.push(("lure.locked", Verdict::Deny, "a locked archive is to be fetched and run"));
    } else if all.all(Ideas::PASTE.and(Ideas::TERMINAL)) && !here.urls.is_empty() {
        let verdict = if worst == Some(Trust::Anonymous) { Verdict::Deny } else { Verdict::Ask };
        out.push(("lure.paste", verdict, "a command is to be copied from a page and run"));
    } else if fetches && program && all.any(Ideas::RUN) && worst > Some(Trust::Known) {
        let verdict = if worst == Some(Trust::Anonymous) { Verdict::Deny } else { Verdict::Ask };
        out.push(("lure.program", verdict, "a program is to be fetched and run"));
    } else if fetches
        && own.any(Ideas::RUN)
        && own.any(Ideas::RULES.and(Ideas::TERMINAL))
        && !here.urls.is_empty()
    {
        out.push(("prompt.remote", Verdict::Ask, "instructions are to be fetched and followed"));
    }
    out
}
