import assert from "node:assert/strict";
import { test } from "node:test";
import { Fake, FAULTS } from "./fake.js";

/** OpenClaw, as far as the plugin knows it. */
class Host {
  hooks = {};
  policies = [];
  middleware = [];
  commands = [];
  logger = { warn: (text) => this.warnings.push(text) };
  warnings = [];
  config = {};
  runtime = { agent: { resolveAgentWorkspaceDir: () => "/home/me" } };
  on(name, handler) {
    this.hooks[name] = handler;
  }
  registerTrustedToolPolicy(policy) {
    this.policies.push(policy);
  }
  registerAgentToolResultMiddleware(handler, options) {
    this.middleware.push({ handler, options });
  }
  registerCommand(command) {
    this.commands.push(command);
  }
}

const context = { sessionId: "s1", sessionKey: "agent:main:main", agentId: "main" };
const call = (params) => ({ toolName: "exec", params, toolCallId: "c1" });

async function start(host = new Host()) {
  const fake = new Fake("openclaw");
  const plugin = (await fake.load("index.ts")).default;
  assert.equal(plugin.id, "wardkeep");
  assert.equal(plugin.register(host), undefined);
  return { fake, host, policy: host.policies[0], result: host.middleware[0]?.handler };
}

test("a call is asked about, in our form, once", async () => {
  const { fake, host, policy } = await start();
  assert.equal(policy.matcher, undefined);
  assert.equal(await policy.evaluate(call({ command: "ls" }), context), undefined);
  assert.equal(await host.hooks.before_tool_call(call({ command: "ls" }), context), undefined);
  const [first, second, ...rest] = fake.events();
  assert.deepEqual(first, { v: 1, hook: "session_start", session: "s1", directory: "/home/me", source: "startup" });
  assert.deepEqual(second, {
    v: 1, hook: "before_tool_call", session: "s1", directory: "/home/me", tool: "exec", input: { command: "ls" },
  });
  assert.deepEqual(rest, []);
  // The same once more is another call, and so is another input under the same id.
  await host.hooks.before_tool_call(call({ command: "ls" }), context);
  await host.hooks.before_tool_call(call({ command: "ls" }), context);
  await policy.evaluate(call({ command: "ls" }), context);
  await host.hooks.before_tool_call(call({ command: "rm x" }), context);
  assert.equal(fake.events().length, 6);
  await policy.evaluate({ toolName: "todo__write", params: {} }, context);
  assert.equal(fake.events().at(-1).tool, "mcp__todo__write", "a server may call its tools as it likes");
  await policy.evaluate({ toolName: "exec", toolKind: "code_mode_exec", params: {} }, context);
  assert.equal(fake.events().at(-1).tool, "code_mode_exec");
  fake.remove();
});

test("whatever goes wrong is a block", async () => {
  const { fake, host, policy, result } = await start();
  for (const [name, script] of Object.entries(FAULTS)) {
    fake.behaves(`case $event in session_start) printf '{"v":1,"verdict":"allow"}' ;; *) ${script} ;; esac`);
    const decision = await policy.evaluate(call({ command: "ls" }), context);
    assert.equal(decision.block, true, name);
    assert.equal((await host.hooks.before_tool_call(call({ command: "ls" }), context)).block, true, name);
    assert.equal((await host.hooks.before_agent_run({ prompt: "hello" }, context)).outcome, "block", name);
    assert.equal((await host.hooks.message_sending({ content: "hello" }, context)).cancel, true, name);
    assert.equal((await host.hooks.before_install({ targetName: "x", request: {} })).block, true, name);
    const given = { content: [{ type: "text", text: "raw" }], details: { aggregated: "raw", exitCode: 0 } };
    const seen = await result({ toolName: "exec", toolCallId: "c1", args: {}, result: given }, context);
    assert.doesNotMatch(JSON.stringify(seen), /raw/, name);
    assert.deepEqual(seen.result.details, { exitCode: 0 }, name);
  }
  fake.remove();
});

test("a session that may not start may do nothing", async () => {
  const { fake, host, policy } = await start();
  fake.says({ verdict: "deny", reason: "strict" }, "session_start");
  assert.equal((await policy.evaluate(call({}), context)).blockReason, "strict");
  assert.equal((await host.hooks.before_agent_run({ prompt: "x" }, context)).outcome, "block");
  fake.says({ verdict: "allow" });
  assert.equal(await policy.evaluate(call({}), context), undefined, "it is asked again");
  fake.remove();
});

test("a write goes elsewhere, and the model is told", async () => {
  const { fake, host, policy, result } = await start();
  const input = { path: "/home/me/.soulguard/staging/SOUL.md", content: "x" };
  fake.says({ verdict: "rewrite", input, context: "written elsewhere" }, "before_tool_call");
  const event = { toolName: "write", params: { path: "SOUL.md", content: "x" }, toolCallId: "c2" };
  assert.deepEqual(await policy.evaluate(event, context), { params: input });
  assert.equal(await host.hooks.before_tool_call({ ...event, params: input }, context), undefined);
  fake.says({ verdict: "allow" });
  const given = { content: [{ type: "text", text: "ok" }], details: { a: "b" } };
  const seen = await result({ toolName: "write", toolCallId: "c2", args: input, result: given }, context);
  assert.deepEqual(seen.result.content.map((part) => part.text), ["ok", "written elsewhere"]);
  assert.deepEqual(seen.result.details, { a: "b" });
  fake.remove();
});

