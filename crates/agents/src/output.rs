//! What an agent reads of a hook.

use serde_json::Value;

/// Exit code with which nearly every agent stops what it was about to do.
pub(crate) const BLOCK: u8 = 2;
/// Exit code of a guarded hook whose answer is on standard output: nothing else ends so.
pub const ANSWERED: u8 = 77;
/// Exit code of a guarded hook that answers with exit code 2.
pub const DENIED: u8 = 78;

/// What a hook leaves: bytes on two streams, and an exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// For standard output.
    pub stdout: Vec<u8>,
    /// For standard error.
    pub stderr: Vec<u8>,
    /// The exit code.
    pub code: u8,
}

impl Output {
    /// The exit code for the shell of `install` around a hook, by which it knows that it was judged;
    /// none, where the agent would take the code for neither a yes nor a no.
    #[must_use]
    pub fn guarded_code(&self) -> Option<u8> {
        match self.code {
            0 => Some(ANSWERED),
            BLOCK => Some(DENIED),
            _ => None,
        }
    }

    /// Nothing is said, and nothing stopped.
    pub(crate) fn silent() -> Self {
        Self { stdout: Vec::new(), stderr: Vec::new(), code: 0 }
    }

    /// A JSON object on standard output.
    pub(crate) fn json(value: &Value) -> Self {
        let mut stdout = value.to_string().into_bytes();
        stdout.push(b'\n');
        Self { stdout, stderr: Vec::new(), code: 0 }
    }

    /// It is stopped by exit code 2, with the reason on standard error, which is never empty: there
    /// are agents that go on where it is.
    pub(crate) fn block(reason: &str) -> Self {
        let reason = reason.trim();
        let reason = if reason.is_empty() { "denied by wardkeep" } else { reason };
        Self {
            stdout: Vec::new(),
            stderr: format!("{}\n", plain(reason)).into_bytes(),
            code: BLOCK,
        }
    }
}

/// Without signs that do something to a terminal; line ends stay.
fn plain(text: &str) -> String {
    let hides = |sign: char| {
        sign.is_control() && sign != '\n'
            || matches!(sign, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        if hides(sign) {
            out.extend(sign.escape_unicode());
        } else {
            out.push(sign);
        }
    }
    out
}
