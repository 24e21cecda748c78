//! The shape of a prompt: headings that prompts have, and orders to an assistant.

use super::evidence::{Count, Rule, Signal};
use super::words::{
    ALWAYS, BE, BEFORE, DO, Heading, I, IF, MUST, MY, Meaning, NEVER, NOT, REPLYING, THE, USE,
    USER, YOU, YOUR,
};

static SECTIONS: Rule = Rule {
    id: "leak.sections",
    reason: "Several sections of a prompt follow each other in the answer.",
};
static ORDERS: Rule =
    Rule { id: "leak.orders", reason: "The answer gives orders as a prompt gives them." };

/// Sections from which on they count.
const SEVERAL: u32 = 4;

#[derive(Debug, Clone, Copy)]
struct Header {
    heading: Heading,
    start: usize,
    end: usize,
    words: u8,
}

/// What is known of the shape so far.
#[derive(Debug, Default)]
pub(super) struct Shape {
    header: Option<Header>,
    /// A heading whose first word of text is to come.
    open: Option<Header>,
    /// Whether the line began with a sign of a heading.
    marked: bool,
    seen: u32,
    addressed: u32,
    /// The first words of a sentence.
    opening: [Meaning; 2],
    position: usize,
    opening_start: usize,
    orders: u8,
    points: usize,
}

impl Shape {
    /// Whether nothing has begun that may become something.
    pub(super) fn is_calm(&self) -> bool {
        self.hold() == usize::MAX
    }

    /// Takes in a word that means nothing here, or says that it is not such a word.
    #[inline(always)]
    pub(super) fn pass(&mut self, heading: Heading, meaning: Meaning, start: usize) -> bool {
        if self.position >= 3 {
            self.header = None;
            return true;
        }
        if heading > 0
            || (self.position == 0 && meaning & (NEVER | ALWAYS | DO | BEFORE | IF | YOU) != 0)
        {
            return false;
        }
        if self.position == 0 {
            self.header = Some(Header { heading, start, end: start, words: 1 });
            self.opening_start = start;
        } else if let Some(header) = &mut self.header {
            header.words += 1;
        }
        if let Some(slot) = self.opening.get_mut(self.position) {
            *slot = meaning;
        }
        self.position += 1;
        true
    }

    /// A line begins.
    pub(super) fn line(&mut self) {
        if let Some(header) = self.header.take()
            && self.marked
            && header.heading > 0
        {
            self.open = Some(header);
        }
        self.marked = false;
        self.position = 0;
    }

    /// A sentence begins within a line.
    pub(super) fn sentence(&mut self) {
        self.header = None;
        self.position = 0;
    }

    /// A sign that is not part of a word.
    #[inline]
    pub(super) fn sign(&mut self, byte: u8) {
        match byte {
            b'#' | b'*' | b'<' | b'[' | b'=' if self.position == 0 => self.marked = true,
            b':' => {
                self.complete();
                self.position = 0;
            }
            b'>' | b']' if self.marked => self.complete(),
            b',' | b'.' | b'(' | b'?' | b';' | b'!' | b'"' | b'=' | b'$' | b'{' => {
                self.header = None
            }
            _ => {}
        }
    }

    fn complete(&mut self) {
        if let Some(header) = self.header.take()
            && header.heading > 0
        {
            self.open = Some(header);
        }
    }

    /// The next word; `share` is how much the shape counts here.
    #[inline]
    pub(super) fn word(
        &mut self,
        heading: Heading,
        meaning: Meaning,
        place: [usize; 2],
        share: f32,
        out: &mut Vec<Signal>,
    ) {
        let [start, end] = place;
        if let Some(header) = self.open.take() {
            self.section(header, meaning, share, out);
        }
        match self.position {
            0 => {
                self.header = Some(Header { heading, start, end, words: 1 });
                self.opening_start = start;
            }
            _ => {
                if let Some(header) = &mut self.header {
                    header.words += 1;
                    if header.words > 3 {
                        self.header = None;
                    } else if header.heading == 0 {
                        (header.heading, header.start, header.end) = (heading, start, end);
                    } else {
                        header.end = end;
                    }
                }
            }
        }
        if self.position < 3 {
            self.order(meaning, end, share, out);
            if let Some(slot) = self.opening.get_mut(self.position) {
                *slot = meaning;
            }
            self.position += 1;
        }
    }

    fn section(&mut self, header: Header, body: Meaning, share: f32, out: &mut Vec<Signal>) {
        let bit = 1 << (header.heading - 1);
        if self.seen & bit != 0 {
            return;
        }
        self.seen |= bit;
        let addressed = body & (I | MY | YOU | YOUR | NEVER | ALWAYS | DO | USE) != 0;
        self.addressed += u32::from(addressed);
        let count = self.seen.count_ones();
        if count < SEVERAL {
            return;
        }
        // Sections that speak to or as an assistant are those of a prompt; others may be those of
        // any document, and never suffice.
        let weight = match self.addressed {
            2.. => 0.4,
            _ if count <= SEVERAL + 2 => 0.12,
            _ => 0.0,
        };
        let weight = weight * share;
        out.push(Signal {
            rule: &SECTIONS,
            weight,
            count: Count::Each(weight),
            span: (header.start..header.end).into(),
            tail: false,
            path: Vec::new(),
        });
    }

    /// The first words of a sentence may be an order.
    fn order(&mut self, meaning: Meaning, end: usize, share: f32, out: &mut Vec<Signal>) {
        let [first, second] = self.opening;
        let (kind, points) = match self.position {
            0 if meaning & NEVER != 0 => (0, 1),
            0 if meaning & ALWAYS != 0 => (1, 1),
            0 if meaning & DO != 0 && meaning & NOT != 0 => (2, 1),
            1 if first & DO != 0 && meaning & NOT != 0 => (2, 1),
            1 if first & YOU != 0 && meaning & MUST != 0 => (3, 1),
            1 if first & YOU != 0 && meaning & BE != 0 => (4, 1),
            1 if first & BEFORE != 0 && meaning & REPLYING != 0 => (5, 2),
            2 if first & IF != 0 && second & THE != 0 && meaning & USER != 0 => (6, 2),
            _ => return,
        };
        if self.orders & 1 << kind != 0 {
            return;
        }
        self.orders |= 1 << kind;
        self.points += points;
        let weight = [0.0, 0.0, 0.1, 0.25, 0.35, 0.4][self.points.min(5)] * share;
        out.push(Signal {
            rule: &ORDERS,
            weight,
            count: Count::Once,
            span: (self.opening_start..end).into(),
            tail: false,
            path: Vec::new(),
        });
    }

    /// Starts afresh; what has counted goes on.
    pub(super) fn forget(&mut self) {
        (self.header, self.open, self.position) = (None, None, 3);
    }

    /// From where on words may still become part of a heading or an order.
    #[inline]
    pub(super) fn hold(&self) -> usize {
        let heading = |header: &Option<Header>| match header {
            Some(header) if header.heading > 0 => header.start,
            _ => usize::MAX,
        };
        let [first, _] = self.opening;
        let opens = first & (DO | YOU | BEFORE | IF) != 0;
        let order =
            if opens && (1..3).contains(&self.position) { self.opening_start } else { usize::MAX };
        heading(&self.header).min(heading(&self.open)).min(order)
    }
}
