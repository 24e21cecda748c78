//! The characters themselves, before anything is read: what does not show, and what looks like something else.

use std::ops::Range;

/// What was found among the characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Odd {
    /// Text in tag characters, and what it says.
    Tags(String),
    /// Zero-width characters between letters, or many of them.
    ZeroWidth,
    /// Direction turned around.
    Bidi,
    /// Bytes in variation selectors.
    Selectors,
    /// A word with letters of two scripts that look the same.
    Mixed(String),
}

/// The three flags that are written with tag characters: England, Scotland, Wales.
const FLAGS: [&str; 3] = ["gbeng", "gbsct", "gbwls"];

/// Looks at every character once.
pub(super) fn read(text: &str) -> Vec<(Odd, Range<usize>)> {
    if text.is_ascii() {
        return Vec::new();
    }
    let mut out = Vec::new();
    let mut tags: Option<(usize, String, bool)> = None;
    let (mut zero, mut selectors, mut bidi) = (Vec::new(), Vec::new(), None);
    let mut before = ' ';
    for (at, sign) in text.char_indices() {
        let code = u32::from(sign);
        if (0xe0000..=0xe007f).contains(&code) {
            let open = tags.get_or_insert_with(|| (at, String::new(), before == '\u{1f3f4}'));
            if let Some(plain) = char::from_u32(code - 0xe0000).filter(|sign| !sign.is_control()) {
                open.1.push(plain);
            }
            before = sign;
            continue;
        }
        if let Some((start, said, flag)) = tags.take()
            && !(flag && FLAGS.contains(&said.as_str()))
        {
            out.push((Odd::Tags(said), start..at));
        }
        match sign {
            // Between two letters of Latin, or in rows; joiners have a use in other scripts and in emoji.
            '\u{200b}' | '\u{2060}' | '\u{2062}'..='\u{2064}' | '\u{180e}' => {
                zero.push((at, before))
            }
            '\u{200c}' | '\u{200d}' if before.is_ascii() => zero.push((at, before)),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => bidi = bidi.or(Some(at)),
            '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}'
                if is_selector(before) || code >= 0xe0100 =>
            {
                selectors.push(at)
            }
            _ => {}
        }
        before = sign;
    }
    if let Some((start, said, flag)) = tags
        && !(flag && FLAGS.contains(&said.as_str()))
    {
        out.push((Odd::Tags(said), start..text.len()));
    }
    let inside = zero.iter().filter(|(_, before)| before.is_ascii_alphanumeric()).count();
    if (inside >= 2 || zero.len() >= 8)
        && let Some((at, _)) = zero.first()
    {
        out.push((Odd::ZeroWidth, *at..*at + 3));
    }
    if let Some(at) = bidi
        && !text.chars().any(|sign| matches!(sign, '\u{590}'..='\u{8ff}'))
    {
        out.push((Odd::Bidi, at..at + 3));
    }
    if selectors.len() >= 4 {
        out.push((Odd::Selectors, selectors[0]..selectors[0] + 3));
    }
    mixed(text, &mut out);
    out
}

fn is_selector(sign: char) -> bool {
    matches!(sign, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Words of Latin letters with some of Cyrillic or Greek that look like Latin ones.
fn mixed(text: &str, out: &mut Vec<(Odd, Range<usize>)>) {
    let mut found = 0;
    for word in text
        .split(|sign: char| !sign.is_alphanumeric())
        .filter(|word| !word.is_ascii() && word.len() < 64)
    {
        let latin = word.chars().filter(char::is_ascii_alphabetic).count();
        let alike = word.chars().filter(|sign| is_lookalike(*sign)).count();
        let others = word
            .chars()
            .filter(|sign| sign.is_alphabetic() && !sign.is_ascii() && !is_lookalike(*sign))
            .count();
        if latin >= 2 && alike >= 1 && others == 0 && found < 4 {
            found += 1;
            let start = word.as_ptr() as usize - text.as_ptr() as usize;
            out.push((Odd::Mixed(word.to_owned()), start..start + word.len()));
        }
    }
}

fn is_lookalike(sign: char) -> bool {
    "асеорхуіјѕһԁɡӏАВСЕНІЈКМОРТХΑΒΕΖΗΙΚΜΝΟΡΤΥΧνορ".contains(sign)
}

/// The same text with everything that does not show taken out.
pub(super) fn visible(text: &str) -> std::borrow::Cow<'_, str> {
    let shows = |sign: char| {
        !matches!(
            sign,
            '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{180e}' | '\u{fe00}'..='\u{fe0f}'
                | '\u{e0000}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}'
        )
    };
    if text.is_ascii() || text.chars().all(shows) {
        return text.into();
    }
    text.chars().filter(|sign| shows(*sign)).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(text: &str) -> String {
        text.bytes().filter_map(|byte| char::from_u32(0xe0000 + u32::from(byte))).collect()
    }

    #[test]
    fn hidden_text_is_read_and_flags_are_flags() {
        let hidden = format!("hello{}", tagged("run this"));
        assert_eq!(read(&hidden)[0].0, Odd::Tags("run this".into()));
        let flag = format!("\u{1f3f4}{}\u{e007f} Scotland", tagged("gbsct"));
        assert_eq!(read(&flag), []);
        let fake = format!("\u{1f3f4}{}\u{e007f}", tagged("gbsctrun this"));
        assert!(matches!(read(&fake)[0].0, Odd::Tags(_)));
        assert_eq!(read("i\u{200b}gn\u{200b}ore")[0].0, Odd::ZeroWidth);
        assert_eq!(read("x = '\u{202e}olleh'")[0].0, Odd::Bidi);
        assert!(matches!(&read("с\u{443}rl it")[0].0, Odd::Mixed(_)));
        assert!(
            matches!(&read("p\u{430}ypal login")[0].0, Odd::Mixed(word) if word == "p\u{430}ypal")
        );
        assert_eq!(read("Привет мир, naïve café, 👨‍👩‍👧 ✔️"), []);
        assert_eq!(visible("ig\u{200b}nore"), "ignore");
    }
}
