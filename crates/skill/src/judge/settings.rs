//! Settings and definitions: commands, addresses and what they tell the model.

use serde_json::Value;

use super::super::kind::Language;
use super::super::places::is_drop;
use super::super::{front, markdown, prose};
use super::{Judge, Place, Role};
use crate::verdict::Verdict;

impl Judge<'_> {
    pub(super) fn json(&mut self, place: &Place<'_>) {
        let (value, commands) = front::json(place.source);
        let read = [
            "package.json",
            "plugin.json",
            "mcp.json",
            ".mcp.json",
            "hooks.json",
            "tools.json",
            "settings.json",
        ];
        if value.is_none() && place.path.rsplit('/').next().is_some_and(|name| read.contains(&name))
        {
            self.complete = false;
            let path = place.path.to_owned();
            self.whole(
                &path,
                "read.incomplete",
                Verdict::Ask,
                "it is no JSON that can be read".to_owned(),
            );
        }
        if place.path.ends_with(".ipynb")
            && let Some(value) = &value
        {
            self.notebook(place, value);
        }
        let name = place.path.rsplit('/').next().unwrap_or_default();
        for (command, near) in commands {
            let at = place
                .source
                .find(near.get(..near.floor_char_boundary(24.min(near.len()))).unwrap_or_default())
                .unwrap_or(0);
            let inner = Place {
                role: if name == "package.json" { Role::Hook } else { place.role },
                base: at,
                exact: false,
                ..place.clone()
            };
            self.script(&inner, &command, 0);
        }
        let scripts = value
            .as_ref()
            .filter(|_| name == "package.json")
            .and_then(|value| value.get("scripts"));
        for hook in ["preinstall", "install", "postinstall"] {
            let Some(command) =
                scripts.and_then(|scripts| scripts.get(hook)).and_then(Value::as_str)
            else {
                continue;
            };
            let usual = [
                "husky",
                "patch-package",
                "prisma generate",
                "node-gyp",
                "electron-builder",
                "playwright install",
                "npm run build",
                "tsc",
                "echo",
            ];
            if !usual.iter().any(|word| command.contains(word)) {
                let at = place.source.find(&format!("\"{hook}\"")).unwrap_or(0);
                self.find(
                    place,
                    "install.hook",
                    Verdict::Ask,
                    at..at + hook.len(),
                    format!("installing runs: {}", command.chars().take(120).collect::<String>()),
                );
            }
        }
        self.smuggled(place, place.source);
        // Definitions of tools: what they tell the model.
        if let Some(value) = &value {
            self.descriptions(place, value, 0);
        }
        self.lines(place);
    }

    /// The code of a notebook, all cells together.
    fn notebook(&mut self, place: &Place<'_>, value: &Value) {
        let cells = value.get("cells").and_then(Value::as_array).into_iter().flatten();
        let mut code = String::new();
        for cell in
            cells.filter(|cell| cell.get("cell_type").and_then(Value::as_str) == Some("code"))
        {
            match cell.get("source") {
                Some(Value::String(text)) => code.push_str(text),
                Some(Value::Array(lines)) => {
                    lines.iter().filter_map(Value::as_str).for_each(|line| code.push_str(line))
                }
                _ => {}
            }
            code.push('\n');
        }
        // `!command` is a shell's.
        let commands: String = code
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix('!'))
            .map(|line| format!("{line}\n"))
            .collect();
        let inner = Place { base: 0, exact: false, ..place.clone() };
        self.script(&inner, &commands, 0);
        self.snippet(&inner, Language::Python, &code);
    }

    /// Code in a string of settings that would run commands.
    pub(super) fn smuggled(&mut self, place: &Place<'_>, text: &str) {
        let plain = text.replace('\\', "");
        let runs = [
            "require(\"child_process\")",
            "require('child_process')",
            "__import__('os')",
            "__import__(\"os\")",
            "Runtime.getRuntime().exec",
            "process.mainModule.require",
        ];
        if let Some(found) = runs.iter().find(|word| plain.contains(**word)) {
            let name = found.trim_start_matches("require(").trim_matches(['"', '\'', ')']);
            let at = text.find(name.get(..6).unwrap_or(name)).unwrap_or(0);
            self.find(
                place,
                "run.settings",
                Verdict::Ask,
                at..at + name.len(),
                "a string in settings is code that runs a command".to_owned(),
            );
        }
    }

    fn descriptions(&mut self, place: &Place<'_>, value: &Value, depth: usize) {
        if depth > 24 {
            return;
        }
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    if let (true, Some(text)) = (
                        matches!(
                            key.as_str(),
                            "description" | "instructions" | "prompt" | "title" | "hint"
                        ),
                        member.as_str(),
                    ) {
                        self.told_to_model(place, text);
                    }
                    self.descriptions(place, member, depth + 1);
                }
            }
            Value::Array(items) => {
                items.iter().for_each(|item| self.descriptions(place, item, depth + 1))
            }
            _ => {}
        }
    }

    fn told_to_model(&mut self, place: &Place<'_>, text: &str) {
        let at = place
            .source
            .find(text.get(..text.floor_char_boundary(20.min(text.len()))).unwrap_or_default())
            .unwrap_or(0);
        let document = markdown::read(text);
        for told in prose::read(text, &document, &|_| false) {
            self.add(place.path, place.source, told.rule, told.verdict, at..at, told.reason);
        }
    }

    pub(super) fn settings(&mut self, place: &Place<'_>) {
        let mut start = 0;
        for line in place.source.split_inclusive('\n') {
            let trimmed = line.trim();
            if let Some((key, value)) = trimmed.split_once(':').or_else(|| trimmed.split_once('='))
                && matches!(
                    key.trim().trim_start_matches("- "),
                    "command"
                        | "run"
                        | "cmd"
                        | "script"
                        | "postinstall"
                        | "install"
                        | "shell"
                        | "entrypoint"
                )
            {
                let inner = Place { base: start, exact: false, ..place.clone() };
                let value = value.trim().trim_matches(['"', '\'']);
                let several = matches!(value, "|" | ">" | "|-" | ">-" | "|+");
                let below = if several {
                    front::below(place.source, line.trim_end())
                } else {
                    value.to_owned()
                };
                self.script(&inner, &below, 0);
            }
            start += line.len();
        }
        self.lines(place);
    }

    /// Addresses in settings: one that only takes data has no place there.
    pub(super) fn lines(&mut self, place: &Place<'_>) {
        for found in wardkeep_detect::urls::find_urls(place.source)
            .into_iter()
            .filter(|found| is_drop(&found.url.raw))
        {
            let at = found.span.start..found.span.end;
            self.find(
                place,
                "send.drop",
                Verdict::Ask,
                at,
                format!("it is set to {}", found.url.raw.chars().take(120).collect::<String>()),
            );
        }
    }
}
