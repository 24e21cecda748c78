// OpenCode asks wardkeep.
//
// Each event is handed to `wardkeep hook opencode EVENT`, which answers with a verdict. Only an answer
// that says so lets something happen: a hook that throws stops the call or the prompt.

import { ask, denial, isObject, Memory, withheld } from "./ask.js";
import COMMAND from "./command.js";

const AGENT = "opencode";
/** When OpenCode ends, nobody waits long. */
const END_MS = 1_500;
/** The most sessions that are told to have ended then. */
const MOST_ENDED = 16;

/** OpenCode's own tools, of those that wardkeep knows by name: a server can call one of its own alike. */
const OWN_TOOLS = new Set([
  "apply_patch", "bash", "edit", "glob", "grep", "invalid", "list", "lsp", "multiedit", "patch", "question",
  "read", "skill", "task", "todoread", "todowrite", "webfetch", "websearch", "write",
]);

/** What OpenCode shows of it is the reason alone. */
class Denied extends Error {
  constructor(reason) {
    super(reason);
    this.name = "Denied";
    this.stack = reason;
  }
}

export default {
  id: "wardkeep",
  server: async ({ directory }) => {
    const sessions = new Sessions(directory);
    return {
      "tool.execute.before": (input, output) => sessions.called(input, output),
      "tool.execute.after": (input, output) => sessions.returned(input, output),
      "chat.message": (input, output) => sessions.prompted(input, output),
      "experimental.chat.system.transform": async (input, output) => {
        const text = await sessions.contextOf(input?.sessionID);
        if (text) output.system.push(text);
      },
      "experimental.text.complete": async (input, output) => {
        if (output.text === "") return;
        const answer = await sessions.ask("text.complete", input.sessionID, { text: output.text });
        if (answer.verdict !== "allow") output.text = `[This answer was withheld. ${answer.reason ?? ""}]`;
      },
      event: async ({ event }) => sessions.happened(event),
      dispose: () => sessions.ended(),
    };
  },
};

class Sessions {
  constructor(directory) {
    this.directory = directory;
    this.parents = new Memory();
    /** What the model is to be told from the start of a session on, and what it has not been told yet. */
    this.starts = new Memory();
    this.notes = new Memory();
    /** What goes along with the result of a call. */
    this.calls = new Memory();
  }

  ask(hook, session, more, patience) {
    return ask(COMMAND, AGENT, { hook, session: String(session), directory: this.directory, ...more }, patience);
  }

  /** The answer to a session's start; asked until there is a yes. */
  async started(session) {
    const known = this.starts.get(session);
    if (known) return known;
    const parent = this.parents.get(session);
    const asking = this.ask("session.start", session, { source: "startup", ...(parent ? { parent } : {}) });
    this.starts.set(session, asking);
    const answer = await asking;
    if (answer.verdict !== "allow") this.starts.delete(session);
    return answer;
  }

  async called(input, output) {
    const start = await this.started(input.sessionID);
    if (start.verdict !== "allow") throw new Denied(start.reason);
    const told = { tool: named(input.tool), input: isObject(output.args) ? output.args : {} };
    const answer = await this.ask("tool.execute.before", input.sessionID, told);
    if (answer.context) this.calls.set(input.callID, answer.context);
    switch (answer.verdict) {
      case "allow":
        return;
      case "rewrite":
        rewrite(output.args, answer.input);
        return;
      default:
        throw new Denied(answer.reason ?? denial("without a reason").reason);
    }
  }

  async returned(input, output) {
    const answer = await this.judged(input, output);
    const more = [this.calls.take(input.callID), answer.context, ...(this.notes.take(input.sessionID) ?? [])];
    const note = more.filter(Boolean).join("\n\n");
    const own = Array.isArray(output.content);
    if (answer.verdict === "redact") {
      put(output, answer.result, answer.text);
    } else if (answer.verdict !== "allow") {
      put(output, undefined, withheld(answer.reason ?? ""));
      if (Array.isArray(output.attachments)) output.attachments = [];
    }
    if (!note) return;
    if (own) output.content.push({ type: "text", text: note });
    else output.output = `${output.output}\n\n${note}`;
  }

