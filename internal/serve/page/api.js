// The server's API (docs/http.md).

export class ApiError extends Error {
  constructor(status, body) {
    super(body?.error?.message ?? `the server answered ${status}`);
    this.status = status;
    this.code = body?.error?.code ?? "unknown";
    this.hint = body?.error?.hint ?? "";
    this.result = body; // of a conflict: what was planned
  }
}

async function ask(method, path, body) {
  const init = { method, headers: {}, credentials: "same-origin" };
  if (body !== undefined) {
    init.headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(body);
  }
  const answer = await fetch(path, init);
  const text = await answer.text();
  const type = (answer.headers.get("Content-Type") ?? "").split(";")[0].trim();
  const data = type === "application/json" && text !== "" ? JSON.parse(text) : text;
  if (!answer.ok) throw new ApiError(answer.status, typeof data === "object" ? data : null);
  return { data, headers: answer.headers };
}

function query(path, params) {
  const q = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined && value !== null && value !== "") q.append(name, value);
  }
  const text = q.toString();
  return text === "" ? path : `${path}?${text}`;
}

export const status = async () => (await ask("GET", "/status")).data;
export const tree = async () => (await ask("GET", "/tree")).data.tree;
export const operations = async (limit) => (await ask("GET", query("/operations", { limit }))).data;
export const checkpoint = async (session, turn) => (await ask("GET", query(`/checkpoints/${turn}`, { session }))).data;
export const diff = async (session, turn, path) =>
  (await ask("GET", query(`/checkpoints/${turn}/diff`, { session, path }))).data;

// checkpoints reads turns with smaller numbers than before, oldest first.
export async function checkpoints({ session, before, limit, q }) {
  const { data, headers } = await ask("GET", query("/checkpoints", { session, before, limit, q, stat: true }));
  const next = /[?&]before=(\d+)/.exec(headers.get("Link") ?? "");
  return {
    checkpoints: data,
    session: headers.get("Reasonix-Session"),
    turns: Number(headers.get("Reasonix-Turns") ?? data.length),
    next: next ? Number(next[1]) : null,
  };
}

export async function messages(session, from, limit) {
  const { data } = await ask("GET", query("/messages", { session, from, limit }));
  return String(data).split("\n").filter((line) => line !== "").map((line) => {
    try {
      return JSON.parse(line);
    } catch {
      return { role: "unreadable", content: line };
    }
  });
}

export const move = async (kind, body) => (await ask("POST", `/${kind}`, body)).data;
export const submit = async (prompt) => (await ask("POST", "/submit", { prompt })).data;
export const cancel = async () => (await ask("POST", "/cancel", {})).data;
