//! A filter written down with names for the places that are jumped to.

use std::os::raw::c_long;

use crate::sys::Instruction;

/// A place in the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label(usize);

enum Item {
    Plain(u16, u32),
    /// Compare, and go to one place or the other; `None` is the next instruction.
    Branch(u16, u32, Option<Label>, Option<Label>),
    Go(Label),
}

/// How a word is compared with a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compare {
    Equal,
    AtLeast,
    Greater,
}

/// Collects instructions.
pub(crate) struct Assembler {
    items: Vec<Item>,
    /// Before which item a label stands.
    places: Vec<usize>,
}

// Of the kernel's `BPF_…`: a word from the call's data; `&`; `==`, `>=`, `>` and any bit of a constant; a jump;
// the answer.
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const EQUAL: u16 = 0x15;
const AT_LEAST: u16 = 0x35;
const GREATER: u16 = 0x25;
const ANY_BIT: u16 = 0x45;
const JUMP: u16 = 0x05;
const RETURN: u16 = 0x06;

impl Assembler {
    pub(crate) fn new() -> Self {
        Self { items: Vec::new(), places: Vec::new() }
    }

    /// A place that is yet to be put somewhere.
    pub(crate) fn label(&mut self) -> Label {
        self.places.push(usize::MAX);
        Label(self.places.len() - 1)
    }

    /// Puts a label here.
    pub(crate) fn place(&mut self, label: Label) {
        self.places[label.0] = self.items.len();
    }

    pub(crate) fn load_number(&mut self) {
        self.items.push(Item::Plain(LOAD, 0));
    }

    pub(crate) fn load_architecture(&mut self) {
        self.items.push(Item::Plain(LOAD, 4));
    }

    /// The low half of an argument: the calls that are looked at take 32 bits, and the kernel ignores
    /// the other half, so that comparing it would be a way around.
    pub(crate) fn load_argument(&mut self, index: usize) {
        self.load_half(index, false, u32::MAX);
    }

    /// Those bits of a half of an argument.
    pub(crate) fn load_half(&mut self, index: usize, high: bool, bits: u32) {
        let behind = if high == cfg!(target_endian = "little") { 4 } else { 0 };
        let offset = u32::try_from(16 + index * 8 + behind).unwrap_or(u32::MAX);
        self.items.push(Item::Plain(LOAD, offset));
        if bits != u32::MAX {
            self.mask(bits);
        }
    }

    /// Goes to one place or the other, or to what comes next.
    pub(crate) fn compare(
        &mut self,
        how: Compare,
        value: u32,
        yes: Option<Label>,
        no: Option<Label>,
    ) {
        let code = match how {
            Compare::Equal => EQUAL,
            Compare::AtLeast => AT_LEAST,
            Compare::Greater => GREATER,
        };
        self.items.push(Item::Branch(code, value, yes, no));
    }

    /// What the kernel is to do.
    pub(crate) fn answer(&mut self, outcome: u32) {
        self.items.push(Item::Plain(RETURN, outcome));
    }

    pub(crate) fn mask(&mut self, bits: u32) {
        self.items.push(Item::Plain(AND, bits));
    }

    pub(crate) fn go(&mut self, to: Label) {
        self.items.push(Item::Go(to));
    }

    pub(crate) fn if_equal(&mut self, value: u32, to: Label) {
        self.items.push(Item::Branch(EQUAL, value, Some(to), None));
    }

    pub(crate) fn if_bits(&mut self, bits: u32, to: Label) {
        self.items.push(Item::Branch(ANY_BIT, bits, Some(to), None));
    }

    /// Goes on only for this call; its number must be loaded.
    pub(crate) fn unless_call(&mut self, call: c_long, to: Label) {
        self.items.push(Item::Branch(EQUAL, number(call), None, Some(to)));
    }

    pub(crate) fn refuse(&mut self, errno: u32) {
        self.items.push(Item::Plain(RETURN, libc::SECCOMP_RET_ERRNO | errno));
    }

    pub(crate) fn allow(&mut self) {
        self.items.push(Item::Plain(RETURN, libc::SECCOMP_RET_ALLOW));
    }

