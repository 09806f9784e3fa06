// The page as a whole: what is shown, what is done, keys, and news.
import * as api from "./api.js";
import * as detail from "./detail.js";
import * as dialog from "./dialog.js";
import { listen } from "./live.js";
import * as reply from "./reply.js";
import { Timeline } from "./timeline.js";
import { drawOperations, drawTree } from "./tree.js";
import { h, $, count, say } from "./dom.js";

const state = { status: null, session: null, turn: null, view: "turns", q: "" };
const timeline = new Timeline((turn, open) => choose(turn, open));

// ---- what is shown

async function choose(turn, open = false) {
  state.turn = turn;
  if (open) document.body.classList.add("reading");
  await detail.show(state.session, turn, actions, $("detail").dataset.tab);
}

// inTurn lets one work after the other: what is read while a move is made may be gone when it is asked for.
let last = Promise.resolve();
function inTurn(work) {
  const mine = last.then(work);
  last = mine.catch(() => {}); // whoever asked for it is told
  return mine;
}

// refresh reads everything again. What is chosen stays chosen, also what is chosen meanwhile; anew begins with
// the newest turn.
const refresh = (anew = false) => inTurn(() => readAgain(anew));

async function readAgain(anew) {
  if (anew) state.turn = null;
  state.status = await api.status();
  $("workspace").textContent = state.status.workspace.split("/").pop();
  $("workspace").title = state.status.workspace;
  document.title = `${state.status.workspace.split("/").pop()} — reasonix`;
  $("composer").hidden = !state.status.agent;
  $("viewer").hidden = state.status.agent;
  $("policy").textContent = may[state.status.policy] ?? "";
  if (state.session === null || state.follow) state.session = state.status.session;
  sessionNote();
  if (!state.session) {
    timeline.clear();
    timeline.draw(true);
    detail.nothing("No sessions were recorded in this workspace yet.");
    return;
  }
  await timeline.load(state.session, state.q, () => state.turn);
  $("cancel").hidden = timeline.turns.get(timeline.total - 1)?.status !== "open";
  if (timeline.selected < 0) {
    state.turn = null;
    if (timeline.length() > 0) timeline.select(0);
    else detail.nothing(state.q ? "No turn matches." : "No turns yet.");
  } else {
    timeline.select(timeline.selected);
  }
  await lists();
}

function sessionNote() {
  const other = state.session && state.session !== state.status.session;
  $("session-note").hidden = !other;
  $("session-note").replaceChildren(other ? h("span", {}, "Session ", h("code", {}, state.session), ", not the current one. ") : "",
    other ? h("button", { class: "small", onclick: () => actions.view(state.status.session) }, "Back to the current one") : "");
}

async function lists() {
  if (state.view === "tree") await drawTree(state.session, actions);
  if (state.view === "ops") await drawOperations(actions);
}

async function view(name) {
  state.view = name;
  for (const one of ["turns", "tree", "ops"]) {
    $(`view-${one}`).setAttribute("aria-selected", String(one === name));
    $(`list-${one}`).hidden = one !== name;
  }
  await lists();
  if (name === "turns") timeline.draw(true);
}

// ---- what is done

// What the agent may do without being asked: nobody is asked here.
const may = {
  ask: "It may only read: serve --approve auto-edit or full allows more.",
  "auto-edit": "It may edit files and run no commands.",
  full: "It may edit files and run commands.",
};

const scopes = { both: "files and conversation", code: "files", conversation: "the conversation" };

const actions = {
  back() {
    document.body.classList.remove("reading");
    $("timeline").focus();
  },
  async rewind(t, scope) {
    if (scope !== "conversation" && !t.can_code && !t.can_conversation) return;
    await run({
      title: `Restore ${scopes[scope]} to before turn ${t.turn}`, verb: "Restore", path: "rewind", talks: scope !== "code",
      body: { session: state.session, turn: t.turn, scope },
    });
  },
  async fork(t) {
    await run({
      title: `Fork at turn ${t.turn}`, verb: "Fork", path: "fork", talks: true, body: { session: state.session, turn: t.turn, name: "", code: false },
      fields: (body, look) => [
        h("label", { class: "field" }, "Name ", h("input", { id: "fork-name", value: body.name, maxlength: 100, placeholder: "optional", oninput: (e) => { body.name = e.target.value; } })),
        h("label", { class: "field" }, h("input", { id: "fork-code", type: "checkbox", checked: body.code, onchange: (e) => { body.code = e.target.checked; look(); } }), " take the files there too"),
      ],
    });
  },
  async switchTo(b) {
    await run({ title: `Switch to ${b.name || b.session}`, verb: "Switch", path: "switch", talks: false, body: { session: b.session } });
  },
  async undo(o) {
    await run({ title: `Undo to before operation ${o.operation}`, verb: "Undo", path: "undo-rewind", talks: true, body: { session: o.session, operation: o.operation } });
  },
  async view(session) {
    state.session = session;
    state.follow = session === state.status.session;
    await view("turns");
    await refresh(true);
  },
};

async function run(ask) {
  const result = await dialog.open({ ...ask, inTurn });
  if (!result) return;
  finished(ask.path, result);
  await refresh();
}

