// One turn: what it was asked, what can be done with it, what it did and said.
import * as api from "./api.js";
import { h, $, when, count } from "./dom.js";
import { files } from "./diff.js";
import { talk } from "./talk.js";

let shown = 0; // a later call makes an earlier one void
let drawn = ""; // what is on the page: the same again leaves it, with what is open in it

export async function show(session, turn, actions, tab = "files") {
  const mine = ++shown;
  const main = $("detail");
  let t;
  try {
    t = await api.checkpoint(session, turn);
  } catch (err) {
    if (mine === shown) nothing(err.message);
    return;
  }
  if (mine !== shown) return;
  const now = JSON.stringify(t);
  if (now === drawn) return;
  drawn = now;
  const panel = h("div", { class: "panel", role: "tabpanel" });
  const tabs = { files: `Files ${t.files.length}`, talk: `Conversation ${t.messages}`, more: `Others and gaps ${t.others.length + t.gaps.length}` };
  const buttons = Object.entries(tabs).map(([name, title]) =>
    h("button", { role: "tab", "data-tab": name, "aria-selected": "false", onclick: () => choose(name) }, title));

  async function choose(name) {
    for (const b of buttons) b.setAttribute("aria-selected", String(b.dataset.tab === name));
    main.dataset.tab = name;
    if (name === "files") panel.replaceChildren(files(session, turn, t.files));
    if (name === "more") panel.replaceChildren(...others(t));
    if (name === "talk") {
      panel.replaceChildren(h("p", { class: "muted" }, "reading…"));
      const list = await talk(session, t).catch((err) => h("p", { class: "bad" }, err.message));
      if (main.dataset.tab === "talk") panel.replaceChildren(list);
    }
  }

  main.replaceChildren(
    h("div", { class: "turn-head" },
      h("button", { class: "back quiet", onclick: actions.back }, "‹ Turns"),
      h("h1", {}, `Turn ${turn}`, h("span", { class: `tag ${t.status}` }, t.status), t.expired && h("span", { class: "tag" }, "expired")),
      h("p", { class: "muted" }, when(t.time_ms), ` · ${count(t.files.length, "file")} · ${count(t.messages, "message")}`)),
    h("blockquote", { class: "asked" }, t.prompt || "(no prompt)"),
    h("div", { class: "actions", role: "group", "aria-label": "Go back to the start of this turn" },
      h("button", { class: "primary", disabled: !t.can_code && !t.can_conversation, title: "b", onclick: () => actions.rewind(t, "both") }, "Restore both"),
      h("button", { disabled: !t.can_code, title: "c", onclick: () => actions.rewind(t, "code") }, "Restore code"),
      h("button", { disabled: !t.can_conversation, title: "m", onclick: () => actions.rewind(t, "conversation") }, "Restore conversation"),
      h("button", { title: "f", onclick: () => actions.fork(t) }, "Fork")),
    h("p", { class: "hint muted" }, "Back to the moment before this prompt. What it would do is shown first, and can be undone."),
    h("div", { class: "tabs", role: "tablist" }, buttons),
    panel);
  main.scrollTop = 0;
  await choose(tabs[tab] ? tab : "files");
}

function others(t) {
  return [
    t.gaps.length > 0 && h("section", {}, h("h3", {}, "Not captured"),
      h("ul", { class: "plain" }, t.gaps.map((g) => h("li", {}, h("strong", {}, g.reason), g.path && h("code", {}, ` ${g.path}`), g.detail && h("span", { class: "muted" }, ` ${g.detail}`))))),
    t.others.length > 0 && h("section", {}, h("h3", {}, "Changed by others, or by a move"),
      h("ul", { class: "plain" }, t.others.map((o) => h("li", {}, h("code", {}, o.path), h("span", { class: "muted" }, ` ${o.change}, ${o.source}`))))),
    t.gaps.length + t.others.length === 0 && h("p", { class: "muted" }, "Everything was captured, and nobody else changed a file."),
  ].filter(Boolean);
}

export function nothing(text) {
  shown++;
  drawn = "";
  $("detail").replaceChildren(h("div", { class: "placeholder" }, h("p", {}, text)));
}
