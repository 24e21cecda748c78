import assert from "node:assert/strict";
import { test } from "node:test";
import { Fake, FAULTS } from "./fake.js";

async function start() {
  const fake = new Fake("opencode");
  const plugin = (await fake.load("index.js")).default;
  assert.equal(plugin.id, "wardkeep");
  return { fake, hooks: await plugin.server({ directory: "/home/me" }) };
}

const call = { tool: "bash", sessionID: "s1", callID: "c1" };
const user = (text, more) => ({ message: {}, parts: [{ type: "text", text, ...more }] });

test("a call is asked about, in our form", async () => {
  const { fake, hooks } = await start();
  const args = { command: "ls" };
  await hooks["tool.execute.before"](call, { args });
  assert.deepEqual(args, { command: "ls" });
  assert.deepEqual(fake.events(), [
    { v: 1, hook: "session.start", session: "s1", directory: "/home/me", source: "startup" },
    { v: 1, hook: "tool.execute.before", session: "s1", directory: "/home/me", tool: "bash", input: args },
  ]);
  fake.remove();
});

test("whatever goes wrong stops it", async () => {
  const { fake, hooks } = await start();
  for (const [name, script] of Object.entries(FAULTS)) {
    fake.behaves(`case $event in session.start) printf '{"v":1,"verdict":"allow"}' ;; *) ${script} ;; esac`);
    const args = { command: "ls" };
    await assert.rejects(hooks["tool.execute.before"](call, { args }), (error) => !/\n\s+at /.test(error.stack), name);
    await assert.rejects(hooks["chat.message"]({ sessionID: "s1" }, user("hello")), undefined, name);
    const output = { title: "t", output: "raw", metadata: { output: "raw" }, attachments: [{ url: "raw" }] };
    await hooks["tool.execute.after"]({ ...call, args }, output);
    assert.doesNotMatch(JSON.stringify(output), /raw/, name);
    const said = { text: "raw" };
    await hooks["experimental.text.complete"]({ sessionID: "s1" }, said);
    assert.doesNotMatch(said.text, /raw/, name);
  }
  fake.remove();
});

test("a session that may not start may do nothing", async () => {
  const { fake, hooks } = await start();
  fake.says({ verdict: "deny", reason: "strict" }, "session.start");
  await assert.rejects(hooks["tool.execute.before"](call, { args: {} }), /strict/);
  await assert.rejects(hooks["chat.message"]({ sessionID: "s1" }, user("x")), /strict/);
  fake.remove();
});

test("pending is a denial that names the way", async () => {
  const { fake, hooks } = await start();
  fake.says({ verdict: "pending", reason: "held: approval abc", id: "abc" }, "tool.execute.before");
  await assert.rejects(hooks["tool.execute.before"](call, { args: {} }), /approval abc/);
  fake.remove();
});

test("a write goes elsewhere, and the model is told", async () => {
  const { fake, hooks } = await start();
  const input = { filePath: "/home/me/.soulguard/staging/SOUL.md", content: "x" };
  fake.says({ verdict: "rewrite", input, context: "written elsewhere" }, "tool.execute.before");
  const args = { filePath: "/home/me/SOUL.md", content: "x", extra: 1 };
  await hooks["tool.execute.before"]({ ...call, tool: "write" }, { args });
  assert.deepEqual(args, input, "the same object, as the tool gets it");
  await assert.rejects(hooks["tool.execute.before"](call, { args: Object.freeze({ filePath: "a" }) }));
  fake.says({ verdict: "allow" });
  const output = { title: "", output: "ok", metadata: {} };
  await hooks["tool.execute.after"]({ ...call, tool: "write", args }, output);
  assert.equal(output.output, "ok\n\nwritten elsewhere");
  fake.remove();
});

test("a result is redacted in place, also that of a server", async () => {
  const { fake, hooks } = await start();
  fake.says({ verdict: "redact", text: "good", result: { output: "good" }, context: "held back" }, "tool.execute.after");
  const output = { title: "t", output: "bad", metadata: { preview: "bad", exit: 0 } };
  await hooks["tool.execute.after"](call, output);
  assert.equal(output.output, "good\n\nheld back");
  assert.doesNotMatch(JSON.stringify(output), /bad/);
  const image = { type: "image", data: "AAAA" };
  const file = { type: "resource", resource: { uri: "a:b", text: "good" } };
  const parts = [{ type: "text", text: "good" }, { type: "image" }, file];
  fake.says({ verdict: "redact", text: "good", result: { content: parts } }, "tool.execute.after");
  const bad = { type: "resource", resource: { uri: "a:b", text: "bad" } };
  const own = { content: [{ type: "text", text: "bad" }, image, bad] };
  await hooks["tool.execute.after"]({ ...call, tool: "todo_write" }, own);
  assert.deepEqual(own.content, [{ type: "text", text: "good" }, image, file]);
  assert.deepEqual(fake.events().at(-1).result.content.at(-1), bad, "texts of every kind are judged");
  assert.equal(fake.events().at(-1).tool, "mcp__todo_write", "a server may call its tools as it likes");
  assert.doesNotMatch(JSON.stringify(fake.events()), /AAAA/);
  fake.remove();
});

test("files that a prompt brings along are results, not the user's words", async () => {
  const { fake, hooks } = await start();
  fake.says({ verdict: "redact", text: "good" }, "tool.execute.after");
  const output = user("look at @notes");
  output.parts.push({ type: "text", synthetic: true, text: "bad" });
  await hooks["chat.message"]({ sessionID: "s1" }, output);
  assert.equal(output.parts[1].text, "good");
  const prompt = fake.events().find((event) => event.hook === "chat.message");
  assert.equal(prompt.text, "look at @notes");
  fake.remove();
});

test("instructions, sub-agents and ends", async () => {
  const { fake, hooks } = await start();
  fake.says({ verdict: "allow", context: "the policy" }, "session.start");
  await hooks.event({ event: { type: "session.created", properties: { info: { id: "s2", parentID: "s1" } } } });
  const output = { system: ["own"] };
  await hooks["experimental.chat.system.transform"]({ sessionID: "s2" }, output);
  assert.deepEqual(output.system, ["own", "the policy"]);
  assert.equal(fake.events()[0].parent, "s1");
  await hooks.event({ event: { type: "session.deleted", properties: { info: { id: "s2" } } } });
  assert.equal(fake.events().at(-1).hook, "session.end");
  await hooks["chat.message"]({ sessionID: "s3" }, user("x"));
  await hooks.dispose();
  assert.deepEqual([fake.events().at(-1).session, fake.events().at(-1).reason], ["s3", "exit"]);
  fake.remove();
});
