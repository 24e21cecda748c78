//! What only looks like a secret.

use crate::words::Words;

/// Parts of values that nobody uses as a secret.
static WORDS: Words<32> = Words::new([
    "example",
    "changeme",
    "change_me",
    "change-me",
    "placeholder",
    "your",
    "xxxx",
    "****",
    "....",
    "dummy",
    "sample",
    "redacted",
    "insert",
    "replace",
    "notreal",
    "not-a-real",
    "fake",
    "mock",
    "process.env",
    "os.environ",
    "getenv",
    "environ[",
    "undefined",
    "localhost",
    "<",
    "${",
    "{{",
    "$(",
    "%(",
    "todo",
    "test",
    "deadbeef",
]);

/// Whole values that are defaults or examples.
const VALUES: [&str; 30] = [
    "password",
    "passwd",
    "pass",
    "secret",
    "token",
    "admin",
    "root",
    "postgres",
    "mysql",
    "guest",
    "user",
    "username",
    "null",
    "none",
    "nil",
    "true",
    "false",
    "string",
    "hunter2",
    "letmein",
    "password1",
    "password123",
    "qwerty",
    "12345678",
    "123456789",
    "1234567890",
    "foobar",
    "foo",
    "bar",
    "mypassword",
];

/// Whether a value is a placeholder, a reference to a value elsewhere, or a known example.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    let (Some(first), Some(last)) = (lower.first(), lower.last()) else { return true };
    // A reference: `$VAR`, `%VAR%`, `<token>`, `{token}`, `[token]`, `@file`, `:param`.
    let reference = match first {
        b'$' | b'<' | b'@' | b':' => true,
        b'{' => *last == b'}',
        b'[' => *last == b']',
        b'%' => *last == b'%',
        b'(' => *last == b')',
        _ => false,
    };
    reference
        || VALUES.iter().any(|known| known.as_bytes() == lower)
        || contains_word(&lower)
        || repeats(&lower)
        || is_sequence(&lower)
}

fn contains_word(lower: &[u8]) -> bool {
    WORDS.any(lower, |word| {
        // Short words occur by chance in long random values.
        word.len() > 4 || lower.len() <= 24 || !word.as_bytes()[0].is_ascii_alphabetic()
    })
}

/// Whether one short text stands in another; for those a search costs more to set up than to do.
pub(super) fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len().max(1)).any(|window| window == part)
}

/// Few different signs: `xxxxxxxx`, `abababab`, `0000-0000`.
fn repeats(lower: &[u8]) -> bool {
    let mut seen = [false; 256];
    for byte in lower {
        seen[usize::from(*byte)] = true;
    }
    let different = seen.iter().filter(|seen| **seen).count();
    lower.len() >= 6 && different <= 3 || lower.len() >= 16 && different <= 5
}

/// `abcdefgh…`, `12345678…`: most signs are one above their neighbour.
fn is_sequence(lower: &[u8]) -> bool {
    let steps = lower.windows(2).filter(|pair| pair[1] == pair[0].wrapping_add(1)).count();
    lower.len() >= 8 && steps * 10 >= (lower.len() - 1) * 7
}

/// Shannon entropy in bits a byte.
pub(super) fn entropy(value: &[u8]) -> f32 {
    let mut counts = [0_u16; 256];
    let mut seen = [0_u64; 4];
    for byte in value {
        counts[usize::from(*byte)] = counts[usize::from(*byte)].saturating_add(1);
        seen[usize::from(*byte >> 6)] |= 1 << (byte & 63);
    }
    let total = f32::from(u16::try_from(value.len()).unwrap_or(u16::MAX)).max(1.0);
    let mut sum = 0.0;
    for (quarter, mut bits) in seen.into_iter().enumerate() {
        while bits != 0 {
            let count = counts[64 * quarter + bits.trailing_zeros() as usize];
            let share = f32::from(count) / total;
            sum += -share * share.log2();
            bits &= bits - 1;
        }
    }
    sum
}

/// `8-4-4-4-12` hexadecimal digits.
pub(super) fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(place, byte)| match place {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

pub(super) fn is_hex(value: &[u8]) -> bool {
    value.iter().all(u8::is_ascii_hexdigit)
}

/// Whether a value reads as words of a language or an identifier, not as chance.
pub(super) fn is_wordy(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let turns = value
        .windows(2)
        .filter(|pair| class(pair[0]) != class(pair[1]) && class(pair[1]) != 3)
        .count();
    digits * 12 < value.len() && turns * 4 < value.len() || digits == 0 && turns * 3 < value.len()
}

fn class(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    }
}
