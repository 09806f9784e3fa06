// Before a move: what it would do, shown by a dry run, and the choice where files are in conflict.
import * as api from "./api.js";
import { h, $, count } from "./dom.js";

const reasons = {
  changed_by_other: "changed by somebody else since", unverified: "its state was never recorded", overlapping_exec: "commands of several sessions may have written it",
  in_the_way: "something unrecorded lies there", not_captured: "what lies there can not be captured", symlinked_parent: "a folder above it became a link",
};

const most = 200; // entries of a list

function list(title, entries, text, cls = "") {
  if (!entries || entries.length === 0) return null;
  return h("section", { class: `plan-list ${cls}` },
    h("h3", {}, `${title} `, h("span", { class: "muted" }, entries.length)),
    h("ul", {}, entries.slice(0, most).map((e) => h("li", {}, text(e)))),
    entries.length > most && h("p", { class: "muted" }, `and ${entries.length - most} more`));
}

const path = (p) => h("code", {}, p);

// plan shows a result of a dry run.
function plan(r, talks) {
  const nothing = ["written", "deleted", "conflicts", "left", "not_covered"].every((k) => (r[k] ?? []).length === 0);
  return [
    list("Conflicts", r.conflicts, (c) => [path(c.path), " ", h("span", {}, reasons[c.reason] ?? c.reason),
      c.last_writer && h("span", { class: "muted" }, `; last written by ${c.last_writer}`),
      c.entries?.length > 0 && h("span", { class: "muted" }, `: ${c.entries.join(", ")}`)], "conflicts"),
    list("Will be written", r.written, path),
    list("Will be deleted", r.deleted, path, "deletes"),
    list("Also undoes", r.also_undoes, (u) => [path(u.path), h("span", { class: "muted" }, ` by ${u.writer}`)]),
    list("Not covered", r.not_covered, (n) => [path(n.path), h("span", { class: "muted" }, ` ${n.reason}`)]),
    list("Left as it is", r.left, path),
    talks && h("p", {}, `The conversation will have ${count(r.messages, "message")}.`),
    nothing && h("p", { class: "muted" }, talks ? "No file changes." : "Nothing would change: files are already like that."),
  ];
}

// open asks about a move and makes it. ask has a title, the path of the API and the body; talks says that the
// conversation moves; inTurn lets the move wait for what the page is reading. It resolves to the result, or null
// when nothing was done.
export function open(ask) {
  const dialog = $("dialog");
  const body = { ...ask.body };
  return new Promise((resolve) => {
    let done = null;
    const finish = () => { dialog.removeEventListener("close", finish); resolve(done); };
    dialog.addEventListener("close", finish);

    async function look(note = "") {
      let result, conflict = null;
      draw([h("p", { class: "muted" }, "looking…")], []);
      try {
        result = await api.move(ask.path, { ...body, dry_run: true });
      } catch (err) {
        if (err.code !== "conflict" || !err.result?.conflicts) {
          const busy = err.code === "busy";
          draw([h("p", { class: "bad" }, err.message), err.hint && h("p", { class: "muted" }, err.hint)],
            busy ? [button("Close the running turn", () => { body.force = true; look(); })] : []);
          return;
        }
        result = err.result;
        conflict = err;
      }
      const parts = [note && h("p", { class: "bad" }, note), ...(ask.fields ? ask.fields(body, look) : []), ...plan(result, ask.talks)];
      if (!conflict) {
        draw(parts, [button(ask.verb, () => make(result.plan), "primary")]);
        return;
      }
      const final = result.conflicts.every((c) => c.final);
      draw(parts, [
        button("Leave those alone", () => { body.skip_conflicts = true; look(); }),
        !final && button("Overwrite them", () => { body.force = true; look(); }, "danger"),
      ]);
    }

    async function make(planned) {
      try {
        done = await ask.inTurn(() => api.move(ask.path, planned ? { ...body, plan: planned } : body));
        dialog.close();
      } catch (err) {
        if (err.code === "stale" || err.code === "conflict") await look("Something changed meanwhile; this is what it would do now.");
        else draw([h("p", { class: "bad" }, err.message), err.hint && h("p", { class: "muted" }, err.hint)], []);
      }
    }

    function draw(content, buttons) {
      dialog.replaceChildren(h("h2", { id: "dialog-title" }, ask.title), h("div", { class: "content" }, content),
        h("footer", {}, h("button", { onclick: () => dialog.close() }, "Cancel"), buttons));
      (dialog.querySelector("button.primary") ?? dialog.querySelector("footer button"))?.focus();
    }

    dialog.showModal();
    look();
  });
}

function button(text, onclick, cls = "") {
  return h("button", { class: cls, onclick }, text);
}

// show tells something that is only to be read.
export function show(title, ...content) {
  const dialog = $("dialog");
  dialog.replaceChildren(h("h2", { id: "dialog-title" }, title), h("div", { class: "content" }, content),
    h("footer", {}, h("button", { class: "primary", onclick: () => dialog.close() }, "Close")));
  dialog.showModal();
}
