// OpenClaw asks wardkeep. Runs as it is: OpenClaw takes the types off by itself.
//
// Each event is handed to `wardkeep hook openclaw EVENT`, which answers with a verdict. Only an answer
// that says so lets something happen. Nothing of OpenClaw's is imported: what is read of its events
// are the few members below.

import { ask, denial, isObject, Memory, run, withheld } from "./ask.js";
import COMMAND from "./command.js";

type Members = Record<string, any>;
type Answer = Members & { verdict: "allow" | "deny" | "pending" | "rewrite" | "redact" };

const AGENT = "openclaw";
/** The longest that OpenClaw asks a person. */
const APPROVAL_MS = 120_000;
/** What OpenClaw takes of a text that asks a person. */
const MAX_QUESTION = 240;
/** When OpenClaw shuts down, all sessions together have 2 s. */
const END_MS = 1_500;

export default {
  id: "wardkeep",
  name: "Wardkeep",
  description: "Asks wardkeep before each call of a tool, prompt and message",
  register(api: Members): void {
    const sessions = new Sessions(api);
    const calls = new Calls(sessions);

    if (typeof api.registerAgentToolResultMiddleware === "function") {
      api.registerAgentToolResultMiddleware(
        (event: Members, context: Members) => calls.returned(event, context),
        { runtimes: ["openclaw", "codex"] },
      );
    } else {
      sessions.broken = "this OpenClaw cannot hold back results of tools: update it";
    }
    // Before the hooks of every other plugin; the hook below is for what it does not see, and for what
    // a person was asked about in between.
    if (typeof api.registerTrustedToolPolicy === "function") {
      api.registerTrustedToolPolicy({
        id: "wardkeep",
        description: "Asks wardkeep before each call of a tool",
        evaluate: (event: Members, context: Members) => calls.called(event, context, true),
      });
    }
    const late = { priority: -1000 };
    api.on("before_tool_call", (event: Members, context: Members) => calls.calledAgain(event, context), late);

    api.on("before_agent_run", async (event: Members, context: Members) => {
      const answer = await sessions.prompted(event, context);
      if (answer.verdict === "allow") return { outcome: "pass" };
      const reason = answer.reason ?? denial("a prompt cannot be changed").reason;
      return { outcome: "block", reason, message: reason };
    });
    api.on("before_prompt_build", async (_event: Members, context: Members) => {
      const text = await sessions.contextOf(context);
      return text ? { appendSystemContext: text } : undefined;
    });
    api.on("message_sending", async (event: Members, context: Members) => {
      if (typeof event.content === "string" && event.content === "") return undefined;
      const answer = await sessions.ask(context, "message_sending", { text: String(event.content) });
      if (answer.verdict === "allow") return undefined;
      return { cancel: true, cancelReason: answer.reason ?? "held back by wardkeep" };
    });
    api.on("before_install", async (event: Members) => {
      // Where OpenClaw asks us itself, it has done so already.
      if (asksItself(api)) return undefined;
      const told = {
        name: String(event.targetName),
        text: JSON.stringify({ type: event.targetType, ...asked(event.request) }),
      };
      const answer = await sessions.ask({ sessionId: "installs" }, "before_install", told);
      return answer.verdict === "allow"
        ? undefined
        : { block: true, blockReason: answer.reason ?? "not allowed by wardkeep" };
    });
    api.on("subagent_spawned", (event: Members, context: Members) => sessions.spawned(event, context));
    api.on("session_start", async (_event: Members, context: Members) => {
      await sessions.started(sessions.of(context), context);
    });
    api.on("session_end", (event: Members, context: Members) => sessions.ended(event, context));

    api.registerCommand?.({
      name: "prove",
      description: "What wardkeep has blocked, what is at risk, and what to do",
      requireAuth: true,
      handler: async () => {
        const told = await run([...COMMAND, "prove"], Buffer.alloc(0), 10_000);
        return { text: typeof told === "string" ? denial(told).reason : told.toString().slice(0, 3500) };
      },
    });
  },
};

/** What is known of sessions, and the asking. */
class Sessions {
  api: Members;
  broken = "";
  /** The session that runs under a key, as events of messages know only the key. */
  byKey = new Memory();
  /** Where each works. */
  folders = new Memory();
  parents = new Memory();
  /** What the model is to be told of each from its start on, and what it has not been told yet. */
  starts = new Memory();
  notes = new Memory();

