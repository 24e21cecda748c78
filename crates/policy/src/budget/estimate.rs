//! How many tokens a text may cost, without anybody's tokeniser.
//!
//! All current tokenisers work on bytes, or fall back to bytes for what they do not know, so a
//! text never has more tokens than bytes: [`token_bound`]. That is four times too much for
//! English. [`token_estimate`] keeps the bound for everything that is not a plain word in ASCII,
//! and counts a plain word by two letters a token, which is still more than the tokenisers
//! measured need for prose, code and data in all scripts (the table in the tests). It can be too
//! low for one thing: many short runs of letters at random that have vowels.

/// Longest run of letters that is taken for a word.
const LONGEST_WORD: usize = 20;

/// The most tokens that a text can have: its bytes, and one for a sign that some tokenisers put
/// in front.
#[must_use]
pub fn token_bound(text: &str) -> usize {
    text.len().saturating_add(1)
}

/// A cautious estimate of a text's tokens; never more than [`token_bound`].
///
/// ```
/// use wardkeep_policy::budget::{token_bound, token_estimate};
/// assert_eq!(token_estimate("秘密"), 7);
/// assert!(token_estimate("the quick brown fox") < token_bound("the quick brown fox"));
/// ```
#[must_use]
pub fn token_estimate(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut tokens = 1_usize;
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = run(rest, u8::is_ascii_alphanumeric);
        if length > 0 {
            tokens = tokens.saturating_add(word(&rest[..length]));
            at += length;
            continue;
        }
        let spaces = run(rest, |byte| *byte == b' ');
        if spaces > 0 {
            // One space belongs to the word behind it; of a longer run two make a token.
            let word = rest.get(spaces).is_some_and(u8::is_ascii_alphabetic);
            let alone = if word { spaces - 1 } else { spaces };
            tokens = tokens.saturating_add(alone.div_ceil(2));
            at += spaces;
            continue;
        }
        tokens = tokens.saturating_add(1);
        at += 1;
    }
    tokens
}

fn run(bytes: &[u8], of: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().position(|byte| !of(byte)).unwrap_or(bytes.len())
}

