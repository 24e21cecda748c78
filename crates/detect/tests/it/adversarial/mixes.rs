//! Mixes of slow texts.

/// What literals, formats and markup begin with.
#[rustfmt::skip]
const BEGINNINGS: &[&str] = &[
    "passw", "passphrase", "pwd", "secret", "api_key", "access_key", "credential", "password: ", "authorization",
    "Bearer ", "AccountKey=", "&sig=", "machine ", ":6432:", "jdbc:oracle:thin:", "-us", ":AA", "eyJ", "ghp_",
    "github_pat_", "npm_", "AKIA", "ASIA", "AIza", "GOCSPX-", "1//0", "xoxb-", "xoxa-", "sk_live_", "whsec_",
    "sk-proj-", "sk-ant-", "sk-", "SG.", "key-", "glpat-", "dop_v1_", "hf_", "AGE-SECRET-KEY-1", "hvs.", "glc_eyJ",
    "ATATT3", "dp.st.", "sntrys_", ".atlasv1.", "hooks.slack.com/services/T", "discord.com/api/webhooks/", "EAAAE",
    "\n", " ", ": ", "@", "http://", "?a=", "](", "![", "<a ", ">", "\"", "'", "=", "%41", "&#65;", "\\x41",
    "SWdub3JlIGFs", "69676e6f7265", "снова ", "指令", "i g n o ", "1gn0re ", "erongi ", "vtaber ", "ignore ",
    "previous instructions ", "system prompt ", "you are ", "\u{200b}", "\u{301}", "\u{e0041}", "é", "\u{1f1e6}",
    "\t", ".", "/", "<!--", "-->", "**", "`", "q: ", "{\"a\":", "}", "${x}", "data:text/html;base64,", "192.168.0.1",
    "[::1]", "R7kQx2mVn9sLc4tYb8wZd3fHj6gKp1aU5eiO",
];

/// Short pieces that mixes are made of: the slow texts, and beginnings.
pub(super) fn pieces() -> Vec<String> {
    let slow = super::texts::adversarial().into_iter().map(|(_, unit)| unit);
    let beginnings = BEGINNINGS.iter().map(|piece| (*piece).to_owned());
    slow.filter(|unit| unit.len() <= 48).chain(beginnings).collect()
}

/// Two to nine pieces in a row; the same for the same seed.
pub(super) fn mix(pieces: &[String], seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap_or(0) % below
    };
    let count = [2, 2, 3, 3, 4, 5, 6, 9][next(8)];
    (0..count).map(|_| pieces[next(pieces.len())].as_str()).collect()
}