  constructor(api: Members) {
    this.api = api;
  }

  of(context: Members): string {
    const key = word(context?.sessionKey);
    const id = word(context?.sessionId) ?? (key && this.byKey.get(key)) ?? key ?? "none";
    if (key) this.byKey.set(key, id);
    if (word(context?.workspaceDir) && !this.folders.has(id)) this.folders.set(id, context.workspaceDir);
    return id.slice(0, 200);
  }

  /** Where paths of the session begin; nothing, if it is not known. */
  folder(session: string, context: Members): string | undefined {
    const known = this.folders.get(session);
    if (known) return known;
    try {
      const agent = word(context?.agentId) ?? /^agent:([^:]+):/.exec(context?.sessionKey ?? "")?.[1] ?? "main";
      const config = this.api.runtime?.config?.current?.() ?? this.api.config;
      return word(this.api.runtime?.agent?.resolveAgentWorkspaceDir?.(config, agent));
    } catch {
      return undefined;
    }
  }

  async ask(context: Members, hook: string, more: Members, patience?: number): Promise<Answer> {
    if (this.broken) return denial(this.broken) as Answer;
    const session = this.of(context);
    const directory = this.folder(session, context);
    if (!directory) return denial("it is not known where this session works") as Answer;
    const answer = (await ask(COMMAND, AGENT, { hook, session, directory, ...more }, patience)) as Answer;
    if (answer.message) this.api.logger?.warn?.(answer.message);
    return answer;
  }

  /** The answer to a session's start; asked until there is a yes. */
  async started(session: string, context: Members): Promise<Answer> {
    const known = this.starts.get(session);
    if (known) return known;
    const parent = this.parents.get(word(context?.sessionKey) ?? "");
    const more = { source: word(context?.trigger) ?? "startup", ...(parent ? { parent } : {}) };
    const asking = this.ask(context, "session_start", more);
    this.starts.set(session, asking);
    const answer = await asking;
    if (answer.verdict !== "allow") this.starts.delete(session);
    return answer;
  }

  async prompted(event: Members, context: Members): Promise<Answer> {
    const session = this.of(context);
    const start = await this.started(session, context);
    if (start.verdict !== "allow") return start;
    const answer = await this.ask(context, "before_agent_run", { text: String(event.prompt), ...sender(event) });
    if (answer.context) this.note(session, answer.context);
    return answer;
  }

  /** What the model is to be told with its instructions. */
  async contextOf(context: Members): Promise<string> {
    const session = this.of(context);
    const start = await this.started(session, context);
    return [start.context, ...(this.notes.take(session) ?? [])].filter(Boolean).join("\n\n");
  }

  note(session: string, text: string): void {
    this.notes.set(session, [...(this.notes.get(session) ?? []), text].slice(-16));
  }

  spawned(event: Members, context: Members): void {
    const child = word(event?.childSessionKey);
    const requester = word(context?.requesterSessionKey);
    if (child && requester) this.parents.set(child, this.of({ sessionKey: requester }));
  }

  async ended(event: Members, context: Members): Promise<void> {
    const session = this.of({ ...context, sessionId: word(event?.sessionId) ?? context?.sessionId });
    await this.ask({ ...context, sessionId: session }, "session_end", { reason: word(event?.reason) ?? "end" }, END_MS);
    this.starts.delete(session);
    this.notes.delete(session);
  }
}

/** Calls of tools, and what they gave. */
class Calls {
  sessions: Sessions;
  /** Calls that may happen exactly so. */
  judged = new Memory();
  /** What goes along with the result of a call. */
  notes = new Memory();

  constructor(sessions: Sessions) {
    this.sessions = sessions;
  }

  /** A call; `first`, where others have their say afterwards and it may be judged again. */
  async called(event: Members, context: Members, first: boolean): Promise<Members | undefined> {
    const session = this.sessions.of(context);
    const start = await this.sessions.started(session, context);
    if (start.verdict !== "allow") return block(start);
    const told = { tool: named(event), input: event.params };
    const answer = await this.sessions.ask(context, "before_tool_call", told);
    const call = word(event.toolCallId);
    if (answer.context && call) this.notes.set(call, answer.context);
    switch (answer.verdict) {
      case "allow":
        if (first && call) this.judged.set(call, text(event.params));
        return undefined;
      case "rewrite":
        if (first && call) this.judged.set(call, text(answer.input));
        return { params: answer.input };
      case "pending":
        // Where nobody could be asked, the model must be told the id.
        return first && (word(context?.channelId) || isObject(context?.requester))
          ? { requireApproval: question(answer) }
          : block(answer);
      default:
        return block(answer);
    }
  }

