//! Commands of the shell itself that write variables.

use super::state::State;
use super::{Via, Word};

/// `declare` and its kin. Some attributes change what is assigned later, or keep it from being assigned.
pub(super) fn assignments(state: &mut State, program: &str, args: &[Word], inside: &[Via]) {
    let flags: String = args
        .iter()
        .filter_map(|arg| arg.text.as_deref())
        .filter(|text| text.starts_with(['-', '+']))
        .collect();
    let named = program != "export";
    if named && flags.contains('n') {
        // It is another name of a variable: whatever is assigned to the one is assigned to the other.
        return state.forget_all();
    }
    let computed = named && flags.contains(['i', 'u', 'l', 'c', 'a', 'A', 'g', 'I']);
    // Outside a function `local` fails.
    let fails = program == "local" && !inside.contains(&Via::Function);
    for arg in args {
        let text = arg.text.as_deref();
        let (name, value) = match text.map(|text| text.split_once('=')) {
            Some(Some((name, value))) => (name.trim_end_matches('+'), Some(value)),
            Some(None) => (text.unwrap_or(""), None),
            None => match arg.raw.split_once('=') {
                Some((name, _)) if name.bytes().all(is_name_byte) => {
                    state.forget(name);
                    (name, None)
                }
                _ => return state.forget_all(),
            },
        };
        if name.starts_with(['-', '+']) {
            continue;
        }
        let appended = text.is_some_and(|text| text[name.len()..].starts_with("+="));
        let plain = name.bytes().all(is_name_byte) && !appended && !computed && !fails;
        let name = base_name(name);
        match value {
            Some(value) if plain => state.assign(name, &Word::literal(value)),
            Some(_) => state.forget(name),
            None => {}
        }
        if computed || program == "readonly" || flags.contains('r') {
            state.make_volatile(name);
        }
    }
}

/// What reads into variables: `read`, `mapfile`, `getopts`; and `unset`.
pub(super) fn read(state: &mut State, program: &str, args: &[Word]) {
    for name in ["REPLY", "MAPFILE", "OPTARG"] {
        state.forget(name);
    }
    for arg in args {
        // `read -aNAME`.
        if let Some(text) = arg.text.as_deref().filter(|text| text.starts_with('-')) {
            if let Some((_, name)) = text.split_once('a').filter(|_| program == "read") {
                state.forget(name);
            }
            continue;
        }
        forget_word(state, Some(arg));
    }
}

/// `$1` and those behind it change.
pub(super) fn forget_arguments(state: &mut State) {
    for number in 1..100 {
        let name = number.to_string();
        if state.value(&name).text.is_some() {
            state.forget(&name);
        }
    }
}

/// The variable that a word names is written.
pub(super) fn forget_word(state: &mut State, word: Option<&Word>) {
    match word.map(|word| word.text.as_deref()) {
        Some(Some(name)) => state.forget(base_name(name)),
        Some(None) => state.forget_all(),
        None => {}
    }
}

/// Without its index.
pub(super) fn base_name(name: &str) -> &str {
    name.split('[').next().unwrap_or(name)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
