//! The screen, drawn.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, Clear, Paragraph, Wrap};
use wardkeep_monitor::approvals::Shown;

use super::app::{App, Grave, Over, code, is_short};
use crate::ui::{Member, harmless, wrapped};

/// Requests that are listed at most.
const MOST: u16 = 6;
/// Longest value of a request.
const LONGEST: usize = 32 << 10;

const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
const CHOSEN: Style = Style::new().add_modifier(Modifier::REVERSED);

/// From so many columns on there is room for what is only good to know.
const ROOMY: usize = 100;

const KEYS: &str = "up down PgUp PgDn choose  Enter show  q end";
const KEYS_OF_REQUESTS: &str =
    "up down PgUp PgDn Home choose  Enter show  a approve once  d deny  q end";

pub(super) fn draw(frame: &mut Frame<'_>, app: &mut App) {
    let waiting = u16::try_from(app.waiting.len()).unwrap_or(MOST).min(MOST);
    let waiting = if waiting == 0 { 0 } else { waiting + 2 };
    let [head, staged, requests, records, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(u16::from(!app.staged.is_empty())),
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
    let line = cut(&app.staged, usize::from(staged.width));
    frame.render_widget(Line::styled(line, Style::new().fg(Color::Yellow)), staged);
    if waiting > 0 {
        draw_requests(frame, app, requests);
    }
    draw_records(frame, app, records);
    let keys = match (&app.said, app.waiting.is_empty()) {
        (Some(said), _) => Line::styled(cut(said, usize::from(foot.width)), STRONG),
        (None, true) => Line::styled(KEYS, FAINT),
        (None, false) => Line::styled(KEYS_OF_REQUESTS, FAINT),
    };
    frame.render_widget(keys, foot);
    match &mut app.over {
        Over::Nothing => {}
        Over::Record { members, from } => draw_record(frame, members, from),
        Over::Request { shown, from, question } => {
            draw_request(frame, shown, *from, *question, app.said.as_deref());
        }
    }
}

/// A text that is harmless already, in at most so many columns; what is left out shows as `…`.
fn cut(text: &str, columns: usize) -> String {
    if Span::raw(text).width() <= columns {
        return text.to_owned();
    }
    let (mut out, mut left) = (String::new(), columns.saturating_sub(1));
    for sign in text.chars() {
        let width = Span::raw(sign.to_string()).width();
        if width > left {
            break;
        }
        left -= width;
        out.push(sign);
    }
    if columns > 0 {
        out.push('…');
    }
    out
}

/// The first of so many lines that are shown of a list, so that the chosen one is in sight.
fn first_of(chosen: usize, rows: usize) -> usize {
    chosen.saturating_sub(rows.saturating_sub(1))
}

fn draw_requests(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let rows = usize::from(area.height.saturating_sub(2));
    let columns = usize::from(area.width.saturating_sub(2));
    let first = first_of(app.chosen, rows);
    let lines = app.waiting.iter().enumerate().skip(first).take(rows).map(|(number, one)| {
        let style = match number == app.chosen && app.event().is_none() {
            true => CHOSEN,
            false => Style::new(),
        };
        let left = format!("{}:{:02}", one.seconds / 60, one.seconds % 60);
        let session = session(&one.session, columns);
        let line = format!("{} {left:>5} {session}{}", code(&one.request), one.what);
        Line::styled(cut(&line, columns), style)
    });
    let title = format!(" {} wait for you ", app.waiting.len());
    let block = Block::bordered().title(title).border_style(Style::new().fg(Color::Yellow));
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(block), area);
}

/// Whose it is, with as much of the session as there is room for: where that is little, only the agent.
fn session(session: &str, columns: usize) -> String {
    const AGENT: usize = 12;
    const SESSION: usize = 24;
    if session.is_empty() {
        return String::new();
    }
    let agent = session.split(':').next().unwrap_or_default();
    match columns < ROOMY {
        true => format!("{} ", cut(agent, AGENT)),
        false => format!("{} ", cut(session, SESSION)),
    }
}

