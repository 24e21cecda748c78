//! Any text as a shell script: what it runs, and what that does.

#![no_main]

use wardkeep_detect::effects::{MAX_EFFECTS, effects, effects_of};
use wardkeep_detect::finding::Span;
use wardkeep_detect::shell::{MAX_COMMANDS, Word, parse, pattern_matches};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let inside = |span: Span| text.get(span.start..span.end).is_some();
    let parsed = parse(text);
    assert!(parsed.commands.len() <= MAX_COMMANDS);
    let known = |index: usize| index < parsed.commands.len();
    let word = |word: &Word| {
        assert!(word.sources.iter().all(|source| known(*source)), "{word:?}");
        if let Some(literal) = word.text.as_deref().filter(|text| text.len() <= 256 && !word.glob) {
            assert!(pattern_matches(&word.pattern, literal), "{word:?} matches its own text");
        }
    };
    for command in &parsed.commands {
        assert!(inside(command.span), "{command:?}");
        assert!(command.piped_from.is_none_or(known) && command.context.parent.is_none_or(known));
        assert!(command.context.shell < parsed.shells.len());
        command.name.iter().chain(&command.args).for_each(word);
        command.assignments.iter().for_each(|one| word(&one.value));
        command.redirections.iter().for_each(|one| word(&one.target));
    }
    parsed.tokens.iter().for_each(word);
    for index in 0..parsed.shells.len().min(64) {
        let outer = (0..parsed.shells.len()).try_fold(index, |at, _| parsed.shells[at]);
        assert_eq!(outer, None, "every shell comes down to the first");
    }

    let read = effects_of(&parsed);
    assert!(read.effects.len() <= MAX_EFFECTS, "{}", read.effects.len());
    assert!(parsed.complete || !read.complete, "nobody knows more than the parser");
    for effect in &read.effects {
        assert!(inside(effect.span), "{effect:?}");
        assert!(effect.directory < read.directories.len(), "{effect:?}");
    }
    assert!(read.mentions.iter().all(|mention| inside(mention.span)));
    assert_eq!(effects(text), read, "the same text, the same effects");
});
