//! Requests to models as they are rewritten, and replies as they are judged. The first byte says which API, the
//! second which of both and how the bytes are cut.
#![no_main]

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use wardkeep_detect::leak::OutputGuard;
use wardkeep_gateway::llm::{Asked, Reply, Ruling, Step, Whole, Wire};
use wardkeep_policy::wrap::{SessionKey, Wrapper};

const BLOCK: &str = "the words that end every call";
const EVENT: usize = 1 << 16;

static WRAPPER: LazyLock<Wrapper> = LazyLock::new(|| Wrapper::new(SessionKey::new([7; 32])));
static GUARD: LazyLock<Arc<OutputGuard>> =
    LazyLock::new(|| Arc::new(OutputGuard::new().with_secrets()));

fuzz_target!(|data: &[u8]| {
    let [wire, how, rest @ ..] = data else { return };
    let wire = Wire::ALL[usize::from(*wire) % Wire::ALL.len()];
    if how % 2 == 0 { request(wire, rest) } else { reply(wire, *how, rest) }
});

fn request(wire: Wire, body: &[u8]) {
    let Ok(asked) = Asked::read(wire, body) else { return };
    let Some(out) = asked.prepared(Some(&WRAPPER), Some(BLOCK)) else {
        panic!("nothing was placed")
    };
    let text = std::str::from_utf8(&out).expect("text stays text");
    assert!(text.matches(BLOCK).count() > String::from_utf8_lossy(body).matches(BLOCK).count());
    let again = Asked::read(wire, &out).expect("what goes out can be read");
    assert!(again.messages() >= asked.messages());
    // Some APIs take the block as words of the system.
    assert!(again.system.starts_with(&asked.system));
    assert_eq!(again.model, asked.model);
    // The same again: caches depend on it.
    assert_eq!(asked.prepared(Some(&WRAPPER), Some(BLOCK)), Some(out));
}

fn reply(wire: Wire, how: u8, body: &[u8]) {
    let mut whole = Reply::new(wire, Some(Arc::clone(&GUARD)), "", true, EVENT);
    for _ in 0..64 {
        match whole.whole(body) {
            Ok(Whole::Judge(call)) => whole.ruled(&call, ruling(&call.arguments)),
            _ => break,
        }
    }
    let mut reply = Reply::new(wire, Some(Arc::clone(&GUARD)), "", true, EVENT);
    let mut out = Vec::new();
    for piece in body.chunks(usize::from(how / 2).max(1)) {
        reply.feed(piece);
        if !driven(&mut reply, &mut out) {
            return;
        }
    }
    reply.finish();
    driven(&mut reply, &mut out);
}

fn driven(reply: &mut Reply, out: &mut Vec<u8>) -> bool {
    for _ in 0..4096 {
        match reply.step(out) {
            Ok(Step::More) => return true,
            Ok(Step::Judge(call)) => reply.ruled(&call, ruling(&call.arguments)),
            Err(_) => return false,
        }
    }
    false
}

fn ruling(arguments: &str) -> Ruling {
    if arguments.len() % 2 == 0 { Ruling::Allow } else { Ruling::Deny("no".to_owned()) }
}
