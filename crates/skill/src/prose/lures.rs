//! Orders to fetch something and run it.

use std::ops::Range;

use super::super::lexicon::Says;
use super::super::markdown::BlockKind;
use super::super::places::{Trust, runnable, trust};
use super::{Passage, Sentence, Told, lowered};
use crate::verdict::Verdict;

/// Orders to fetch something and run it.
pub(super) fn lures(passages: &[Passage<'_>], out: &mut Vec<Told>) {
    for (place, passage) in passages.iter().enumerate() {
        if passage.block.kind == BlockKind::Heading {
            continue;
        }
        let block = passage.block;
        let near: Vec<&Passage<'_>> = passages
            .iter()
            .skip(place.saturating_sub(3))
            .take(7)
            .filter(|other| other.block.section == block.section)
            .collect();
        let around = near.iter().fold(passage.says, |all, other| all.and(other.says));
        let gate = around.and(passage.heading).any(Says::GATE);
        let mut links: Vec<(String, String, Range<usize>)> = block
            .links
            .iter()
            .map(|link| (link.url.clone(), link.text.clone(), link.at.clone()))
            .collect();
        for found in wardkeep_detect::urls::find_urls(&block.text) {
            if !links.iter().any(|(url, ..)| *url == found.url.raw) {
                links.push((found.url.raw.clone(), String::new(), block.at.clone()));
            }
        }
        for (url, text, at) in links.iter().filter(|(url, ..)| url.contains("://")) {
            let trusted = trust(url);
            if matches!(trusted, Trust::Local) {
                continue;
            }
            let program = runnable(url);
            let says = passage.says;
            let fetches = says.any(Says::DOWNLOAD) || says.any(Says::RUN);
            let locked = near.iter().any(|other| {
                other.says.any(Says::PASSWORD)
                    && other.block.at.start.abs_diff(block.at.start) < 600
            });
            let (rule, verdict, why) = if (program
                || trusted == Trust::Anonymous
                || says.any(Says::PASSWORD))
                && fetches
                && locked
            {
                ("lure.locked", Verdict::Deny, "an archive is to be fetched from")
            } else if says.any(Says::PASTE) && trusted == Trust::Anonymous {
                ("lure.paste", Verdict::Deny, "a command is to be copied and run from")
            } else if says.any(Says::PASTE) && trusted != Trust::Known {
                let sure = gate && bland(text);
                (
                    "lure.paste",
                    if sure { Verdict::Deny } else { Verdict::Ask },
                    "a command is to be copied and run from",
                )
            } else if trusted == Trust::Anonymous
                && fetches
                && gate
                && (program || says.any(Says::RUN))
            {
                (
                    "lure.program",
                    Verdict::Deny,
                    "something is to be fetched and run from a place where anybody can put anything,",
                )
            } else if program
                && trusted == Trust::Unknown
                && says.any(Says::RUN)
                && around.any(Says::GATE)
                && is_opened(&passage.says, &passage.sentences)
            {
                ("lure.program", Verdict::Ask, "a program is to be fetched and run from")
            } else {
                continue;
            };
            let verdict = if passage.warns && !gate { lowered(verdict) } else { verdict };
            let at = if at.is_empty() { block.at.clone() } else { at.clone() };
            out.push(Told { rule, verdict, at, reason: format!("{why} {}", shown(url)) });
        }
    }
}

/// Whether a link says nothing about where it leads.
fn bland(text: &str) -> bool {
    let text = text.trim().to_lowercase();
    matches!(
        text.as_str(),
        "this page"
            | "here"
            | "this link"
            | "link"
            | "this"
            | "the page"
            | "this site"
            | "page"
            | "click here"
            | "this url"
            | "this website"
    ) || text.starts_with("http")
        || text.contains("install")
}

/// Whether an order to run names what a person would open.
fn is_opened(says: &Says, sentences: &[Sentence]) -> bool {
    says.any(Says::DOWNLOAD)
        && sentences.iter().any(|sentence| {
            [
                "executable",
                "installer",
                "run the",
                "run it",
                "launch",
                "double-click",
                ".exe",
                ".dmg",
                "execute",
            ]
            .iter()
            .any(|word| sentence.text.contains(word))
        })
}

fn shown(url: &str) -> String {
    url.chars().take(120).collect()
}