test("a person is asked only where one can be, and what they say is no approval", async () => {
  const { fake, host, policy } = await start();
  fake.says({ verdict: "pending", reason: "held", id: "abc123" }, "before_tool_call");
  assert.deepEqual(await policy.evaluate(call({}), context), { block: true, blockReason: "held" });
  const routed = { ...context, requester: { channel: "chat" } };
  const { requireApproval } = await policy.evaluate(call({}), routed);
  assert.match(requireApproval.title, /abc123/);
  assert.match(requireApproval.description, /wardkeep approvals approve abc123/);
  assert.deepEqual(requireApproval.allowedDecisions, ["allow-once", "deny"]);
  // OpenClaw goes on to the hooks once a person has allowed it.
  assert.equal((await host.hooks.before_tool_call(call({}), routed)).block, true);
  fake.says({ verdict: "allow" });
  assert.equal(await host.hooks.before_tool_call(call({}), routed), undefined);
  fake.remove();
});

test("a result is redacted part by part", async () => {
  const { fake, result } = await start();
  const image = { type: "image", mimeType: "image/png", data: "AAAA" };
  const given = { content: [{ type: "text", text: "bad" }, image], details: { text: "bad", n: 1 } };
  const parts = [{ type: "text", text: "good" }, { type: "image" }];
  fake.says({ verdict: "redact", text: "good", result: { content: parts }, context: "held back" }, "tool_result");
  const event = { toolName: "read", toolCallId: "c3", args: { path: "a" }, cwd: "/elsewhere", result: given };
  const seen = await result(event, context);
  assert.deepEqual(seen.result.content, [{ type: "text", text: "good" }, image, { type: "text", text: "held back" }]);
  assert.deepEqual(seen.result.details, { n: 1 });
  const asked = fake.events().at(-1);
  assert.equal(asked.directory, "/elsewhere");
  assert.doesNotMatch(JSON.stringify(asked), /AAAA/);
  fake.says({ verdict: "redact", text: "good", result: "good" }, "tool_result");
  assert.deepEqual((await result(event, context)).result.content, [{ type: "text", text: "good" }]);
  fake.remove();
});

test("prompts, messages and instructions", async () => {
  const { fake, host } = await start();
  fake.says({ verdict: "allow", context: "the policy" });
  assert.deepEqual(await host.hooks.before_agent_run({ prompt: "hi" }, context), { outcome: "pass" });
  assert.deepEqual(await host.hooks.before_prompt_build({}, context), { appendSystemContext: "the policy\n\nthe policy" });
  assert.equal(await host.hooks.message_sending({ content: "out" }, { sessionKey: context.sessionKey }), undefined);
  assert.equal(fake.events().at(-1).session, "s1", "known by its key");
  await host.hooks.before_agent_run({ prompt: "hi", senderIsOwner: false, senderId: "7" }, context);
  assert.equal(fake.events().at(-1).sender, "other");
  await host.hooks.before_agent_run({ prompt: "hi", senderIsOwner: true }, context);
  assert.equal(fake.events().at(-1).sender, "owner");
  host.hooks.subagent_spawned({ childSessionKey: "k2" }, { requesterSessionKey: context.sessionKey });
  await host.hooks.session_start({}, { sessionId: "s2", sessionKey: "k2" });
  assert.equal(fake.events().at(-1).parent, "s1");
  await host.hooks.session_end({ sessionId: "s1", reason: "reset" }, context);
  assert.deepEqual([fake.events().at(-1).hook, fake.events().at(-1).reason], ["session_end", "reset"]);
  fake.remove();
});

test("installs are asked about by the plugin where OpenClaw does not ask itself", async () => {
  const { fake, host } = await start();
  const event = { targetName: "helper", targetType: "skill", sourcePath: "/tmp/x1", request: { kind: "skill-install", mode: "install" } };
  assert.equal(await host.hooks.before_install(event), undefined);
  assert.equal(fake.events()[0].name, "helper");
  assert.doesNotMatch(fake.events()[0].text, /x1/);
  host.config = { security: { installPolicy: { enabled: true, exec: { args: ["hook", "openclaw", "install_policy"] } } } };
  await host.hooks.before_install(event);
  assert.equal(fake.events().length, 1);
  fake.remove();
});

test("where a session works must be known, and OpenClaw must be able to hold results back", async () => {
  const host = new Host();
  host.runtime = undefined;
  const { fake, policy } = await start(host);
  assert.equal((await policy.evaluate(call({}), { sessionId: "s9" })).block, true);
  fake.remove();
  const old = new Host();
  old.registerAgentToolResultMiddleware = undefined;
  const other = await start(old);
  assert.equal((await other.policy.evaluate(call({}), context)).block, true);
  other.fake.remove();
});