fn draw_records(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let rows = usize::from(area.height.saturating_sub(2));
    let columns = usize::from(area.width.saturating_sub(2));
    let (chosen, first) = (app.event(), first_of(app.event().unwrap_or(0), rows));
    let digits = app.rows.first().map_or(1, |row| row.index.to_string().len());
    let lines = app.rows.iter().enumerate().skip(first).take(rows).map(|(number, row)| {
        let style = match row.grave {
            Grave::Much => Style::new().fg(Color::Red).add_modifier(Modifier::BOLD),
            Grave::Some => Style::new().fg(Color::Yellow),
            Grave::No => Style::new(),
        };
        let place = format!("{:>digits$} {} ", row.index, row.time);
        let kind = if columns < ROOMY { String::new() } else { format!("{:<14} ", row.kind) };
        let session = session(&row.session, columns);
        let before: usize = [&place, &kind, &session].into_iter().map(|text| width(text)).sum();
        let text = cut(&row.text, columns.saturating_sub(before));
        let line = Line::from(vec![
            Span::styled(place, FAINT),
            Span::raw(kind),
            Span::styled(session, FAINT),
            Span::styled(text, style),
        ]);
        if chosen == Some(number) { line.patch_style(CHOSEN) } else { line }
    });
    let block = Block::bordered().title(" newest first ").border_style(FAINT);
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()).block(block), area);
}

fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// All of a record; nothing in it can be taken for a command by a terminal.
fn draw_record(frame: &mut Frame<'_>, members: &[Member], from: &mut u16) {
    let area = frame.area();
    let [inner, foot] = Layout::vertical([Constraint::Min(3), Constraint::Length(1)]).areas(area);
    frame.render_widget(Clear, area);
    let block = Block::bordered().title(" record ");
    let lines = record_lines(members, usize::from(inner.width.saturating_sub(2)));
    // The last line stays in sight.
    let room = usize::from(inner.height.saturating_sub(2));
    let last = u16::try_from(lines.len().saturating_sub(room)).unwrap_or(u16::MAX);
    *from = (*from).min(last);
    let text = Paragraph::new(Text::from(lines)).block(block).scroll((*from, 0));
    frame.render_widget(text, inner);
    frame.render_widget(Line::styled("arrows PgUp PgDn scroll  Esc back", FAINT), foot);
}

/// Labels, and beside them what they say, in lines of at most so many columns.
fn record_lines(members: &[Member], columns: usize) -> Vec<Line<'static>> {
    const LABEL: usize = 12;
    let room = columns.saturating_sub(LABEL).max(1);
    let mut lines = Vec::new();
    for (label, value) in members {
        let mut label = harmless(label);
        let wide = width(&label) >= LABEL;
        if wide {
            lines.push(Line::styled(cut(&std::mem::take(&mut label), columns), FAINT));
        }
        for line in value.strip_suffix('\n').unwrap_or(value).split('\n') {
            for piece in broken(&harmless(line).chars().take(LONGEST).collect::<String>(), room) {
                let label = std::mem::take(&mut label);
                lines.push(Line::from(vec![
                    Span::styled(format!("{label:<LABEL$}"), FAINT),
                    Span::raw(piece),
                ]));
            }
        }
    }
    lines
}