  /** A call that was judged already, exactly so, may happen. One that a person was asked about in
   * between may happen once the owner has approved it: what they say to OpenClaw is no approval. */
  async calledAgain(event: Members, context: Members): Promise<Members | undefined> {
    const call = word(event.toolCallId);
    if (call && this.judged.take(call) === text(event.params)) return undefined;
    return this.called(event, context, false);
  }

  /** What the model may see of a result. */
  async returned(event: Members, context: Members): Promise<Members> {
    const given: Members = isObject(event.result) ? event.result : { content: [] };
    const content: Members[] = Array.isArray(given.content) ? given.content : [];
    const session = this.sessions.of(context);
    if (word(event.cwd)) this.sessions.folders.set(session, event.cwd);
    const call = word(event.toolCallId) ?? "";
    const told = {
      tool: named(event),
      ...(isObject(event.args) ? { input: event.args } : {}),
      result: { content: content.map(texts) },
    };
    const answer = await this.sessions.ask(context, "tool_result", told);
    const more = [this.notes.take(call), answer.context, ...(this.sessions.notes.take(session) ?? [])];
    const note = more.filter(Boolean).join("\n\n");
    const appended = note ? [{ type: "text", text: note }] : [];
    switch (answer.verdict) {
      case "allow":
        return { result: { ...given, content: [...content, ...appended] } };
      case "redact":
        return { result: { ...given, content: [...replaced(content, answer), ...appended], details: plain(given.details) } };
      default: {
        const block = { type: "text", text: withheld(answer.reason ?? "") };
        return { result: { ...given, content: [block], details: plain(given.details) } };
      }
    }
  }
}

/** Tools of one name and another kind are not known by that name, and servers choose names freely. */
function named(event: Members): string {
  const name = word(event.toolKind) ?? String(event.toolName);
  return name.includes("__") && !name.startsWith("mcp__") ? `mcp__${name}` : name;
}

function block(answer: Answer): Members {
  return { block: true, blockReason: answer.reason ?? denial("without a reason").reason };
}

function question(answer: Answer): Members {
  const how = `Run \`wardkeep approvals approve ${answer.id}\` in a terminal first, then allow it here. `;
  return {
    title: `wardkeep: approval ${answer.id}`,
    description: (how + answer.reason).slice(0, MAX_QUESTION),
    severity: "warning",
    timeoutMs: APPROVAL_MS,
    timeoutReason: answer.reason,
    allowedDecisions: ["allow-once", "deny"],
  };
}

/** A part of a result, as far as it is text. */
function texts(part: Members): Members {
  return isObject(part) && part.type !== "image" ? part : { type: "image" };
}

/** The parts of a result with other texts. */
function replaced(content: Members[], answer: Answer): Members[] {
  const parts = answer.result?.content;
  if (!Array.isArray(parts) || parts.length !== content.length) return [{ type: "text", text: answer.text }];
  return content.map((part, number) => (part?.type === "image" ? part : parts[number]));
}

/** What the model never sees of a result, without texts: they are those that were held back. */
function plain(details: unknown): Members {
  if (!isObject(details)) return {};
  const harmless = (value: unknown) => typeof value === "number" || typeof value === "boolean";
  return Object.fromEntries(Object.entries(details as Members).filter(([, value]) => harmless(value)));
}

/** Who speaks, where it is somebody else than the owner at their own machine. */
function sender(event: Members): Members {
  if (event.senderIsOwner === true) return { sender: "owner" };
  return event.senderIsOwner === false || word(event.senderId) ? { sender: "other" } : {};
}

/** What is asked for, without what is another each time. */
function asked(request: Members): Members {
  return { kind: request?.kind, mode: request?.mode, specifier: request?.requestedSpecifier };
}

function asksItself(api: Members): boolean {
  const policy = (api.runtime?.config?.current?.() ?? api.config)?.security?.installPolicy;
  const words = policy?.exec?.args;
  return policy?.enabled === true && Array.isArray(words) && words.includes("install_policy");
}

function word(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function text(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "";
  }
}
