// What the agent of this server says and does in a turn, as it does it, and why it stopped.
import { h, $, say } from "./dom.js";

const most = 20000; // characters of one piece that are kept here: the conversation has all of it

let of = ""; // the turn that is shown
let piece = null; // what is being said: {kind, text, box}
let since = []; // boxes since the last message, which may turn out to be void

// progress shows a piece of the turn that runs.
export function progress(p) {
  begin(`${p.session} ${p.turn}`);
  if (p.kind === "discarded") {
    for (const box of since) box.remove();
    settled();
  } else if (p.kind === "text" || p.kind === "reasoning") {
    if (piece?.kind !== p.kind) piece = { kind: p.kind, text: "", box: line(p.kind, "") };
    piece.text = (piece.text + p.text).slice(-most);
    piece.box.replaceChildren(h("span", {}, piece.text));
  } else {
    line(p.kind === "error" ? "bad" : "muted", p.text);
    piece = null;
  }
  $("reply").hidden = false;
  $("reply").scrollTop = $("reply").scrollHeight;
}

// settled says that a message was recorded: what was said until now stands.
export function settled() {
  piece = null;
  since = [];
}

// tool shows a call of the turn that runs.
export function tool(call) {
  if ($("reply").hidden || !of.startsWith(`${call.session} `) || call.state !== "started") return;
  line("muted", `${call.tool} ${call.paths?.join(" ") ?? ""}…`);
  settled();
}

// ended puts everything away but what went wrong.
export function ended(turn) {
  if (of !== `${turn.session} ${turn.turn}`) return;
  settled();
  $("reply").hidden = $("reply").querySelector(".bad") === null;
}

// refused says why a prompt was not taken.
export function refused(err) {
  begin("");
  $("reply").replaceChildren();
  line("bad", err.hint ? `${err.message}: ${err.hint}` : err.message);
  $("reply").hidden = false;
}

function begin(turn) {
  if (of === turn) return;
  of = turn;
  settled();
  $("reply").replaceChildren();
}

function line(cls, text) {
  const box = h("p", { class: cls }, text);
  since.push(box);
  if (cls === "bad") say(text); // the rest would be read out piece by piece
  $("reply").append(box);
  return box;
}
