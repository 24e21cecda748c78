use serde_json::{Value, json};
use wardkeep_fake_model::Step;

use crate::client::Model;

const LAST: &str = "All done, says the model.";

fn run() -> Model {
    Model::start(&[Step::Run("touch marker".to_owned())])
}

fn shell() -> Value {
    json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]})
}

/// What the log says of a first turn with a call and a second with the result.
fn check_log(model: &Model, wire: &str, tool: &str) {
    let log = model.log();
    assert_eq!(log.len(), 2, "{log:?}");
    assert_eq!(log[0]["wire"], wire);
    assert_eq!(log[0]["answer"]["call"], tool);
    assert_eq!(log[0]["answer"]["arguments"], json!({"command": "touch marker"}));
    assert_eq!(log[0]["results"], json!([]));
    assert_eq!(log[1]["answer"]["say"], LAST);
    assert_eq!(log[1]["results"], json!(["what it printed"]));
}

fn joined<'v>(texts: impl Iterator<Item = &'v Value>) -> String {
    texts.filter_map(Value::as_str).collect()
}

#[test]
fn anthropic_messages() {
    for stream in [false, true] {
        let model = run();
        let mut body = json!({"model": "m", "stream": stream,
            "tools": [{"name": "Bash", "input_schema": shell()}],
            "messages": [{"role": "user", "content": "hello"}]});
        let result = json!({"role": "user", "content": [{"type": "tool_result",
            "tool_use_id": "call_00000001", "content": [{"type": "text", "text": "what it printed"}]}]});
        let path = "/v1/messages?beta=true";
        if stream {
            let events = model.events(path, &body);
            assert_eq!(events[1]["content_block"]["name"], "Bash");
            let text = joined(events.iter().map(|event| &event["delta"]["partial_json"]));
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["command"], "touch marker");
            assert_eq!(events[events.len() - 2]["delta"]["stop_reason"], "tool_use");
            body["messages"].as_array_mut().unwrap().push(result);
            let events = model.events(path, &body);
            assert_eq!(joined(events.iter().map(|event| &event["delta"]["text"])), LAST);
        } else {
            let answer = model.json(path, &body);
            assert_eq!(answer["content"][0]["input"]["command"], "touch marker");
            assert_eq!(answer["stop_reason"], "tool_use");
            body["messages"].as_array_mut().unwrap().push(result);
            assert_eq!(model.json(path, &body)["content"][0]["text"], LAST);
        }
        check_log(&model, "anthropic", "Bash");
    }
}

#[test]
fn chat_completions() {
    for stream in [false, true] {
        let model = run();
        let mut body = json!({"model": "m", "stream": stream,
            "tools": [{"type": "function", "function": {"name": "bash", "parameters": shell()}}],
            "messages": [{"role": "user", "content": "hello"}]});
        let result = json!({"role": "tool", "tool_call_id": "x", "content": "what it printed"});
        let path = "/v1/chat/completions";
        if stream {
            let events = model.events(path, &body);
            let calls =
                || events.iter().map(|event| &event["choices"][0]["delta"]["tool_calls"][0]);
            assert_eq!(joined(calls().map(|call| &call["function"]["name"])), "bash");
            let text = joined(calls().map(|call| &call["function"]["arguments"]));
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["command"], "touch marker");
            assert_eq!(events[events.len() - 2]["choices"][0]["finish_reason"], "tool_calls");
            body["messages"].as_array_mut().unwrap().push(result);
            let events = model.events(path, &body);
            let text = events.iter().map(|event| &event["choices"][0]["delta"]["content"]);
            assert_eq!(joined(text), LAST);
        } else {
            let answer = model.json(path, &body);
            let call = &answer["choices"][0]["message"]["tool_calls"][0]["function"];
            assert_eq!(call["arguments"], r#"{"command":"touch marker"}"#);
            body["messages"].as_array_mut().unwrap().push(result);
            let answer = model.json(path, &body);
            assert_eq!(answer["choices"][0]["message"]["content"], LAST);
        }
        check_log(&model, "chat", "bash");
    }
}