  /** What a tool gave; those of servers give parts, the others one text. */
  judged(input, output) {
    const result = Array.isArray(output.content)
      ? { content: output.content.map((part) => (isOpaque(part) ? { type: String(part?.type) } : part)) }
      : { output: String(output.output ?? "") };
    const args = isObject(input.args) ? { input: input.args } : {};
    return this.ask("tool.execute.after", input.sessionID, { tool: named(input.tool), ...args, result });
  }

  async prompted(input, output) {
    const session = input.sessionID;
    const start = await this.started(session);
    if (start.verdict !== "allow") throw new Denied(start.reason);
    const parts = Array.isArray(output.parts) ? output.parts : [];
    const written = parts.filter((part) => part?.type === "text" && typeof part.text === "string");
    // What OpenCode has put in itself comes from files that the user has named.
    for (const part of written.filter((part) => part.synthetic === true)) {
      const answer = await this.ask("tool.execute.after", session, { tool: "read", result: { output: part.text } });
      if (answer.verdict === "redact") part.text = answer.text;
      else if (answer.verdict !== "allow") part.text = withheld(answer.reason ?? "");
    }
    const own = written.filter((part) => part.synthetic !== true).map((part) => part.text);
    const answer = await this.ask("chat.message", session, { text: own.join("\n\n") });
    if (answer.verdict !== "allow") throw new Denied(answer.reason ?? denial("a prompt cannot be changed").reason);
    if (answer.context) this.notes.set(session, [...(this.notes.get(session) ?? []), answer.context].slice(-16));
  }

  /** What the model is to be told with its instructions. */
  async contextOf(session) {
    if (!session) return "";
    const start = await this.started(session);
    return [start.context, ...(this.notes.take(session) ?? [])].filter(Boolean).join("\n\n");
  }

  async happened(event) {
    const info = event?.properties?.info;
    if (event?.type === "session.created" && info?.id && info?.parentID) this.parents.set(info.id, info.parentID);
    if (event?.type === "session.deleted" && info?.id) await this.end(info.id, "deleted");
  }

  async end(session, reason) {
    this.starts.delete(session);
    this.notes.delete(session);
    await this.ask("session.end", session, { reason }, END_MS);
  }

  async ended() {
    await Promise.all(this.starts.keys().slice(-MOST_ENDED).map((session) => this.end(session, "exit")));
  }
}

function named(tool) {
  return OWN_TOOLS.has(tool) ? tool : `mcp__${tool}`;
}

/** Whether a part of a result is something else than text. */
function isOpaque(part) {
  return !isObject(part) || part.type === "image" || part.type === "audio";
}

/** Puts another input in the place of what the tool is given. It is the same object that the tool gets. */
function rewrite(args, input) {
  if (!isObject(args)) throw new Denied(denial("its input cannot be changed").reason);
  for (const key of Object.keys(args)) if (!(key in input)) delete args[key];
  Object.assign(args, input);
  if (Object.keys(input).some((key) => JSON.stringify(args[key]) !== JSON.stringify(input[key]))) {
    throw new Denied(denial("its input cannot be changed").reason);
  }
}

/** Puts other texts in the place of what a tool gave. */
function put(output, result, text) {
  const parts = result?.content;
  if (Array.isArray(output.content)) {
    const same = Array.isArray(parts) && parts.length === output.content.length;
    output.content = same
      ? output.content.map((part, number) => (isOpaque(part) ? part : parts[number]))
      : [{ type: "text", text }];
  } else {
    output.output = typeof result?.output === "string" ? result.output : text;
  }
  // The model does not see these, but they would be kept and shown.
  if (isObject(output.metadata)) {
    for (const key of Object.keys(output.metadata)) {
      if (typeof output.metadata[key] === "string") output.metadata[key] = text;
    }
  }
  if (typeof output.title === "string" && output.title.length > 200) output.title = "";
}
