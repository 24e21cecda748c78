//! Any bytes as what comes in to the egress proxy: heads, bodies, SOCKS5, the first message of TLS.

#![no_main]

use wardkeep_gateway::egress::body::Body;
use wardkeep_gateway::egress::head::{Answer, Framing, Head};
use wardkeep_gateway::egress::hello::{Hello, Records};
use wardkeep_gateway::egress::{Host, Rule, Target, socks};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Ok(Some(head)) = Head::parse(data) {
        let text = &data[..head.length];
        assert!(text.ends_with(b"\r\n\r\n") && !text.contains(&0));
        assert_eq!(Head::parse(text), Ok(Some(head.clone())));
        let mut body = Body::of_request(head.framing);
        let _ = body.walk(&data[head.length..], false, |_| {});
    }
    let _ = Answer::parse(data);
    // However it is cut, a body is the same.
    let whole = |size: usize| {
        let mut held = Vec::new();
        let mut body = Body::of_request(Framing::Chunked);
        for piece in data.chunks(size) {
            let walked = body.walk(piece, true, |part| held.extend_from_slice(part)).ok()?;
            if walked.done {
                return Some((held, true));
            }
        }
        Some((held, false))
    };
    assert_eq!(whole(1), whole(data.len().max(1)));
    if let Ok(Some(hello)) = Hello::parse(data) {
        if let Some(name) = hello.name {
            assert_eq!(Host::parse(name.as_bytes()), Ok(Host::Name(name.clone())));
        }
        let _ = Records::default().walk(data);
    }
    let _ = socks::greeting(data);
    let _ = socks::login(data);
    let _ = socks::request(data);
    if let Ok(target) = Target::parse(data, Some(80)) {
        assert_eq!(Target::parse(target.to_string().as_bytes(), None), Ok(target));
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let _ = text.parse::<Rule>();
    }
});
