//! The grade on the terminal: the mark, and what would raise it.

use serde::Serialize;
use wardkeep_agents::Agent;
use wardkeep_agents::install::presence::present;
use wardkeep_evidence::verify::Trust;
use wardkeep_monitor::grade::{Evidence, Facts, Grade, Letter, grade};
use wardkeep_monitor::index::Asked;
use wardkeep_monitor::prove::{Query, Report, prove};

use super::evidence::report::{configured_witnesses, journal_bytes};
use super::standing::Observer;
use crate::context::Context;
use crate::error::CliError;
use crate::ui::Line;

/// What was seen, and the mark for it.
pub(super) struct Standing {
    pub(super) facts: Facts,
    pub(super) grade: Grade,
    /// What the journal tells; nothing, where there is none.
    pub(super) report: Option<Report>,
}

/// A grade for the JSON form.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    letter: String,
    points: u8,
    strength: &'static str,
    parts: Vec<wardkeep_monitor::grade::Part>,
    steps: Vec<wardkeep_monitor::grade::Step>,
}

impl From<&Grade> for Row {
    fn from(grade: &Grade) -> Self {
        Self {
            letter: grade.letter.to_string(),
            points: grade.points,
            strength: grade.strength.word(),
            parts: grade.parts.clone(),
            steps: grade.steps.clone(),
        }
    }
}

/// Looks at everything. The journal is verified from the last verified checkpoint on.
pub(super) fn look(context: &mut Context) -> Result<Standing, CliError> {
    let observer = Observer::new(context)?;
    let now = context.now()?;
    let report = match context.open_reader() {
        Err(_) => None,
        Ok(reader) => {
            let trust = Trust { witnesses: configured_witnesses(&reader), ..Trust::default() };
            let query = Query { asked: Asked::default(), limit: 3, full: false };
            let total = journal_bytes(&reader);
            let mut progress = context.ui.progress("reading");
            let mut done = 0;
            Some(prove(&reader, &trust, &query, now, context.threads(), &mut |bytes| {
                done += bytes;
                progress.update(done.min(total), total);
            })?)
        }
    };
    let evidence = match &report {
        None => Evidence::Unseen,
        Some(report) if report.health.chain_valid => Evidence::Holds,
        Some(_) => Evidence::Broken,
    };
    let home = context.home();
    let here = home.map(|home| present(&home, &context.program_folders())).unwrap_or_default();
    let agents: Vec<Agent> = here.into_iter().map(|one| one.agent).collect();
    let facts = observer.facts(now, evidence, &agents);
    Ok(Standing { grade: grade(&facts), facts, report })
}

/// The mark in one line.
pub(super) fn headline(grade: &Grade) -> Line {
    let mark = format!("Grade {}", grade.letter);
    let line = match grade.letter {
        Letter::A | Letter::B => Line::default().good(mark),
        Letter::C | Letter::D => Line::default().warning(mark),
        Letter::E | Letter::F => Line::default().bad(mark),
    };
    line.plain(format!("  {} of 100, {}", grade.points, grade.strength.word()))
}

/// The steps that raise it most, as rows.
pub(super) fn steps(grade: &Grade, most: usize) -> Vec<Vec<Line>> {
    let row = |step: &wardkeep_monitor::grade::Step| {
        let gains = match step.broken {
            true => Line::default().bad("mend"),
            false => Line::default().good(format!("+{}", step.gains)),
        };
        vec![gains, Line::default().strong(&step.command), Line::default().faint(&step.what)]
    };
    grade.steps.iter().take(most).map(row).collect()
}
