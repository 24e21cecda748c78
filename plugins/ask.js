// Asks `wardkeep hook` about one event. `wardkeep install` writes this file beside each plugin.
//
// Whatever goes wrong is a denial: a program that cannot be started, that ends badly, that is killed,
// that is too slow, or that says something else than an answer of exactly our form.

import { spawn } from "node:child_process";

/** The version of the form. */
const VERSION = 1;
/** The program answers within 4 s by itself; both agents wait longer than this. */
export const DEADLINE_MS = 8000;
/** While an agent was too busy to look, there may be an answer all the same. */
const GRACE_MS = 250;
/** What the program takes, and the most that it can have to say to that. */
const MAX_EVENT_BYTES = 6 << 20;
const MAX_ANSWER_BYTES = 16 << 20;
/** All that the program is told of the surroundings: an agent reads others from files of a workspace. */
const VARIABLES = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "XDG_RUNTIME_DIR", "WARDKEEP_CONFINED"];

/** A denial in the form of an answer. */
export function denial(why) {
  const text = `denied by wardkeep's plugin: ${why}. The owner runs \`wardkeep doctor\` if this goes on.`;
  return { verdict: "deny", reason: text };
}

/**
 * The answer to an event. Never throws.
 * @param {string[]} command the program and its first words
 * @param {string} agent as wardkeep names it
 * @param {{hook: string} & Record<string, unknown>} event
 * @param {number} [patience] milliseconds
 * @returns {Promise<{verdict: "allow" | "deny" | "pending" | "rewrite" | "redact", [key: string]: any}>}
 */
export async function ask(command, agent, event, patience = DEADLINE_MS) {
  let input;
  try {
    // One line: while the agent is busy, its end is seen sooner than that of the whole stream.
    input = Buffer.from(`${JSON.stringify({ v: VERSION, ...event }, wellFormed)}\n`);
  } catch {
    return denial("the event cannot be written as JSON");
  }
  if (input.length > MAX_EVENT_BYTES) return denial("the event is too long to be judged");
  const told = await run([...command, "hook", agent, String(event.hook)], input, patience);
  return typeof told === "string" ? denial(told) : read(told);
}

/**
 * Runs a program with an input: what it printed, or why that is nothing to go by. Never throws.
 * @param {string[]} words
 * @param {Buffer} input
 * @param {number} patience milliseconds
 * @returns {Promise<Buffer | string>}
 */
export function run(words, input, patience) {
  return new Promise((resolve) => {
    let child;
    let timer;
    const parts = [];
    let length = 0;
    const end = (told) => {
      clearTimeout(timer);
      resolve(told);
    };
    const give_up = (why) => {
      end(why);
      child?.kill("SIGKILL");
      child?.stdout?.destroy();
    };
    try {
      const [program, ...rest] = words;
      const env = {};
      for (const name of VARIABLES) {
        if (process.env[name] !== undefined) env[name] = process.env[name];
      }
      // Not where the agent works: nothing there is to be found by chance.
      child = spawn(program, rest, { cwd: "/", env, stdio: ["pipe", "pipe", "ignore"], windowsHide: true });
    } catch {
      end("wardkeep could not be started");
      return;
    }
    const late = () => give_up(`wardkeep did not answer within ${patience} ms`);
    timer = setTimeout(() => {
      timer = setTimeout(late, GRACE_MS);
    }, patience);
    child.on("error", () => give_up("wardkeep could not be started"));
    // One that ends early says so by how it ends.
    child.stdin?.on("error", () => {});
    child.stdout?.on("error", () => give_up("the answer of wardkeep could not be read"));
    child.stdout?.on("data", (part) => {
      length += part.length;
      if (length > MAX_ANSWER_BYTES) give_up("the answer of wardkeep is too long");
      else parts.push(part);
    });
    child.on("close", (code, signal) => {
      if (code === 0) end(Buffer.concat(parts));
      else end(signal ? `wardkeep was ended by ${signal}` : `wardkeep ended with status ${code}`);
    });
    child.stdin?.end(input);
  });
}

/** An answer, if it is one. */
function read(bytes) {
  let said;
  try {
    said = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    return denial("the answer of wardkeep is no JSON");
  }
  const text = (key) => typeof said[key] === "string" && said[key] !== "";
  const optional = (key) => said[key] === undefined || typeof said[key] === "string";
  if (!isObject(said) || said.v !== VERSION || !optional("context") || !optional("message")) {
    return denial("the answer of wardkeep is of another form");
  }
  switch (said.verdict) {
    case "allow":
      return said;
    case "deny":
      return text("reason") ? said : denial("without a reason");
    case "pending":
      if (text("reason") && text("id")) return said;
      break;
    case "rewrite":
      if (isObject(said.input)) return said;
      break;
    case "redact":
      if (typeof said.text === "string") return said;
      break;
  }
  return denial("the answer of wardkeep is of another form");
}

export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Half of a sign is no text that could be judged. */
function wellFormed(_key, value) {
  if (typeof value === "bigint") return String(value);
  return typeof value === "string" ? value.toWellFormed() : value;
}

/** A map that forgets its oldest entries: what agents name sessions and calls is theirs to invent. */
export class Memory {
  constructor(most = 1024) {
    this.most = most;
    this.entries = new Map();
  }
  get(key) {
    return this.entries.get(key);
  }
  has(key) {
    return this.entries.has(key);
  }
  set(key, value) {
    this.entries.delete(key);
    this.entries.set(key, value);
    if (this.entries.size > this.most) this.entries.delete(this.entries.keys().next().value);
  }
  delete(key) {
    this.entries.delete(key);
  }
  take(key) {
    const value = this.entries.get(key);
    this.entries.delete(key);
    return value;
  }
  keys() {
    return [...this.entries.keys()];
  }
}

/** What the model sees in the place of a result that it may not see. */
export function withheld(reason) {
  return `[The result of this tool was withheld. ${reason}]`;
}
