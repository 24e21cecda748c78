//! Any bytes as frames of the daemon's socket, one after the other.

#![no_main]

use wardkeep_monitor::wire::{BadFrame, Frame, MAX_FRAME_BYTES, PROTOCOL, read_frame};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut reader = data;
    while let Ok(bytes) = read_frame(&mut reader) {
        assert!(bytes.len() <= MAX_FRAME_BYTES.min(data.len()));
        check(&bytes);
    }
    check(data);
});

fn check(bytes: &[u8]) {
    match Frame::parse(bytes) {
        Ok(frame) => {
            assert!(PROTOCOL.contains(frame.v.into()));
            let sent = frame.to_bytes().expect("not longer than it was");
            let again = Frame::parse(&read_frame(&mut &sent[..]).expect("whole")).expect("a frame");
            assert_eq!((again.v, again.id, &again.op), (frame.v, frame.id, &frame.op));
            assert_eq!(again.body.get(), frame.body.get());
            let _ = frame.read::<serde_json::Value>();
        }
        Err(BadFrame::Version { version, .. }) => assert!(!PROTOCOL.contains(version)),
        Err(_) => {}
    }
}
