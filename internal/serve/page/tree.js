// The sessions with their forks, and what was done.
import * as api from "./api.js";
import { h, $, ago, count } from "./dom.js";

export async function drawTree(viewed, actions) {
  const all = await api.tree();
  const branch = (b) => h("li", {},
    h("div", { class: "branch" + (b.session === viewed ? " viewed" : ""), "data-session": b.session },
      h("button", { class: "name", onclick: () => actions.view(b.session), "aria-current": b.session === viewed ? "true" : null },
        h("span", { class: b.is_current ? "dot on" : "dot", "aria-hidden": "true" }),
        h("span", {}, b.name || b.session), b.name && h("span", { class: "muted" }, b.session)),
      h("span", { class: "muted" }, `${count(b.turns, "turn")}, ${ago(b.updated_ms)}` + (b.fork_turn === null ? "" : `, forked at turn ${b.fork_turn}`)),
      b.is_current ? h("span", { class: "tag" }, "current") : h("button", { class: "small", onclick: () => actions.switchTo(b) }, "Switch")),
    b.forks.length > 0 && h("ul", {}, b.forks.map(branch)));
  $("list-tree").replaceChildren(all.length === 0 ? h("p", { class: "empty" }, "No sessions yet.") : h("ul", { class: "tree" }, all.map(branch)));
}

export async function drawOperations(actions) {
  const { operations, more } = await api.operations(200);
  const undoable = ["rewind", "redo", "compact", "delete"];
  const row = (o) => h("li", { class: o.undone_by ? "op undone" : "op" },
    h("span", {}, h("strong", {}, o.kind), o.scope && ` ${o.scope}`, o.turn !== null && ` ${o.kind === "fork" ? "at" : "to"} turn ${o.turn}`, o.state !== "applied" && h("span", { class: "tag" }, o.state)),
    h("span", { class: "muted" }, `${ago(o.created_ms)} · ${o.session}`, o.written + o.deleted > 0 && ` · ${o.written} written, ${o.deleted} deleted`, o.undone_by && ` · taken back by ${o.undone_by}`),
    !o.undone_by && o.state === "applied" && undoable.includes(o.kind) &&
      h("button", { class: "small", onclick: () => actions.undo(o) }, "Undo to before"));
  $("list-ops").replaceChildren(
    operations.length === 0 ? h("p", { class: "empty" }, "Nothing was rewound, forked or switched yet.") : h("ul", { class: "ops" }, operations.map(row)),
    more ? h("p", { class: "empty" }, "Older ones: reasonix ops") : "");
}
