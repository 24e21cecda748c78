//! What is answered, in each agent's form.

use serde_json::{Value, json};
use wardkeep_agents::{Agent, Answer, Event, Kind, Output};
use wardkeep_monitor::monitor::{AnswerBody, EventAnswer};

use crate::shapes::{goes_on, shapes};

fn body(verdict: &str) -> AnswerBody {
    AnswerBody {
        verdict: verdict.to_owned(),
        record: "0123456789abcdef".repeat(4),
        rule: "fs-stage-protected".to_owned(),
        reason: "`SOUL.md` is protected".to_owned(),
        suggestion: Some("write it to the staging folder".to_owned()),
        taint: Vec::new(),
        severity: "high".to_owned(),
        text: None,
        staged: None,
        messages: Vec::new(),
        tokens: None,
    }
}

fn said(answers: Vec<AnswerBody>) -> EventAnswer {
    EventAnswer { answers, stopped: None, messages: Vec::new(), block: None }
}

fn event(agent: Agent, name: &str, kind: Kind) -> Event {
    let (_, _, event) = shapes(agent, "true")
        .into_iter()
        .find(|(other, one, _)| *one == kind && (name.is_empty() || *other == name))
        .unwrap();
    let hint = shapes(agent, "true").into_iter().find(|(_, one, _)| *one == kind).unwrap().0;
    agent.read(Some(hint), event.to_string().as_bytes(), None).unwrap()
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_denial_says_why_and_what_to_do() {
    for agent in Agent::ALL {
        let event = event(*agent, "", Kind::ToolCall);
        let answer = Answer::of(&event, &said(vec![body("deny")]));
        let output = agent.write(&event, &answer);
        assert!(!goes_on(*agent, Kind::ToolCall, &output), "{agent}");
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(text.contains("SOUL.md") && text.contains("staging folder"), "{agent}: {text}");
        assert!(text.contains("fs-stage-protected") && text.contains("0123456789ab"), "{text}");
    }
}

#[test]
fn a_question_is_a_denial_with_an_id() {
    for agent in Agent::ALL {
        let event = event(*agent, "", Kind::ToolCall);
        let answer = Answer::of(&event, &said(vec![body("ask")]));
        assert!(matches!(&answer, Answer::Pending { id, .. } if id == "0123456789ab"));
        let output = agent.write(&event, &answer);
        assert!(!goes_on(*agent, Kind::ToolCall, &output), "{agent}");
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(text.contains("wardkeep approvals approve 0123456789ab"), "{agent}: {text}");
    }
}

#[test]
fn leave_never_answers_for_the_user() {
    for agent in [Agent::ClaudeCode, Agent::Codex, Agent::QwenCode, Agent::CopilotCli] {
        let event = event(agent, "", Kind::ToolCall);
        let mut told = said(vec![body("allow")]);
        let quiet = agent.write(&event, &Answer::of(&event, &told));
        assert_eq!((&quiet.stdout[..], &quiet.stderr[..], quiet.code), (&b""[..], &b""[..], 0));
        told.messages.push("something was rolled back".to_owned());
        let output = agent.write(&event, &Answer::of(&event, &told));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("something was rolled back"), "{agent}: {text}");
        assert!(!text.contains("permissionDecision"), "{agent}: {text}");
    }
}

#[test]
fn a_protected_write_goes_to_the_staging_folder_where_that_is_possible() {
    let claude = json!({
        "session_id": "s", "cwd": "/w", "hook_event_name": "PreToolUse", "tool_name": "Write",
        "tool_input": {"file_path": "/w/SOUL.md", "content": "x"},
    });
    let event = Agent::ClaudeCode.read(None, claude.to_string().as_bytes(), None).unwrap();
    let mut staged = body("stage");
    staged.staged = Some("/w/.soulguard/staging/SOUL.md".into());
    let answer = Answer::of(&event, &said(vec![body("allow"), staged.clone()]));
    let output = json_of(&Agent::ClaudeCode.write(&event, &answer));
    let input = &output["hookSpecificOutput"]["updatedInput"];
    assert_eq!(input["file_path"], "/w/.soulguard/staging/SOUL.md");
    assert_eq!(input["content"], "x");
    // Part of a file cannot be written elsewhere, and Codex is not asked to.
    let mut edit = claude.clone();
    edit["tool_name"] = json!("Edit");
    edit["tool_input"] = json!({"file_path": "/w/SOUL.md", "old_string": "a", "new_string": "b"});
    for (agent, event) in [(Agent::ClaudeCode, &edit), (Agent::Codex, &claude)] {
        let event = agent.read(None, event.to_string().as_bytes(), None).unwrap();
        let answer = Answer::of(&event, &said(vec![body("allow"), staged.clone()]));
        assert!(matches!(answer, Answer::Deny { .. }), "{agent} {answer:?}");
    }
}

