//! Spans, as a collector gets them.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wardkeep_gateway::llm::{Config, Otlp};
use wardkeep_policy::wrap::SessionKey;

use super::models::{ask, model, proxy, read, respond, said};

/// A collector that keeps what it gets.
fn collector() -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let got: Arc<Mutex<Vec<Value>>> = Arc::default();
    let kept = Arc::clone(&got);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let Some(sent) = read(&mut stream) else { continue };
            assert!(sent.head.starts_with("POST /v1/traces HTTP/1.1"), "{}", sent.head);
            assert!(sent.head.contains("application/json"));
            kept.lock().unwrap().push(serde_json::from_slice(&sent.body).unwrap());
            respond(&mut stream, "200 OK\r\ncontent-type: application/json", b"{}");
        }
    });
    (url, got)
}

fn start(url: &str) -> Arc<Otlp> {
    let config = Config::new(SessionKey::new([1; 32]), [1; 16]);
    Arc::new(Otlp::start(url, [9; 16], &config).unwrap())
}

fn attribute(span: &Value, key: &str) -> Option<Value> {
    let found = span["attributes"].as_array()?.iter().find(|one| one["key"] == key)?;
    let value = found["value"].as_object()?.values().next()?.clone();
    Some(value)
}

#[test]
fn exchanges_and_calls_become_spans_without_what_was_said() {
    let model = model(|_, stream| {
        let reply = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1",
            "content": [{"type": "tool_use", "id": "toolu_7", "name": "Bash", "input": {"command": "evil words"}},
                {"type": "tool_use", "id": "toolu_8", "name": "Read", "input": {"path": "quiet words"}}],
            "stop_reason": "tool_use", "usage": {"input_tokens": 12, "output_tokens": 34}});
        respond(stream, "200 OK\r\ncontent-type: application/json", reply.to_string().as_bytes());
    });
    let (url, got) = collector();
    let otlp = start(&url);
    let watch = Arc::clone(&otlp);
    let proxy = proxy(&model, |config| config.watch = Some(watch));
    proxy.post("/v1/messages", &ask(&json!([said("secret words of the user")])));
    proxy.outcomes(1);
    let until = Instant::now() + Duration::from_secs(20);
    let spans = loop {
        let documents = got.lock().unwrap().clone();
        let spans: Vec<Value> = documents
            .iter()
            .flat_map(|one| one["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().cloned())
            .flatten()
            .collect();
        if spans.len() >= 3 || Instant::now() > until {
            break spans;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(spans.len(), 3, "{spans:#?}");
    let chat = spans.iter().find(|span| span["name"] == "chat m").unwrap();
    assert_eq!(chat["kind"], 3);
    for (key, value) in [
        ("gen_ai.operation.name", json!("chat")),
        ("gen_ai.provider.name", json!("anthropic")),
        ("gen_ai.request.model", json!("m")),
        ("gen_ai.response.model", json!("m-1")),
        ("gen_ai.usage.input_tokens", json!("12")),
        ("gen_ai.usage.output_tokens", json!("34")),
        ("wardkeep.tool_calls.allowed", json!("1")),
        ("wardkeep.tool_calls.denied", json!("1")),
        ("wardkeep.record", json!("r1")),
    ] {
        assert_eq!(attribute(chat, key), Some(value), "{key}");
    }
    let time = |name: &str| chat[name].as_str().unwrap().parse::<u128>().unwrap();
    assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"));
    assert_eq!(chat["traceId"].as_str().unwrap().len(), 32);
    for (name, verdict) in [("execute_tool Bash", "deny"), ("execute_tool Read", "allow")] {
        let call = spans.iter().find(|span| span["name"] == name).unwrap();
        assert_eq!(call["parentSpanId"], chat["spanId"]);
        assert_eq!(call["traceId"], chat["traceId"]);
        assert_eq!(attribute(call, "wardkeep.verdict"), Some(json!(verdict)));
    }
    assert!(!json!(spans).to_string().contains("words"), "{spans:#?}");
    assert_eq!(otlp.lost(), 0);
}

#[test]
fn nobody_waits_for_a_collector_that_is_not_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let model = model(super::models::answer_text);
    let otlp = start(&url);
    let watch = Arc::clone(&otlp);
    let mut proxy = proxy(&model, |config| config.watch = Some(watch));
    let got = proxy.post("/v1/messages", &ask(&json!([said("hello")])));
    assert!(got.head.starts_with("HTTP/1.1 200"), "{}", got.head);
    proxy.outcomes(1);
    proxy.running.take().unwrap().stop().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while otlp.lost() == 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(otlp.lost(), 1);
    let config = Config::new(SessionKey::new([1; 32]), [1; 16]);
    assert!(Otlp::start("ftp://x", [1; 16], &config).is_err());
}
