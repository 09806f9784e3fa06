// What a turn did to files.
import * as api from "./api.js";
import { h, count } from "./dom.js";

const signs = { created: "+", modified: "~", deleted: "−", renamed: "→", mode: "m", kind: "k" };

// files is a list of changes whose differences open on a click.
export function files(session, turn, list) {
  if (list.length === 0) return h("p", { class: "muted" }, "This turn changed no file.");
  return h("div", { class: "files" }, list.map((f) => file(session, turn, f)));
}

function file(session, turn, f) {
  const body = h("div", { class: "hunks" });
  const details = h("details", { class: "file" },
    h("summary", {},
      h("span", { class: `sign ${f.change}`, "aria-label": f.change }, signs[f.change] ?? "?"),
      h("span", { class: "path" }, f.from ? `${f.from} → ${f.path}` : f.path),
      h("span", { class: "facts" },
        f.source && f.source !== "tool" && h("span", { class: "tag" }, f.source),
        f.added > 0 && h("span", { class: "plus" }, `+${f.added}`),
        f.removed > 0 && h("span", { class: "minus" }, `−${f.removed}`),
      )),
    body);
  let read = false;
  details.addEventListener("toggle", async () => {
    if (!details.open || read) return;
    read = true;
    body.replaceChildren(h("p", { class: "muted" }, "reading…"));
    try {
      // A name that is not UTF-8 can not be asked for: it is looked for among all.
      const answer = await api.diff(session, turn, f.path_b64 ? undefined : f.path.replace(/\/$/, ""));
      const mine = answer.files.filter((one) => one.path === f.path && one.path_b64 === f.path_b64);
      body.replaceChildren(...(mine.length > 0 ? mine : answer.files).map(hunks));
      if (answer.files.length === 0) body.replaceChildren(h("p", { class: "muted" }, "Nothing differs."));
      if (answer.truncated) body.append(h("p", { class: "muted" }, "The difference is too long to be shown whole."));
    } catch (err) {
      read = false;
      body.replaceChildren(h("p", { class: "bad" }, err.message));
    }
  });
  return details;
}

function hunks(f) {
  if (f.unreadable) return h("p", { class: "muted" }, `The contents can not be compared: ${f.unreadable}.`);
  if (f.large) return h("p", { class: "muted" }, "The file is too large to be compared line by line.");
  if (f.binary) return h("p", { class: "muted" }, `Binary: ${count(f.before.size, "byte")} before, ${count(f.after.size, "byte")} after.`);
  if (f.hunks.length === 0) return h("p", { class: "muted" }, stateText(f.before, f.after));
  return h("table", { class: "diff", "aria-label": `difference of ${f.path}` }, h("tbody", {}, f.hunks.map(hunk)));
}

function stateText(before, after) {
  const text = (s) => (s.kind === "file" ? `file ${s.mode ?? ""}` : s.kind);
  return `${text(before)} before, ${text(after)} after.`;
}

function hunk(one) {
  let from = one.from_line, to = one.to_line;
  const rows = [h("tr", { class: "place" }, h("td", { colspan: "4" }, `@@ −${one.from_line},${one.from_count} +${one.to_line},${one.to_count} @@`))];
  for (const line of one.lines) {
    const kind = line.op === "+" ? "added" : line.op === "-" ? "removed" : "same";
    rows.push(h("tr", { class: kind },
      h("td", { class: "n" }, line.op === "+" ? "" : from++),
      h("td", { class: "n" }, line.op === "-" ? "" : to++),
      h("td", { class: "mark-of" }, line.op === "-" ? "−" : line.op),
      h("td", { class: "code" }, line.text, line.no_newline && h("span", { class: "muted" }, " (no newline at the end)"))));
  }
  return rows;
}
