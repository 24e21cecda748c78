//! Whatever comes in is survived, and read alike however it is cut.

use proptest::collection::vec;
use proptest::prelude::*;
use wardkeep_gateway::egress::body::Body;
use wardkeep_gateway::egress::head::{Answer, Framing, Head};
use wardkeep_gateway::egress::hello::{Hello, Records, example};
use wardkeep_gateway::egress::{Host, Rule, Target, socks};

/// Bytes that look a little like a head.
fn almost_head() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\r\n".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"Host: a.test\r\n".to_vec()),
        Just(b"Content-Length: 5\r\n".to_vec()),
        Just(b"Transfer-Encoding: chunked\r\n".to_vec()),
        Just(b" ".to_vec()),
        vec(any::<u8>(), 0..8),
        "[a-zA-Z-]{1,10}: [ -~]{0,20}\r\n".prop_map(String::into_bytes),
    ];
    vec(piece, 0..20).prop_map(|pieces| {
        let mut all = b"GET http://a.test/ HTTP/1.1\r\n".to_vec();
        pieces.iter().for_each(|piece| all.extend_from_slice(piece));
        all
    })
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..2000)) {
        let _ = Head::parse(&bytes);
        let _ = Answer::parse(&bytes);
        let _ = Hello::parse(&bytes);
        let _ = Records::default().walk(&bytes);
        let _ = socks::greeting(&bytes);
        let _ = socks::login(&bytes);
        let _ = socks::request(&bytes);
        let _ = Host::parse(&bytes);
        let _ = Target::parse(&bytes, Some(80));
        let _ = Body::of_request(Framing::Chunked).walk(&bytes, true, |_| {});
        let _ = String::from_utf8_lossy(&bytes).parse::<Rule>();
    }

    #[test]
    fn what_is_taken_for_a_head_is_strict(bytes in almost_head()) {
        if let Ok(Some(head)) = Head::parse(&bytes) {
            let text = &bytes[..head.length];
            prop_assert!(text.ends_with(b"\r\n\r\n"));
            for (at, byte) in text.iter().enumerate() {
                prop_assert!(*byte != 0);
                prop_assert!(*byte != b'\n' || text[at - 1] == b'\r');
                prop_assert!(*byte != b'\r' || text[at + 1] == b'\n');
            }
            let lower = String::from_utf8_lossy(text).to_lowercase();
            let count = |name: &str| lower.matches(&format!("\n{name}:")).count();
            prop_assert!(count("content-length") + count("transfer-encoding") <= 1);
            prop_assert!(head.headers.len() == lower.matches("\r\n").count() - 2);
            // What is there earlier does not change with what comes later.
            prop_assert_eq!(Head::parse(text), Ok(Some(head.clone())));
        }
    }

    #[test]
    fn a_head_is_read_alike_however_it_is_cut(bytes in almost_head(), cut in any::<prop::sample::Index>()) {
        let cut = cut.index(bytes.len() + 1);
        if let Ok(Some(part)) = Head::parse(&bytes[..cut]) {
            prop_assert_eq!(Head::parse(&bytes), Ok(Some(part)));
        }
    }

    #[test]
    fn chunks_are_read_as_they_were_written(
        pieces in vec(vec(any::<u8>(), 1..200), 0..20),
        cuts in vec(1usize..50, 1..100),
    ) {
        let mut sent = Vec::new();
        for piece in &pieces {
            sent.extend(format!("{:X}\r\n", piece.len()).into_bytes());
            sent.extend_from_slice(piece);
            sent.extend(b"\r\n");
        }
        sent.extend(b"0\r\n\r\n");
        let whole = sent.len();
        sent.extend(b"GET ");
        let mut body = Body::of_request(Framing::Chunked);
        let (mut at, mut held) = (0, Vec::new());
        for cut in cuts.iter().cycle() {
            let end = (at + cut).min(sent.len());
            let walked = body.walk(&sent[at..end], false, |piece| held.extend_from_slice(piece));
            let walked = walked.unwrap();
            at += walked.used;
            if walked.done {
                break;
            }
        }
        prop_assert_eq!(at, whole);
        prop_assert_eq!(held, pieces.concat());
    }

    #[test]
    fn a_hello_says_its_name(name in "[a-z]{1,20}(\\.[a-z]{1,20}){1,4}", hidden: bool, flip in any::<(prop::sample::Index, u8)>()) {
        let bytes = example(Some(&name), hidden);
        let hello = Hello::parse(&bytes).unwrap().unwrap();
        prop_assert_eq!(hello.name.as_deref(), Some(name.as_str()));
        prop_assert_eq!(hello.hidden, hidden);
        // One changed byte never gives another name without being seen in the bytes.
        let mut other = bytes.clone();
        let at = flip.0.index(other.len());
        other[at] = flip.1;
        if let Ok(Some(Hello { name: Some(read), .. })) = Hello::parse(&other) {
            let lower = other.to_ascii_lowercase();
            let there = lower.windows(read.len()).any(|window| window == read.as_bytes());
            prop_assert!(there, "{}", read);
        }
    }

    #[test]
    fn a_target_is_read_again_as_it_is_written(text in "[ -~]{0,40}") {
        if let Ok(target) = Target::parse(text.as_bytes(), Some(80)) {
            let again = Target::parse(target.to_string().as_bytes(), None);
            prop_assert_eq!(again.as_ref(), Ok(&target));
            if let Host::Name(name) = &target.host {
                prop_assert!(text.to_ascii_lowercase().starts_with(name.as_str()));
            }
        }
    }

    #[test]
    fn socks_requests_are_read(name in "[a-z]{1,20}\\.[a-z]{1,20}", port in 1u16.., more in vec(any::<u8>(), 0..9)) {
        let mut bytes = vec![5, 1, 0, 3, u8::try_from(name.len()).unwrap()];
        bytes.extend(name.as_bytes());
        bytes.extend(port.to_be_bytes());
        let length = bytes.len();
        bytes.extend(more);
        let (target, used) = socks::request(&bytes).unwrap().unwrap();
        prop_assert_eq!((target.to_string(), used), (format!("{name}:{port}"), length));
    }
}
