//! Rules as a filter: the number of a call is looked for by halves, then its arguments are compared.

use super::format::Op;
use super::rules::{Decision, Rules, Test};
use crate::filter::{ARCHITECTURE, Assembler, Compare};
use crate::sys::Instruction;

/// Most instructions that the kernel takes.
const MOST: usize = 4096;

/// From a number on: what becomes of these calls.
enum Part<'a> {
    Plain(u32),
    Asks(&'a Decision),
}

/// The filter as the kernel takes it. Another way to call the kernel ends the process, whatever the profile lists.
pub(super) fn program(rules: &Rules) -> Result<Vec<Instruction>, String> {
    let mut to = Assembler::new();
    to.load_architecture();
    to.unless_equal_kill(ARCHITECTURE);
    to.load_number();
    #[cfg(target_arch = "x86_64")]
    to.if_at_least_kill(crate::filter::OTHER_ABI);
    search(&mut to, &parts(rules));
    let program = to.finish();
    if program.len() > MOST {
        return Err(format!(
            "it needs {} instructions, and the kernel takes {MOST}",
            program.len()
        ));
    }
    Ok(program)
}

fn parts(rules: &Rules) -> Vec<(u32, Part<'_>)> {
    let mut all = vec![(0, Part::Plain(rules.default))];
    for (number, decision) in &rules.calls {
        let part = match decision.cases.is_empty() {
            true => Part::Plain(decision.otherwise),
            false => Part::Asks(decision),
        };
        push(&mut all, *number, part);
        push(&mut all, number + 1, Part::Plain(rules.default));
    }
    all
}

/// Neighbours of which the same is said are one.
fn push<'a>(all: &mut Vec<(u32, Part<'a>)>, from: u32, part: Part<'a>) {
    if all.last().is_some_and(|(last, _)| *last == from) {
        all.pop();
    }
    let same = match (all.last(), &part) {
        (Some((_, Part::Plain(last))), Part::Plain(this)) => last == this,
        _ => false,
    };
    if !same {
        all.push((from, part));
    }
}

fn search(to: &mut Assembler, parts: &[(u32, Part<'_>)]) {
    match parts {
        [] => to.answer(libc::SECCOMP_RET_KILL_PROCESS),
        [(_, Part::Plain(outcome))] => to.answer(*outcome),
        [(_, Part::Asks(decision))] => decide(to, decision),
        _ => {
            let (lower, upper) = parts.split_at(parts.len() / 2);
            let (low, high) = (to.label(), to.label());
            to.compare(Compare::AtLeast, upper[0].0, None, Some(low));
            // Further than a comparison can jump.
            to.go(high);
            to.place(low);
            search(to, lower);
            to.place(high);
            search(to, upper);
        }
    }
}

fn decide(to: &mut Assembler, decision: &Decision) {
    for (tests, outcome) in &decision.cases {
        let next = to.label();
        for test in tests {
            ask(to, *test, next);
        }
        to.answer(*outcome);
        to.place(next);
    }
    to.answer(decision.otherwise);
}

/// Goes on where an argument is as it must be.
fn ask(to: &mut Assembler, test: Test, fail: crate::filter::Label) {
    let fine = to.label();
    let Test { index, mask, op, value } = test;
    let ((value_high, value_low), (mask_high, mask_low)) = (halves(value), halves(mask));
    match op {
        Op::Equal | Op::Masked => {
            if mask_high != 0 {
                to.load_half(index, true, mask_high);
                to.compare(Compare::Equal, value_high, None, Some(fail));
            }
            if mask_low != 0 {
                to.load_half(index, false, mask_low);
                to.compare(Compare::Equal, value_low, None, Some(fail));
            }
        }
        Op::NotEqual => {
            if mask_high != 0 {
                to.load_half(index, true, mask_high);
                to.compare(Compare::Equal, value_high, None, Some(fine));
            }
            to.load_half(index, false, mask_low);
            to.compare(Compare::Equal, value_low, Some(fail), None);
        }
        Op::Greater | Op::AtLeast | Op::Less | Op::AtMost => {
            let (yes, no) = match op {
                Op::Greater | Op::AtLeast => (fine, fail),
                _ => (fail, fine),
            };
            if mask_high != 0 {
                to.load_half(index, true, mask_high);
                to.compare(Compare::Greater, value_high, Some(yes), None);
                to.compare(Compare::Equal, value_high, None, Some(no));
            }
            to.load_half(index, false, mask_low);
            let last = match op {
                Op::Greater | Op::AtMost => Compare::Greater,
                _ => Compare::AtLeast,
            };
            to.compare(last, value_low, Some(yes), Some(no));
        }
    }
    to.place(fine);
}

#[expect(clippy::cast_possible_truncation, reason = "the halves are what is wanted")]
fn halves(value: u64) -> (u32, u32) {
    ((value >> 32) as u32, value as u32)
}
