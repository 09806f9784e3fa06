// What happens, whoever does it, as it happens.
import { $ } from "./dom.js";

const names = ["turn_started", "turn_ended", "message", "tool", "progress", "rewound", "forked", "switched", "changed", "reset"];

// listen calls on(name, data) for each event; lost ones come again by themselves when the stream does.
export function listen(on) {
  let source = null, wait = 1000, closed = false;
  function connect() {
    if (closed) return;
    source = new EventSource("/events");
    source.onopen = () => { state("live", "on"); if (wait > 1000) on("reset", {}); wait = 1000; };
    source.onerror = () => {
      state("reconnecting", "off");
      if (source.readyState !== EventSource.CLOSED) return; // the browser tries again
      setTimeout(connect, wait);
      wait = Math.min(wait * 2, 30000);
    };
    for (const name of names) {
      source.addEventListener(name, (e) => {
        let data = {};
        try { data = JSON.parse(e.data); } catch { /* an event without data says enough by its name */ }
        on(name, data);
      });
    }
  }
  connect();
  addEventListener("pagehide", () => { closed = true; source?.close(); });
  addEventListener("pageshow", (e) => { if (e.persisted) { closed = false; connect(); on("reset", {}); } });
}

function state(text, cls) {
  $("live").className = `live ${cls}`;
  $("live-text").textContent = text;
}
