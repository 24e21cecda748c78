// A plugin as `wardkeep install` leaves it, that asks a program which does as the test says.

import { chmodSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const PLUGINS = dirname(dirname(fileURLToPath(import.meta.url)));

export class Fake {
  constructor(agent) {
    this.folder = mkdtempSync(join(tmpdir(), "wardkeep-plugin-"));
    cpSync(join(PLUGINS, agent), this.folder, { recursive: true });
    cpSync(join(PLUGINS, "ask.js"), join(this.folder, "ask.js"));
    const program = join(this.folder, "program");
    writeFileSync(join(this.folder, "command.js"), `export default ${JSON.stringify([program, "--state-dir", "/s"])};\n`);
    writeFileSync(join(this.folder, "package.json"), '{"type":"module"}');
    writeFileSync(
      program,
      '#!/bin/sh\nhere=$(dirname "$0")\ncat >"$here/event"\nprintf "%s\\n" "$*" >>"$here/words"\n' +
        'cat "$here/event" >>"$here/events"\nevent=$5\n. "$here/behaves"\n',
    );
    chmodSync(program, 0o755);
    this.program = program;
    this.says({ verdict: "allow" });
  }

  /** Answers to events by name, or one to all. */
  says(answer, only) {
    const text = JSON.stringify({ v: 1, ...answer }).replaceAll("'", "'\\''");
    const allow = JSON.stringify({ v: 1, verdict: "allow" });
    const print = `printf '%s' '${text}'`;
    this.behaves(only ? `case $event in ${only}) ${print} ;; *) printf '%s' '${allow}' ;; esac` : print);
  }

  /** What the program does, as a shell reads it. */
  behaves(script) {
    writeFileSync(join(this.folder, "behaves"), `${script}\n`);
  }

  /** All that it was asked. */
  events() {
    const file = join(this.folder, "events");
    return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n").map((line) => JSON.parse(line)) : [];
  }

  words() {
    return readFileSync(join(this.folder, "words"), "utf8").trim().split("\n");
  }

  load(file) {
    return import(pathToFileURL(join(this.folder, file)).href);
  }

  remove() {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** What may go wrong with a hook: none of it is leave. Words for a shell. */
export const FAULTS = {
  "half a JSON text": `printf '{"v":1,"verdict":"all'`,
  "a word": "echo allow",
  nothing: ":",
  "another form": `printf '{"decision":"allow"}'`,
  "another version": `printf '{"v":2,"verdict":"allow"}'`,
  "no version": `printf '{"verdict":"allow"}'`,
  "another verdict": `printf '{"v":1,"verdict":"ALLOW"}'`,
  "a list of verdicts": `printf '{"v":1,"verdict":["allow"]}'`,
  "a list": `printf '[{"v":1,"verdict":"allow"}]'`,
  null: "printf null",
  "two texts": `printf '{"v":1,"verdict":"allow"}{"v":1,"verdict":"allow"}'`,
  "something besides": `printf '{"v":1,"verdict":"allow","context":7}'`,
  "a rewrite without input": `printf '{"v":1,"verdict":"rewrite"}'`,
  "a redaction without text": `printf '{"v":1,"verdict":"redact"}'`,
  "no UTF-8": `printf '{"v":1,"verdict":"allow","context":"\\377"}'`,
  "a bad end": `printf '{"v":1,"verdict":"allow"}'; exit 3`,
  "a signal": `printf '{"v":1,"verdict":"allow"}'; kill -KILL $$`,
  "too much": "head -c 20000000 /dev/zero",
};
