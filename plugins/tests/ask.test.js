import assert from "node:assert/strict";
import { unlinkSync } from "node:fs";
import { test } from "node:test";
import { Fake, FAULTS } from "./fake.js";

test("only an answer is an answer", async () => {
  const fake = new Fake("opencode");
  const { ask } = await fake.load("ask.js");
  const event = { hook: "h", session: "s", directory: "/" };
  const asked = () => ask([fake.program, "--state-dir", "/s"], "opencode", event, 3000);
  assert.equal((await asked()).verdict, "allow");
  assert.deepEqual(fake.events(), [{ v: 1, ...event }]);
  assert.deepEqual(fake.words(), ["--state-dir /s hook opencode h"]);
  for (const [name, script] of Object.entries(FAULTS)) {
    fake.behaves(script);
    const answer = await asked();
    assert.equal(answer.verdict, "deny", name);
    assert.match(answer.reason, /wardkeep doctor/, name);
  }
  fake.says({ verdict: "deny", reason: "because" });
  assert.equal((await asked()).reason, "because");
  fake.says({ verdict: "deny", reason: "" });
  assert.notEqual((await asked()).reason, "");
  unlinkSync(fake.program);
  assert.equal((await asked()).verdict, "deny");
  assert.equal((await ask([], "opencode", event)).verdict, "deny");
  fake.remove();
});

test("what never ends is ended", async () => {
  const fake = new Fake("opencode");
  const { ask } = await fake.load("ask.js");
  // It ignores what could be ignored, and a child keeps its output open.
  fake.behaves(`trap '' TERM HUP; printf %s $$ >"$here/pid"; sleep 5 & wait`);
  const answer = await ask([fake.program, "--state-dir", "/s"], "opencode", { hook: "h" }, 300);
  assert.equal(answer.verdict, "deny");
  assert.match(answer.reason, /300 ms/);
  fake.remove();
});

test("what cannot be written is denied, and half signs are mended", async () => {
  const fake = new Fake("opencode");
  const { ask } = await fake.load("ask.js");
  const asked = (more) => ask([fake.program, "--state-dir", "/s"], "opencode", { hook: "h", ...more });
  const round = {};
  round.round = round;
  assert.equal((await asked({ input: round })).verdict, "deny");
  assert.equal((await asked({ text: "x".repeat(7 << 20) })).verdict, "deny");
  assert.deepEqual(fake.events(), []);
  assert.equal((await asked({ text: "a\ud800b", n: 7n })).verdict, "allow");
  assert.equal(fake.events()[0].text, "a\ufffdb");
  fake.remove();
});

test("the program sees little of the surroundings", async () => {
  const fake = new Fake("opencode");
  const { ask } = await fake.load("ask.js");
  process.env.LD_PRELOAD_OF_A_WORKSPACE = "x";
  process.env.WARDKEEP_STATE_DIR = "/elsewhere";
  fake.behaves(`env >"$here/env"; printf '{"v":1,"verdict":"allow","context":"%s"}' "$(cut -d= -f1 "$here/env" | tr '\\n' ' ')"`);
  const { context } = await ask([fake.program, "--state-dir", "/s"], "opencode", { hook: "h" });
  assert.match(context, /PATH/);
  assert.doesNotMatch(context, /PRELOAD|STATE_DIR/);
  fake.remove();
});

test("memory forgets the oldest", async () => {
  const fake = new Fake("opencode");
  const { Memory } = await fake.load("ask.js");
  const memory = new Memory(2);
  for (const key of ["a", "b", "a", "c"]) memory.set(key, key);
  assert.deepEqual(memory.keys(), ["a", "c"]);
  fake.remove();
});