#[test]
fn a_result_is_shown_without_what_was_withheld() {
    for agent in Agent::ALL.iter().filter(|agent| {
        shapes(**agent, "true").iter().any(|(_, kind, _)| *kind == Kind::ToolResult)
    }) {
        let event = event(*agent, "", Kind::ToolResult);
        let mut redacted = body("redact");
        let given = event.result.clone().unwrap();
        let text = match &event.crossings[..] {
            [wardkeep_agents::Crossing::Result { text }] => text.clone(),
            other => panic!("{other:?}"),
        };
        redacted.text = Some(text.replace("hello", "[withheld]"));
        let output = agent.write(&event, &Answer::of(&event, &said(vec![redacted])));
        let text =
            String::from_utf8([output.stdout.clone(), output.stderr.clone()].concat()).unwrap();
        assert!(!text.contains("hello"), "{agent}: {text}");
        if *agent == Agent::ClaudeCode {
            let out = &json_of(&output)["hookSpecificOutput"]["updatedToolOutput"];
            assert_eq!(out["stdout"], "[withheld]");
            assert_eq!(out["interrupted"], given["interrupted"]);
        }
        // Without an answer, all of it.
        let output = agent.write(&event, &Answer::deny("no answer"));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains("hello") && text.contains("no answer"), "{agent}: {text}");
    }
}

#[test]
fn codex_is_told_nothing_that_its_schema_does_not_know() {
    let known =
        ["continue", "stopReason", "systemMessage", "decision", "reason", "hookSpecificOutput"];
    let inner = ["hookEventName", "additionalContext"];
    for (name, kind, _) in shapes(Agent::Codex, "true") {
        let event = event(Agent::Codex, name, kind);
        for verdict in ["allow", "deny", "ask", "redact", "stage"] {
            let mut answer = body(verdict);
            answer.text = Some("x".to_owned());
            let mut told = said(vec![answer]);
            told.messages.push("m".to_owned());
            told.block = Some("b".to_owned());
            let output = Agent::Codex.write(&event, &Answer::of(&event, &told));
            if output.stdout.is_empty() {
                continue;
            }
            let out = json_of(&output);
            let keys: Vec<&String> = out.as_object().unwrap().keys().collect();
            assert!(keys.iter().all(|key| known.contains(&key.as_str())), "{keys:?}");
            if let Some(Value::Object(specific)) = out.get("hookSpecificOutput") {
                assert!(specific.keys().all(|key| inner.contains(&key.as_str())), "{specific:?}");
            }
        }
    }
}

#[test]
fn a_session_is_told_the_policy_at_its_beginning() {
    let event = event(Agent::ClaudeCode, "SessionStart", Kind::SessionStart);
    let mut told = said(vec![body("allow")]);
    told.block = Some("## Workspace Security Policy".to_owned());
    told.messages.push("⚠ LocalGPT.md tampered. Using defaults.".to_owned());
    let out = json_of(&Agent::ClaudeCode.write(&event, &Answer::of(&event, &told)));
    let context = out["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(context.contains("## Workspace Security Policy") && context.contains("tampered"));
    assert!(out["systemMessage"].as_str().unwrap().contains("tampered"));
    told.stopped = Some("strict".to_owned());
    let out = json_of(&Agent::ClaudeCode.write(&event, &Answer::of(&event, &told)));
    assert_eq!(out["continue"], false);
}

#[test]
fn gemini_is_not_told_what_it_would_repeat_as_the_users_words() {
    let event = event(Agent::GeminiCli, "SessionStart", Kind::SessionStart);
    let mut told = said(vec![body("allow")]);
    told.block = Some("## Workspace Security Policy".to_owned());
    told.messages.push("a warning".to_owned());
    let out = json_of(&Agent::GeminiCli.write(&event, &Answer::of(&event, &told)));
    assert_eq!(out, json!({"systemMessage": "wardkeep: a warning"}));
}

#[test]
fn nothing_in_a_reason_reaches_the_terminal() {
    let event = event(Agent::ClaudeCode, "", Kind::ToolCall);
    let mut hostile = body("deny");
    hostile.reason = "\u{1b}[2J`a\u{202e}b`".to_owned();
    let output = Agent::ClaudeCode.write(&event, &Answer::of(&event, &said(vec![hostile])));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
}

#[test]
fn under_the_guard_a_no_to_claude_code_is_said_without_the_command() {
    let no = Agent::ClaudeCode.refuse(Some("PreToolUse"), "because");
    assert_eq!(no.code, 2);
    let said = Agent::ClaudeCode.guarded(Some("PreToolUse"), no.clone());
    let text = "denied by wardkeep: because";
    assert_eq!(said.guarded_code(), Some(wardkeep_agents::ANSWERED));
    let said = json_of(&said);
    assert_eq!(said["hookSpecificOutput"]["permissionDecision"], "deny");
    assert_eq!(said["hookSpecificOutput"]["permissionDecisionReason"], text);
    let said = json_of(&Agent::ClaudeCode.guarded(Some("UserPromptSubmit"), no.clone()));
    assert_eq!((&said["decision"], &said["reason"]), (&"block".into(), &text.into()));
    // What says something else than that stays as it is.
    assert_eq!(Agent::ClaudeCode.guarded(Some("ConfigChange"), no.clone()), no);
    assert_eq!(Agent::Codex.guarded(Some("PreToolUse"), no.clone()), no);
    assert_eq!(no.guarded_code(), Some(wardkeep_agents::DENIED));
}

#[test]
fn a_result_that_was_not_even_read_ends_the_turn_of_claude_code() {
    let said = json_of(&Agent::ClaudeCode.refuse(Some("PostToolUse"), "because"));
    assert_eq!(said["continue"], false);
    assert!(said["stopReason"].as_str().unwrap().contains("because"));
}
