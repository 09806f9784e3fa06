// Elements are made from texts only: what was recorded is hostile and never parsed as markup.

// Characters that would not show, or would make a text read as another one, are shown as what they are.
const unseen = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

export function visible(text) {
  return String(text ?? "").replace(/\r\n/g, "\n").replace(unseen, (c) => {
    const n = c.charCodeAt(0);
    return n < 0x20 ? String.fromCharCode(0x2400 + n) : n === 0x7f ? "␡" : `⟨U+${n.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

// h makes an element. Properties beginning with "on" are listeners; children are elements or texts.
export function h(tag, props = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
    else if (name === "class") e.className = value;
    else e.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    e.append(child instanceof Node ? child : visible(child));
  }
  return e;
}

export const $ = (id) => document.getElementById(id);

// say tells a screen reader.
export function say(text) {
  $("say").textContent = visible(text);
}

const units = [[31536000, "year"], [2592000, "month"], [86400, "day"], [3600, "hour"], [60, "minute"]];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

export function ago(ms) {
  const s = (ms - Date.now()) / 1000;
  for (const [size, unit] of units) {
    if (Math.abs(s) >= size) return relative.format(Math.round(s / size), unit);
  }
  return "just now";
}

// when is a time as people say it, with the exact one behind.
export function when(ms) {
  return h("time", { datetime: new Date(ms).toISOString(), title: new Date(ms).toLocaleString() }, ago(ms));
}

export function count(n, one, many = one + "s") {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

export function firstLine(text, empty = "(no prompt)") {
  const line = String(text ?? "").split("\n").find((l) => l.trim() !== "");
  return line === undefined ? empty : line.trim();
}