#[test]
fn chat_completions_with_a_tool_that_takes_text() {
    let write = Step::Write { path: "a.txt".to_owned(), content: "one".to_owned() };
    let model = Model::start(&[write]);
    let mut body = json!({"tools": [{"type": "custom", "custom": {"name": "apply_patch"}}]});
    let answer = model.json("/v1/chat/completions", &body);
    let call = &answer["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(call["type"], "custom");
    assert!(call["custom"]["input"].as_str().unwrap().contains("Add File: a.txt\n+one\n"));
    body["stream"] = json!(true);
    let events = model.events("/v1/chat/completions", &body);
    let calls = events.iter().map(|event| &event["choices"][0]["delta"]["tool_calls"][0]["custom"]);
    let text = joined(calls.map(|custom| &custom["input"]));
    assert!(text.contains("Add File: a.txt\n+one\n"), "{text}");
}

#[test]
fn responses() {
    for stream in [false, true] {
        let model = run();
        let mut body = json!({"model": "m", "stream": stream,
            "tools": [{"type": "web_search"},
                {"type": "function", "name": "shell_command", "parameters": shell()}],
            "input": [{"type": "message", "role": "user", "content": "hello"}]});
        let result =
            json!({"type": "function_call_output", "call_id": "x", "output": "what it printed"});
        let path = "/v1/responses";
        if stream {
            let events = model.events(path, &body);
            let done = events.iter().find(|event| event["type"] == "response.output_item.done");
            assert_eq!(done.unwrap()["item"]["arguments"], r#"{"command":"touch marker"}"#);
            let last = events.last().unwrap();
            assert_eq!(last["type"], "response.completed");
            assert_eq!(last["sequence_number"], events.len() - 1);
            body["input"].as_array_mut().unwrap().push(result);
            let events = model.events(path, &body);
            let deltas =
                events.iter().filter(|event| event["type"] == "response.output_text.delta");
            assert_eq!(joined(deltas.map(|event| &event["delta"])), LAST);
        } else {
            let answer = model.json(path, &body);
            assert_eq!(answer["output"][0]["name"], "shell_command");
            body["input"].as_array_mut().unwrap().push(result);
            assert_eq!(model.json(path, &body)["output"][0]["content"][0]["text"], LAST);
        }
        check_log(&model, "responses", "shell_command");
    }
}

#[test]
fn responses_with_a_tool_that_takes_text() {
    let write = Step::Write { path: "a.txt".to_owned(), content: "one".to_owned() };
    let model = Model::start(&[write]);
    let body = json!({"stream": true, "tools": [{"type": "custom", "name": "apply_patch"}],
        "input": [{"type": "message", "role": "user", "content": "hello"}]});
    let events = model.events("/v1/responses", &body);
    let done = events.iter().find(|event| event["type"] == "response.output_item.done").unwrap();
    assert_eq!(done["item"]["type"], "custom_tool_call");
    assert!(done["item"]["input"].as_str().unwrap().contains("Add File: a.txt\n+one\n"));
}

#[test]
fn gemini() {
    for stream in [false, true] {
        let model = run();
        let declared = json!({"name": "run_shell_command", "parametersJsonSchema": shell()});
        let mut body = json!({"tools": [{"functionDeclarations": [declared]}],
            "contents": [{"role": "user", "parts": [{"text": "hello"}]}]});
        let result = json!({"role": "user", "parts": [{"functionResponse":
            {"name": "run_shell_command", "response": {"output": "what it printed"}}}]});
        let call = |answer: &Value| {
            answer["candidates"][0]["content"]["parts"][0]["functionCall"]["args"]["command"]
                .clone()
        };
        if stream {
            let path = "/v1beta/models/m:streamGenerateContent?alt=sse";
            assert_eq!(call(&model.events(path, &body)[0]), "touch marker");
            body["contents"].as_array_mut().unwrap().push(result);
            let events = model.events(path, &body);
            let texts =
                events.iter().map(|event| &event["candidates"][0]["content"]["parts"][0]["text"]);
            assert_eq!(joined(texts), LAST);
            assert_eq!(events.last().unwrap()["candidates"][0]["finishReason"], "STOP");
        } else {
            let path = "/v1beta/models/m:generateContent";
            assert_eq!(call(&model.json(path, &body)), "touch marker");
            body["contents"].as_array_mut().unwrap().push(result);
            let answer = model.json(path, &body);
            assert_eq!(answer["candidates"][0]["content"]["parts"][0]["text"], LAST);
        }
        check_log(&model, "gemini", "run_shell_command");
    }
}

#[test]
fn gemini_fills_in_a_form_instead_of_calling_a_tool() {
    let model = run();
    let body = json!({"contents": [], "generationConfig": {"responseMimeType": "application/json",
        "responseJsonSchema": {"type": "object", "properties": {"next": {"enum": ["user"]}}}}});
    let answer = model.json("/v1beta/models/m:generateContent", &body);
    let text = answer["candidates"][0]["content"]["parts"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), json!({"next": "user"}));
}

#[test]
fn ollama() {
    for stream in [false, true] {
        let model = run();
        let mut body = json!({"model": "m", "stream": stream,
            "tools": [{"type": "function", "function": {"name": "exec", "parameters": shell()}}],
            "messages": [{"role": "user", "content": "hello"}]});
        let result = json!({"role": "tool", "content": "what it printed"});
        let ask = |body: &Value| -> Vec<Value> {
            let text = model.post("/api/chat", body);
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
        };
        let lines = ask(&body);
        assert_eq!(lines.len(), if stream { 2 } else { 1 });
        let call = &lines[0]["message"]["tool_calls"][0]["function"];
        assert_eq!(call["arguments"]["command"], "touch marker");
        assert_eq!(lines.last().unwrap()["done"], true);
        body["messages"].as_array_mut().unwrap().push(result);
        assert_eq!(ask(&body)[0]["message"]["content"], LAST);
        check_log(&model, "ollama", "exec");
    }
}

#[test]
fn steps_follow_the_number_of_results_and_end_with_the_text() {
    let model = Model::start(&[
        Step::Read("a".to_owned()),
        Step::Write { path: "b".to_owned(), content: "c".to_owned() },
    ]);
    let tools = json!([{"name": "Read", "input_schema": {"properties": {"file_path": {}}}},
        {"name": "Write", "input_schema": {"properties": {"file_path": {}, "content": {}}}}]);
    let with = |results: usize| {
        let content: Vec<Value> =
            (0..results).map(|_| json!({"type": "tool_result", "content": "x"})).collect();
        json!({"tools": tools, "messages": [{"role": "user", "content": content}]})
    };
    let first = |results| model.json("/v1/messages", &with(results))["content"][0].clone();
    assert_eq!(first(0)["input"], json!({"file_path": "a"}));
    assert_eq!(first(1)["input"], json!({"file_path": "b", "content": "c"}));
    assert_eq!(first(2)["text"], LAST);
}

#[test]
fn a_request_without_tools_gets_the_text() {
    let model = run();
    let answer = model.json("/v1/messages", &json!({"messages": []}));
    assert_eq!(answer["content"][0]["text"], LAST);
}