    fn kill(&mut self) {
        self.items.push(Item::Plain(RETURN, libc::SECCOMP_RET_KILL_PROCESS));
    }

    pub(crate) fn unless_equal_kill(&mut self, value: u32) {
        let fine = self.label();
        self.if_equal(value, fine);
        self.kill();
        self.place(fine);
    }

    #[cfg(target_arch = "x86_64")]
    pub(crate) fn if_at_least_kill(&mut self, value: u32) {
        let fine = self.label();
        self.items.push(Item::Branch(AT_LEAST, value, None, Some(fine)));
        self.kill();
        self.place(fine);
    }

    /// Denies a call.
    pub(crate) fn deny(&mut self, call: c_long, errno: u32) {
        let end = self.label();
        self.unless_call(call, end);
        self.refuse(errno);
        self.place(end);
    }

    /// Denies a call where an argument has one of these bits.
    pub(crate) fn deny_bits(&mut self, call: c_long, index: usize, bits: u32, errno: u32) {
        let (end, deny) = (self.label(), self.label());
        self.unless_call(call, end);
        self.load_argument(index);
        self.if_bits(bits, deny);
        self.denied_here(deny, end, errno);
    }

    /// Denies a call where two arguments have one of their bits each.
    pub(crate) fn deny_bits_with(
        &mut self,
        call: c_long,
        first: (usize, u32),
        second: (usize, u32),
        errno: u32,
    ) {
        let (end, deny, fine) = (self.label(), self.label(), self.label());
        self.unless_call(call, end);
        self.load_argument(first.0);
        self.items.push(Item::Branch(ANY_BIT, first.1, None, Some(fine)));
        self.load_argument(second.0);
        self.if_bits(second.1, deny);
        self.place(fine);
        self.denied_here(deny, end, errno);
    }

    /// Denies a call where an argument is one of these.
    pub(crate) fn deny_equal(&mut self, call: c_long, index: usize, values: &[u32], errno: u32) {
        let (end, deny) = (self.label(), self.label());
        self.unless_call(call, end);
        self.load_argument(index);
        for value in values {
            self.if_equal(*value, deny);
        }
        self.denied_here(deny, end, errno);
    }

    /// Denies a call where an argument is none of these.
    pub(crate) fn deny_other(&mut self, call: c_long, index: usize, values: &[u32], errno: u32) {
        let (end, fine) = (self.label(), self.label());
        self.unless_call(call, end);
        self.load_argument(index);
        for value in values {
            self.if_equal(*value, fine);
        }
        self.refuse(errno);
        self.place(fine);
        self.load_number();
        self.place(end);
    }

    /// What is left of the code for a call: it goes on, or is denied at that place.
    pub(crate) fn denied_here(&mut self, deny: Label, end: Label, errno: u32) {
        self.load_number();
        self.go(end);
        self.place(deny);
        self.refuse(errno);
        self.place(end);
    }

    /// The instructions. A place that was never set, or is too far away, becomes a denial of everything:
    /// the kernel refuses the program.
    pub(crate) fn finish(self) -> Vec<Instruction> {
        let distance = |from: usize, to: Label| {
            let place = self.places[to.0];
            place.checked_sub(from + 1).filter(|_| place <= self.items.len())
        };
        let short = |from: usize, to: Option<Label>| match to {
            None => 0,
            Some(to) => {
                distance(from, to).and_then(|far| u8::try_from(far).ok()).unwrap_or(u8::MAX)
            }
        };
        let turn = |(at, item): (usize, &Item)| match item {
            Item::Plain(code, k) => Instruction { code: *code, jt: 0, jf: 0, k: *k },
            Item::Branch(code, k, yes, no) => {
                Instruction { code: *code, jt: short(at, *yes), jf: short(at, *no), k: *k }
            }
            Item::Go(to) => {
                let far = distance(at, *to).and_then(|far| u32::try_from(far).ok());
                Instruction { code: JUMP, jt: 0, jf: 0, k: far.unwrap_or(u32::MAX) }
            }
        };
        self.items.iter().enumerate().map(turn).collect()
    }
}

/// No number is negative; one that were would fit no call.
fn number(call: c_long) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}
