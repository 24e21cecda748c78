//! The screen, drawn.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};
use wardkeep_monitor::approvals::Shown;

use super::app::{App, Grave, Over, code, is_short};
use crate::ui::harmless;

/// Requests that are listed at most.
const MOST: u16 = 6;
/// Longest value of a request.
const LONGEST: usize = 32 << 10;

const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);

pub(super) fn draw(frame: &mut Frame<'_>, app: &App) {
    let waiting = u16::try_from(app.waiting.len()).unwrap_or(MOST).min(MOST);
    let waiting = if waiting == 0 { 0 } else { waiting + 2 };
    let [head, requests, records, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(waiting),
        Constraint::Min(3),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let line = Line::from(vec![
        Span::styled("wardkeep ", STRONG),
        Span::raw(app.grade.as_str()),
        Span::styled(format!("  {}", app.counts), FAINT),
    ]);
    frame.render_widget(line, head);
    if waiting > 0 {
        draw_requests(frame, app, requests);
    }
    draw_records(frame, app, records);
    let keys = match (&app.said, app.waiting.is_empty()) {
        (Some(said), _) => Line::styled(said.as_str(), STRONG),
        (None, true) => Line::styled("q end", FAINT),
        (None, false) => {
            Line::styled("arrows choose  Enter show  a approve once  d deny  q end", FAINT)
        }
    };
    frame.render_widget(keys, foot);
    if let Over::Request { shown, from, question } = &app.over {
        draw_request(frame, shown, *from, *question, app.said.as_deref());
    }
}

fn draw_requests(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let rows = usize::from(area.height.saturating_sub(2));
    // The one that is chosen is always in sight.
    let first = app.chosen.saturating_sub(rows.saturating_sub(1));
    let lines = app.waiting.iter().enumerate().skip(first).take(rows).map(|(number, one)| {
        let style = match number == app.chosen {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => Style::new(),
        };
        let left = format!("{}:{:02}", one.seconds / 60, one.seconds % 60);
        Line::styled(format!("{} {left:>5} {} {}", code(&one.action), one.session, one.what), style)
    });
    let title = format!(" {} wait for you ", app.waiting.len());
    let block = Block::bordered().title(title).border_style(Style::new().fg(Color::Yellow));
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(block), area);
}

fn draw_records(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let rows = usize::from(area.height.saturating_sub(2));
    let lines = app.rows.iter().take(rows).map(|row| {
        let style = match row.grave {
            Grave::Much => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
            Grave::Some => Style::new().fg(Color::Yellow),
            Grave::No => Style::new(),
        };
        Line::from(vec![
            Span::styled(format!("{:>7} {} ", row.index, row.time), FAINT),
            Span::raw(format!("{:<14} ", row.kind)),
            Span::styled(format!("{} ", row.session), FAINT),
            Span::styled(row.text.as_str(), style),
        ])
    });
    let block = Block::bordered().title(" newest first ").border_style(FAINT);
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(block), area);
}

fn draw_request(
    frame: &mut Frame<'_>,
    shown: &Shown,
    from: u16,
    question: Option<bool>,
    said: Option<&str>,
) {
    let area = frame.area();
    let [inner, ask] = Layout::vertical([Constraint::Min(3), Constraint::Length(3)]).areas(area);
    frame.render_widget(Clear, area);
    let title = format!(" request {:.10} ", harmless(&shown.request));
    let block = Block::bordered().title(title);
    let text = Paragraph::new(Text::from(request_lines(shown))).block(block);
    frame.render_widget(text.wrap(Wrap { trim: false }).scroll((from, 0)), inner);
    let code = code(&shown.action);
    let (words, colour) = match question {
        _ if !shown.consistent => {
            ("it asks for something else than it shows: deny it".to_owned(), Color::Red)
        }
        None if said.is_some() => (said.unwrap_or_default().to_owned(), Color::Red),
        None => {
            ("a approve once   d deny   arrows scroll   any other key back".to_owned(), Color::Gray)
        }
        Some(true) => {
            (format!("Approve action {code} once?  y yes, any other key no"), Color::Yellow)
        }
        Some(false) => (format!("Deny action {code}?  y yes, any other key no"), Color::Yellow),
    };
    let block = Block::bordered().border_style(Style::new().fg(colour));
    frame.render_widget(Paragraph::new(Line::styled(words, STRONG)).block(block), ask);
}

