use proptest::prelude::*;

use super::*;

fn name(text: &str) -> Name {
    Name::new(text.as_bytes()).unwrap()
}

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text.as_bytes())
}

#[test]
fn the_defaults_are_a_configuration() {
    let config = Config::new([".claude/settings.json", ".openclaw/extensions"]);
    let tiers = Config::parse(&config.to_bytes()).unwrap().tiers().unwrap();
    for (path, tier) in [
        ("soulguard.json", Some(Tier::Protect)),
        ("HEARTBEAT.md", Some(Tier::Protect)),
        (".claude/settings.json", Some(Tier::Protect)),
        (".openclaw/extensions/x/index.js", Some(Tier::Protect)),
        ("MEMORY.md", Some(Tier::Watch)),
        ("memory/2026.md", Some(Tier::Watch)),
        ("memory/deep/2026.md", None),
        ("main.rs", None),
    ] {
        assert_eq!(tiers.tier_of(&name(path)), tier, "{path}");
    }
    assert!(config.lists_itself());
    assert!(config.git());
}

#[test]
fn both_forms_are_read_and_kept() {
    let lists = parse(
        r#"{"version":1,"x":{"b":1,"a":2},"protect":["SOUL.md"],"watch":["notes/"],"git":false}"#,
    );
    let mut lists = lists.unwrap();
    assert!(!lists.git());
    assert!(!lists.lists_itself());
    lists.set(&name("notes"), true, Some(Tier::Protect)).unwrap();
    lists.set(&name("a*b"), false, Some(Tier::Watch)).unwrap();
    let text = String::from_utf8(lists.to_bytes()).unwrap();
    assert!(text.contains("\"x\": {"), "{text}");
    assert!(text.ends_with("}\n"));
    assert!(text.starts_with("{\n  \"version\": 1,\n  \"x\""), "{text}");
    let tiers = lists.tiers().unwrap();
    assert_eq!(tiers.tier_of(&name("notes/x")), Some(Tier::Protect));
    assert_eq!(tiers.tier_of(&name("a*b")), Some(Tier::Watch));
    assert_eq!(tiers.tier_of(&name("axb")), None);

    let map = r#"{"version":1,"guardian":"soulguardian_a","files":{"SOUL.md":"protect","d/":"watch"},
        "defaultOwnership":{"user":"a","group":"a","mode":"644"}}"#;
    let mut map = parse(map).unwrap();
    let tiers = map.tiers().unwrap();
    assert_eq!(tiers.tier_of(&name("d/x")), Some(Tier::Watch));
    assert_eq!(tiers.tier_of(&name("SOUL.md")), Some(Tier::Protect));
    map.set(&name("d"), true, None).unwrap();
    assert_eq!(map.tiers().unwrap().tier_of(&name("d/x")), None);
    assert!(String::from_utf8(map.to_bytes()).unwrap().contains("defaultOwnership"));
    let odd = Name::new(b"\xff").unwrap();
    assert!(map.set(&odd, false, Some(Tier::Watch)).is_err());
    lists.set(&odd, false, Some(Tier::Protect)).unwrap();
    assert_eq!(lists.tiers().unwrap().tier_of(&odd), Some(Tier::Protect));
}

#[test]
fn globs_mean_nothing_in_the_map() {
    let config = parse(r#"{"version":1,"files":{"*.md":"protect"}}"#).unwrap();
    let tiers = config.tiers().unwrap();
    assert_eq!(tiers.tier_of(&name("*.md")), Some(Tier::Protect));
    assert_eq!(tiers.tier_of(&name("a.md")), None);
}

#[test]
fn what_is_not_valid_is_refused_with_its_place() {
    for text in [
        "",
        "[]",
        "{",
        "{}",
        r#"{"version":2,"protect":[]}"#,
        r#"{"version":1}"#,
        r#"{"version":1,"protect":"x"}"#,
        r#"{"version":1,"protect":[1]}"#,
        r#"{"version":1,"protect":["../x"]}"#,
        r#"{"version":1,"protect":["/etc/shadow"]}"#,
        r#"{"version":1,"protect":[],"protect":["a"]}"#,
        r#"{"version":1,"files":{"a":"protect","a":"watch"}}"#,
        r#"{"version":1,"files":{"a":"open"}}"#,
        r#"{"version":1,"files":{"../a":"watch"}}"#,
        r#"{"version":1,"files":{},"watch":[]}"#,
        r#"{"version":1,"protect":[],"git":"no"}"#,
        r#"{"version":1,"protect":[],"watch":["soulguard.json"]}"#,
        r#"{"version":1,"files":{"soulguard.json":"watch"}}"#,
        "{\"version\":1,\"protect\":[]} x",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
    let error = parse("{\n  \"version\": 1,\n  \"protect\": [\"a\",]\n}").unwrap_err();
    assert!(matches!(error, ConfigError::Syntax { line: 3, .. }), "{error}");
    assert_eq!(Config::parse(&vec![b' '; MAX_CONFIG + 1]), Err(ConfigError::TooLong));
    let deep = format!("{{\"version\":1,\"protect\":[],\"x\":{}", "[".repeat(100_000));
    assert!(parse(&deep).is_err());
    let many = format!(r#"{{"version":1,"protect":[{}"a"]}}"#, r#""a","#.repeat(MAX_ENTRIES));
    assert!(parse(&many).is_err());
    let shown = parse("{\"version\":1,\"protect\":[\"/\\u001b[2J\"]}").unwrap_err().to_string();
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn an_entry_with_a_slash_and_one_without_are_the_same_folder() {
    let mut config = parse(r#"{"version":1,"protect":["skills","./skills/"],"watch":[]}"#).unwrap();
    config.set(&name("skills"), true, None).unwrap();
    assert_eq!(config.entries().unwrap(), []);
}

proptest! {
    #[test]
    fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = Config::parse(&bytes);
    }

    #[test]
    fn what_is_read_is_written_the_same(
        lists in proptest::collection::vec("[a-z*?/.]{1,10}", 0..6),
        other in "[a-z]{1,6}",
    ) {
        let object = serde_json::json!({"version": 1, "protect": lists, "watch": [], "zz": other});
        if let Ok(config) = Config::parse(object.to_string().as_bytes()) {
            let again = Config::parse(&config.to_bytes()).unwrap();
            prop_assert_eq!(&again, &config);
            prop_assert_eq!(again.to_bytes(), config.to_bytes());
        }
    }
}
