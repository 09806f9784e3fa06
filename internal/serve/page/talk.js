// The conversation of a turn.
import * as api from "./api.js";
import { h } from "./dom.js";

const most = 200; // messages at once
const long = 4000; // characters that are shown before a text is folded

export async function talk(session, turn) {
  if (turn.messages === 0) return h("p", { class: "muted" }, "No messages were recorded in this turn.");
  const list = await api.messages(session, turn.msg_index, Math.min(turn.messages, most));
  const all = list.map(message);
  if (turn.messages > most) all.push(h("p", { class: "muted" }, `The first ${most} of ${turn.messages} messages.`));
  return h("div", { class: "talk" }, all);
}

function message(m) {
  const parts = [];
  if (typeof m.reasoning_content === "string" && m.reasoning_content !== "") {
    parts.push(h("details", { class: "reasoning" }, h("summary", {}, "reasoning"), text(m.reasoning_content)));
  }
  parts.push(...content(m.content));
  for (const call of m.tool_calls ?? []) {
    const name = call.function?.name ?? call.name ?? "a tool";
    parts.push(h("div", { class: "call" }, h("strong", {}, name), " ", text(call.function?.arguments ?? call.arguments ?? "", 600)));
  }
  if (parts.length === 0) parts.push(h("span", { class: "muted" }, "(empty)"));
  const role = typeof m.role === "string" ? m.role : "?";
  return h("article", { class: `message ${["user", "assistant", "tool", "system"].includes(role) ? role : "other"}` },
    h("header", {}, role, m.name && h("span", { class: "muted" }, ` ${m.name}`)), parts);
}

function content(c) {
  if (typeof c === "string") return c === "" ? [] : [text(c)];
  if (!Array.isArray(c)) return c === undefined || c === null ? [] : [text(JSON.stringify(c))];
  return c.map((p) => (typeof p?.text === "string" ? text(p.text) : text(JSON.stringify(p), 400)));
}

// text folds what is long.
function text(s, limit = long) {
  const string = String(s);
  if (string.length <= limit) return h("div", { class: "text" }, string);
  const box = h("div", { class: "text" }, string.slice(0, limit));
  const more = h("button", { class: "quiet", onclick: () => { box.replaceChildren(h("span", {}, string)); more.remove(); } },
    `… ${(string.length - limit).toLocaleString("en")} more characters`);
  return h("div", {}, box, more);
}