// finished tells what was done and offers the way back.
function finished(kind, r) {
  const files = (r.written?.length ?? 0) + (r.deleted?.length ?? 0);
  const what = {
    rewind: `Restored to before turn ${r.turn}`, fork: `Forked: ${r.branchId}`, switch: `Switched to ${r.session}`,
    "undo-rewind": "Undone", "redo-rewind": "Done again",
  }[kind] ?? "Done";
  if (kind === "fork" || kind === "switch") {
    state.follow = true;
    bar(what, files, "Switch back", () => run({ title: "Switch back", verb: "Switch back", path: "switch", talks: false, body: { session: "-" } }));
  } else if (kind === "undo-rewind") {
    bar(what, files, "Redo", () => run({ title: "Do it again", verb: "Redo", path: "redo-rewind", talks: true, body: { session: r.session } }));
  } else {
    bar(what, files, "Undo", () => run({ title: "Undo", verb: "Undo", path: "undo-rewind", talks: true, body: { session: r.session } }));
  }
}

let back = null; // what the bar offers

function bar(what, files, verb, act) {
  back = act;
  const text = files > 0 ? `${what}, ${count(files, "file")} changed.` : `${what}.`;
  $("undo").hidden = false;
  $("undo").replaceChildren(h("span", {}, text), h("button", { class: "primary", onclick: act, title: "u" }, verb),
    h("button", { class: "quiet", "aria-label": "Hide", onclick: () => { $("undo").hidden = true; } }, "×"));
  say(text);
}

// ---- news

let waiting = null;

function news(name, data) {
  if (name === "progress") return reply.progress(data); // nothing of it is in the history yet
  if (name === "message") reply.settled();
  if (name === "tool") reply.tool(data);
  if (name === "turn_ended") reply.ended(data);
  if (name === "rewound" && data.session === state.session && $("undo").dataset.operation !== data.operation && !$("dialog").open) {
    finished(data.kind === "undo" ? "undo-rewind" : data.kind === "redo" ? "redo-rewind" : "rewind", { ...data, written: Array(data.written ?? 0), deleted: Array(data.deleted ?? 0) });
  }
  if (name === "turn_started" || name === "turn_ended") say(`turn ${data.turn} ${name === "turn_started" ? "began" : "ended"}`);
  clearTimeout(waiting); // what comes close together is read once
  waiting = setTimeout(() => {
    const newest = timeline.selected === 0 && name === "turn_started";
    refresh(newest).catch(failed);
  }, 120);
}

function failed(err) {
  say(err.message);
  $("live").className = "live off";
  $("live-text").textContent = err.status === 401 ? "open the printed address again" : err.message;
}

// ---- keys

const keys = [
  ["j  k  ↓  ↑", "next and previous turn"], ["Enter", "read the turn"], ["b  c  m", "restore both, code, conversation"], ["f", "fork"],
  ["u", "undo (or what the bar offers)"], ["/", "search"], ["g  G", "newest and oldest turn"], ["Esc", "close, or back to the list"], ["?", "these keys"],
];

function help() {
  dialog.show("Keys", h("dl", { class: "keys" }, keys.map(([k, what]) => [h("dt", {}, k.split("  ").map((one) => h("kbd", {}, one))), h("dd", {}, what)])));
}

function undo() {
  if (back && !$("undo").hidden) return back();
  return run({ title: "Undo", verb: "Undo", path: "undo-rewind", talks: true, body: { session: state.session } });
}

function press(e) {
  if (e.ctrlKey || e.metaKey || e.altKey || $("dialog").open) return;
  if (e.target.closest?.("input, textarea, select")) {
    if (e.key === "Escape") e.target.blur();
    return;
  }
  const t = timeline.turns.get(state.turn);
  const does = {
    j: () => timeline.step(1), ArrowDown: () => timeline.step(1), k: () => timeline.step(-1), ArrowUp: () => timeline.step(-1),
    PageDown: () => timeline.step(10), PageUp: () => timeline.step(-10),
    g: () => timeline.select(0), G: () => timeline.select(timeline.length() - 1), Home: () => timeline.select(0), End: () => timeline.select(timeline.length() - 1),
    Enter: () => { if (e.target.closest("button, summary, a")) return false; document.body.classList.add("reading"); $("detail").focus(); },
    b: () => t && actions.rewind(t, "both"), c: () => t && actions.rewind(t, "code"), m: () => t && actions.rewind(t, "conversation"), f: () => t && actions.fork(t),
    u: undo, "/": () => { view("turns"); document.body.classList.remove("reading"); setTimeout(() => $("search").focus()); }, "?": help, Escape: actions.back,
  }[e.key];
  if (!does) return;
  if (does() !== false) e.preventDefault();
}

// ---- begin

addEventListener("keydown", press);
$("help").addEventListener("click", help);
for (const one of ["turns", "tree", "ops"]) $(`view-${one}`).addEventListener("click", () => view(one).catch(failed));

let typing = null;
$("search").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(() => {
    state.q = $("search").value.trim();
    refresh(true).catch(failed);
  }, 200);
});

$("composer").addEventListener("submit", async (e) => {
  e.preventDefault();
  const prompt = $("prompt").value.trim();
  if (prompt === "") return;
  try {
    await api.submit(prompt);
    $("prompt").value = "";
    state.follow = true; // the agent goes on with the current session
    await refresh(true);
  } catch (err) {
    reply.refused(err);
  }
});
$("prompt").addEventListener("keydown", (e) => {
  if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) $("composer").requestSubmit();
});
$("cancel").addEventListener("click", async () => {
  try {
    const { cancelled } = await api.cancel();
    if (!cancelled) reply.refused(new Error("Another program runs that turn: stop it there."));
  } catch (err) {
    reply.refused(err);
  }
});

state.follow = true;
refresh().then(() => { document.body.dataset.ready = "true"; listen(news); }).catch(failed);
