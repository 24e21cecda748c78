//! Whether what a program shows makes a terminal answer, as if somebody had typed it.

/// Where in a sequence the bytes are.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Plain,
    /// After an escape.
    Escape,
    /// In one with numbers.
    Control,
    /// In one with a text.
    Text,
}

/// What was seen of sequences, over all pieces.
#[derive(Debug, Default)]
pub(super) struct Questions {
    state: State,
}

const ENQUIRY: u8 = 5;
const ESCAPE: u8 = 0x1b;

impl Questions {
    /// Whether a piece holds, or ends, something that may be answered.
    pub(super) fn are_in(&mut self, shown: &[u8]) -> bool {
        let mut asked = false;
        for byte in shown {
            asked |= self.next(*byte);
        }
        asked
    }

    fn next(&mut self, byte: u8) -> bool {
        let (state, asks) = match (self.state, byte) {
            (_, ESCAPE) => (State::Escape, false),
            (State::Plain, _) => (State::Plain, byte == ENQUIRY),
            (State::Escape, b'[') => (State::Control, false),
            // Titles and colours; of the latter a `?` asks.
            (State::Escape, b']') => (State::Text, false),
            // Other texts, and the oldest question of all.
            (State::Escape, _) => (State::Plain, matches!(byte, b'P' | b'_' | b'Z')),
            (State::Control, 0x40..=0x7e) => (State::Plain, b"cnpqtuxy".contains(&byte)),
            (State::Control, _) => (State::Control, false),
            (State::Text, 7) => (State::Plain, false),
            (State::Text, _) => (State::Text, byte == b'?'),
        };
        self.state = state;
        asks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_known_in_pieces_too() {
        for (text, asks) in [
            ("\x1b[6n", true),
            ("\x1b[c", true),
            ("\x1b[?1$p", true),
            ("\x1b]11;?\x07", true),
            ("\x1bP+q544e\x1b\\", true),
            ("\x1bZ", true),
            ("\x05", true),
            ("\x1b[31mred\x1b[0m, n c?\x1b[2J\x1b[?25h", false),
            ("\x1b]0;a title\x07 why?", false),
            ("plain\n", false),
        ] {
            assert_eq!(Questions::default().are_in(text.as_bytes()), asks, "{text:?}");
            let mut questions = Questions::default();
            let pieces: Vec<bool> = text.bytes().map(|byte| questions.are_in(&[byte])).collect();
            assert_eq!(pieces.contains(&true), asks, "{text:?}");
        }
    }
}
