//! A report for a person.

use wardkeep_guard::skill::{Capabilities, Finding, Report, Verdict, rule};

use crate::context::Context;
use crate::ui::Line;

/// Prints the verdict and what was found.
pub(super) fn report(context: &mut Context, path: &str, report: &Report, all: bool) {
    let line = Line::from(format!("{path}: "));
    let line = match report.verdict {
        Verdict::Allow => line.good("allow"),
        Verdict::Deny => line.bad("deny"),
        Verdict::Ask => line.strong("ask"),
    };
    let rest = if report.complete { "" } else { " (not all of it was read)" };
    context.ui.answer(line.plain(rest));
    let shown = |finding: &&Finding| all || finding.verdict > Verdict::Allow;
    for finding in report.findings.iter().filter(shown) {
        one(context, finding, "");
    }
    for taken in &report.suppressed {
        one(context, &taken.finding, " (suppressed)");
        context.ui.say(format!("    suppressed by the owner: {}", taken.reason));
    }
}

fn one(context: &mut Context, finding: &Finding, mark: &str) {
    let title = rule(finding.rule).map_or("", |rule| rule.title);
    let place = if finding.line > 0 {
        format!(":{}:{}", finding.line, finding.column)
    } else {
        String::new()
    };
    context.ui.say(format!("  {}{place} {} {}{mark}", finding.path, finding.verdict, finding.rule));
    context.ui.say(format!("    {title}: {}", finding.reason));
    if !finding.excerpt.is_empty() {
        context.ui.say(format!("    | {}", finding.excerpt.lines().next().unwrap_or_default()));
    }
    if let (Some(rule), "") = (rule(finding.rule), mark) {
        context.ui.say(format!("    {}", rule.help));
    }
}

/// Prints what a skill would be granted.
pub(super) fn capabilities(context: &mut Context, seen: &Capabilities) {
    let list = |names: &[String]| match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    context.ui.say(format!("  hosts: {}", list(&seen.hosts)));
    context.ui.say(format!("  variables: {}", list(&seen.variables)));
    context.ui.say(format!("  runs commands: {}", if seen.runs_commands { "yes" } else { "no" }));
}
