// Lists the turns of the current session, newest first.
const list = document.getElementById("timeline");

async function load() {
  const answer = await fetch("/checkpoints");
  const turns = await answer.json();
  list.replaceChildren(...turns.reverse().map((turn) => {
    const item = document.createElement("li");
    item.value = turn.turn;
    item.textContent = turn.prompt;
    return item;
  }));
}

new EventSource("/events").onmessage = load;
load();