/// All of a request; nothing in it can be taken for a command by a terminal.
fn request_lines(shown: &Shown) -> Vec<Line<'static>> {
    let or_none = |names: &[String]| match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    let rows = [
        ("action", shown.action.clone()),
        ("what", format!("{} ({})", shown.act, shown.surface)),
        ("subject", shown.subject.clone()),
        ("for", shown.principal.clone()),
        ("agent", format!("{} in session {}", shown.agent, shown.session)),
        ("workspace", shown.workspace.clone()),
        ("rule", shown.rule.clone()),
        ("reason", shown.reason.clone()),
        (
            "taint",
            format!("{}; of the session {}", or_none(&shown.direct), or_none(&shown.ambient)),
        ),
        ("how", shown.how.clone().unwrap_or_default()),
    ];
    let row = |(label, value): (&str, String)| {
        let value = harmless(&value).chars().take(LONGEST).collect::<String>();
        Line::from(vec![Span::styled(format!("{label:<10}"), FAINT), Span::raw(value)])
    };
    let mut lines: Vec<Line<'static>> =
        rows.into_iter().filter(|(_, value)| !value.is_empty()).map(row).collect();
    if let Some(content) = &shown.content {
        lines.push(Line::styled(format!("content, {} bytes", content.bytes), FAINT));
        match &content.text {
            None => lines.push(Line::raw("  not kept")),
            Some(_) if !is_short(shown) => lines.push(Line::raw("  too long to be shown here")),
            Some(text) => {
                lines.extend(text.lines().map(|line| Line::raw(format!("  {}", harmless(line)))));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use wardkeep_monitor::approvals::{Content, Status};

    use super::super::app::{Answer, Asked, Row, Waiting};
    use super::*;

    const ACTION: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn app() -> App {
        let mut app = App::new("Grade C  64 of 100, watched".to_owned());
        app.counts = "2 records".to_owned();
        let row = |index, text: &str, grave| Row {
            index,
            time: "12:00:01".to_owned(),
            kind: "ToolCall".to_owned(),
            session: "claude-code:1".to_owned(),
            text: harmless(text),
            grave,
        };
        app.rows = vec![
            row(1, "denied \u{1b}]0;owned\u{7}\u{202e}txt.exe", Grave::Much),
            row(0, "cargo test", Grave::No),
        ];
        app.set_waiting(vec![
            waiting("r1", "control-plane change model"),
            waiting("r2", "\u{9b}31m"),
        ]);
        app
    }

    fn waiting(request: &str, what: &str) -> Waiting {
        Waiting {
            request: request.to_owned(),
            action: ACTION.to_owned(),
            seconds: 125,
            session: "claude-code:1".to_owned(),
            what: harmless(what),
        }
    }

    fn request() -> Shown {
        let text = |text: &str| text.to_owned();
        Shown {
            request: text("00112233445566778899"),
            status: Status::Pending,
            at: text("2026-01-31T12:00:00Z"),
            expires: text("2026-01-31T12:10:00Z"),
            action: text(ACTION),
            consistent: true,
            principal: text("TOOL"),
            surface: text("control-plane"),
            act: text("change"),
            subject: text("model\u{1b}[2J"),
            how: None,
            workspace: text("/w"),
            agent: text("claude-code"),
            session: text("claude-code:1"),
            rule: text("cpi-ask"),
            rules: Vec::new(),
            reason: text("a page said so"),
            severity: None,
            suggestion: None,
            direct: Vec::new(),
            ambient: vec![text("WEB_DERIVED")],
            content: Some(Content {
                sha256: text("00"),
                bytes: 9,
                text: Some(text("a\u{7}\nb\u{202e}")),
            }),
            before: None,
            parents: Vec::new(),
            more_parents: 0,
        }
    }

    fn screen(app: &App, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, app)).unwrap();
        terminal.backend().to_string()
    }

    fn press(app: &mut App, key: KeyCode) -> Asked {
        app.key(KeyEvent::new(key, KeyModifiers::NONE))
    }

    #[test]
    fn the_screen_shows_what_waits_and_nothing_hostile() {
        insta::assert_snapshot!("top", screen(&app(), 80, 12));
    }

    #[test]
    fn what_cannot_be_shown_whole_cannot_be_approved_here() {
        let mut app = app();
        let mut long = request();
        long.subject = "x".repeat(64 << 10);
        assert!(matches!(press(&mut app, KeyCode::Char('a')), Asked::Show(_)));
        app.shown(long.clone());
        assert!(screen(&app, 80, 24).contains("too long to be shown whole"));
        assert_eq!(press(&mut app, KeyCode::Char('y')), Asked::Nothing);
        app.shown(long);
        press(&mut app, KeyCode::Char('a'));
        assert_eq!(press(&mut app, KeyCode::Char('y')), Asked::Nothing);
    }

    #[test]
    fn any_size_can_be_drawn() {
        let mut app = app();
        for over in [false, true] {
            if over {
                app.shown(request());
            }
            for (width, height) in [(1, 1), (3, 2), (10, 4), (80, 24), (300, 100)] {
                screen(&app, width, height);
            }
        }
    }

    #[test]
    fn an_answer_is_given_only_after_the_question_with_the_code() {
        let mut app = app();
        assert_eq!(press(&mut app, KeyCode::Char('y')), Asked::Nothing);
        press(&mut app, KeyCode::Down);
        assert_eq!(press(&mut app, KeyCode::Char('a')), Asked::Show("r2".to_owned()));
        app.shown(request());
        let asked = screen(&app, 80, 24);
        assert!(asked.contains("Approve action 01234567 once?"), "{asked}");
        assert!(asked.contains("model\\u{1b}[2J") && !asked.contains('\u{202e}'), "{asked}");
        // Anything but a yes is a no.
        assert_eq!(press(&mut app, KeyCode::Enter), Asked::Nothing);
        assert_eq!(press(&mut app, KeyCode::Char('y')), Asked::Nothing);
        assert_eq!(press(&mut app, KeyCode::Char('d')), Asked::Show("r2".to_owned()));
        app.shown(request());
        let wanted =
            Answer { request: request().request, action: ACTION.to_owned(), approve: false };
        assert_eq!(press(&mut app, KeyCode::Char('y')), Asked::Answer(wanted));
    }
}