/// A line in pieces of at most so many columns: between words, and inside of one that is longer.
fn broken(line: &str, columns: usize) -> Vec<String> {
    let mut pieces = Vec::new();
    for piece in wrapped(line, columns) {
        let (mut part, mut left) = (String::new(), columns);
        for sign in piece.chars() {
            let width = width(sign.encode_utf8(&mut [0; 4]));
            if width > left {
                pieces.push(std::mem::take(&mut part));
                left = columns;
            }
            left = left.saturating_sub(width);
            part.push(sign);
        }
        pieces.push(part);
    }
    pieces
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
    let title = format!(" request {} ", code(&shown.request));
    let block = Block::bordered().title(title);
    let text = Paragraph::new(Text::from(request_lines(shown))).block(block);
    frame.render_widget(text.wrap(Wrap { trim: false }).scroll((from, 0)), inner);
    let code = code(&shown.request);
    let (words, colour) = match question {
        _ if !shown.consistent => {
            ("it asks for something else than it shows: deny it".to_owned(), Color::Red)
        }
        None if said.is_some() => (said.unwrap_or_default().to_owned(), Color::Red),
        None => (
            "a approve once   d deny   arrows PgUp PgDn scroll   any other key back".to_owned(),
            Color::Gray,
        ),
        Some(true) => {
            (format!("Approve request {code} once?  y yes, any other key no"), Color::Yellow)
        }
        Some(false) => (format!("Deny request {code}?  y yes, any other key no"), Color::Yellow),
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
            id: format!("id{index}"),
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
            waiting("aabbccddeeff0011", "control-plane change model"),
            waiting("bbccddeeff001122", "\u{9b}31m"),
        ]);
        app
    }

    fn waiting(request: &str, what: &str) -> Waiting {
        Waiting {
            request: request.to_owned(),
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

    fn screen(app: &mut App, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, app)).unwrap();
        terminal.backend().to_string()
    }

    fn press(app: &mut App, key: KeyCode) -> Asked {
        app.key(KeyEvent::new(key, KeyModifiers::NONE))
    }

    #[test]
    fn the_screen_shows_what_waits_and_nothing_hostile() {
        insta::assert_snapshot!("top", screen(&mut app(), 80, 12));
    }

    #[test]
    fn what_cannot_be_shown_whole_cannot_be_approved_here() {
        let mut app = app();
        let mut long = request();
        long.subject = "x".repeat(64 << 10);
        assert!(matches!(press(&mut app, KeyCode::Char('a')), Asked::Show(_)));
        app.shown(long.clone());
        assert!(screen(&mut app, 80, 24).contains("too long to be shown whole"));
        assert_eq!(press(&mut app, KeyCode::Char('y')), Asked::Nothing);
        app.shown(long);
        press(&mut app, KeyCode::Char('a'));
        assert_eq!(press(&mut app, KeyCode::Char('y')), Asked::Nothing);
    }

    fn long() -> App {
        let mut app = app();
        let text = |index: u64| match index {
            7 => format!("denied: write /a ({} the end)", "a long reason ".repeat(10)),
            index => format!("event {index} \u{ff37}\u{ff37}"),
        };
        app.rows = (0..60)
            .rev()
            .map(|index| Row {
                index,
                id: format!("id{index}"),
                time: "12:00:01".to_owned(),
                kind: "ToolCall".to_owned(),
                session: "claude-code:0a1b2c3d-0000-1111-2222-333344445555".to_owned(),
                text: text(index),
                grave: Grave::No,
            })
            .collect();
        app
    }

    #[test]
    fn events_are_chosen_by_key_and_shown_whole() {
        let mut app = long();
        app.set_waiting(Vec::new());
        assert_eq!(press(&mut app, KeyCode::Enter), Asked::Nothing);
        press(&mut app, KeyCode::Down);
        assert_eq!(press(&mut app, KeyCode::Enter), Asked::Record("id59".to_owned()));
        // What is chosen stays so while others come, and is always in sight.
        for _ in 0..5 {
            press(&mut app, KeyCode::PageDown);
        }
        press(&mut app, KeyCode::Down);
        press(&mut app, KeyCode::Down);
        assert_eq!(press(&mut app, KeyCode::Enter), Asked::Record("id7".to_owned()));
        let newest = Row { index: 60, id: "id60".to_owned(), ..app.rows[0].clone() };
        app.rows.insert(0, newest);
        assert_eq!(press(&mut app, KeyCode::Enter), Asked::Record("id7".to_owned()));
        let shown = screen(&mut app, 80, 24);
        let line = shown.lines().find(|line| line.contains("denied: write /a")).unwrap();
        assert!(line.contains("a long reason") && line.contains("…│"), "{shown}");
        // All of it, and back.
        let reason = format!("{}\u{1b}[2J the end", "a long reason ".repeat(40));
        app.record(vec![
            ("tells".to_owned(), reason),
            ("a label that is long".to_owned(), "x".repeat(200)),
        ]);
        let shown = screen(&mut app, 80, 24);
        for part in ["\\u{1b}[2J", "the end"] {
            assert!(shown.contains(part) && !shown.contains('…'), "{shown}");
        }
        assert_eq!(shown.matches('x').count(), 200, "{shown}");
        press(&mut app, KeyCode::PageDown);
        assert!(screen(&mut app, 80, 24).contains("the end"));
        press(&mut app, KeyCode::Esc);
        assert!(screen(&mut app, 80, 24).contains("newest first"));
        press(&mut app, KeyCode::End);
        assert_eq!(press(&mut app, KeyCode::Enter), Asked::Record("id0".to_owned()));
        press(&mut app, KeyCode::Down);
        assert_eq!(press(&mut app, KeyCode::Enter), Asked::Record("id0".to_owned()));
        press(&mut app, KeyCode::PageUp);
        assert_eq!(press(&mut app, KeyCode::Enter), Asked::Record("id10".to_owned()));
        press(&mut app, KeyCode::Home);
        assert_eq!(press(&mut app, KeyCode::Enter), Asked::Nothing);
        assert_eq!(press(&mut app, KeyCode::Esc), Asked::End);
    }

    #[test]
    fn a_request_is_answered_only_where_it_is_the_one_chosen() {
        let mut app = long();
        for _ in 0..2 {
            press(&mut app, KeyCode::Down);
        }
        assert_eq!(press(&mut app, KeyCode::Char('a')), Asked::Nothing);
        assert!(screen(&mut app, 80, 24).contains("choose a request first"));
        assert_eq!(press(&mut app, KeyCode::Enter), Asked::Record("id59".to_owned()));
        press(&mut app, KeyCode::Up);
        let second = Asked::Show("bbccddeeff001122".to_owned());
        assert_eq!(press(&mut app, KeyCode::Char('a')), second);
        press(&mut app, KeyCode::PageDown);
        press(&mut app, KeyCode::Home);
        let first = Asked::Show("aabbccddeeff0011".to_owned());
        assert_eq!(press(&mut app, KeyCode::Enter), first);
    }

    #[test]
    fn what_is_staged_is_told_and_every_line_fits() {
        let mut app = long();
        app.staged =
            "2 staged changes wait in /home/someone/a-workspace: `wardkeep diff`".to_owned();
        insta::assert_snapshot!("top-80x24", screen(&mut app, 80, 24));
    }

    #[test]
    fn any_size_can_be_drawn() {
        let mut app = long();
        app.staged = "1 staged change waits".to_owned();
        for over in 0..3 {
            match over {
                0 => {}
                1 => app.shown(request()),
                _ => app.record(vec![("tells".to_owned(), "\u{ff37} wide".repeat(50))]),
            }
            for (width, height) in [(1, 1), (3, 2), (10, 4), (80, 24), (300, 100)] {
                screen(&mut app, width, height);
            }
        }
    }

    #[test]
    fn an_answer_is_given_only_after_the_question_with_the_code() {
        let mut app = app();
        assert_eq!(press(&mut app, KeyCode::Char('y')), Asked::Nothing);
        press(&mut app, KeyCode::Down);
        assert_eq!(press(&mut app, KeyCode::Char('a')), Asked::Show("bbccddeeff001122".to_owned()));
        app.shown(request());
        let asked = screen(&mut app, 80, 24);
        assert!(asked.contains("Approve request 0011223344 once?"), "{asked}");
        assert!(asked.contains("model\\u{1b}[2J") && !asked.contains('\u{202e}'), "{asked}");
        // Anything but a yes is a no.
        assert_eq!(press(&mut app, KeyCode::Enter), Asked::Nothing);
        assert_eq!(press(&mut app, KeyCode::Char('y')), Asked::Nothing);
        assert_eq!(press(&mut app, KeyCode::Char('d')), Asked::Show("bbccddeeff001122".to_owned()));
        app.shown(request());
        let wanted =
            Answer { request: request().request, action: ACTION.to_owned(), approve: false };
        assert_eq!(press(&mut app, KeyCode::Char('y')), Asked::Answer(wanted));
    }
}
