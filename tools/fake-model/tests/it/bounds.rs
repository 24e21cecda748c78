use proptest::prelude::*;
use serde_json::json;
use wardkeep_fake_model::Step;

use crate::client::Model;

#[test]
fn too_much_is_refused() {
    let model = Model::start(&[]);
    let head = "POST /v1/messages HTTP/1.1\r\n";
    let long = format!("{head}content-length: 99999999999\r\n\r\n");
    assert!(model.send(long.as_bytes()).starts_with("HTTP/1.1 413 "));
    let endless = format!("{head}x: {}", "y".repeat(100_000));
    assert!(model.send(endless.as_bytes()).starts_with("HTTP/1.1 431 "));
    let chunk = format!("{head}transfer-encoding: chunked\r\n\r\nfffffffff\r\n");
    assert!(model.send(chunk.as_bytes()).starts_with("HTTP/1.1 413 "));
    let squeezed = format!("{head}content-encoding: zstd\r\ncontent-length: 0\r\n\r\n");
    assert!(model.send(squeezed.as_bytes()).starts_with("HTTP/1.1 415 "));
    assert!(model.send(b"nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    let words = format!("{head}content-length: 3\r\n\r\n{{x}}");
    assert!(model.send(words.as_bytes()).starts_with("HTTP/1.1 400 "));
}

#[test]
fn a_body_may_come_in_chunks() {
    let model = Model::start(&[]);
    let body = json!({"messages": []}).to_string();
    let (one, two) = body.split_at(5);
    let request = format!(
        "POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n\
         {:x}\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n",
        one.len(),
        two.len()
    );
    assert!(model.send(request.as_bytes()).starts_with("HTTP/1.1 200 "));
    assert_eq!(model.log()[0]["body"], json!({"messages": []}));
}

#[test]
fn keys_are_not_logged() {
    let model = Model::start(&[]);
    model.send(b"GET /v1/models HTTP/1.1\r\nauthorization: Bearer abc-secret\r\n\r\n");
    let log = model.log();
    assert_eq!(log[0]["path"], "/v1/models");
    assert!(!log[0].to_string().contains("abc-secret"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_body_is_answered(text in "\\PC{0,40}", path in prop::sample::select(vec![
        "/v1/messages", "/v1/chat/completions", "/v1/responses",
        "/v1beta/models/m:streamGenerateContent", "/api/chat", "/else",
    ])) {
        let model = Model::start(&[Step::Run(text.clone())]);
        for body in [
            json!({"messages": text, "tools": [text], "input": {"a": text}, "contents": 1}),
            json!([text]),
            json!({"tools": [{"name": "bash", "type": "function", "function": {"name": "bash"},
                "functionDeclarations": [{"name": "bash"}]}], "stream": true}),
        ] {
            prop_assert!(!model.post(path, &body).is_empty());
        }
    }
}