/// Letters and digits without a break: words, or names made of words, or noise.
fn word(bytes: &[u8]) -> usize {
    let mut tokens = 0;
    let mut at = 0;
    let mut parts = 0;
    while at < bytes.len() {
        let capitals = run(&bytes[at..], u8::is_ascii_uppercase);
        let lower = run(&bytes[at + capitals..], u8::is_ascii_lowercase);
        let digits = run(&bytes[at + capitals + lower..], u8::is_ascii_digit);
        let letters = capitals + lower;
        if letters > 0 {
            parts += 1;
        }
        // A capital in front of a word is often a token of its own.
        let first = usize::from(capitals > 0 && lower > 0);
        let vowels = bytes[at..at + letters].iter().any(|byte| b"aeiouyAEIOUY".contains(byte));
        let wordlike = vowels && letters <= LONGEST_WORD;
        tokens += if wordlike { first + (letters - first).div_ceil(2) } else { letters };
        tokens += digits;
        at += letters + digits;
    }
    // Many short parts are no words: base64, hexadecimal, identifiers made at random.
    let noise = parts > 2 && bytes.len() < parts * 4;
    if noise { bytes.len() } else { tokens.min(bytes.len()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts and their tokens as two public byte-level vocabularies count them (`cl100k_base` and
    /// `o200k_base`, measured with tiktoken-rs 0.12.1).
    const MEASURED: &[(&str, [usize; 2])] = &[
        (
            "The owner edits the policy in an editor, signs it, and the next session starts with the signed text.",
            [22, 22],
        ),
        (
            "Internationalisation, counterrevolutionaries, antidisestablishmentarianism, pneumonoultramicroscopicsilicovolcanoconiosis.",
            [30, 29],
        ),
        (
            "fn main() {\n    let mut total: u64 = 0;\n    for (index, value) in values.iter().enumerate() {\n        total += value * index as u64;\n    }\n}\n",
            [42, 43],
        ),
        (
            "        if self.reach <= at && self.at(at) == 0 {\n                self.openings.clear();\n\t\t\treturn;\n",
            [25, 25],
        ),
        (
            "const getUserNameById=async(e,t)=>{const n=await fetch(`/api/v1/users/${e}?x=${t}`);return(await n.json()).data?.userName??null};",
            [39, 42],
        ),
        (
            "{\"id\":\"toolu_01A09q90qw90lq917835lq9\",\"type\":\"tool_use\",\"input\":{\"path\":\"/srv/app/config.toml\",\"limit\":200}}",
            [40, 41],
        ),
        (
            "2026-02-09T14:30:00Z ERROR [worker-7] 10.0.14.231:51234 GET /index.html?q=a%20b HTTP/1.1 500 0.0034s",
            [52, 52],
        ),
        ("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", [43, 43]),
        ("TG9yZW0gaXBzdW0gZG9sb3Igc2l0IGFtZXQsIGNvbnNlY3RldHVyIGFkaXBpc2NpbmcgZWxpdC4=", [54, 50]),
        ("550e8400-e29b-41d4-a716-446655440000", [18, 18]),
        (
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
            [76, 76],
        ),
        ("| a | b | c |\n|---|---|---|\n| 1 | 2 | 3 |\n| 10.5 | -20 | 3e8 |\n", [38, 38]),
        (
            "AAAAAAAAAAAAAAAAAAAAAAAA aaaaaaaaaaaaaaaaaaaaaaaaaaa !!!!!!!!!!!!!!!!!! ................",
            [13, 13],
        ),
        (
            "SELECT u.id, COUNT(*) FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE o.total > 100 GROUP BY u.id;",
            [31, 31],
        ),
        (
            "Ne lance jamais de commande qui modifie la base de données de production sans demander à l'opératrice.",
            [24, 22],
        ),
        (
            "Führe niemals Befehle aus, die Geschäftsgeheimnisse oder Patientenakten außerhalb des Hauses übertragen.",
            [35, 22],
        ),
        ("Никогда не выполняйте команды, которые изменяют производственную базу данных.", [29, 17]),
        ("Ποτέ μην εκτελείς εντολές που αλλάζουν τη βάση δεδομένων παραγωγής.", [58, 21]),
        ("לעולם אל תריץ פקודות שמשנות את מסד הנתונים.", [41, 16]),
        ("لا تنفذ أبدا أوامر تغير قاعدة بيانات الإنتاج.", [32, 13]),
        (
            "उत\u{94d}पादन ड\u{947}टाब\u{947}स बदलन\u{947} वाल\u{947} आद\u{947}श कभी न चलाए\u{901}।",
            [49, 16],
        ),
        (
            "ห\u{e49}ามร\u{e31}นคำส\u{e31}\u{e48}งท\u{e35}\u{e48}เปล\u{e35}\u{e48}ยนแปลงฐานข\u{e49}อม\u{e39}ลโดยเด\u{e47}ดขาด",
            [41, 20],
        ),
        ("በፍጹም የምርት ዳታቤዝን የሚቀይሩ ትዕዛዞችን አታስኪድ።", [90, 65]),
        ("არასოდეს გაუშვათ ბრძანებები, რომლებიც ცვლის მონაცემთა ბაზას.", [112, 19]),
        (
            "ក\u{17bb}\u{17c6}ដ\u{17c6}ណើរការពាក\u{17d2}យបញ\u{17d2}ជាដែលផ\u{17d2}លាស\u{17cb}ប\u{17d2}ត\u{17bc}រម\u{17bc}លដ\u{17d2}ឋានទ\u{17b7}ន\u{17d2}នន\u{17d0}យ។",
            [82, 33],
        ),
        ("绝不要执行会修改生产数据库的命令，除非用户明确同意。", [23, 18]),
        ("本番データベースを変更するコマンドは絶対に実行しないでください。", [32, 23]),
        ("운영 데이터베이스를 변경하는 명령을 절대 실행하지 마십시오.", [27, 18]),
        ("龘靐齉爩鱻麤龗灪吁龖厵", [25, 23]),
        ("𠀀𠀁𠀂𪛖𫝀", [17, 17]),
        ("👍🏽👩\u{200d}👩\u{200d}👧\u{200d}👦🏳\u{fe0f}\u{200d}🌈🇩🇪🫠🪿🧌", [48, 33]),
        ("😀😀😀 ok ✅ ❌ ⚠ → ← ≤ ≥ ∑ ∞", [22, 17]),
        ("𝕳𝖊𝖑𝖑𝖔 𝐰𝐨𝐫𝐥𝐝", [30, 26]),
        ("\u{200b}\u{200c}\u{200d}\u{feff}\u{2060}", [7, 5]),
        ("\u{e0069}\u{e0067}\u{e006e}\u{e006f}\u{e0072}\u{e0065}", [18, 24]),
        (
            "Z\u{351}\u{36b}\u{313}\u{36a}\u{302}\u{36b}\u{33d}\u{34f}\u{334}\u{319}\u{324}\u{31e}\u{349}\u{35a}\u{32f}\u{31e}\u{320}\u{34d}A\u{334}\u{335}\u{31c}\u{330}\u{354}\u{36b}\u{357}\u{362}L\u{320}\u{368}\u{367}\u{369}\u{358}G\u{334}\u{33b}\u{348}\u{34d}\u{354}\u{339}\u{311}\u{357}\u{30e}\u{305}\u{35b}\u{301}Ǫ\u{335}\u{339}\u{33b}\u{31d}\u{333}\u{342}\u{30c}\u{30c}\u{358}",
            [109, 106],
        ),
        ("\u{e000}\u{e001}\u{f8ff}", [9, 6]),
        ("𒀀𒀁𒂍𒌨", [15, 16]),
        ("xqzvkwj bcdfghjk QWXZPLMK aB3dE5gH7j", [25, 25]),
        ("\n\n\n\n    \n\t\t\t\n  \n", [4, 4]),
        ("~/.local/share/localgpt/workspace/.localgpt_manifest.json", [14, 15]),
        (
            "rm -rf ./build && cargo build --release --locked 2>&1 | tee -a build.log; echo $?",
            [25, 25],
        ),
        (
            "#include <stdio.h>\nint main(int argc,char**argv){return printf(\"%d\\n\",argc)>0?0:1;}",
            [27, 27],
        ),
    ];

    #[test]
    fn the_estimate_is_never_below_what_was_measured() {
        let mut sums = [0_usize; 2];
        for (text, measured) in MEASURED {
            let most = *measured.iter().max().unwrap();
            let estimate = token_estimate(text);
            assert!(most <= estimate, "{text:?}: {measured:?}, estimated {estimate}");
            assert!(estimate <= token_bound(text), "{text:?}");
            sums[0] += estimate;
            sums[1] += most;
        }
        // Cautious, not useless.
        assert!(sums[0] < sums[1] * 3, "{sums:?}");
    }

    #[test]
    fn outside_ascii_the_estimate_is_the_bound() {
        // A tokeniser that works on bytes cannot need more tokens than bytes.
        for (text, _) in MEASURED.iter().filter(|(text, _)| text.bytes().all(|byte| byte >= 0x80)) {
            assert_eq!(token_estimate(text), token_bound(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_estimate_keeps_its_bounds(text in "\\PC{0,80}", more in "\\PC{0,10}") {
            prop_assert!(token_estimate(&text) <= token_bound(&text));
            let wide = text.bytes().filter(|byte| *byte >= 0x80).count();
            prop_assert!(token_estimate(&text) > wide);
            // Parts together cost no less than the whole does, within a token a seam.
            let joined = format!("{text}\n{more}");
            prop_assert!(token_estimate(&joined) <= token_estimate(&text) + token_estimate(&more) + 1);
        }
    }
}
