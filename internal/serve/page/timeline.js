// The turns, newest first, of any number: rows are made for what can be seen, and read page by page.
import * as api from "./api.js";
import { h, $, ago, count, firstLine } from "./dom.js";

const rowHeight = 68; // as in style.css
const pageSize = 50;
const spare = 8; // rows beyond what can be seen

export class Timeline {
  constructor(onSelect) {
    this.onSelect = onSelect;
    this.box = $("timeline");
    this.space = h("div", { class: "space", role: "presentation" });
    this.box.replaceChildren(this.space);
    this.box.addEventListener("scroll", () => this.draw(), { passive: true });
    this.box.addEventListener("click", (e) => {
      const row = e.target.closest("[data-index]");
      if (row) this.select(Number(row.dataset.index), true);
    });
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.clear();
  }

  clear() {
    this.version = (this.version ?? 0) + 1;
    this.session = null;
    this.total = 0;
    this.turns = new Map(); // by number
    this.asked = new Set(); // pages
    this.found = null; // of a search: turns in order, newest first
    this.next = null; // of a search
    this.reading = null; // a promise, while more of a search is read
  }

  // load shows a session, or what is found in it; keep gives the turn that stays selected, or null. What was shown
  // stays until its place can be taken.
  async load(session, q = "", keep = () => null) {
    const mine = (this.loading = (this.loading ?? 0) + 1);
    const page = await api.checkpoints({ session, limit: pageSize, q });
    if (mine !== this.loading) return;
    this.clear();
    const version = this.version;
    this.session = session;
    this.q = q;
    this.total = page.turns;
    for (const t of page.checkpoints) this.turns.set(t.turn, t);
    if (q !== "") {
      this.found = page.checkpoints.map((t) => t.turn).reverse();
      this.next = page.next;
    } else {
      this.asked.add(this.pageOf(this.total - 1));
    }
    this.choose(keep());
    while (version === this.version && this.found && this.next !== null && this.found.length < pageSize) {
      await this.more(version);
      if (version === this.version) this.choose(keep());
    }
  }

  choose(turn) {
    this.selected = turn !== null && turn < this.total ? this.indexOf(turn) : -1;
    this.draw(true);
  }

  // more reads on in a search.
  more(version) {
    this.reading ??= this.readMore(version).finally(() => {
      if (version === this.version) this.reading = null;
    });
    return this.reading;
  }

  async readMore(version) {
    const page = await api.checkpoints({ session: this.session, before: this.next, limit: pageSize, q: this.q });
    if (version !== this.version) return;
    for (const t of page.checkpoints) this.turns.set(t.turn, t);
    this.found.push(...page.checkpoints.map((t) => t.turn).reverse());
    this.next = page.next;
  }

  length() { return this.found ? this.found.length : this.total; }
  turnAt(index) { return this.found ? this.found[index] : this.total - 1 - index; }
  indexOf(turn) { return this.found ? this.found.indexOf(turn) : this.total - 1 - turn; }
  pageOf(turn) { return Math.floor(Math.max(turn, 0) / pageSize); }

  async fetchPage(page) {
    if (this.asked.has(page)) return;
    this.asked.add(page);
    const version = this.version;
    try {
      const got = await api.checkpoints({ session: this.session, before: Math.min((page + 1) * pageSize, this.total), limit: pageSize });
      if (version !== this.version) return;
      for (const t of got.checkpoints) this.turns.set(t.turn, t);
      this.draw(true);
    } catch {
      this.asked.delete(page); // it is asked for again when it is seen again
    }
  }

  draw(anew = false) {
    const n = this.length();
    this.space.style.height = `${Math.max(n, 1) * rowHeight}px`;
    const first = Math.max(Math.floor(this.box.scrollTop / rowHeight) - spare, 0);
    const last = Math.min(Math.ceil((this.box.scrollTop + this.box.clientHeight) / rowHeight) + spare, n);
    if (!anew && first === this.first && last === this.last) return;
    this.first = first;
    this.last = last;
    const rows = [];
    for (let i = first; i < last; i++) rows.push(this.row(i));
    if (n === 0) {
      rows.push(h("p", { class: "empty" }, this.q ? "No turn matches." : "No turns yet. They appear here as the agent works."));
    }
    this.space.replaceChildren(...rows);
    if (this.found && last === n && this.next !== null) {
      this.more(this.version).then(() => this.draw(true));
    }
  }

  row(index) {
    const turn = this.turnAt(index);
    const t = this.turns.get(turn);
    const selected = index === this.selected;
    const row = h("div", {
      class: "turn" + (selected ? " selected" : "") + (t ? "" : " waiting"), role: "option", id: `row-${turn}`,
      "aria-selected": String(selected), "data-index": index, "data-turn": turn,
      "aria-setsize": this.length(), "aria-posinset": index + 1,
    });
    row.style.transform = `translateY(${index * rowHeight}px)`;
    if (!t) {
      if (!this.found) this.fetchPage(this.pageOf(turn));
      row.append(h("span", { class: "number" }, turn), h("span", { class: "prompt muted" }, "…"));
      return row;
    }
    let added = 0, removed = 0;
    for (const f of t.files) {
      added += f.added ?? 0;
      removed += f.removed ?? 0;
    }
    row.append(
      h("span", { class: "number" }, turn),
      h("span", { class: "prompt" }, firstLine(t.prompt)),
      h("span", { class: "facts" },
        h("span", {}, ago(t.time_ms)),
        t.file_count > 0 && h("span", {}, count(t.file_count, "file")),
        added > 0 && h("span", { class: "plus" }, `+${added}`),
        removed > 0 && h("span", { class: "minus" }, `−${removed}`),
        t.status !== "done" && h("span", { class: `tag ${t.status}` }, t.status),
        t.gaps.length > 0 && h("span", { class: "tag gap", title: "not everything was captured" }, count(t.gaps.length, "gap")),
        t.expired && h("span", { class: "tag", title: "gc dropped contents that a rewind of files needs" }, "expired"),
      ),
    );
    return row;
  }

  // select chooses a row and shows its turn.
  select(index, open = false) {
    if (index < 0 || index >= this.length()) return;
    this.selected = index;
    const top = index * rowHeight, bottom = top + rowHeight;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    else if (bottom > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = bottom - this.box.clientHeight;
    this.draw(true);
    this.box.setAttribute("aria-activedescendant", `row-${this.turnAt(index)}`);
    this.onSelect(this.turnAt(index), open);
  }

  step(by) {
    this.select(Math.min(Math.max(this.selected + by, 0), this.length() - 1));
  }
}
